//! The client side of one connection and session: packets to send, the meaning of the server's
//! packets, and the keep alive.
//!
//! ```text
//!   connect --CONNECT--> out     Packet -> handle_packet -> at most one Event for the application
//!   publish, subscribe --> out                   |-> acknowledgements, redeliveries are in `out`
//!   clock -> handle_timeout --PINGREQ--> out
//! ```
//!
//! Invariant: a packet that a server may not send is a [`Violation`](crate::Violation), never a
//! panic; the client never writes anything that the server's CONNACK does not allow.

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

/// Meaning of one packet of the server for the application. Replies are already in the output
/// buffer.
#[derive(Clone, Debug)]
pub enum Event<'p> {
    /// Nothing except the replies.
    None,
    /// The server accepted the connection. Without session present, an earlier session no longer
    /// exists: subscribe again.
    Connected(ConnAck<'p>),
    /// The server refused the connection: close it.
    Refused(ConnAck<'p>),
    /// A message; its acknowledgement is already written.
    Message {
        /// The packet; its topic is empty if `alias` contains it.
        publish: Publish<'p>,
        /// Topic from the alias table.
        alias: Option<Rc<str>>,
    },
    /// An exchange with QoS 1 or 2 is complete: the server accepted the message, or refused it with
    /// an error.
    Acknowledged {
        /// The identifier that [`Client::publish`] returned.
        packet_id: PacketId,
        /// Reason code of the server.
        reason: ReasonCode,
    },
    /// The server has a message of QoS 2 (PUBREC); the PUBREL is already written.
    Released,
    /// Acknowledgement of [`Client::subscribe`].
    Subscribed(SubAck<'p>),
    /// Acknowledgement of [`Client::unsubscribe`].
    Unsubscribed(SubAck<'p>),
    /// The server sent DISCONNECT (5.0): close the connection.
    Disconnected(Disconnect<'p>),
    /// Reply to a PINGREQ.
    Pong,
    /// A step of enhanced authentication: answer with [`Client::authenticate`], unless its reason
    /// is [`ReasonCode::Success`], which completes [`Client::reauthenticate`].
    Authenticate(Auth<'p>),
}

/// What a PUBLISH from the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A message; its acknowledgement is already written.
    Message {
        /// Topic from the alias table, if the topic of the packet is empty.
        alias: Option<Rc<str>>,
    },
    /// A message of QoS 2 that came before: only its acknowledgement is written.
    Repeated,
}
