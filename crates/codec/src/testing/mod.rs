//! Arbitrary valid packets for tests, drawn from a string of bytes.
//!
//! Any bytes give a packet, so a property test or a fuzzer need only make up bytes; the same bytes
//! give the same packet, and fewer or smaller bytes a simpler one.

mod choices;
mod material;
mod oracle;
mod packets;

pub use self::choices::Choices;
pub use self::oracle::naive_matches;
use crate::packet::{Packet, Version};

/// Calls `visit` with the packet that the bytes stand for.
///
/// It holds nothing that `version` cannot express: encoding and decoding it gives an equal packet.
pub fn with_packet<R>(choices: &[u8], version: Version, visit: impl FnOnce(&Packet<'_>) -> R) -> R {
    let mut choices = Choices::new(choices);
    let kind = choices.below(if version == Version::V5 { 15 } else { 14 });
    let material = material::Material::draw(&mut choices, version);
    let lists = material::Lists::new(&material);
    visit(&packets::packet(kind, version, &lists, &mut choices))
}
