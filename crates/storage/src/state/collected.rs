//! One session while its records are read: they arrive in any order, copies of old ones last.

use hashbrown::HashMap;
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS, Version};

use super::bodies::Found;
use super::deliveries::{Deliveries, Delivery};
use super::index::{Entry, Index};
use super::print::Print;
use super::recovered::{RecoveredDelivery, RecoveredSession, RecoveredSubscription, RecoveredWill};
use crate::record::{Awaiting, LogMillis, MessageId, Owner, Seq, SessionId};

/// Number of collected deliveries before they are merged for the first time.
const FOLD_MIN: usize = 1024;

/// One record of a delivery: the records may arrive in any order, and the most advanced step
/// applies.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) seq: Seq,
    pub(super) step: Step,
    pub(super) queued: Option<Known>,
    pub(super) packet_id: Option<PacketId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Queued,
    Sent(Awaiting),
    Over,
}

/// Subscription identifiers and shared subscription, which most deliveries do not have.
pub(super) type Extras = (Box<[u32]>, Box<str>);

#[derive(Debug)]
pub(super) struct Known {
    pub(super) message: MessageId,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) extras: Option<Box<Extras>>,
}

#[derive(Debug)]
pub(super) struct Own {
    pub(super) client_id: Box<str>,
    pub(super) version: Version,
    pub(super) expiry_secs: u32,
    pub(super) away_since: Option<LogMillis>,
    pub(super) packet_id_hint: u16,
    pub(super) owner: Owner<Box<str>>,
    pub(super) print: Print,
}

#[derive(Debug)]
pub(super) struct Subscribed {
    pub(super) options: SubscriptionOptions,
    pub(super) identifier: u32,
    pub(super) owed: Option<Box<[u8]>>,
    pub(super) print: Print,
}

#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) own: Option<Own>,
    pub(super) subscriptions: HashMap<Box<str>, Subscribed>,
    pub(super) will: Option<(RecoveredWill, Print)>,
    pub(super) received: Vec<u16>,
    pub(super) deliveries: Vec<Seen>,
    pub(super) folded: usize,
    pub(super) seq_max: Seq,
}

impl Collected {
    /// Adds one record of a delivery.
    pub(super) fn see(&mut self, seen: Seen) {
        self.seq_max = self.seq_max.max(seen.seq);
        self.deliveries.push(seen);
        if self.deliveries.len() > 2 * self.folded + FOLD_MIN {
            self.fold();
        }
    }

    /// Merges the records of each delivery, in order, and removes completed deliveries, which have
    /// no later records.
    fn fold(&mut self) {
        self.deliveries.sort_by_key(|seen| seen.seq);
        self.deliveries.dedup_by(|later, kept| {
            let is_same = later.seq == kept.seq;
            if is_same {
                kept.step = kept.step.max(later.step);
                kept.packet_id = kept.packet_id.or(later.packet_id);
                kept.queued = kept.queued.take().or_else(|| later.queued.take());
            }
            is_same
        });
        self.deliveries.retain(|seen| seen.step != Step::Over);
        self.folded = self.deliveries.len();
    }

    /// The session for index and node, and the number of lost deliveries; `None` without its own
    /// record.
    pub(super) fn finish(
        mut self,
        id: SessionId,
        messages: &Found,
        references: &mut [u32],
        index: &Index,
    ) -> Option<(Entry, RecoveredSession, u64)> {
        let own = self.own.take()?;
        self.fold();
        let mut lost = 0;
        let mut kept = Deliveries::default();
        let mut deliveries = Vec::with_capacity(self.deliveries.len());
        for seen in self.deliveries {
            let Some((delivery, recovered)) = seen.finish(messages) else {
                lost += 1;
                continue;
            };
            if let Some(place) = recovered.message {
                count(references, place);
            }
            kept.insert(recovered.seq, delivery);
            deliveries.push(recovered);
        }
        let mut by_filter: Vec<_> = self.subscriptions.into_iter().collect();
        by_filter.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let print =
            |(filter, subscribed): &(Box<str>, Subscribed)| (index.hash(filter), subscribed.print);
        let mut prints: Vec<(u64, Print)> = by_filter.iter().map(print).collect();
        prints.sort_unstable();
        let (will, will_print) = self.will.unzip();
        let entry = Entry {
            own: own.print,
            will: will_print.unwrap_or_default(),
            subscriptions: prints,
            deliveries: kept,
            received: self.received.clone(),
        };
        let session = RecoveredSession {
            id,
            client_id: own.client_id,
            version: own.version,
            expiry_secs: own.expiry_secs,
            away_since: own.away_since,
            packet_id_hint: own.packet_id_hint,
            owner: own.owner,
            subscriptions: by_filter
                .into_iter()
                .map(|(filter, subscribed)| subscription(filter, subscribed))
                .collect(),
            deliveries,
            received: self
                .received
                .into_iter()
                .filter_map(PacketId::new)
                .collect(),
            will,
            seq_max: self.seq_max,
        };
        Some((entry, session, lost))
    }
}

impl Seen {
    /// The delivery for index and node; `None` if a part is missing.
    fn finish(self, messages: &Found) -> Option<(Delivery, RecoveredDelivery)> {
        let inflight = match self.step {
            Step::Queued => None,
            Step::Sent(awaiting) => Some((self.packet_id?, awaiting)),
            Step::Over => return None,
        };
        if let Some((_, Awaiting::PubComp)) = inflight {
            let released = RecoveredDelivery {
                seq: self.seq,
                message: None,
                inflight,
                qos: QoS::ExactlyOnce,
                retain: false,
                identifiers: Box::default(),
                group: None,
            };
            return Some((Delivery::released(), released));
        }
        let known = self.queued?;
        let place = messages.place(known.message)?;
        let queued = Delivery::queued(known.message);
        let (identifiers, group) = known.extras.map_or_else(Default::default, |extras| *extras);
        let recovered = RecoveredDelivery {
            seq: self.seq,
            message: Some(place),
            inflight,
            qos: known.qos,
            retain: known.retain,
            identifiers,
            group: Some(group).filter(|group| !group.is_empty()),
        };
        let delivery = inflight.map_or(queued, |(_, awaiting)| queued.after(awaiting));
        Some((delivery, recovered))
    }
}

fn subscription(filter: Box<str>, subscribed: Subscribed) -> RecoveredSubscription {
    RecoveredSubscription {
        filter,
        options: subscribed.options,
        identifier: subscribed.identifier,
        owed: subscribed.owed,
    }
}

/// Adds a reference to the message at that position.
pub(super) fn count(references: &mut [u32], place: usize) {
    if let Some(count) = references.get_mut(place) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(seq: Seq, step: Step) -> Seen {
        Seen {
            seq,
            step,
            queued: None,
            packet_id: None,
        }
    }

    #[test]
    fn completed_deliveries_take_no_memory_while_the_log_is_read() {
        let mut collected = Collected::default();
        for seq in (1..=FOLD_MIN as u64).rev() {
            collected.see(seen(seq, Step::Over));
        }
        assert_eq!(collected.deliveries.len(), FOLD_MIN);
        collected.see(seen(2000, Step::Queued));
        assert_eq!(collected.deliveries.len(), 1);
        assert_eq!(collected.seq_max, 2000);
        // The next fold comes when the list is more than twice as long.
        let left = FOLD_MIN + 3;
        for seq in 2001..2000 + left as u64 {
            collected.see(seen(seq, Step::Queued));
        }
        assert_eq!((collected.deliveries.len(), collected.folded), (left, left));
        let more = (left + FOLD_MIN) as u64;
        for seq in 2000..2000 + more {
            collected.see(seen(seq, Step::Over));
        }
        assert_eq!(collected.deliveries.len(), 2 * left + FOLD_MIN);
        collected.see(seen(2000 + more, Step::Over));
        assert_eq!(collected.deliveries.len(), 0);
    }

    #[test]
    fn the_latest_step_of_a_delivery_counts_with_the_fields_of_all_its_records() {
        let mut collected = Collected::default();
        let known = Known {
            message: 4,
            qos: QoS::ExactlyOnce,
            retain: false,
            extras: None,
        };
        collected.see(Seen {
            queued: Some(known),
            ..seen(1, Step::Queued)
        });
        collected.see(Seen {
            packet_id: PacketId::new(7),
            ..seen(1, Step::Sent(Awaiting::PubRec))
        });
        collected.see(seen(2, Step::Sent(Awaiting::PubComp)));
        collected.see(seen(2, Step::Over));
        collected.fold();
        let [only] = &collected.deliveries[..] else {
            panic!("one is over: {collected:?}")
        };
        assert_eq!(only.step, Step::Sent(Awaiting::PubRec));
        assert_eq!(only.packet_id, PacketId::new(7));
        assert_eq!(only.queued.as_ref().map(|known| known.message), Some(4));
    }
}
