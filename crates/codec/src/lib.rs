//! Converts between bytes and MQTT packets of 3.1, 3.1.1 and 5.0: one packet model, with the
//! protocol version as an argument.
//!
//! ```text
//!   read buffer --frame::split--> one frame --decode::decode--> Packet<'_> (borrows the frame)
//!   Packet<'_>  --encode::encode--> output buffer
//! ```
//!
//! Invariant: nothing here reads a socket or a clock, nothing is allocated from a length that a
//! peer announced, and every slice of a decoded packet points into the caller's read buffer.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)
)]

extern crate alloc;

pub mod decode;
pub mod encode;
pub mod error;
pub mod frame;
pub mod lists;
pub mod packet;
pub mod properties;
pub mod reason;
#[cfg(feature = "testing")]
pub mod testing;
pub mod topic;
pub mod websocket;
mod wire;

pub use decode::{decode, decode_publish};
pub use encode::{PublishFrame, encode, encode_publish, encode_publish_head, encoded_len};
pub use error::{DecodeError, EncodeError};
pub use packet::{Packet, PacketId, QoS, Version};
pub use reason::ReasonCode;
pub use topic::{SharedFilter, TopicFilter};
pub use wire::{FIELD_BYTES_MAX, VARIABLE_MAX};
