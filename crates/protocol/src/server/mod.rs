//! The server side of one client: handshake, inbound and outbound messages, will, and the session
//! that contains them.
//!
//! ```text
//!   CONNECT -> Handshake::new -> Session::new or the kept Session -> connect
//!           -> CONNACK, retransmissions
//!   Packet  -> handle_packet  -> Action for the node -> publish_done, suback, unsuback
//!   message -> deliver        -> frame in `out`, or the queue, or a drop with its reason
//!   close   -> connection_lost -> ConnectionEnd
//!           -> next_deadline and handle_timeout until the session expires
//!   durable -> every call     -> Steps to be persisted; Session::restore starts from them
//! ```
//!
//! Invariant: for any packet of a client the session replies, waits or fails with a
//! [`Violation`](crate::Violation); its memory for a client is bounded by [`Limits`](crate::Limits)
//! at all times.

mod authentication;
mod connack;
mod deliver;
mod delivery_events;
mod effect;
mod handshake;
mod held;
mod held_messages;
mod inbound;
mod inflight;
mod journal;
mod lifetime;
mod link;
mod link_extras;
mod outbound;
mod packets;
mod priority_level;
mod queue;
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
pub use delivery_events::{DeliveryEvent, MessageEvent};
pub use effect::{
    Action, ConnAckParts, ConnectionEnd, Delivered, DeliveryOptions, DropReason, GroupId, Taken,
    Timeout,
};
pub use handshake::Handshake;
pub use held_messages::{HeldMessage, HeldStage, KeptMessage, Oldest};
pub use inbound::Inbound;
pub use journal::{Awaiting, Seq, SessionJournal, Step};
pub use lifetime::Lifetime;
pub use link::Link;
pub use outbound::Outbound;
pub use restore::{Stored, StoredDelivery, StoredWill, WillView};
pub use session::Session;
pub use traffic::{SentLater, Traffic};
