//! One piece of input, the required reaction, and the run of many.

use std::net::SocketAddr;
use std::time::Duration;

use crate::broker::Broker;
use crate::bytes::hex;
use crate::clock;
use crate::packets::{PINGREQ, Version};
use crate::probe::Probe;
use crate::received::Packet;
use crate::wire::{DEADLINE, Event, Wire};

/// The required reaction of the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Close; 5.0 sends one of these reasons, in CONNACK before the handshake, else in DISCONNECT.
    Refused(&'static [u8]),
    /// Close with a CONNACK of 3.x that has this return code.
    ReturnCode(u8),
    /// Close with a CONNACK that refuses the protocol version, in the form of 3.x or of 5.0.
    VersionRefused,
    /// Close without an answer.
    Closed,
    /// Close; a refusal is allowed, but not required.
    ClosedSomehow,
    /// Stay open and keep working.
    Lives,
    /// Stay open, or be refused with one of these reasons (5.0).
    LivesOrRefused(&'static [u8]),
    /// Stay open, and send this packet.
    Answer(u8, Vec<u8>),
    /// A SUBACK that refuses the filter with one of these codes, or a refusal with one of these.
    FilterRefused(&'static [u8]),
    /// The specification is silent; only other clients must not be disturbed.
    Anything,
}

/// One piece of input.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its special property.
    pub name: String,
    /// Version of the connection.
    pub version: Version,
    /// Whether a CONNECT precedes it.
    pub connected: bool,
    /// The input.
    pub bytes: Vec<u8>,
    /// The required reaction.
    pub expect: Expect,
}

impl Case {
    /// Input on a connection after the handshake.
    pub fn connected(
        name: impl Into<String>,
        version: Version,
        bytes: Vec<u8>,
        expect: Expect,
    ) -> Self {
        Self {
            name: name.into(),
            version,
            connected: true,
            bytes,
            expect,
        }
    }

    /// Input on a connection that has not sent anything.
    pub fn first(
        name: impl Into<String>,
        version: Version,
        bytes: Vec<u8>,
        expect: Expect,
    ) -> Self {
        Self {
            name: name.into(),
            version,
            connected: false,
            bytes,
            expect,
        }
    }
}

/// The observed reaction to one case.
#[derive(Debug)]
struct Observed {
    packets: Vec<Packet>,
    closed: bool,
}

/// Longest wait for the end of a connection; the broker needs no timer for any of the cases.
const END_MAX: Duration = Duration::from_secs(1);
/// Failures that are listed before the rest of the cases is left out.
const FAILURES_MAX: usize = 40;

/// Runs the cases one after the other, with a round trip of the probe after each.
///
/// # Panics
/// A case failed (all are listed), or the probe is disturbed.
pub fn check(cases: &[Case]) {
    assert!(!cases.is_empty(), "the generator made no case");
    let broker = Broker::shared();
    let mut probe = Probe::new(broker.address());
    let mut failures = Vec::new();
    for case in cases {
        let observed = run(broker.address(), case);
        if !is_as_expected(case, &observed) {
            failures.push(format!(
                "{:?} {}\n  sent     {}\n  expected {:02x?}\n  got      {:?}{}",
                case.version,
                case.name,
                hex(&case.bytes),
                case.expect,
                observed.packets,
                if observed.closed {
                    ", closed"
                } else {
                    ", open"
                },
            ));
        }
        broker.assert_alive();
        probe.round_trip();
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases failed (the run ends at {FAILURES_MAX}):\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn run(address: SocketAddr, case: &Case) -> Observed {
    let mut wire = if case.connected {
        Wire::fresh(address, case.version)
    } else {
        Wire::open(address, case.version)
    };
    wire.send(&case.bytes);
    // A connection that may live proves it by answering; the others just wait for their end.
    let may_live = matches!(
        case.expect,
        Expect::Lives
            | Expect::LivesOrRefused(_)
            | Expect::Answer(..)
            | Expect::FilterRefused(_)
            | Expect::Anything
    );
    if may_live {
        wire.send(&PINGREQ);
    }
    let patience = match case.expect {
        Expect::Anything => Duration::from_millis(20),
        _ if may_live => DEADLINE,
        _ => END_MAX,
    };
    let start = clock::now();
    let mut packets = Vec::new();
    loop {
        match wire.next(patience.saturating_sub(start.elapsed())) {
            Event::Packet(packet) => {
                let answered = packet.kind() == 13;
                packets.push(packet);
                if may_live && answered {
                    return Observed {
                        packets,
                        closed: false,
                    };
                }
            }
            Event::Closed => {
                return Observed {
                    packets,
                    closed: true,
                };
            }
            Event::Silence => {
                return Observed {
                    packets,
                    closed: false,
                };
            }
        }
    }
}

fn is_as_expected(case: &Case, observed: &Observed) -> bool {
    let Observed { packets, closed } = observed;
    let refused = |reasons: &[u8]| *closed && is_refusal(case, packets, reasons);
    let lives = !*closed && packets.last().is_some_and(|last| last.kind() == 13);
    match &case.expect {
        Expect::Refused(reasons) => refused(reasons),
        Expect::ReturnCode(code) => *closed && is_only(packets, 0x20, &[0, *code]),
        Expect::VersionRefused => {
            *closed && (is_only(packets, 0x20, &[0, 1]) || is_only(packets, 0x20, &[0, 0x84, 0]))
        }
        Expect::Closed => *closed && packets.is_empty(),
        Expect::ClosedSomehow => *closed,
        Expect::Lives => lives,
        Expect::LivesOrRefused(reasons) => lives || refused(reasons),
        Expect::Answer(first, body) => {
            let answer = Packet {
                first: *first,
                body: body.clone(),
            };
            lives && packets.contains(&answer)
        }
        Expect::FilterRefused(reasons) => {
            let suback = packets.iter().find(|packet| packet.kind() == 9);
            let by_suback = suback.is_some_and(|suback| {
                suback
                    .ack(case.version)
                    .codes
                    .iter()
                    .all(|code| reasons.contains(code))
            });
            (lives && by_suback) || refused(reasons)
        }
        Expect::Anything => true,
    }
}

fn is_only(packets: &[Packet], first: u8, body: &[u8]) -> bool {
    matches!(packets, [packet] if packet.first == first && packet.body.starts_with(body))
}

fn is_refusal(case: &Case, packets: &[Packet], reasons: &[u8]) -> bool {
    if case.version != Version::V5 {
        // A connection of 3.x that is refused after the handshake receives nothing more.
        return packets
            .iter()
            .all(|packet| packet.kind() != 14 && packet.kind() != 2);
    }
    let kind = if case.connected { 14 } else { 2 };
    packets.last().is_some_and(|last| {
        last.kind() == kind
            && last
                .reason()
                .is_some_and(|reason| reasons.contains(&reason))
    })
}
