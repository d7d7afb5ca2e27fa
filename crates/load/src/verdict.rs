//! Whether the broker kept its promises: the ledgers of all threads, added up and judged.

use std::collections::BTreeMap;
use std::fmt;

use thrum_codec::QoS;
use thrum_figures::as_index;
use thrum_figures::{SECOND_NS, count};

use crate::ledger::{PairLedger, SharedLedger};
use crate::plan::{Plan, Sources};
use crate::scenario::Scenario;
use crate::thread_report::{
    PublisherReport, Role, SubscriberReport, SubscriberState, ThreadReport,
};

/// Deliveries of the whole load, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Deliveries that the messages sent ought to have caused.
    pub expected: u64,
    /// Of these, guaranteed deliveries that did not happen before the end of the drain.
    pub lost: u64,
    /// Of these, missing deliveries without a guarantee: never acknowledged because the session was
    /// gone, or to a subscriber that was disconnected without a session.
    pub excused: u64,
    /// Messages that arrived again.
    pub duplicated: u64,
    /// Messages that arrived after a later one of their publisher; not judged across a shared
    /// group.
    pub reordered: u64,
    /// Messages that arrived later after they were due than the drain lasts.
    pub late: u64,
    /// Messages that reached a subscriber that did not ask for them.
    pub misdelivered: u64,
    /// Messages that this run did not send.
    pub foreign: u64,
}

impl Delivery {
    /// Deliveries that happened.
    pub const fn delivered(&self) -> u64 {
        self.expected - self.lost - self.excused
    }

    /// Adds up the ledgers of all threads. `due_ns` returns when a message of a publisher was due.
    pub fn settle(
        plan: &Plan,
        reports: &[ThreadReport],
        due_ns: &dyn Fn(u32, u32) -> Option<u64>,
    ) -> Self {
        let mut sent = vec![PublisherReport::default(); plan.publishers().len()];
        for publisher in reports.iter().flat_map(|report| &report.publishers) {
            if let Some(entry) = sent.get_mut(as_index(publisher.number)) {
                entry.clone_from(publisher);
                entry.given_up.sort_unstable();
            }
        }
        let subscribers = reports.iter().flat_map(|report| &report.subscribers);
        let responders = subscribers.filter(|subscriber| subscriber.role == Role::Responder);
        let mut shared_responders = responders
            .clone()
            .filter(|responder| matches!(responder.state, SubscriberState::Shared(_)));
        let mut settlement = Settlement {
            delivery: Self::default(),
            sent,
            due_ns,
            unanswered: responders
                .flat_map(|responder| responder.absences.iter().copied())
                .collect(),
            answers_have_order: shared_responders.nth(1).is_none(),
            absences: BTreeMap::new(),
        };
        for report in reports {
            settlement.delivery.misdelivered += report.counts.misdelivered;
            settlement.delivery.foreign += report.counts.foreign;
            settlement.delivery.late += report.counts.late;
            for subscriber in &report.subscribers {
                settlement.settle_subscriber(report, subscriber);
            }
        }
        for (group, absences) in std::mem::take(&mut settlement.absences) {
            let ledgers = reports
                .iter()
                .filter_map(|report| report.shared.get(as_index(group)));
            if let Some(sources) = plan.shared().get(as_index(group)) {
                settlement.settle_shared(ledgers, sources, &absences);
            }
        }
        settlement.delivery
    }
}

/// Messages in flight to a client when its connection ended are lost with a clean session; only
/// this many nanoseconds before the end count.
const ON_THE_WAY_NS: u64 = 5 * SECOND_NS;

/// Deliveries under settlement.
struct Settlement<'a> {
    delivery: Delivery,
    /// By number of the publisher.
    sent: Vec<PublisherReport>,
    due_ns: &'a dyn Fn(u32, u32) -> Option<u64>,
    /// When responders were disconnected, so that a request may have no answer.
    unanswered: Vec<(u64, u64)>,
    /// Not where the members of a shared group answer: MQTT promises no order between them.
    answers_have_order: bool,
    /// Shared groups that had a member, and when members of clean sessions were disconnected.
    absences: BTreeMap<u32, Vec<(u64, u64)>>,
}

impl Settlement<'_> {
    fn settle_subscriber(&mut self, report: &ThreadReport, subscriber: &SubscriberReport) {
        match &subscriber.state {
            SubscriberState::Shared(group) => {
                self.absences
                    .entry(*group)
                    .or_default()
                    .extend(&subscriber.absences);
            }
            SubscriberState::Each {
                first_pair,
                sources,
            } => {
                let publishers =
                    (0..sources.len()).filter_map(|position| sources.publisher(position));
                let pairs = report.pairs.get(*first_pair..).unwrap_or_default();
                let mut absences = subscriber.absences.clone();
                let is_requester = subscriber.role == Role::Requester;
                if is_requester {
                    absences.extend(&self.unanswered);
                }
                let has_order = !is_requester || self.answers_have_order;
                for (pair, publisher) in pairs.iter().zip(publishers) {
                    self.settle_pair(pair, publisher, &absences);
                }
                if has_order {
                    let late = pairs
                        .iter()
                        .take(as_index(sources.len()))
                        .map(PairLedger::late);
                    self.delivery.reordered += late.map(u64::from).sum::<u64>();
                }
            }
        }
    }

    fn settle_pair(&mut self, pair: &PairLedger, publisher: u32, absences: &[(u64, u64)]) {
        let sent = self
            .sent
            .get(as_index(publisher))
            .map_or(0, |report| report.sent);
        let missing = pair.lost(sent);
        let excused = if missing == 0 {
            0
        } else {
            let missing = pair.missing(sent).flatten();
            missing
                .filter(|sequence| self.is_excused(publisher, *sequence, absences))
                .count()
        };
        let delivery = &mut self.delivery;
        delivery.expected += u64::from(sent);
        delivery.excused += u64::try_from(excused).unwrap_or(u64::MAX);
        delivery.lost += missing.saturating_sub(u64::try_from(excused).unwrap_or(u64::MAX));
        delivery.duplicated += u64::from(pair.duplicates());
    }

    fn settle_shared<'a>(
        &mut self,
        mut ledgers: impl Iterator<Item = &'a SharedLedger>,
        sources: &Sources,
        absences: &[(u64, u64)],
    ) {
        let Some(mut sum) = ledgers.next().cloned() else {
            return;
        };
        for ledger in ledgers {
            sum.merge(ledger);
        }
        self.delivery.duplicated += sum.duplicates();
        for position in 0..sources.len() {
            let Some(publisher) = sources.publisher(position) else {
                continue;
            };
            let sent = self
                .sent
                .get(as_index(publisher))
                .map_or(0, |report| report.sent);
            self.delivery.expected += u64::from(sent);
            let missing = sum.lost(position, sent);
            if missing == 0 {
                continue;
            }
            let excused = sum.missing(position, sent);
            let excused = excused
                .filter(|sequence| self.is_excused(publisher, *sequence, absences))
                .count();
            let excused = u64::try_from(excused).unwrap_or(u64::MAX);
            self.delivery.excused += excused;
            self.delivery.lost += missing.saturating_sub(excused);
        }
    }

    /// Whether the delivery of a message was not guaranteed: it was never acknowledged because its
    /// session was gone, or its subscriber was disconnected without a session.
    fn is_excused(&self, publisher: u32, sequence: u32, absences: &[(u64, u64)]) -> bool {
        let report = self.sent.get(as_index(publisher));
        if report.is_some_and(|report| report.given_up.binary_search(&sequence).is_ok()) {
            return true;
        }
        if absences.is_empty() {
            return false;
        }
        let due_ns = (self.due_ns)(publisher, sequence);
        due_ns.is_some_and(|due_ns| {
            absences
                .iter()
                .any(|(from, to)| from.saturating_sub(ON_THE_WAY_NS) <= due_ns && due_ns <= *to)
        })
    }
}

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// QoS 1 or 2 messages did not arrive.
    Lost(u64),
    /// Messages arrived again that may not.
    Duplicated(u64),
    /// Messages of one publisher and topic arrived in another order.
    Reordered(u64),
    /// Messages reached a client without a matching subscription.
    Misdelivered(u64),
    /// Clients were not accepted.
    NotAccepted(u64),
    /// Clients were cut off.
    CutOff(u64),
    /// Messages were refused.
    Refused(u64),
    /// Messages were not acknowledged, though the connection held.
    Unacknowledged(u64),
    /// Clients that should have reconnected did not.
    StayedAway(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = match self {
            Self::Lost(number) => ("messages lost", number),
            Self::Duplicated(number) => ("messages delivered again", number),
            Self::Reordered(number) => ("messages out of order", number),
            Self::Misdelivered(number) => ("messages to the wrong subscriber", number),
            Self::NotAccepted(number) => ("clients not accepted", number),
            Self::CutOff(number) => ("connections lost", number),
            Self::Refused(number) => ("messages refused", number),
            Self::Unacknowledged(number) => ("messages not acknowledged", number),
            Self::StayedAway(number) => ("clients that did not reconnect", number),
        };
        write!(formatter, "{what}: {}", count(*number))
    }
}

/// The counts of clients and connections, as far as they are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Clients that did not get ready.
    pub failed: u64,
    /// Connections lost, where the scenario leaves them alone.
    pub lost: u64,
    /// Clients that should have reconnected and had not until the end.
    pub away: u64,
    /// Messages not acknowledged on connections that held.
    pub unacknowledged: u64,
    /// Messages refused.
    pub refused: u64,
}

/// What MQTT promises of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// No message is lost.
    pub arrives: bool,
    /// No message is delivered more than once.
    pub arrives_once: bool,
}

impl Promise {
    /// What is promised of the messages of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let qos = scenario.delivery_qos();
        Self {
            arrives: qos.is_some_and(|qos| qos >= QoS::AtLeastOnce),
            arrives_once: !scenario.may_duplicate(),
        }
    }
}

/// Finds the promises that were not kept.
pub fn faults(promise: Promise, delivery: &Delivery, connections: &Connections) -> Vec<Fault> {
    let candidates = [
        (promise.arrives, delivery.lost, Fault::Lost(delivery.lost)),
        (
            promise.arrives_once,
            delivery.duplicated,
            Fault::Duplicated(delivery.duplicated),
        ),
        (
            true,
            delivery.reordered,
            Fault::Reordered(delivery.reordered),
        ),
        (
            true,
            delivery.misdelivered,
            Fault::Misdelivered(delivery.misdelivered),
        ),
        (
            true,
            connections.failed,
            Fault::NotAccepted(connections.failed),
        ),
        (true, connections.lost, Fault::CutOff(connections.lost)),
        (true, connections.away, Fault::StayedAway(connections.away)),
        (
            true,
            connections.refused,
            Fault::Refused(connections.refused),
        ),
        (
            true,
            connections.unacknowledged,
            Fault::Unacknowledged(connections.unacknowledged),
        ),
    ];
    let broken = candidates
        .into_iter()
        .filter(|(is_promised, number, _)| *is_promised && *number > 0);
    broken.map(|(_, _, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::find;

    const WORST: Delivery = Delivery {
        expected: 100,
        lost: 1,
        excused: 0,
        late: 0,
        duplicated: 2,
        reordered: 0,
        misdelivered: 0,
        foreign: 9,
    };

    /// Faults of pairs that publish and subscribe with these.
    fn found(published: QoS, subscribed: QoS, delivery: &Delivery) -> Vec<Fault> {
        let mut scenario = find("p2p-1K").unwrap();
        for group in &mut scenario.groups {
            if let Some(publish) = &mut group.publish {
                publish.qos = published;
            }
            if let Some(subscribe) = &mut group.subscribe {
                subscribe.qos = subscribed;
            }
        }
        faults(Promise::of(&scenario), delivery, &Connections::default())
    }

    // [MQTT-4.3.1-1] [MQTT-4.3.3-3]
    #[test]
    fn each_quality_of_service_is_held_to_its_own_promise() {
        use QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};
        let (lost, again) = (Fault::Lost(1), Fault::Duplicated(2));
        for (published, subscribed, expected) in [
            (AtMostOnce, AtMostOnce, &[again][..]),
            (AtMostOnce, AtLeastOnce, &[again]),
            (AtMostOnce, ExactlyOnce, &[again]),
            // Its publisher may send it again.
            (AtLeastOnce, AtMostOnce, &[]),
            (AtLeastOnce, AtLeastOnce, &[lost]),
            (AtLeastOnce, ExactlyOnce, &[lost]),
            (ExactlyOnce, AtMostOnce, &[again]),
            (ExactlyOnce, AtLeastOnce, &[lost]),
            (ExactlyOnce, ExactlyOnce, &[lost, again]),
        ] {
            let found = found(published, subscribed, &WORST);
            assert_eq!(found, expected, "{published:?} {subscribed:?}");
        }
    }

    #[test]
    fn order_and_address_are_promised_always() {
        let delivery = Delivery {
            reordered: 3,
            misdelivered: 4,
            ..Delivery::default()
        };
        let expected = [Fault::Reordered(3), Fault::Misdelivered(4)];
        let lowest = QoS::AtMostOnce;
        assert_eq!(found(lowest, lowest, &delivery), expected);
    }

    #[test]
    fn clients_and_messages_refused_are_faults() {
        let connections = Connections {
            failed: 5,
            lost: 2,
            refused: 1,
            ..Connections::default()
        };
        let found = faults(Promise::default(), &Delivery::default(), &connections);
        assert_eq!(
            found,
            [Fault::NotAccepted(5), Fault::CutOff(2), Fault::Refused(1)]
        );
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "clients not accepted: 5",
                "connections lost: 2",
                "messages refused: 1"
            ]
        );
    }
}
