//! What the timers of one worker are for.

use thrum_protocol::server::Session;

use crate::ids::{ConnectionId, Slot};
use crate::timer::lower_half;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A session: keep alive, will delay, expiry.
    Session(TimedSession),
    /// A connection that has to say CONNECT.
    Connection(ConnectionId),
    /// A connection that ends and still has something to write, or to read.
    Drain(ConnectionId),
    /// A connection that has used up a rate may be read again.
    Pace(ConnectionId),
    /// A connection whose TLS, WebSocket and header of a proxy have to be done.
    Handshake(ConnectionId),
    /// Accept again after the connect rate was reached.
    Accept,
    /// Ask the gatekeeper about a client again.
    Refresh(TimedSession),
    /// Look after publishers that are held back.
    Held,
    /// Publish `$SYS`.
    Sys,
    /// Housekeeping.
    House,
    /// Give memory back.
    Trim,
}

/// A session that a timer waits for: its slot, and as much of its number as tells it from an
/// earlier one there. With all of the number each connection would have four bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSession {
    pub(super) slot: Slot,
    lower_half: u32,
}

impl TimedSession {
    /// That session, in its slot.
    pub fn new(slot: Slot, session: &Session) -> Self {
        Self {
            slot,
            lower_half: lower_half(session.id()),
        }
    }
}
