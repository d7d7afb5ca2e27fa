//! Places in the storage for messages in transit from one worker to another: the sender creates the
//! place, and the receiver removes it in the same unit in which it stores the message. After a
//! crash each message is in exactly one of them.

use crate::node::placement::Placement;
use crate::workers::WorkerId;

/// First character of the name of a lane, which no client identifier contains.
const LANE_MARK: char = '\0';
/// Rest of the name of a lane for messages of shared groups.
const SHARED: &str = "shared";
/// Continuation of the name of a lane for the sessions of a worker; the number of the worker and
/// the placement rule follow.
const TO: &str = "to ";

/// Continuation of the name of a lane for a sink; the name of the sink follows.
const SINK: &str = "sink ";

/// A stored session without a client, whose deliveries are the places of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) session: u64,
    /// Number of the last place in the lane.
    pub(super) last: u64,
}

impl Lane {
    pub(super) fn new(session: u64) -> Self {
        Self { session, last: 0 }
    }
}

/// The receivers of the messages in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Messages for some of the sessions.
    Sessions(PassedTo),
    /// Messages of shared groups.
    Shared,
    /// Messages for the sink of that name.
    Sink(Box<str>),
}

/// The sessions that a worker owned when it was to receive a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedTo {
    /// The sessions that a placement rule assigns to a worker.
    Placed {
        /// The worker that was to receive the messages.
        worker: WorkerId,
        /// The placement rule at that time.
        placement: Placement,
    },
    /// The sessions that version 0.1 assigned to a worker, by their number modulo 64.
    InRowsOf64 {
        /// Number of the worker that was to receive the messages.
        worker: u64,
        /// Number of workers at that time.
        workers: u64,
    },
}

impl PassedTo {
    /// Whether the set contains a session.
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

/// Name of the lane for the sessions of a worker, stored as a client identifier.
pub(super) fn name_to(worker: WorkerId, placement: Placement) -> String {
    format!("{LANE_MARK}{TO}{}/{placement}", worker.index())
}

pub(super) fn name_shared() -> String {
    format!("{LANE_MARK}{SHARED}")
}

pub(super) fn name_for_sink(sink: &str) -> String {
    format!("{LANE_MARK}{SINK}{sink}")
}

/// The receivers of the messages in a recovered session; none if it is the session of a client.
pub(super) fn purpose(client_id: &str) -> Option<Purpose> {
    let name = client_id.strip_prefix(LANE_MARK)?;
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
        assert_eq!(purpose("\0to 2/2"), Some(Purpose::Shared), "no such worker");
        let sessions = [64, 65, 66, 127, 130];
        assert_eq!(
            sessions.map(|session| to.includes(session)),
            [false, true, false, true, false]
        );
    }
}
