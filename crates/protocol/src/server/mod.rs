//! The server's side of one client: handshake, inbound, outbound, will, and the session that holds
//! them.
//!
//! ```text
//!   CONNECT -> Handshake::new -> Session::new or the kept Session -> connect -> CONNACK, redelivery
//!   Packet  -> handle_packet  -> Action for the node -> publish_done, suback, unsuback
//!   message -> deliver        -> frame in `out`, or the queue, or a drop with its reason
//!   close   -> connection_lost -> Farewell, then next_deadline and handle_timeout until the session expires
//!   durable -> every call     -> Steps to be written down; Session::restore begins where they end
//! ```
//!
//! Invariant: a client makes the session answer, wait or fail with a
//! [`Violation`](crate::Violation); what it holds for a client is bounded by
//! [`Limits`](crate::Limits) at every moment.

mod authentication;
mod connack;
mod deliver;
mod effect;
mod fates;
mod handshake;
mod held;
mod inbound;
mod inflight;
mod journal;
mod lane;
mod lifetime;
mod link;
mod outbound;
mod packets;
mod queue;
mod rare;
mod received;
mod restore;
mod ring;
mod session;
mod topic_aliases;
mod traffic;
mod will;

#[cfg(test)]
mod tests;

pub use authentication::AuthenticationStep;
pub use connack::{refuse, refuse_connect};
pub use effect::{
    Action, Delivered, DeliveryOptions, DropReason, Farewell, GroupId, Taken, Timeout, Welcome,
};
pub use fates::{Fate, MessageFate};
pub use handshake::Handshake;
pub use inbound::Inbound;
pub use journal::{Awaiting, Seq, SessionJournal, Step};
pub use lifetime::Lifetime;
pub use link::Link;
pub use outbound::Outbound;
pub use restore::{Stored, StoredDelivery, StoredWill, WillView};
pub use session::Session;
pub use traffic::{SentLater, Traffic};
