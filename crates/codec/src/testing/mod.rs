//! Arbitrary valid packets for tests, generated from a byte string.
//!
//! Any bytes yield a packet, so a property test or a fuzzer only has to generate bytes. The same
//! bytes yield the same packet; fewer or smaller bytes yield a simpler one.

mod choices;
mod material;
mod oracle;
mod packets;

pub use self::choices::Choices;
pub use self::oracle::naive_matches;
use crate::packet::{Packet, Version};

/// Calls `visit` with the packet that the bytes yield.
///
/// The packet contains only parts that `version` can express: encoding and decoding it yields an
/// equal packet.
pub fn with_packet<R>(choices: &[u8], version: Version, visit: impl FnOnce(&Packet<'_>) -> R) -> R {
    let mut choices = Choices::new(choices);
    let kind = choices.below(if version == Version::V5 { 15 } else { 14 });
    let material = material::Material::draw(&mut choices, version);
    let lists = material::Lists::new(&material);
    visit(&packets::packet(kind, version, &lists, &mut choices))
}
