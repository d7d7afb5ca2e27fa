//! Clients that try to use up a running broker, and what its other clients notice.
//!
//! ```text
//!   attacker --what is allowed, and much of it--> broker with limits.memory
//!   watch --resident memory, a canary's rounds----^
//! ```
//!
//! Invariant: every attack is bounded in time and works over loopback; the broker is the real binary.

use std::time::Duration;

use thrum_conformance::packets::{Connect, Publish, Version, subscribe_with};
use thrum_conformance::wire::DEADLINE;
use thrum_conformance::{Broker, Canary, Event, Wire};

/// PUBACK.
const PUBACK: u8 = 4;
/// Reason code of what is refused because there is no room.
pub const QUOTA_EXCEEDED: u8 = 0x97;

/// A broker under attack.
#[derive(Debug)]
pub struct Victim {
    /// The process.
    pub broker: Broker,
    canary: Canary,
    /// The most resident memory that was seen, in bytes.
    pub memory_peak: u64,
    /// The longest round of the canary.
    pub round_longest: Duration,
}

impl Victim {
    /// Starts a broker with these settings, as environment variables.
    pub fn start(settings: &[(&str, &str)]) -> Self {
        let broker = Broker::start_with(settings);
        let canary = Canary::new(broker.address());
        Self {
            memory_peak: broker.resident_bytes(),
            broker,
            canary,
            round_longest: Duration::ZERO,
        }
    }

    /// Looks at the memory, and whether those who have nothing to do with it are served.
    ///
    /// # Panics
    /// They are not.
    pub fn look(&mut self) {
        self.memory_peak = self.memory_peak.max(self.broker.resident_bytes());
        self.round_longest = self.round_longest.max(self.canary.sing());
    }

    /// A connection whose session outlives it; whether there was one.
    pub fn resume(&self, client_id: &str) -> (Wire, bool) {
        let connect = Connect::new(Version::V5).client_id(client_id).persistent();
        let (wire, connack) = Wire::connect(self.broker.address(), &connect);
        (wire, connack.session_present)
    }
}

/// Publishes with QoS 1 as many messages as the numbers say, at once, and takes what they are answered: how many were
/// refused for want of room.
///
/// # Panics
/// An answer does not come.
pub fn publish_all(
    wire: &mut Wire,
    numbers: std::ops::Range<u16>,
    topic: &str,
    payload: &[u8],
) -> usize {
    let mut bytes = Vec::new();
    for number in numbers.clone() {
        let publish = Publish::new(Version::V5, topic, 1, payload);
        bytes.extend(publish.packet_id(number + 1).bytes());
    }
    wire.send(&bytes);
    let mut refused = 0;
    for _ in numbers {
        let packet = match wire.next(4 * DEADLINE) {
            Event::Packet(packet) => packet,
            other => panic!("PUBACK expected, got {other:?}"),
        };
        assert_eq!(packet.kind(), PUBACK, "{packet:?}");
        refused += usize::from(packet.ack(Version::V5).codes.first() == Some(&QUOTA_EXCEEDED));
    }
    refused
}

/// Subscribes to one filter with a subscription identifier; the reason code.
///
/// # Panics
/// There is no answer.
pub fn subscribe(wire: &mut Wire, filter: &str, identifier: u32) -> u8 {
    let mut properties = vec![0x0B];
    let mut rest = identifier;
    while rest > 0x7F {
        properties.push(u8::try_from(rest & 0x7F).unwrap_or(0) | 0x80);
        rest >>= 7;
    }
    properties.push(u8::try_from(rest).unwrap_or(0));
    wire.send(&subscribe_with(Version::V5, 1, &properties, &[(filter, 1)]));
    let ack = wire.packet("SUBACK").ack(Version::V5);
    ack.codes.first().copied().unwrap_or(0xFF)
}

/// So many levels, of which the bits of a number say which are wildcards.
pub fn either(number: u32, levels: u32) -> String {
    let level = |bit: u32| ["a", "+"][usize::from(number >> (bit % 32) & 1 == 1)];
    (0..levels).map(level).collect::<Vec<_>>().join("/")
}
