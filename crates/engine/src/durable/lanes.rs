//! Places for what is on its way from one worker to another: written by the one that has it,
//! cleared by the other in the unit that gives it its next place. So a crash finds it in exactly
//! one of them.

use crate::node::placement::Placement;
use crate::workers::WorkerId;

/// No client identifier contains this character.
const NOBODY: char = '\0';
/// Behind it, for messages of shared groups.
const SHARED: &str = "shared";
/// Behind it, before the number of the worker that a message is for and the rule that says which
/// sessions that worker has.
const TO: &str = "to ";

/// Behind it, before the name of the sink that a message is for.
const SINK: &str = "sink ";

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Messages for some of the sessions.
    Sessions(PassedTo),
    /// Messages of shared groups.
    Shared,
    /// Messages for the sink of that name.
    Sink(Box<str>),
}

/// The sessions that a worker had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedTo {
    Placed {
        worker: WorkerId,
        placement: Placement,
    },
    /// Of version 0.1: by number within a row of 64.
    InRowsOf64 { worker: u64, workers: u64 },
}

impl PassedTo {
    /// The session was one of them.
    pub fn includes(&self, session: u64) -> bool {
        match *self {
            Self::Placed { worker, placement } => placement.worker_of(session) == worker,
            Self::InRowsOf64 { worker, workers } => session % 64 % workers == worker,
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let (number, rule) = name.split_once('/')?;
        if let Ok(placement) = rule.parse() {
            let worker = WorkerId::of_number(number.parse().ok()?);
            return Some(Self::Placed { worker, placement });
        }
        let (worker, workers) = (number.parse().ok()?, rule.parse().ok()?);
        (worker < workers).then_some(Self::InRowsOf64 { worker, workers })
    }
}

/// In place of a client identifier.
pub(super) fn name_to(worker: WorkerId, placement: Placement) -> String {
    format!("{NOBODY}{TO}{}/{placement}", worker.index())
}

pub(super) fn name_shared() -> String {
    format!("{NOBODY}{SHARED}")
}

pub(super) fn name_for_sink(sink: &str) -> String {
    format!("{NOBODY}{SINK}{sink}")
}

/// What a recovered session was for, if it is no client's.
pub(super) fn purpose(client_id: &str) -> Option<Purpose> {
    let name = client_id.strip_prefix(NOBODY)?;
    if let Some(sink) = name.strip_prefix(SINK) {
        return Some(Purpose::Sink(sink.into()));
    }
    let to = name.strip_prefix(TO).and_then(PassedTo::parse);
    Some(to.map_or(Purpose::Shared, Purpose::Sessions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_known_by_its_name_and_no_client_has_one() {
        let worker = WorkerId::new(3);
        let placement = Placement::new(8);
        let to = PassedTo::Placed { worker, placement };
        let name = name_to(worker, placement);
        assert_eq!(purpose(&name), Some(Purpose::Sessions(to)));
        assert_eq!(purpose(&name_shared()), Some(Purpose::Shared));
        let for_sink = Purpose::Sink("a-1".into());
        assert_eq!(purpose(&name_for_sink("a-1")), Some(for_sink));
        assert_eq!(purpose("to 3/8"), None);
        assert_eq!(purpose(""), None);
    }

    #[test]
    fn a_lane_of_version_0_1_is_for_sessions_by_their_number_in_a_row_of_64() {
        let Some(Purpose::Sessions(to)) = purpose("\0to 1/2") else {
            panic!("it is for sessions");
        };
        let sessions = [64, 65, 66, 127, 130];
        assert_eq!(
            sessions.map(|session| to.includes(session)),
            [false, true, false, true, false]
        );
    }
}
