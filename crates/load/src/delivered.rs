//! Whether messages arrive as they were published: quality of service, topic, retain flag and
//! payload are what MQTT promises the subscriber.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thrum_codec::{QoS, ReasonCode};
use thrum_figures::as_index;

use crate::plan::Plan;
use crate::scenario::Scenario;

/// A message as the subscriber's packet has it.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its quality of service.
    pub qos: QoS,
    /// Its retain flag.
    pub retain: bool,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Counts of messages that are not what they should be. A message may count more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// Messages to a subscriber that did not ask for them.
    pub misdelivered: u64,
    /// Messages that this run did not send.
    pub foreign: u64,
    /// Messages with another quality of service than the lower one of publisher and subscription.
    pub qos: u64,
    /// Messages on another topic than the publisher's.
    pub topic: u64,
    /// Messages with the retain flag, though their publisher did not set it.
    pub retain: u64,
    /// Messages with another payload than the publisher's.
    pub payload: u64,
}

/// Qualities of service from a lowest to a highest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosRange {
    lowest: QoS,
    highest: QoS,
}

/// What the deliveries to a subscriber depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The group of the subscriber.
    pub group: usize,
    /// What the broker granted: of several filters all that it granted.
    pub granted: QosRange,
}

/// The topics that this run publishes on.
#[derive(Debug)]
pub struct PublishedTopics {
    topics: BTreeSet<Box<str>>,
}

impl PublishedTopics {
    /// Those of a plan.
    pub fn new(plan: &Plan) -> Self {
        let publishers = plan.publishers().iter();
        let topics = publishers.flat_map(|planned| {
            let topic = Some(&planned.topic);
            topic.into_iter().chain(&planned.response).cloned()
        });
        Self {
            topics: topics.collect(),
        }
    }
}

impl Wrong {
    /// Adds other counts.
    pub const fn merge(&mut self, other: &Self) {
        self.misdelivered += other.misdelivered;
        self.foreign += other.foreign;
        self.qos += other.qos;
        self.topic += other.topic;
        self.retain += other.retain;
        self.payload += other.payload;
    }
}

impl QosRange {
    /// Only this one.
    pub const fn only(qos: QoS) -> Self {
        Self {
            lowest: qos,
            highest: qos,
        }
    }

    /// The range of a subscription whose answer has not arrived: the broker may grant less than was
    /// asked for, and may deliver before it answers.
    pub const fn up_to(asked: QoS) -> Self {
        Self {
            lowest: QoS::AtMostOnce,
            highest: asked,
        }
    }

    /// What a SUBACK grants. More than was asked for is none of the broker's business.
    pub fn granted(codes: impl IntoIterator<Item = ReasonCode>, asked: QoS) -> Self {
        let granted = codes.into_iter().map(|code| match code {
            ReasonCode::GrantedQoS2 => QoS::ExactlyOnce.min(asked),
            ReasonCode::GrantedQoS1 => QoS::AtLeastOnce.min(asked),
            _ => QoS::AtMostOnce,
        });
        let all = granted.map(Self::only).reduce(Self::with);
        all.unwrap_or_else(|| Self::only(asked))
    }

    /// The range with another one.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            lowest: self.lowest.min(other.lowest),
            highest: self.highest.max(other.highest),
        }
    }

    /// The lowest.
    pub const fn lowest(self) -> QoS {
        self.lowest
    }

    /// What messages of this range have with a subscription of another.
    fn delivered_with(self, granted: Self) -> Self {
        Self {
            lowest: self.lowest.min(granted.lowest),
            highest: self.highest.min(granted.highest),
        }
    }

    /// A bridge forwards as it is configured, with less if need be, but no promise of delivery is
    /// dropped.
    fn over_bridge(self) -> Self {
        Self {
            lowest: self.lowest.min(QoS::AtLeastOnce),
            ..self
        }
    }

    fn contains(self, qos: QoS) -> bool {
        self.lowest <= qos && qos <= self.highest
    }
}

/// The qualities of service of the answers to requests of a group's clients: those of the
/// responders, which may be several groups.
pub(crate) fn answers(scenario: &Scenario, target: usize) -> QosRange {
    let responders = scenario.groups.iter().filter_map(|group| {
        let subscribe = group.subscribe.as_ref()?;
        let range = QosRange::only(subscribe.qos);
        let is_bridged = group.target != target;
        subscribe.respond.then(|| {
            if is_bridged {
                range.over_bridge()
            } else {
                range
            }
        })
    });
    responders
        .reduce(QosRange::with)
        .unwrap_or(QosRange::up_to(QoS::ExactlyOnce))
}

/// The prefix that a bridge prepends to the topics of a group's subscriptions.
fn prefix_of(plan: &Plan, group: usize) -> &str {
    let group = plan.scenario.groups.get(group);
    let subscribe = group.and_then(|group| group.subscribe.as_ref());
    let prefix = subscribe.and_then(|subscribe| subscribe.strip_prefix.as_deref());
    prefix.unwrap_or_default()
}

/// Whether a payload without a legible mark has the rest of what this run sends.
pub fn resembles_any(plan: &Plan, payload: &[u8]) -> bool {
    let groups = 0..plan.scenario.groups.len();
    let mut templates = groups.filter_map(|group| plan.payload(group));
    templates.any(|template| template.resembles(payload))
}

impl Subscription {
    /// Whether a message without a legible mark, which has the rest of what this run sends, was
    /// altered on its way: it is on one of the run's topics. Otherwise someone else sent it.
    pub fn is_altered(&self, plan: &Plan, topics: &PublishedTopics, topic: &str) -> bool {
        let published = topic.strip_prefix(prefix_of(plan, self.group));
        published.is_some_and(|published| topics.topics.contains(published))
    }

    /// Counts what of a delivered message is not as its publisher sent it.
    pub fn compare(
        &self,
        plan: &Plan,
        publisher: u32,
        delivered: &Delivered<'_>,
        wrong: &mut Wrong,
    ) {
        let Some(planned) = plan.publishers().get(as_index(publisher)) else {
            return;
        };
        let group = |number: usize| plan.scenario.groups.get(number);
        let published = group(planned.group).and_then(|group| group.publish.as_ref());
        let (Some(published), Some(template)) = (published, plan.payload(planned.group)) else {
            return;
        };
        let subscribe = group(self.group).and_then(|group| group.subscribe.as_ref());
        let prefix = subscribe.and_then(|subscribe| subscribe.strip_prefix.as_deref());
        let answer = plan.answers(self.group).zip(planned.response.as_deref());
        let (qos, topic, may_be_retained) = match answer {
            Some((qos, response)) => (qos, response, false),
            None => (
                QosRange::only(published.qos),
                &*planned.topic,
                published.retain,
            ),
        };
        let qos = if prefix.is_some() {
            qos.over_bridge()
        } else {
            qos
        };
        let qos = qos.delivered_with(self.granted);
        let has_topic = match prefix {
            None => delivered.topic == topic,
            Some(prefix) => delivered.topic.strip_prefix(prefix) == Some(topic),
        };
        wrong.qos += u64::from(!qos.contains(delivered.qos));
        wrong.topic += u64::from(!has_topic);
        wrong.retain += u64::from(delivered.retain && !may_be_retained);
        wrong.payload += u64::from(!template.matches(delivered.payload));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tests::no_files;
    use crate::scenario::{PayloadSpec, PublishSpec, find};
    use QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};

    fn publishing(scenario: &mut Scenario) -> impl Iterator<Item = &mut PublishSpec> {
        let groups = scenario.groups.iter_mut();
        groups.filter_map(|group| group.publish.as_mut())
    }

    /// A plan whose messages are sixteen bytes, so that all are right.
    fn plan(name: &str, change: impl FnOnce(&mut Scenario)) -> Plan {
        let mut scenario = find(name).unwrap();
        for publish in publishing(&mut scenario) {
            publish.payload = PayloadSpec::Size(16);
        }
        change(&mut scenario);
        Plan::new(scenario, "t", &no_files).unwrap()
    }

    /// What is wrong of a message of the first publisher: quality of service, topic, retain flag.
    fn wrong(plan: &Plan, granted: QosRange, topic: &str, qos: QoS, retain: bool) -> [u64; 3] {
        let mut wrong = Wrong::default();
        let delivered = Delivered {
            topic,
            qos,
            retain,
            payload: &[0; 16],
        };
        let subscription = Subscription { group: 0, granted };
        subscription.compare(plan, 0, &delivered, &mut wrong);
        assert_eq!(wrong.payload, 0);
        [wrong.qos, wrong.topic, wrong.retain]
    }

    fn published_with(qos: QoS) -> impl Fn(&mut Scenario) {
        move |scenario| {
            for publish in publishing(scenario) {
                publish.qos = qos;
            }
        }
    }

    #[test]
    fn a_delivery_has_the_lower_quality_of_service_of_both_sides() {
        let all = [AtMostOnce, AtLeastOnce, ExactlyOnce];
        let pairs = all.map(|published| all.map(|granted| (published, granted)));
        for (published, granted) in pairs.into_iter().flatten() {
            let plan = plan("p2p-1K", published_with(published));
            let granted_only = QosRange::only(granted);
            for qos in all {
                let [found, ..] = wrong(&plan, granted_only, "test/t/1", qos, false);
                let is_wrong = qos != published.min(granted);
                assert_eq!(
                    found,
                    u64::from(is_wrong),
                    "{published:?} {granted:?} {qos:?}"
                );
            }
        }
    }

    #[test]
    fn the_range_of_several_filters_is_all_that_was_granted() {
        let granted = |codes: &[ReasonCode]| QosRange::granted(codes.iter().copied(), AtLeastOnce);
        assert_eq!(granted(&[ReasonCode::Success]), QosRange::only(AtMostOnce));
        assert_eq!(
            granted(&[ReasonCode::GrantedQoS2]),
            QosRange::only(AtLeastOnce)
        );
        let mixed = granted(&[ReasonCode::GrantedQoS1, ReasonCode::Success]);
        assert_eq!(mixed, QosRange::up_to(AtLeastOnce));
        let plan = plan("p2p-1K", published_with(ExactlyOnce));
        let found = [AtMostOnce, AtLeastOnce, ExactlyOnce]
            .map(|qos| wrong(&plan, mixed, "test/t/1", qos, false)[0]);
        assert_eq!(found, [0, 0, 1]);
    }

    #[test]
    fn the_topic_is_the_publishers_and_the_flag_only_a_retained_messages() {
        let granted = QosRange::only(AtMostOnce);
        let same = |scenario: &mut Scenario| published_with(AtMostOnce)(scenario);
        let as_published = plan("p2p-1K", same);
        let of = |topic, retain| wrong(&as_published, granted, topic, AtMostOnce, retain);
        assert_eq!(of("test/t/1", false), [0, 0, 0]);
        assert_eq!(of("test/t/2", false), [0, 1, 0]);
        assert_eq!(of("test/t/1", true), [0, 0, 1]);
        let retained = plan("p2p-1K", |scenario| {
            for publish in publishing(scenario) {
                (publish.qos, publish.retain) = (AtMostOnce, true);
            }
        });
        assert_eq!(
            wrong(&retained, granted, "test/t/1", AtMostOnce, true),
            [0, 0, 0]
        );
    }

    #[test]
    fn a_bridge_prepends_its_prefix_and_may_lower_but_not_drop_the_promise() {
        // Its first group subscribes to what the other broker's publishers send.
        let plan = plan("docs-bridge/10K", published_with(ExactlyOnce));
        let of = |topic, qos| wrong(&plan, QosRange::only(ExactlyOnce), topic, qos, false);
        assert_eq!(of("remote/bridge/t/a/1", ExactlyOnce), [0, 0, 0]);
        assert_eq!(of("remote/bridge/t/a/1", AtLeastOnce), [0, 0, 0]);
        assert_eq!(of("remote/bridge/t/a/1", AtMostOnce), [1, 0, 0]);
        assert_eq!(of("bridge/t/a/1", ExactlyOnce), [0, 1, 0]);
    }

    #[test]
    fn answers_have_the_responders_quality_of_service_on_the_topic_of_the_answers() {
        let plan = plan("p2p-1K", |scenario| {
            published_with(ExactlyOnce)(scenario);
            let mut groups = scenario.groups.iter_mut();
            let responders = groups.find_map(|group| group.subscribe.as_mut()).unwrap();
            (responders.respond, responders.qos) = (true, AtLeastOnce);
            // The requesters come first.
            scenario.groups.reverse();
            let publish = scenario.groups[0].publish.as_mut().unwrap();
            publish.response = Some("answer/{i}".to_owned());
        });
        let of = |topic, qos| wrong(&plan, QosRange::only(ExactlyOnce), topic, qos, false);
        assert_eq!(of("answer/1", AtLeastOnce), [0, 0, 0]);
        assert_eq!(of("answer/1", ExactlyOnce), [1, 0, 0]);
        assert_eq!(of("test/t/1", AtLeastOnce), [0, 1, 0]);
    }
}
