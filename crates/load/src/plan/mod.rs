//! The plan of a scenario: the role of each client, and the expected deliveries.

mod clients;
mod expect;
mod partition;
mod routes;
mod stamp;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use thrum_figures::as_index;
use thrum_figures::nanos;
use thrum_protocol::client::ClientOptions;

use crate::delivered::QosRange;
use crate::pacing::Pace;
use crate::payload::{PayloadError, ReadFile, Template};
use crate::scenario::Scenario;

pub use clients::ClientPattern;
pub use partition::{Machines, Share};
pub use routes::{Expectation, Sources};

/// Everything the threads need to know, made once and shared.
#[derive(Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Short text that makes client identifiers unique among runs.
    pub run_tag: String,
    run_number: u16,
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
    /// Topic of the answers, if its messages are requests.
    pub response: Option<Box<str>>,
    /// Expected deliveries of each of its messages.
    pub fan_out: u32,
    /// Of these, those whose latency is measured: a responder's is a part of the requester's.
    pub measured_fan_out: u32,
    /// Its group.
    pub group: usize,
    /// Its number in the group, from 0.
    pub number: u32,
}

/// The role of one client.
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

/// When a message is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nanoseconds after the start of the load, before any change during the run.
    At(u64),
    /// As soon as the window allows (closed loop).
    WhenAllowed,
}

/// Why a scenario cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Against the rules of MQTT.
    #[error("group {group}: '{filter}' is not a topic filter")]
    BadFilter {
        /// Name of the group.
        group: String,
        /// As written.
        filter: String,
    },
    /// Against the rules of MQTT.
    #[error("group {group}: '{topic}' is not a topic name")]
    BadTopic {
        /// Name of the group.
        group: String,
        /// As written.
        topic: String,
    },
    /// Nothing would acknowledge the messages.
    #[error("group {group}: a window needs QoS 1 or 2, for QoS 0 is never acknowledged")]
    WindowWithoutAcknowledgement {
        /// Name of the group.
        group: String,
    },
    /// A client has one place for answers.
    #[error("group {group}: a client that sends requests cannot subscribe to something else too")]
    RequestsAndSubscribes {
        /// Name of the group.
        group: String,
    },
    /// The payload cannot be made.
    #[error("group {group}: {source}")]
    Payload {
        /// Name of the group.
        group: String,
        /// Why.
        source: PayloadError,
    },
}

#[derive(Debug)]
struct PlannedGroup {
    first_client: u32,
    first_publisher: u32,
    first_subscriber: u32,
    subscribes: bool,
    pace: Option<Pace>,
    payload: Option<Template>,
    /// The quality of service of the answers to its requests; none if it sends no requests.
    answers: Option<QosRange>,
    pattern: ClientPattern,
}

impl Plan {
    /// Plans a scenario; `read` reads the files of payloads.
    ///
    /// # Errors
    /// A topic or filter that MQTT does not allow, or a payload that cannot be made.
    pub fn new(scenario: Scenario, run_tag: &str, read: ReadFile<'_>) -> Result<Self, PlanError> {
        let mut plan = Self {
            groups: clients::planned_groups(&scenario, run_tag, read)?,
            publishers: clients::planned_publishers(&scenario, run_tag)?,
            expectations: Vec::new(),
            shared: Vec::new(),
            run_tag: run_tag.to_owned(),
            run_number: stamp::run_number(run_tag),
            scenario,
        };
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
        let publishes = self.scenario.groups[group].publish.is_some();
        Part {
            group,
            number,
            publisher: publishes.then(|| planned.first_publisher + number),
            subscriber: planned
                .subscribes
                .then(|| planned.first_subscriber + number),
        }
    }

    /// Identifier of a client: if the scenario gives no pattern, at most 23 characters, as every
    /// broker must accept.
    pub fn client_id(&self, client: u32) -> String {
        let part = self.part(client);
        let pattern = self.groups.get(part.group).map(|group| &group.pattern);
        pattern
            .and_then(|pattern| pattern.id(part.number))
            .unwrap_or_else(|| format!("bench{}x{client}", self.run_tag))
    }

    /// The CONNECT parameters of a client.
    pub fn client_options(&self, group: usize, number: u32) -> Arc<ClientOptions> {
        self.groups[group].pattern.options(number)
    }

    /// Filters that a client of a group subscribes to.
    pub fn filters(&self, group: usize, number: u32) -> Vec<String> {
        let spec = self.scenario.groups.get(group);
        spec.map_or_else(Vec::new, |spec| {
            expect::filters_of(spec, number, self.scenario.publishers(), &self.run_tag)
        })
    }

    /// The send time that a mark has: with the number of this run.
    pub fn stamped(&self, sent_ns: u64) -> u64 {
        stamp::stamped(self.run_number, sent_ns)
    }

    /// The send time of a message whose mark has this one; none for a message of another run.
    pub fn sent_ns(&self, stamp: u64, now_ns: u64) -> Option<u64> {
        stamp::sent_ns(self.run_number, stamp, now_ns)
    }

    /// All publishers.
    pub fn publishers(&self) -> &[Publisher] {
        &self.publishers
    }

    /// The expected messages of a subscriber.
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

    /// The shape of a publishing group's load; none for a closed loop.
    pub fn pace(&self, group: usize) -> Option<&Pace> {
        self.groups.get(group)?.pace.as_ref()
    }

    /// The payloads of a publishing group.
    pub fn payload(&self, group: usize) -> Option<&Template> {
        self.groups.get(group)?.payload.as_ref()
    }

    /// The quality of service of the answers to a group's requests; none if it sends none.
    pub fn answers(&self, group: usize) -> Option<QosRange> {
        self.groups.get(group)?.answers
    }

    /// Size of the largest message; none without publishers.
    pub fn payload_bytes(&self) -> Option<u32> {
        let payloads = self
            .groups
            .iter()
            .filter_map(|group| group.payload.as_ref());
        payloads.map(Template::bytes_max).max()
    }

    /// The activity of the clients of a group, in one line.
    pub fn group_text(&self, group: usize) -> String {
        let payload_bytes = self.payload(group).map_or(0, Template::bytes_max);
        let spec = self.scenario.groups.get(group);
        spec.map_or_else(String::new, |spec| spec.text(payload_bytes))
    }

    /// Most messages without acknowledgement, if the group is a closed loop.
    pub fn window(&self, group: usize) -> Option<u16> {
        self.scenario.groups.get(group)?.publish.as_ref()?.window
    }

    /// When a message of a publisher is due; none for a publisher that is not in the plan.
    pub fn due(&self, publisher: u32, sequence: u32) -> Option<Due> {
        let planned = self.publishers.get(as_index(publisher))?;
        let pace = self.groups[planned.group].pace.as_ref();
        Some(pace.map_or(Due::WhenAllowed, |pace| {
            Due::At(pace.offset_ns(planned.number, sequence))
        }))
    }

    /// Messages of a publisher that are due within the first `span_ns` of the load; 0 in a closed
    /// loop.
    pub fn due_within(&self, publisher: u32, span_ns: u64) -> u32 {
        let planned = self.publishers.get(as_index(publisher));
        planned.map_or(0, |planned| {
            let pace = self.groups[planned.group].pace.as_ref();
            pace.map_or(0, |pace| pace.due_within(planned.number, span_ns))
        })
    }

    /// Messages of all publishers due within the first `span_ns` of the load, to a thousandth of
    /// the publishers of each group that is spread evenly.
    pub fn due_in_all(&self, span_ns: u64) -> u64 {
        let groups = self.scenario.groups.iter().zip(&self.groups);
        let due = groups.filter_map(|(group, planned)| {
            let pace = planned.pace.as_ref()?;
            Some(pace.due_of_all(group.clients, span_ns))
        });
        due.sum()
    }

    /// Nanoseconds of load: warm-up and hold.
    pub fn load_ns(&self) -> u64 {
        nanos(self.scenario.stages.warm_up) + nanos(self.scenario.stages.hold)
    }

    /// Messages sent as a part of all messages sent and delivered; 1 without publishers.
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
}
