//! Finds the receivers of a topic: the index of topic filters, shared subscriptions and retained
//! messages.
//!
//! ```text
//!   PUBLISH topic --Index::matches--> filter ids --Index::destinations--> slices of destinations
//!   SUBSCRIBE     --Index::insert---> + Retained::next_page_within, a replay in pages
//!   $share group  --Group::pick-----> one member
//! ```
//!
//! Invariant: plain data without a clock, a thread or knowledge of the destinations. The results
//! depend only on the calls made, never on a hash: the iteration order of a hash table is never
//! visible outside.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod anchors;
pub mod destination;
mod hashing;
pub mod index;
mod keyed_list;
mod levels;
mod members;
mod persistent_list;
mod persistent_positions;
pub mod retained;
mod retained_walk;
mod run;
pub mod shared;
mod slab;
mod text;
mod topic_walk;
mod trie_node;
mod wildcards;
mod wildcards_walk;

pub use anchors::Anchors;
pub use destination::Destination;
pub use hashing::stable_hash;
pub use index::{FilterId, Index, Inserted, Removed};
pub use retained::{Allowance, Position, Retained};
pub use shared::{Choice, Cursor, Group, Strategy, UnknownStrategy};
