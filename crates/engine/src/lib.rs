//! The sessions and the routing of one worker, driven by packets of clients and mail of other
//! workers.
//!
//! Invariant: this crate uses no socket, no poll, no thread and no clock. Packets are passed with
//! their session, the time of a turn is an argument, and the results are output by connection, mail
//! by worker and changes for the storage. One worker alone uses an engine; the engines of a node
//! share [`node::NodeState`].

#![forbid(unsafe_code)]

pub mod access;
pub mod client;
#[cfg(feature = "testing")]
pub mod contention;
pub mod core;
mod delivery;
pub mod durability;
pub mod durable;
pub mod ending;
mod engine;
pub mod events;
pub mod explain;
pub mod hashing;
pub mod holding;
pub mod host;
pub mod ids;
pub mod inquiries;
pub mod interest;
pub mod mail;
mod memory;
mod nearly_full;
pub mod node;
pub mod observation;
pub mod outbox;
pub mod output;
pub mod outputs;
pub mod packets;
pub mod peer;
pub mod publishing;
pub mod queue_room;
pub mod reach;
pub mod refusals;
pub mod replay;
mod restore;
pub mod retained;
pub mod review;
pub mod rights;
pub mod rooms;
pub mod router;
pub mod sessions;
pub mod settings;
pub mod shared;
mod sink_outbox;
pub mod sinks;
pub mod spans;
pub mod stages;
pub mod subscriber;
pub mod subscribing;
pub mod subscription_cost;
pub mod table;
pub mod timeline;
pub mod timer;
pub mod timers;
pub mod top_counts;
pub mod topics;
pub mod turn;
pub mod undelivered;
pub mod workers;

pub use self::engine::Engine;
