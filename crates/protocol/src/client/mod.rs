//! The client's side of one connection and session: what to send, what the server's packets mean,
//! when to ping.
//!
//! ```text
//!   connect --CONNECT--> out     Packet -> handle_packet -> at most one Event for the application
//!   publish, subscribe --> out                   |-> acknowledgements, redeliveries are in `out`
//!   clock -> handle_timeout --PINGREQ--> out
//! ```
//!
//! Invariant: what a server may not send is a [`Violation`](crate::Violation), never a panic, and
//! nothing the server did not allow in CONNACK is ever written.

mod aliases;
mod error;
mod exchanges;
mod inbound;
mod link;
mod machine;
mod options;
mod outbound;
mod server_limits;
#[cfg(test)]
mod tests;

use alloc::rc::Rc;

use thrum_codec::packet::{Auth, ConnAck, Disconnect, Publish, SubAck};
use thrum_codec::{PacketId, ReasonCode};

pub use error::{PublishError, SubscribeError};
pub use machine::Client;
pub use options::{ClientOptions, WillOptions};
pub use outbound::FILTERS_PER_PACKET;

/// What one packet of the server means for the application. Replies are in the output buffer
/// already.
#[derive(Clone, Debug)]
pub enum Event<'p> {
    /// Nothing beyond the replies.
    None,
    /// The connection is accepted. Without session present nothing is left of an earlier session:
    /// subscribe again.
    Connected(ConnAck<'p>),
    /// The connection is refused: close it.
    Refused(ConnAck<'p>),
    /// A message; it is acknowledged already.
    Message {
        /// The packet; its topic is empty if `alias` holds it.
        publish: Publish<'p>,
        /// Topic from the alias table.
        alias: Option<Rc<str>>,
    },
    /// A message sent with QoS 1 or 2 is done: accepted by the server or, with an error, refused.
    Acknowledged {
        /// As returned by [`Client::publish`].
        packet_id: PacketId,
        /// What the server said.
        reason: ReasonCode,
    },
    /// Answer to [`Client::subscribe`].
    Subscribed(SubAck<'p>),
    /// Answer to [`Client::unsubscribe`].
    Unsubscribed(SubAck<'p>),
    /// The server ends the connection (5.0): close it.
    Disconnected(Disconnect<'p>),
    /// Answer to a PINGREQ.
    Pong,
    /// A step of enhanced authentication: answer with [`Client::authenticate`], unless its reason
    /// is [`ReasonCode::Success`], which ends what [`Client::reauthenticate`] began.
    Authenticate(Auth<'p>),
}
