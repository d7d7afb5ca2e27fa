//! Whether the broker kept its promises.

use std::fmt;

use thrum_codec::QoS;
use thrum_figures::{count, percent, ratio};

use crate::delivered::Wrong;
use crate::scenario::Scenario;

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
    /// Messages that were not what they should be.
    pub wrong: Wrong,
}

impl Delivery {
    /// Deliveries that happened.
    pub const fn delivered(&self) -> u64 {
        self.expected
            .saturating_sub(self.lost)
            .saturating_sub(self.excused)
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
    /// Messages arrived with another quality of service than the lower one of both sides.
    WrongQos(u64),
    /// Messages arrived on another topic than they were published to.
    WrongTopic(u64),
    /// Messages arrived with the retain flag, though they were published without it.
    WrongRetain(u64),
    /// Messages arrived with another payload.
    WrongPayload(u64),
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
            Self::WrongQos(number) => ("messages with the wrong QoS", number),
            Self::WrongTopic(number) => ("messages on the wrong topic", number),
            Self::WrongRetain(number) => ("messages wrongly marked as retained", number),
            Self::WrongPayload(number) => ("messages with an altered payload", number),
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
    let wrong = &delivery.wrong;
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
            wrong.misdelivered,
            Fault::Misdelivered(wrong.misdelivered),
        ),
        (true, wrong.qos, Fault::WrongQos(wrong.qos)),
        (true, wrong.topic, Fault::WrongTopic(wrong.topic)),
        (true, wrong.retain, Fault::WrongRetain(wrong.retain)),
        (true, wrong.payload, Fault::WrongPayload(wrong.payload)),
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

/// What a verdict is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Promises that were not kept, as texts.
    pub faults: Vec<String>,
    /// Clients of the scenario.
    pub wanted: u64,
    /// Clients that got ready.
    pub ready: u64,
    /// Clients that did not.
    pub failed: u64,
    /// The run was ended before its hold.
    pub is_without_figures: bool,
    /// The scenario has publishers.
    pub publishes: bool,
    /// The deliveries.
    pub delivery: Delivery,
}

impl Judged {
    /// Whether the broker kept its promises, and was asked to keep all of them.
    pub const fn passes(&self) -> bool {
        self.faults.is_empty() && self.are_all_decided() && !self.is_without_figures
    }

    /// The verdict as a sentence. The result of a run has it, and `verify` compares it whole: it
    /// changes with the schema of bundles only.
    pub fn text(&self) -> String {
        let (delivery, ready) = (&self.delivery, count(self.ready));
        if !self.faults.is_empty() {
            return self.faults.join(", ");
        }
        if !self.are_all_decided() {
            let wanted = count(self.wanted);
            return format!("ended while clients were connecting: {ready} of {wanted} ready");
        }
        if self.is_without_figures {
            return "ended before the hold: nothing was measured".to_owned();
        }
        if !self.publishes {
            return format!("all {ready} clients accepted and kept");
        }
        if delivery.expected == 0 {
            return "the messages had no receivers".to_owned();
        }
        let expected = count(delivery.expected);
        if delivery.lost > 0 {
            let share = percent(ratio(delivery.lost, delivery.expected));
            let lost = count(delivery.lost);
            return format!("{lost} of {expected} deliveries lost ({share}), which QoS 0 allows");
        }
        let duplicates = match delivery.duplicated {
            0 => "each once".to_owned(),
            again => format!("{} again, which QoS 1 allows", count(again)),
        };
        match delivery.excused {
            0 => format!("all {expected} deliveries arrived unaltered, in order, {duplicates}"),
            excused => format!(
                "all deliveries that were promised arrived unaltered, in order, {duplicates}; {} of {expected} were not promised: \
                 not acknowledged, or their subscriber was away without a session",
                count(excused)
            ),
        }
    }

    const fn are_all_decided(&self) -> bool {
        self.ready.saturating_add(self.failed) >= self.wanted
    }
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
        wrong: Wrong {
            misdelivered: 0,
            foreign: 9,
            qos: 0,
            topic: 0,
            retain: 0,
            payload: 0,
        },
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
    fn order_address_and_content_are_promised_always() {
        let delivery = Delivery {
            reordered: 3,
            wrong: Wrong {
                misdelivered: 4,
                foreign: 9,
                qos: 5,
                topic: 6,
                retain: 7,
                payload: 8,
            },
            ..Delivery::default()
        };
        let expected = [
            Fault::Reordered(3),
            Fault::Misdelivered(4),
            Fault::WrongQos(5),
            Fault::WrongTopic(6),
            Fault::WrongRetain(7),
            Fault::WrongPayload(8),
        ];
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
