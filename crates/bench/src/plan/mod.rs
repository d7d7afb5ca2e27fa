//! A scenario worked out: which client plays which part, and who is to receive whose messages.

mod deal;
mod routes;

use std::collections::HashMap;

use thrum_codec::TopicFilter;

use crate::ledger::as_index;
use crate::pacing::Constant;
use crate::scenario::{Group, Scenario};
use crate::units::nanos;

pub use deal::Deal;
pub use routes::{Expectation, Sources};

/// Everything the threads need to know, made once and shared.
#[derive(Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Short text that makes client identifiers unique among runs.
    pub run_tag: String,
    groups: Vec<PlannedGroup>,
    publishers: Vec<Publisher>,
    expectations: Vec<Expectation>,
    shared: Vec<Sources>,
}

/// A publisher of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Topic of all its messages.
    pub topic: Box<str>,
    /// Deliveries that each of its messages ought to cause.
    pub fan_out: u32,
    /// Its group.
    pub group: usize,
    /// Its number in the group, from 0.
    pub number: u32,
}

/// What one client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its group.
    pub group: usize,
    /// Its number in the group, from 0; patterns count from 1.
    pub number: u32,
    /// Its number among all publishers.
    pub publisher: Option<u32>,
    /// Its number among all subscribers.
    pub subscriber: Option<u32>,
}

/// Why a scenario cannot be worked out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Against the rules of MQTT.
    #[error("group {group}: '{filter}' is no topic filter")]
    BadFilter {
        /// Name of the group.
        group: String,
        /// As written.
        filter: String,
    },
    /// Against the rules of MQTT.
    #[error("group {group}: '{topic}' is no topic name")]
    BadTopic {
        /// Name of the group.
        group: String,
        /// As written.
        topic: String,
    },
}

#[derive(Debug)]
struct PlannedGroup {
    first_client: u32,
    first_publisher: u32,
    first_subscriber: u32,
    pace: Option<Constant>,
}

impl Plan {
    /// Works out a scenario.
    ///
    /// # Errors
    /// A topic or filter that MQTT does not allow.
    pub fn new(scenario: Scenario, run_tag: &str) -> Result<Self, PlanError> {
        let mut plan = Self {
            groups: planned_groups(&scenario),
            publishers: Vec::new(),
            expectations: Vec::new(),
            shared: Vec::new(),
            run_tag: run_tag.to_owned(),
            scenario,
        };
        plan.publishers = planned_publishers(&plan.scenario)?;
        plan.expect_deliveries()?;
        Ok(plan)
    }

    /// Number of clients.
    pub fn clients(&self) -> u32 {
        self.scenario.clients()
    }

    /// The part of a client, numbered from 0 in the order of the groups.
    pub fn part(&self, client: u32) -> Part {
        let after = self
            .groups
            .partition_point(|group| group.first_client <= client);
        let group = after.saturating_sub(1);
        let planned = &self.groups[group];
        let number = client - planned.first_client;
        let spec = &self.scenario.groups[group];
        Part {
            group,
            number,
            publisher: spec
                .publish
                .as_ref()
                .map(|_| planned.first_publisher + number),
            subscriber: spec
                .subscribe
                .as_ref()
                .map(|_| planned.first_subscriber + number),
        }
    }

    /// Identifier of a client: at most 23 characters, as every broker must accept.
    pub fn client_id(&self, client: u32) -> String {
        format!("bench{}x{client}", self.run_tag)
    }

    /// Filters that a client of a group subscribes to.
    pub fn filters(&self, group: usize, number: u32) -> Vec<String> {
        self.scenario
            .groups
            .get(group)
            .map_or_else(Vec::new, |spec| {
                filters_of(spec, number, self.scenario.publishers())
            })
    }

    /// All publishers.
    pub fn publishers(&self) -> &[Publisher] {
        &self.publishers
    }

    /// What a subscriber is to receive.
    pub fn expectation(&self, subscriber: u32) -> &Expectation {
        &self.expectations[as_index(subscriber)]
    }

    /// Number of subscribers.
    pub fn subscribers(&self) -> u32 {
        u32::try_from(self.expectations.len()).unwrap_or(u32::MAX)
    }

    /// The publishers that feed each shared subscription.
    pub fn shared(&self) -> &[Sources] {
        &self.shared
    }

    /// The shape of a publishing group's load.
    pub fn pace(&self, group: usize) -> Option<Constant> {
        self.groups.get(group)?.pace
    }

    /// Nanoseconds from the start of the load to a message of a publisher; none for a publisher that is not in the plan.
    pub fn offset_ns(&self, publisher: u32, sequence: u32) -> Option<u64> {
        let planned = self.publishers.get(as_index(publisher))?;
        Some(
            self.groups[planned.group]
                .pace?
                .offset_ns(planned.number, sequence),
        )
    }

    /// Messages of a publisher that are due within the first `span_ns` of the load.
    pub fn due_within(&self, publisher: u32, span_ns: u64) -> u32 {
        self.publishers
            .get(as_index(publisher))
            .map_or(0, |planned| {
                let pace = self.groups[planned.group].pace;
                pace.map_or(0, |pace| pace.due_within(planned.number, span_ns))
            })
    }

    /// Nanoseconds of load: warm-up and hold.
    pub fn load_ns(&self) -> u64 {
        nanos(self.scenario.stages.warm_up) + nanos(self.scenario.stages.hold)
    }

    /// Most messages that one of these publishers sends in the whole run.
    pub fn messages_max(&self, sources: &Sources) -> u32 {
        let each = (0..sources.len()).filter_map(|index| sources.publisher(index));
        each.map(|publisher| self.due_within(publisher, self.load_ns()))
            .max()
            .unwrap_or(0)
    }

    /// Messages sent as a part of all messages sent and delivered; 1 if nobody publishes.
    pub fn publishing_part(&self) -> f64 {
        let (sent, delivered) = self.messages_per_second();
        if sent > 0.0 {
            sent / (sent + delivered)
        } else {
            1.0
        }
    }

    /// Messages sent and messages to be delivered in a second.
    pub fn messages_per_second(&self) -> (f64, f64) {
        let (mut sent, mut delivered) = (0.0, 0.0);
        for publisher in &self.publishers {
            let spec = self.scenario.groups.get(publisher.group);
            let rate = spec.and_then(|group| group.publish.as_ref());
            let rate = rate.map_or(0.0, |publish| publish.rate.messages_per_second());
            sent += rate;
            delivered += rate * f64::from(publisher.fan_out);
        }
        (sent, delivered)
    }

    fn expect_deliveries(&mut self) -> Result<(), PlanError> {
        let publishers = self.scenario.publishers();
        let mut routes = routes::Routes::new(&self.publishers);
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let subscribing = self
            .scenario
            .groups
            .iter()
            .filter(|group| group.subscribe.is_some());
        for (group, number) in
            subscribing.flat_map(|group| (0..group.clients).map(move |n| (group, n)))
        {
            let filters = filters_of(group, number, publishers);
            let sources = routes
                .sources(&filters)
                .ok_or_else(|| PlanError::BadFilter {
                    group: group.name.clone(),
                    filter: filters.join(" "),
                })?;
            let Some(filter) = filters
                .into_iter()
                .next()
                .filter(|filter| is_shared(filter))
            else {
                self.expectations.push(Expectation::Each(sources));
                continue;
            };
            let next = u32::try_from(self.shared.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(filter).or_insert(next);
            if number == next {
                self.shared.push(sources);
            }
            self.expectations.push(Expectation::Shared(number));
        }
        let direct = self.expectations.iter().filter_map(Expectation::each);
        for sources in direct.chain(&self.shared) {
            for publisher in (0..sources.len()).filter_map(|index| sources.publisher(index)) {
                self.publishers[as_index(publisher)].fan_out += 1;
            }
        }
        Ok(())
    }
}

fn planned_groups(scenario: &Scenario) -> Vec<PlannedGroup> {
    let (mut clients, mut publishers, mut subscribers) = (0, 0, 0);
    let mut planned = Vec::with_capacity(scenario.groups.len());
    for group in &scenario.groups {
        planned.push(PlannedGroup {
            first_client: clients,
            first_publisher: publishers,
            first_subscriber: subscribers,
            pace: group
                .publish
                .as_ref()
                .map(|publish| Constant::new(publish.rate.period_ns, group.clients)),
        });
        clients += group.clients;
        publishers += if group.publish.is_some() {
            group.clients
        } else {
            0
        };
        subscribers += if group.subscribe.is_some() {
            group.clients
        } else {
            0
        };
    }
    planned
}

fn planned_publishers(scenario: &Scenario) -> Result<Vec<Publisher>, PlanError> {
    let mut publishers = Vec::with_capacity(as_index(scenario.publishers()));
    for (index, group) in scenario.groups.iter().enumerate() {
        let Some(publish) = &group.publish else {
            continue;
        };
        for number in 0..group.clients {
            let topic = publish.topic.replace("{i}", &(number + 1).to_string());
            if !thrum_codec::topic::is_valid_name(&topic) {
                return Err(PlanError::BadTopic {
                    group: group.name.clone(),
                    topic,
                });
            }
            publishers.push(Publisher {
                topic: topic.into_boxed_str(),
                fan_out: 0,
                group: index,
                number,
            });
        }
    }
    Ok(publishers)
}

fn filters_of(group: &Group, number: u32, publishers: u32) -> Vec<String> {
    let Some(subscribe) = &group.subscribe else {
        return Vec::new();
    };
    let mut filters = Vec::with_capacity(subscribe.filters.len());
    for pattern in &subscribe.filters {
        let filter = pattern.replace("{i}", &(number + 1).to_string());
        if filter.contains("{p}") {
            let each = 1..=publishers;
            filters.extend(each.map(|publisher| filter.replace("{p}", &publisher.to_string())));
        } else {
            filters.push(filter);
        }
    }
    filters
}

fn is_shared(filter: &str) -> bool {
    TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, find};

    fn plan(name: &str, overrides: &Overrides) -> Plan {
        Plan::new(find(name).unwrap().with(overrides).unwrap(), "t").unwrap()
    }

    #[test]
    fn one_to_one_gives_each_subscriber_its_own_publisher() {
        let plan = plan(
            "p2p-1K",
            &Overrides {
                publishers: Some(3),
                ..Overrides::default()
            },
        );
        assert_eq!(plan.clients(), 6);
        let part = plan.part(1);
        assert_eq!((part.subscriber, part.publisher), (Some(1), None));
        assert_eq!(plan.filters(part.group, part.number), ["test/2"]);
        let part = plan.part(4);
        assert_eq!((part.subscriber, part.publisher), (None, Some(1)));
        assert_eq!(&*plan.publishers()[1].topic, "test/2");
        let Expectation::Each(sources) = plan.expectation(1) else {
            panic!("not shared")
        };
        assert_eq!((sources.len(), sources.publisher(0)), (1, Some(1)));
        assert!(
            plan.publishers()
                .iter()
                .all(|publisher| publisher.fan_out == 1)
        );
    }

    #[test]
    fn fan_out_gives_each_subscriber_every_publisher() {
        let overrides = Overrides {
            publishers: Some(3),
            subscribers: Some(4),
            ..Overrides::default()
        };
        let plan = plan("fanout-5-1000-5-250K", &overrides);
        assert_eq!(plan.filters(0, 2), ["test/1", "test/2", "test/3"]);
        assert!(
            plan.publishers()
                .iter()
                .all(|publisher| publisher.fan_out == 4)
        );
        let Expectation::Each(sources) = plan.expectation(3) else {
            panic!("not shared")
        };
        assert_eq!(
            (
                sources.position(0),
                sources.position(2),
                sources.position(3)
            ),
            (Some(0), Some(2), None)
        );
    }

    #[test]
    fn members_of_a_shared_subscription_expect_each_message_once_among_them() {
        let plan = plan(
            "sharedsub-1K-5",
            &Overrides {
                publishers: Some(10),
                ..Overrides::default()
            },
        );
        assert_eq!(plan.shared().len(), 1);
        assert_eq!(plan.shared()[0].len(), 10);
        assert!((0..5).all(|member| matches!(plan.expectation(member), Expectation::Shared(0))));
        assert!(
            plan.publishers()
                .iter()
                .all(|publisher| publisher.fan_out == 1)
        );
    }

    #[test]
    fn the_publishing_part_tells_fan_out_from_pairs() {
        let part = |name| plan(name, &Overrides::default()).publishing_part();
        assert!((part("p2p-1K") - 0.5).abs() < 1e-9);
        assert!((part("fanout-1-1K") - 1.0 / 1001.0).abs() < 1e-9);
        assert!((part("conn-tcp-10K-100") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn client_identifiers_fit_every_broker() {
        let plan = plan("conn-tcp-10K-100", &Overrides::default());
        assert!(plan.client_id(u32::MAX).len() <= 23);
        assert_eq!(plan.part(9_999).number, 9_999);
        assert_eq!(plan.load_ns(), 60_000_000_000);
    }

    #[test]
    fn a_bad_filter_or_topic_is_named() {
        let mut scenario = find("p2p-1K").unwrap();
        scenario.groups[0].subscribe.as_mut().unwrap().filters = vec!["a#".to_owned()];
        assert!(matches!(
            Plan::new(scenario, "t"),
            Err(PlanError::BadFilter { .. })
        ));
        let mut scenario = find("p2p-1K").unwrap();
        scenario.groups[1].publish.as_mut().unwrap().topic = "a/+".to_owned();
        assert!(matches!(
            Plan::new(scenario, "t"),
            Err(PlanError::BadTopic { .. })
        ));
    }
}
