//! Places for what is on its way from one worker to another: written by the one that has it,
//! cleared by the other in the unit that gives it its next place. So a crash finds it in exactly
//! one of them.

use crate::workers::WorkerId;

/// No client identifier contains this character.
const NOBODY: char = '\0';
/// Behind it, for messages of shared groups.
const SHARED: &str = "shared";
/// Behind it, before the number of the worker that a message is for and the number of all workers.
const TO: &str = "to ";

/// A session without a client, whose deliveries are the places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) session: u64,
    /// The last place that was given.
    pub(super) last: u64,
}

impl Lane {
    pub(super) fn new(session: u64) -> Self {
        Self { session, last: 0 }
    }
}

/// What a lane was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Messages for the sessions of one worker, among so many workers.
    Worker { to: usize, of: usize },
    /// Messages of shared groups.
    Shared,
}

/// In place of a client identifier.
pub(super) fn name_to(worker: WorkerId, workers: usize) -> String {
    format!("{NOBODY}{TO}{}/{workers}", worker.index())
}

pub(super) fn name_shared() -> String {
    format!("{NOBODY}{SHARED}")
}

/// What a recovered session was for, if it is no client's.
pub(super) fn purpose(client_id: &str) -> Option<Purpose> {
    let name = client_id.strip_prefix(NOBODY)?;
    let to = name.strip_prefix(TO).and_then(|numbers| {
        let (to, of) = numbers.split_once('/')?;
        let (to, of) = (to.parse().ok()?, of.parse().ok()?);
        (to < of).then_some(Purpose::Worker { to, of })
    });
    Some(to.unwrap_or(Purpose::Shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::WorkerId;

    #[test]
    fn a_lane_is_known_by_its_name_and_no_client_has_one() {
        let name = name_to(WorkerId::new(3), 8);
        assert_eq!(purpose(&name), Some(Purpose::Worker { to: 3, of: 8 }));
        assert_eq!(purpose(&name_shared()), Some(Purpose::Shared));
        assert_eq!(purpose("to 3/8"), None);
        assert_eq!(purpose(""), None);
    }
}
