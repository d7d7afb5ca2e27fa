//! Purposes of the timers of one worker.

use thrum_protocol::server::Session;

use crate::ids::{ConnectionId, Slot};
use crate::timer::lower_half;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// The keep alive, will delay or expiry of a session.
    Session(TimedSession),
    /// The deadline for the CONNECT of a connection.
    Connection(ConnectionId),
    /// The deadline for the remaining output and input of a connection that ends.
    Drain(ConnectionId),
    /// The time from which on a connection that exceeded a rate limit may be read again.
    Pace(ConnectionId),
    /// The deadline for TLS, WebSocket and the proxy header of a connection.
    Handshake(ConnectionId),
    /// The time from which on connections are accepted again after the connect rate was reached.
    Accept,
    /// The next request to the gatekeeper about a client.
    Refresh(TimedSession),
    /// The next check of publishers that are held.
    Held,
    /// The next publication of `$SYS` topics.
    Sys,
    /// The next housekeeping of the node.
    Housekeeping,
    /// The next search for stamped messages that cannot arrive any longer.
    Stages,
    /// The end of the observation of topics, or the next part of it that is freed.
    Observation,
    /// The next portion of timelines that are forgotten, as they may take less memory now.
    Timelines,
    /// The next return of free memory to the system.
    Trim,
}

/// The session of a timer: its slot and the lower half of its number, which distinguishes it from
/// earlier sessions in the slot. The whole number would add four bytes to each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSession {
    pub(super) slot: Slot,
    lower_half: u32,
}

impl TimedSession {
    /// Identifies a session in its slot.
    pub fn new(slot: Slot, session: &Session) -> Self {
        Self {
            slot,
            lower_half: lower_half(session.id()),
        }
    }
}
