//! A trace as pcapng, for Wireshark: MQTT in the clear, whatever the client's connection was, in
//! made-up TCP segments between the client and port 1883 of the broker.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thrum_broker::{Direction, Peer, TraceItem, TracedPacket};

/// The address of the broker in the segments: one that is set aside for documentation, as the
/// broker may be reached by several.
const BROKER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const BROKER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The address of clients that have none, over Unix sockets.
const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The port that Wireshark takes for MQTT.
const MQTT_PORT: u16 = 1883;
/// The first of the ports of clients without one.
const PORTS: u16 = 49_152;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// `LINKTYPE_RAW`: a packet begins with its IP header.
const RAW_IP: u16 = 101;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const TCP: u8 = 6;
/// PSH and ACK.
const TCP_FLAGS: u8 = 0x18;
/// 32-bit words of a TCP header without options, in the upper half of a byte.
const TCP_WORDS: u8 = 5 << 4;
const TCP_HEADER: usize = 20;

/// The bytes of a trace so far, and where each connection is.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    bytes: Vec<u8>,
    /// By the number of the connection.
    streams: HashMap<u64, Stream>,
    /// Packets that are missing before the next one.
    left_out: u64,
}

/// Bytes that have passed, which are the sequence numbers of TCP.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    from_client: u32,
    to_client: u32,
}

impl Pcapng {
    /// The header of the file.
    pub(crate) fn new() -> Self {
        let mut pcapng = Self::default();
        let mut section = Vec::new();
        section.extend(BYTE_ORDER.to_le_bytes());
        // Version 1.0, and a section of unknown length.
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        pcapng.block(SECTION_HEADER, &section);
        let mut interface = Vec::new();
        interface.extend(RAW_IP.to_le_bytes());
        interface.extend([0; 2]);
        // Packets of any length; times are in microseconds unless an option says otherwise.
        interface.extend(0_u32.to_le_bytes());
        pcapng.block(INTERFACE, &interface);
        pcapng
    }

    /// Adds what the trace tells.
    pub(crate) fn add(&mut self, item: &TraceItem) {
        match item {
            TraceItem::Packet(packet) => self.packet(packet),
            TraceItem::LeftOut(packets) => self.left_out += packets,
            TraceItem::Ended(_) => {}
        }
    }

    /// The bytes that were added since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn packet(&mut self, packet: &TracedPacket) {
        let stream = self.streams.entry(packet.connection).or_default();
        let headers = headers(packet, *stream);
        let sent = match packet.direction {
            Direction::FromClient => &mut stream.from_client,
            Direction::ToClient => &mut stream.to_client,
        };
        *sent = sent.wrapping_add(packet.packet_bytes);
        let captured = headers.len() + packet.bytes.len();
        let original = headers.len() + packet.packet_bytes as usize;
        let mut body = Vec::with_capacity(captured + 64);
        body.extend(0_u32.to_le_bytes());
        let [high, low] = halves(packet.at_micros);
        for number in [high, low, length(captured), length(original)] {
            body.extend(number.to_le_bytes());
        }
        body.extend(headers);
        body.extend_from_slice(&packet.bytes);
        pad(&mut body);
        let comment = self.comment(packet);
        option(&mut body, OPTION_COMMENT, comment.as_bytes());
        option(&mut body, OPTION_END, &[]);
        self.block(ENHANCED_PACKET, &body);
    }

    fn comment(&mut self, packet: &TracedPacket) -> String {
        let client_id = &packet.client_id;
        let mut comment = match std::mem::take(&mut self.left_out) {
            0 => format!("client {client_id:?}"),
            left_out => {
                format!("client {client_id:?}; {left_out} packets are missing before this one")
            }
        };
        if let Some(reason) = &packet.malformed {
            comment.push_str("; ");
            comment.push_str(reason);
        }
        comment
    }

    /// Adds a block, whose length is a multiple of four.
    fn block(&mut self, kind: u32, body: &[u8]) {
        // Type, body, and the length before and behind it.
        let len = length(body.len() + 12);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(len.to_le_bytes());
        self.bytes.extend_from_slice(body);
        self.bytes.extend(len.to_le_bytes());
    }
}

fn halves(number: u64) -> [u32; 2] {
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    [half(number >> u32::BITS), half(number)]
}

fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend(code.to_le_bytes());
    body.extend(len.to_le_bytes());
    body.extend_from_slice(&value[..usize::from(len)]);
    pad(body);
}

/// The ends of a connection: address and port.
#[derive(Clone, Copy, Debug)]
struct End {
    address: IpAddr,
    port: u16,
}

/// The headers of IP and TCP before a packet.
fn headers(packet: &TracedPacket, stream: Stream) -> Vec<u8> {
    let client = client(packet);
    let broker = End {
        address: match client.address {
            IpAddr::V4(_) => BROKER_V4.into(),
            IpAddr::V6(_) => BROKER_V6.into(),
        },
        port: MQTT_PORT,
    };
    let (from, to, sequence, acknowledged) = match packet.direction {
        Direction::FromClient => (client, broker, stream.from_client, stream.to_client),
        Direction::ToClient => (broker, client, stream.to_client, stream.from_client),
    };
    let len = TCP_HEADER + packet.packet_bytes as usize;
    let mut headers = match (from.address, to.address) {
        (IpAddr::V6(from), IpAddr::V6(to)) => ipv6(from, to, len),
        (from, to) => ipv4(v4(from), v4(to), len),
    };
    headers.extend(from.port.to_be_bytes());
    headers.extend(to.port.to_be_bytes());
    headers.extend(sequence.to_be_bytes());
    headers.extend(acknowledged.to_be_bytes());
    headers.extend([TCP_WORDS, TCP_FLAGS]);
    // A large window, no checksum, nothing urgent.
    headers.extend([0xFF, 0xFF, 0, 0, 0, 0]);
    headers
}

fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => CLIENT_V4,
    }
}

fn client(packet: &TracedPacket) -> End {
    // No two connections of a trace without a port have the same number.
    let number = u16::try_from(packet.connection % u64::from(PORTS / 4)).unwrap_or_default();
    let port = PORTS + number;
    match packet.peer {
        Peer::Address { ip, port } => End {
            address: ip.to_canonical(),
            port,
        },
        Peer::BehindProxy(Some(ip)) => End {
            address: ip.to_canonical(),
            port,
        },
        Peer::BehindProxy(None) | Peer::Local => End {
            address: CLIENT_V4.into(),
            port,
        },
    }
}

/// The header of IPv4 before `len` bytes. A length of 0 stands for one that does not fit.
fn ipv4(from: Ipv4Addr, to: Ipv4Addr, len: usize) -> Vec<u8> {
    let total = u16::try_from(len + 20).unwrap_or(0);
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    // No fragment; 64 hops; the checksum follows.
    header.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let words = header.chunks_exact(2);
    let mut sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let checksum = !u16::try_from(sum).unwrap_or_default();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// The header of IPv6 before `len` bytes. A length of 0 stands for one that does not fit.
fn ipv6(from: Ipv6Addr, to: Ipv6Addr, len: usize) -> Vec<u8> {
    let payload = u16::try_from(len).unwrap_or(0);
    let mut header = vec![0x60, 0, 0, 0];
    header.extend(payload.to_be_bytes());
    header.extend([TCP, 64]);
    header.extend(from.octets());
    header.extend(to.octets());
    header
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thrum_codec::Version;

    use super::*;

    fn packet(direction: Direction, bytes: &[u8], packet_bytes: u32) -> TraceItem {
        TraceItem::Packet(TracedPacket {
            at_micros: 1_700_000_000_250_001,
            connection: 256,
            direction,
            peer: Peer::Address {
                ip: [10, 0, 0, 9].into(),
                port: 5123,
            },
            client_id: Arc::from("a"),
            version: Version::V311,
            topic: None,
            bytes: bytes.into(),
            packet_bytes,
            malformed: None,
        })
    }

    #[test]
    fn a_malformed_packet_has_its_reason_in_the_comment() {
        let mut pcapng = Pcapng::new();
        let TraceItem::Packet(mut traced) = packet(Direction::FromClient, b"\x82\x02", 4) else {
            panic!("it is a packet");
        };
        traced.malformed = Some("malformed packet: no filters".into());
        pcapng.add(&TraceItem::Packet(traced));
        let bytes = pcapng.take();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("; malformed packet: no filters"), "{text}");
    }

    /// Type and body of each block; both lengths of each agree.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let number = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let len = number(&bytes[4..]) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(number(&bytes[len - 4..]) as usize, len);
            blocks.push((number(bytes), bytes[8..len - 4].to_vec()));
            bytes = &bytes[len..];
        }
        blocks
    }

    #[test]
    fn packets_are_segments_with_sequence_numbers_of_what_passed() {
        let mut pcapng = Pcapng::new();
        pcapng.add(&packet(Direction::FromClient, b"\x30\x05\0\x01t", 7));
        pcapng.add(&TraceItem::LeftOut(3));
        pcapng.add(&packet(Direction::ToClient, b"\xd0\0", 2));
        pcapng.add(&packet(Direction::FromClient, b"\xc0\0", 2));
        let blocks = blocks(&pcapng.take());
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, 6, 6, 6]);
        let numbers = |block: &[u8], at: usize, count: usize| {
            let words = block[at..].chunks_exact(4).take(count);
            words
                .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        // Behind five numbers of the block, and 20 bytes of IP with 4 bytes of ports.
        let sequences = blocks[2..]
            .iter()
            .map(|(_, block)| numbers(block, 20 + 20 + 4, 2))
            .collect::<Vec<_>>();
        assert_eq!(sequences, [[0, 0], [0, 7], [7, 2]]);
        let (_, cut) = &blocks[2];
        let lengths = [&cut[12..16], &cut[16..20]].map(|len| len[0]);
        assert_eq!(lengths, [45, 47], "two bytes of payload are cut");
        assert_eq!(
            cut[20 + 20..][..4],
            [0x14, 0x03, 0x07, 0x5B],
            "ports 5123 and 1883"
        );
        let text = String::from_utf8_lossy(&blocks[3].1).into_owned();
        assert!(text.contains("3 packets are missing"), "{text}");
        assert!(!String::from_utf8_lossy(&blocks[4].1).contains("missing"));
    }

    #[test]
    fn the_checksum_of_ipv4_is_that_of_the_standard() {
        let header = ipv4([10, 0, 0, 9].into(), BROKER_V4, 27);
        let sum: u32 = header
            .chunks_exact(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
    }
}
