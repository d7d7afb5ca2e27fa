//! Sessions whose review takes long, in the order in which they are reviewed.
//!
//! Sessions that a client waits for are in one queue, all others in a second one, so that neither
//! queue blocks the other.

use std::collections::{HashMap, VecDeque};

use thrum_engine::ids::{ConnectionId, Slot};
use thrum_engine::review::Review;

/// Sessions that wait for their review, or whose review is under way.
#[derive(Debug, Default)]
pub(super) struct ReviewQueue {
    /// By their slots. Some may have ended.
    waiting: HashMap<Slot, Waiting>,
    returning: VecDeque<Place>,
    others: VecDeque<Place>,
    /// The number of places given so far.
    places: u64,
}

/// A place in a queue. Void if its session has a newer one, or waits no longer.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: Slot,
    number: u64,
}

/// The two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Clients wait for their CONNACK.
    Returning,
    Others,
}

/// A session that waits for its review.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u64,
    place: u64,
    /// A subscription has ended in a review that was aborted by a change of rules.
    pub(super) is_revoked: bool,
    /// The connection whose client has returned to it.
    pub(super) returning: Option<ConnectionId>,
    /// None before its turn.
    pub(super) review: Option<Box<Review>>,
}

impl Waiting {
    fn line(&self) -> Line {
        match self.returning {
            Some(_) => Line::Returning,
            None => Line::Others,
        }
    }
}

impl ReviewQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn find(&self, slot: Slot, id: u64) -> Option<&Waiting> {
        self.waiting.get(&slot).filter(|waiting| waiting.id == id)
    }

    /// Queues a session behind all others of its queue. A review under way restarts, and its client
    /// continues to wait.
    pub(super) fn put(&mut self, slot: Slot, id: u64, returning: Option<ConnectionId>) {
        let before = self.waiting.remove(&slot).filter(|before| before.id == id);
        let returning = returning.or_else(|| before.as_ref()?.returning);
        let waiting = Waiting {
            id,
            place: 0,
            is_revoked: before.is_some_and(|before| before.has_revoked()),
            returning,
            review: None,
        };
        self.line_up(slot, waiting);
    }

    /// A client has returned to a waiting session: its review continues in the other queue.
    pub(super) fn return_to(&mut self, slot: Slot, connection: ConnectionId) {
        let Some(mut waiting) = self.waiting.remove(&slot) else {
            return;
        };
        waiting.returning = Some(connection);
        if let Some(review) = &mut waiting.review {
            review.disconnects = false;
        }
        self.line_up(slot, waiting);
    }

    fn line_up(&mut self, slot: Slot, mut waiting: Waiting) {
        self.places += 1;
        waiting.place = self.places;
        let place = Place {
            slot,
            number: self.places,
        };
        self.line(waiting.line()).push_back(place);
        self.waiting.insert(slot, waiting);
    }

    /// The first session of a queue.
    pub(super) fn first(&mut self, line: Line) -> Option<(Slot, &mut Waiting)> {
        while let Some(place) = self.line(line).front().copied() {
            let waiting = self.waiting.get(&place.slot);
            if waiting.is_some_and(|waiting| waiting.place == place.number) {
                let waiting = self.waiting.get_mut(&place.slot)?;
                return Some((place.slot, waiting));
            }
            self.line(line).pop_front();
        }
        None
    }

    /// Stores the progress of a review.
    pub(super) fn keep_progress(&mut self, review: Box<Review>) {
        let waiting = self.waiting.get_mut(&review.slot);
        if let Some(waiting) = waiting.filter(|waiting| waiting.id == review.id) {
            waiting.review = Some(review);
        }
    }

    /// Removes a session from the queues.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Waiting> {
        let waiting = self.waiting.remove(&slot);
        if self.waiting.is_empty() {
            // Releases the memory of a large number of sessions.
            *self = Self {
                places: self.places,
                ..Self::default()
            };
        }
        waiting
    }

    fn line(&mut self, line: Line) -> &mut VecDeque<Place> {
        match line {
            Line::Returning => &mut self.returning,
            Line::Others => &mut self.others,
        }
    }
}

impl Waiting {
    /// A subscription has ended since the session began to wait.
    pub(super) fn has_revoked(&self) -> bool {
        self.is_revoked || self.review.as_ref().is_some_and(|review| review.is_revoked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thrum_engine::ids::ConnectionKey;

    fn slot(number: usize) -> Slot {
        Slot::new(number).unwrap()
    }

    fn connection(number: usize) -> ConnectionId {
        ConnectionId {
            key: ConnectionKey::new(number).unwrap(),
            serial: 0,
        }
    }

    fn all_of(queue: &mut ReviewQueue, line: Line) -> Vec<usize> {
        let mut slots = Vec::new();
        while let Some((slot, _)) = queue.first(line) {
            queue.remove(slot);
            slots.push(slot.index());
        }
        slots
    }

    #[test]
    fn a_session_that_restarts_its_review_goes_behind_the_others() {
        let mut queue = ReviewQueue::default();
        for number in 0..3 {
            queue.put(slot(number), 7, None);
        }
        queue.put(slot(0), 7, None);
        assert_eq!(all_of(&mut queue, Line::Others), [1, 2, 0]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_session_whose_client_has_returned_moves_to_the_queue_of_returning_clients() {
        let mut queue = ReviewQueue::default();
        for number in 0..3 {
            queue.put(slot(number), 7, None);
        }
        queue.return_to(slot(2), connection(9));
        queue.put(slot(4), 7, Some(connection(8)));
        // Rules change once more.
        queue.put(slot(2), 7, None);
        assert_eq!(
            queue.find(slot(2), 7).unwrap().returning,
            Some(connection(9))
        );
        assert_eq!(all_of(&mut queue, Line::Returning), [4, 2]);
        assert_eq!(all_of(&mut queue, Line::Others), [0, 1]);
    }

    #[test]
    fn an_ended_session_leaves_no_review_to_the_next_one_in_its_slot() {
        let mut queue = ReviewQueue::default();
        queue.put(slot(1), 7, Some(connection(9)));
        queue.first(Line::Returning).unwrap().1.is_revoked = true;
        assert!(queue.find(slot(1), 8).is_none());
        queue.put(slot(1), 8, None);
        let waiting = queue.find(slot(1), 8).unwrap();
        assert!(!waiting.is_revoked && waiting.returning.is_none());
        assert!(queue.first(Line::Returning).is_none());
    }
}
