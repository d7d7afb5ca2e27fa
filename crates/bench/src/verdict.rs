//! Whether the broker kept its promises: the ledgers of all threads, added up and judged.

use std::collections::BTreeSet;
use std::fmt;

use thrum_codec::QoS;

use crate::ledger::{SharedLedger, as_index};
use crate::plan::{Plan, Sources};
use crate::record::Counts;
use crate::swarm::{SubscriberState, ThreadReport};
use crate::units::count;

/// Deliveries of the whole load, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Deliveries that the messages sent ought to have caused.
    pub expected: u64,
    /// Of these, those that did not happen before the end of the drain.
    pub lost: u64,
    /// Messages that arrived again.
    pub duplicated: u64,
    /// Messages that arrived after a later one of their publisher; not judged across a shared group.
    pub reordered: u64,
    /// Messages that reached a subscriber that did not ask for them.
    pub misdelivered: u64,
    /// Messages that this run did not send.
    pub foreign: u64,
}

impl Delivery {
    /// Deliveries that happened.
    pub const fn delivered(&self) -> u64 {
        self.expected - self.lost
    }

    /// Adds up the ledgers of all threads.
    pub(crate) fn settle(plan: &Plan, reports: &[ThreadReport]) -> Self {
        let mut sent = vec![0; plan.publishers().len()];
        for (publisher, messages) in reports.iter().flat_map(|report| &report.sent) {
            if let Some(sent) = sent.get_mut(as_index(*publisher)) {
                *sent = *messages;
            }
        }
        let mut delivery = Self::default();
        let mut groups = BTreeSet::new();
        for report in reports {
            delivery.misdelivered += report.counts.misdelivered;
            delivery.foreign += report.counts.foreign;
            groups.extend(
                report
                    .subscribers
                    .iter()
                    .filter_map(|subscriber| delivery.settle_subscriber(report, subscriber, &sent)),
            );
        }
        for group in groups {
            let ledgers = reports
                .iter()
                .filter_map(|report| report.shared.get(as_index(group)));
            if let Some(sources) = plan.shared().get(as_index(group)) {
                delivery.settle_shared(ledgers, sources, &sent);
            }
        }
        delivery
    }

    /// Adds up the pairs of a subscriber; the group of a member is settled as a whole.
    fn settle_subscriber(
        &mut self,
        report: &ThreadReport,
        subscriber: &SubscriberState,
        sent: &[u32],
    ) -> Option<u32> {
        match subscriber {
            SubscriberState::Each {
                first_pair,
                sources,
            } => {
                self.settle_pairs(report, *first_pair, sources, sent);
                None
            }
            SubscriberState::Shared(group) => Some(*group),
        }
    }

    fn settle_pairs(
        &mut self,
        report: &ThreadReport,
        first_pair: usize,
        sources: &Sources,
        sent: &[u32],
    ) {
        let publishers = (0..sources.len()).filter_map(|position| sources.publisher(position));
        let pairs = report.pairs.get(first_pair..).unwrap_or_default();
        for (pair, publisher) in pairs.iter().zip(publishers) {
            let sent = sent.get(as_index(publisher)).copied().unwrap_or(0);
            self.expected += u64::from(sent);
            self.lost += pair.lost(sent);
            self.duplicated += u64::from(pair.duplicates());
            self.reordered += u64::from(pair.late());
        }
    }

    fn settle_shared<'a>(
        &mut self,
        mut ledgers: impl Iterator<Item = &'a SharedLedger>,
        sources: &Sources,
        sent: &[u32],
    ) {
        let Some(mut sum) = ledgers.next().cloned() else {
            return;
        };
        for ledger in ledgers {
            sum.merge(ledger);
        }
        self.duplicated += sum.duplicates();
        for position in 0..sources.len() {
            let publisher = sources.publisher(position);
            let sent = publisher.and_then(|publisher| sent.get(as_index(publisher)).copied());
            self.expected += u64::from(sent.unwrap_or(0));
            self.lost += sum.lost(position, sent.unwrap_or(0));
        }
    }
}

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// QoS 1 or 2 messages did not arrive.
    Lost(u64),
    /// QoS 2 messages arrived again.
    Duplicated(u64),
    /// Messages of one publisher and topic came in another order.
    Reordered(u64),
    /// Messages reached somebody who did not ask for them.
    Misdelivered(u64),
    /// Clients were not accepted.
    NotAccepted(u64),
    /// Clients were cut off.
    CutOff(u64),
    /// Messages were refused.
    Refused(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = match self {
            Self::Lost(number) => ("messages lost", number),
            Self::Duplicated(number) => ("QoS 2 messages delivered again", number),
            Self::Reordered(number) => ("messages out of order", number),
            Self::Misdelivered(number) => ("messages to the wrong subscriber", number),
            Self::NotAccepted(number) => ("clients not accepted", number),
            Self::CutOff(number) => ("connections lost", number),
            Self::Refused(number) => ("messages refused", number),
        };
        write!(formatter, "{what}: {}", count(*number))
    }
}

/// Finds the promises that were not kept; `failed` clients did not get ready.
pub fn faults(qos: Option<QoS>, delivery: &Delivery, counts: &Counts, failed: u64) -> Vec<Fault> {
    let is_guaranteed = qos.is_some_and(|qos| qos >= QoS::AtLeastOnce);
    let is_exact = qos == Some(QoS::ExactlyOnce);
    let candidates = [
        (is_guaranteed, delivery.lost, Fault::Lost(delivery.lost)),
        (
            is_exact,
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
        (true, failed, Fault::NotAccepted(failed)),
        (
            true,
            counts.connections_lost,
            Fault::CutOff(counts.connections_lost),
        ),
        (true, counts.refused, Fault::Refused(counts.refused)),
    ];
    let broken = candidates
        .into_iter()
        .filter(|(is_promised, number, _)| *is_promised && *number > 0);
    broken.map(|(_, _, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORST: Delivery = Delivery {
        expected: 100,
        lost: 1,
        duplicated: 2,
        reordered: 0,
        misdelivered: 0,
        foreign: 9,
    };

    fn found(qos: QoS, delivery: &Delivery) -> Vec<Fault> {
        faults(Some(qos), delivery, &Counts::default(), 0)
    }

    #[test]
    fn each_quality_of_service_is_held_to_its_own_promise() {
        assert_eq!(found(QoS::AtMostOnce, &WORST), []);
        assert_eq!(found(QoS::AtLeastOnce, &WORST), [Fault::Lost(1)]);
        assert_eq!(
            found(QoS::ExactlyOnce, &WORST),
            [Fault::Lost(1), Fault::Duplicated(2)]
        );
    }

    #[test]
    fn order_and_address_are_promised_always() {
        let delivery = Delivery {
            reordered: 3,
            misdelivered: 4,
            ..Delivery::default()
        };
        let expected = [Fault::Reordered(3), Fault::Misdelivered(4)];
        assert_eq!(found(QoS::AtMostOnce, &delivery), expected);
    }

    #[test]
    fn clients_and_messages_refused_are_faults() {
        let counts = Counts {
            connections_lost: 2,
            refused: 1,
            ..Counts::default()
        };
        let found = faults(None, &Delivery::default(), &counts, 5);
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
