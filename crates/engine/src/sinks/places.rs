//! Removal of the places of messages that sinks have written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thrum_storage::{Batch, Change, Submitter};

use super::SinkPlace;

/// Removes the places of written messages; all sinks of a node share one submitter.
#[derive(Debug)]
pub struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    submitter: Submitter,
    /// Changes that the storage thread has not accepted yet.
    batch: Batch,
    /// Number of messages that are left in each recovered lane. A lane is removed with its last
    /// message.
    lanes_of_before: HashMap<u64, usize>,
}

impl Places {
    /// Creates the places of a node, with the number of messages in each recovered lane.
    pub fn new(submitter: Submitter, lanes_of_before: HashMap<u64, usize>) -> Self {
        Self(Mutex::new(State {
            submitter,
            batch: Batch::default(),
            lanes_of_before,
        }))
    }

    /// Removes the places of messages that were written.
    pub fn clear(&self, places: impl Iterator<Item = SinkPlace>) {
        let mut state = self.state();
        for place in places {
            state.clear(place);
        }
        state.submit();
    }

    /// Submits the changes that the storage thread has not accepted yet.
    pub fn flush(&self) {
        self.state().submit();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn clear(&mut self, place: SinkPlace) {
        let SinkPlace { lane, seq } = place;
        let is_last = match self.lanes_of_before.get_mut(&lane) {
            None => false,
            Some(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
        };
        if is_last {
            self.lanes_of_before.remove(&lane);
            self.batch.push(&Change::SessionRemoved { session: lane });
        } else {
            self.batch
                .push(&Change::DeliveryRemoved { session: lane, seq });
        }
        self.batch.end_unit();
    }

    fn submit(&mut self) {
        if !self.batch.is_empty() {
            // If the storage thread has no room, the batch is kept for the next call.
            let _ticket = self.submitter.submit(&mut self.batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thrum_codec::QoS;
    use thrum_protocol::{Message, Publication, Time};
    use thrum_storage::disk::sim::SimStorage;
    use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Recovered, Store};

    use super::*;
    use crate::durable::{Journal, Part};
    use crate::sinks::tests::node;
    use crate::sinks::{QueueLimits, Sink};

    const LANE: u64 = 64;

    /// What one start works with.
    struct Start {
        sink: Arc<Sink>,
        journals: Vec<(Journal, Part)>,
        places: Places,
    }

    fn start(recovered: Recovered, submitters: Vec<Submitter>) -> Start {
        let node = node();
        let sink = node.sinks.open("all", QueueLimits::default());
        let sink = Arc::clone(sink.expect("the first one"));
        let (journals, places) = node.restore(recovered, submitters, Time::default());
        Start {
            sink,
            journals,
            places,
        }
    }

    /// Starts, acts, and loses what is not on the disk by then; the lanes that were found.
    fn run(storage: &SimStorage, act: impl FnOnce(&mut Start)) -> Vec<u64> {
        let disk = storage.open().expect("nobody else has it");
        let (store, recovered, _) = Store::open(disk, Options::default()).expect("it opens");
        let sessions = recovered.sessions.iter().map(|session| session.id);
        let found = sessions.collect();
        let wakes = (0..2).map(|_| Box::new(|| ()) as _).collect();
        let (committer, mut stepper, submitters) =
            Committer::stepped(store, wakes, QUEUE_BYTES_MAX);
        let mut begun = start(recovered, submitters);
        act(&mut begun);
        while stepper.step().expect("the disk has no faults") {}
        drop((begun, committer, stepper));
        storage.crash();
        found
    }

    #[test]
    fn a_lane_of_an_earlier_start_ends_with_its_last_message() {
        let storage = SimStorage::new(1);
        let message = Message::new(&Publication::new("a", b"", QoS::AtLeastOnce));
        run(&storage, |start| {
            let (journal, _) = &mut start.journals[0];
            for _ in 0..2 {
                journal.place_for_sink(&start.sink, &message, || LANE);
                journal.end_unit();
            }
            journal.submit().expect("there is room");
        });
        let clear_one = |start: &mut Start| {
            let waiting = start.sink.queue.take(1, 1, std::time::Duration::ZERO);
            let waiting = waiting.expect("it is open");
            start
                .places
                .clear(waiting.iter().filter_map(|offer| offer.place));
        };
        assert_eq!(run(&storage, clear_one), [LANE]);
        assert_eq!(run(&storage, clear_one), [LANE]);
        assert_eq!(run(&storage, clear_one), [0; 0]);
    }
}
