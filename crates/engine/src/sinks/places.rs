//! The places of messages for sinks are cleared once the target has them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thrum_storage::{Batch, Change, Submitter};

use super::SinkPlace;

/// See above. All sinks of a node share one way to the storage thread.
#[derive(Debug)]
pub struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    submitter: Submitter,
    /// What the storage thread had no room for.
    batch: Batch,
    /// Lanes of an earlier start, with the messages that are left in each. A lane ends with its
    /// last message.
    lanes_of_before: HashMap<u64, usize>,
}

impl Places {
    pub fn new(submitter: Submitter, lanes_of_before: HashMap<u64, usize>) -> Self {
        Self(Mutex::new(State {
            submitter,
            batch: Batch::default(),
            lanes_of_before,
        }))
    }

    /// The messages at these places are written.
    pub fn clear(&self, places: impl Iterator<Item = SinkPlace>) {
        let mut state = self.state();
        for place in places {
            state.clear(place);
        }
        state.submit();
    }

    /// Hands in what the storage thread had no room for.
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
            // Without room the batch stays as it is, for the next call.
            let _ticket = self.submitter.submit(&mut self.batch);
        }
    }
}
