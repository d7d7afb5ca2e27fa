//! Requests of attackers, by the thousand, and their answers.

use std::ops::Range;
use std::time::Duration;

use thrum_conformance::bytes::variable;
use thrum_conformance::packets::{Publish, subscribe_with};
use thrum_conformance::received::Packet;
use thrum_conformance::{Event, Version, Wire};

/// Reason code of a refusal for lack of room.
pub const QUOTA_EXCEEDED: u8 = 0x97;
/// Longest wait for an answer: a stalled broker is to be reported as such.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// Requests that are on their way at a time.
const UNANSWERED: usize = 100;

const PUBLISH: u8 = 3;

/// Sends requests, each of which has an answer, with many of them in flight; returns each answer's
/// reason codes. `goes_on` may end it after an answer.
///
/// # Panics
/// An answer does not arrive.
pub fn ask(
    wire: &mut Wire,
    requests: impl IntoIterator<Item = Vec<u8>>,
    mut take: impl FnMut(&[u8]) -> bool,
) {
    let mut requests = requests.into_iter();
    let mut unanswered = 0;
    let mut goes_on = true;
    loop {
        while goes_on && unanswered < UNANSWERED {
            let Some(request) = requests.next() else {
                break;
            };
            wire.send(&request);
            unanswered += 1;
        }
        if unanswered == 0 {
            return;
        }
        let packet = answer(wire);
        unanswered -= 1;
        goes_on &= take(&packet.ack(wire.version()).codes);
    }
}

/// The next packet other than a message.
fn answer(wire: &mut Wire) -> Packet {
    loop {
        match wire.next(ANSWER_MAX) {
            Event::Packet(packet) if packet.kind() == PUBLISH => {}
            Event::Packet(packet) => return packet,
            other => panic!("an answer expected, got {other:?}"),
        }
    }
}

/// Publishes with `QoS` 1 to the topic of each number, until this many are refused for lack of
/// room; how many were sent and how many refused.
pub fn publish_until_refused(
    wire: &mut Wire,
    numbers: Range<u32>,
    refusals_max: usize,
    message: impl Fn(u32) -> Publish,
) -> (usize, usize) {
    let packets = numbers.map(|number| {
        let id = u16::try_from(number % 0xFFFF + 1).unwrap_or(1);
        message(number).packet_id(id).bytes()
    });
    let (mut sent, mut refused) = (0, 0);
    ask(wire, packets, |codes| {
        sent += 1;
        refused += usize::from(codes.first() == Some(&QUOTA_EXCEEDED));
        refused < refusals_max
    });
    (sent, refused)
}

/// Subscribes to the filter of each number with `QoS` 0, in packets of this many, with the
/// subscription identifiers that follow from the numbers if requested; returns how many were
/// granted.
pub fn subscribe_all(
    wire: &mut Wire,
    numbers: Range<u32>,
    (in_packet, is_identified): (usize, bool),
    filter: impl Fn(u32) -> String,
) -> usize {
    let numbers: Vec<u32> = numbers.collect();
    let packets = numbers.chunks(in_packet).map(|some| {
        let filters: Vec<String> = some.iter().map(|number| filter(*number)).collect();
        let requests: Vec<_> = filters.iter().map(|filter| (filter.as_str(), 0)).collect();
        let identifier = some.first().filter(|_| is_identified);
        let identifier = identifier.map_or_else(Vec::new, |first| identifier_property(first + 1));
        subscribe_with(Version::V5, 1, &identifier, &requests)
    });
    let mut granted = 0;
    ask(wire, packets, |codes| {
        granted += codes.iter().filter(|code| **code < 0x80).count();
        true
    });
    granted
}

/// Subscribes to one filter; the reason code.
pub fn subscribe(wire: &mut Wire, filter: &str, qos: u8) -> u8 {
    let request = subscribe_with(Version::V5, 1, &[], &[(filter, qos)]);
    let mut code = 0xFF;
    ask(wire, [request], |codes| {
        code = codes.first().copied().unwrap_or(0xFF);
        true
    });
    code
}

fn identifier_property(identifier: u32) -> Vec<u8> {
    [vec![0x0B], variable(u64::from(identifier))].concat()
}

/// A filter with this many levels; the bits of a number select the wildcards.
pub fn either(number: u32, levels: u32) -> String {
    let level = |bit: u32| ["a", "+"][usize::from(number >> (bit % 32) & 1 == 1)];
    (0..levels).map(level).collect::<Vec<_>>().join("/")
}
