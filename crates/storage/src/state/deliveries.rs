//! The deliveries of a session, in 16 bytes each.

use std::collections::VecDeque;

use crate::record::{Awaiting, MessageId, Seq};

/// Number of completed deliveries whose entries are tolerated before they are removed.
const HOLES_SLACK: usize = 32;
/// Entries that stay allocated while nothing is queued.
const IDLE_CAPACITY_MAX: usize = 64;

const STEP_SHIFT: u32 = 62;
const MESSAGE: u64 = (1 << STEP_SHIFT) - 1;

/// The message of a delivery and its step: the message number while it is needed, and the last step
/// in the two highest bits. Zero is a completed delivery whose entry still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery(u64);

impl Delivery {
    const OVER: Self = Self(0);

    pub(super) fn queued(message: MessageId) -> Self {
        Self(message & MESSAGE)
    }

    /// A delivery that only expects a PUBCOMP.
    pub(super) fn released() -> Self {
        Self::OVER.after(Awaiting::PubComp)
    }

    /// The delivery after a step.
    pub(super) fn after(self, awaiting: Awaiting) -> Self {
        let message = match awaiting {
            Awaiting::PubAck | Awaiting::PubRec => self.0 & MESSAGE,
            Awaiting::PubComp => 0,
        };
        Self(message | ((awaiting as u64) << STEP_SHIFT))
    }

    /// The message, while the delivery needs it.
    pub(super) fn message(self) -> Option<MessageId> {
        Some(self.0 & MESSAGE).filter(|&message| message != 0)
    }

    /// The last step; 0 while it is queued.
    fn step(self) -> u64 {
        self.0 >> STEP_SHIFT
    }
}

/// Deliveries in ascending order; most are added at the end and removed near the front.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    places: VecDeque<(Seq, Delivery)>,
    holes: usize,
}

impl Deliveries {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.holes
    }

    pub(super) fn get(&self, seq: Seq) -> Option<Delivery> {
        let place = self.find(seq).ok()?;
        self.at(place)
    }

    /// Adds a delivery; returns `false` if it exists already, or existed.
    pub(super) fn insert(&mut self, seq: Seq, delivery: Delivery) -> bool {
        let is_last = self.places.back().is_none_or(|&(last, _)| last < seq);
        if is_last {
            self.places.push_back((seq, delivery));
            return true;
        }
        match self.find(seq) {
            Ok(_) => false,
            Err(place) => {
                self.places.insert(place, (seq, delivery));
                true
            }
        }
    }

    /// Advances a delivery by a step; returns its earlier value, or `None` if it does not exist or
    /// is more advanced.
    pub(super) fn step(&mut self, seq: Seq, awaiting: Awaiting) -> Option<Delivery> {
        let place = self.find(seq).ok()?;
        let before = self.at(place)?;
        if before.step() >= awaiting as u64 {
            return None;
        }
        self.places.get_mut(place)?.1 = before.after(awaiting);
        Some(before)
    }

    /// Whether this is the last step of the delivery.
    pub(super) fn is_at(&self, seq: Seq, awaiting: Awaiting) -> bool {
        self.get(seq)
            .is_some_and(|delivery| delivery.step() == awaiting as u64)
    }

    /// Removes a delivery and returns it.
    pub(super) fn remove(&mut self, seq: Seq) -> Option<Delivery> {
        let place = self.find(seq).ok()?;
        let before = self.at(place)?;
        self.places.get_mut(place)?.1 = Delivery::OVER;
        self.holes += 1;
        self.trim();
        Some(before)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Delivery> {
        let there =
            |&(_, delivery): &(Seq, Delivery)| (delivery != Delivery::OVER).then_some(delivery);
        self.places.iter().filter_map(there)
    }

    fn find(&self, seq: Seq) -> Result<usize, usize> {
        match self.places.front() {
            Some(&(first, _)) if first == seq => Ok(0),
            _ => self.places.binary_search_by_key(&seq, |&(at, _)| at),
        }
    }

    fn at(&self, place: usize) -> Option<Delivery> {
        let &(_, delivery) = self.places.get(place)?;
        (delivery != Delivery::OVER).then_some(delivery)
    }

    fn trim(&mut self) {
        while let Some((_, Delivery::OVER)) = self.places.front() {
            self.places.pop_front();
            self.holes -= 1;
        }
        if self.holes > self.len() + HOLES_SLACK {
            self.places
                .retain(|&(_, delivery)| delivery != Delivery::OVER);
            self.holes = 0;
        }
        let capacity = self.places.capacity();
        if capacity > IDLE_CAPACITY_MAX && self.places.len() < capacity / 4 {
            self.places.shrink_to(self.places.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::MESSAGE_ID_MAX;

    fn queue(seqs: impl IntoIterator<Item = u64>) -> Deliveries {
        let mut deliveries = Deliveries::default();
        for seq in seqs {
            assert!(deliveries.insert(seq, Delivery::queued(seq + 100)));
        }
        deliveries
    }

    #[test]
    fn a_delivery_takes_16_bytes() {
        assert_eq!(size_of::<(Seq, Delivery)>(), 16);
    }

    #[test]
    fn steps_only_advance() {
        let mut deliveries = queue(1..4);
        assert!(deliveries.step(2, Awaiting::PubRec).is_some());
        assert!(deliveries.step(2, Awaiting::PubRec).is_none());
        assert_eq!(deliveries.get(2).unwrap().message(), Some(102));
        assert!(deliveries.step(2, Awaiting::PubComp).is_some());
        assert!(deliveries.step(2, Awaiting::PubRec).is_none());
        assert_eq!(deliveries.get(2).unwrap().message(), None);
        assert!(deliveries.is_at(2, Awaiting::PubComp));
        assert!(deliveries.remove(2).is_some());
        assert!(deliveries.remove(2).is_none());
    }

    #[test]
    fn removing_in_any_order_leaves_the_others() {
        let mut deliveries = queue(0..1000);
        for step in (0..1000).filter(|step| step % 7 != 3) {
            assert!(deliveries.remove((step * 13) % 1000).is_some());
        }
        let left: Vec<u64> = (0..1000)
            .filter(|&seq| deliveries.get(seq).is_some())
            .collect();
        let mut expected: Vec<u64> = (3..1000).step_by(7).map(|step| step * 13 % 1000).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
        assert_eq!(deliveries.len(), expected.len());
        let messages: Vec<_> = deliveries.iter().filter_map(Delivery::message).collect();
        assert_eq!(
            messages,
            expected.iter().map(|seq| seq + 100).collect::<Vec<_>>()
        );
    }

    #[test]
    fn deliveries_are_inserted_in_any_order_and_each_once() {
        let mut deliveries = queue([5, 9, 1, 7, 3]);
        for seq in [1, 3, 5, 7, 9] {
            assert!(!deliveries.insert(seq, Delivery::queued(1)));
            assert_eq!(deliveries.get(seq), Some(Delivery::queued(seq + 100)));
        }
        assert_eq!(deliveries.get(4), None);
        assert!(deliveries.remove(5).is_some());
        assert!(
            !deliveries.insert(5, Delivery::queued(1)),
            "the delivery was there"
        );
        assert_eq!((deliveries.get(5), deliveries.len()), (None, 4));
    }

    #[test]
    fn a_message_with_the_highest_number_keeps_it_at_every_step() {
        let delivery = Delivery::queued(MESSAGE_ID_MAX);
        assert_eq!(delivery.message(), Some(MESSAGE_ID_MAX));
        assert_eq!(delivery.step(), 0);
        let sent = delivery.after(Awaiting::PubRec);
        assert_eq!((sent.message(), sent.step()), (Some(MESSAGE_ID_MAX), 2));
        assert_eq!(sent.after(Awaiting::PubComp), Delivery::released());
        assert_eq!(
            (Delivery::released().message(), Delivery::released().step()),
            (None, 3)
        );
    }

    #[test]
    fn completed_places_are_removed_when_they_are_the_majority() {
        let mut deliveries = queue(0..100);
        // 34 deliveries are left and 66 are completed: as many, and the slack.
        (1..67).for_each(|seq| assert!(deliveries.remove(seq).is_some()));
        assert_eq!((deliveries.places.len(), deliveries.len()), (100, 34));
        assert!(deliveries.remove(67).is_some());
        assert_eq!((deliveries.places.len(), deliveries.len()), (33, 33));
        assert_eq!(deliveries.get(68), Some(Delivery::queued(168)));
    }

    #[test]
    fn a_large_list_frees_memory_when_three_quarters_of_it_are_empty() {
        let mut deliveries = queue(0..64);
        assert_eq!(deliveries.places.capacity(), IDLE_CAPACITY_MAX);
        (0..63).for_each(|seq| assert!(deliveries.remove(seq).is_some()));
        assert_eq!(deliveries.places.capacity(), IDLE_CAPACITY_MAX);
        let mut deliveries = queue(0..128);
        (0..96).for_each(|seq| assert!(deliveries.remove(seq).is_some()));
        assert_eq!(deliveries.places.capacity(), 128);
        assert!(deliveries.remove(96).is_some());
        assert_eq!(deliveries.places.capacity(), 62);
    }

    #[test]
    fn memory_of_a_long_queue_is_freed() {
        let mut deliveries = queue(0..100_000);
        for seq in 0..99_990 {
            deliveries.remove(seq);
        }
        assert!(deliveries.places.capacity() <= IDLE_CAPACITY_MAX.max(40));
        assert_eq!(deliveries.len(), 10);
    }
}
