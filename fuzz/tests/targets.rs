//! Runs each target for a few seconds; see README.md for longer runs and for replaying a failure.

mod drive;

use drive::{Random, drive};
use thrum_codec::properties::SubscriptionIdentifiers;
use thrum_codec::testing::with_packet;
use thrum_codec::{Packet, Version, encode};

const VERSIONS: [Version; 3] = [Version::V5, Version::V311, Version::V31];

#[test]
fn decode() {
    drive("decode", thrum_fuzz::decode::target, |random| {
        let choice = random.below(VERSIONS.len());
        let mut input = vec![u8::try_from(choice).expect("below 3")];
        for _ in 0..=random.below(3) {
            let choices = decisions(random);
            input.extend(packet(&choices, VERSIONS[choice]));
        }
        input
    });
}

#[test]
fn filter_match() {
    drive("filter_match", thrum_fuzz::filter_match::target, |random| {
        const PIECES: [&[u8]; 14] = [
            b"a",
            b"b",
            b"/",
            b"/",
            b"+",
            b"#",
            b"$",
            b"\xFF",
            b"$share/",
            b"$queue/",
            b"\0",
            b"\xC3\xBC",
            b"/+",
            b"/#",
        ];
        if random.below(2) == 0 {
            let mut input = random.small_bytes(24);
            input[0] &= 0xFE;
            return input;
        }
        let count = random.below(16);
        let pieces = (0..count)
            .flat_map(|_| PIECES[random.below(PIECES.len())])
            .copied();
        let text: Vec<u8> = pieces.collect();
        [&[1], &text[..]].concat()
    });
}

#[test]
fn rule_text() {
    drive("rule_text", thrum_fuzz::rule_text::target, |random| {
        const PIECES: [&str; 26] = [
            "a",
            "b",
            "/",
            "/+",
            "/#",
            "%c",
            "%u",
            "%%",
            "${client_id}",
            "$",
            "eq ",
            " ",
            "\"",
            "\\",
            "user:",
            "client:",
            "*",
            "(qos=0,1)",
            "(retain=true)",
            "pub ",
            "sub ",
            "#",
            "+",
            "ü",
            "ip:10.0.0.0/8",
            "topic ",
        ];
        const WORDS: [[&str; 8]; 2] = [
            [
                "allow all pub ",
                "deny all pub ",
                "allow all sub ",
                "deny all sub ",
                "allow client:a* pubsub ",
                "deny anonymous pubsub ",
                "deny all sub eq ",
                "allow all sub eq ",
            ],
            [
                "topic ",
                "topic read ",
                "topic deny ",
                "pattern ",
                "pattern write ",
                "pattern deny ",
                "user ",
                "pattern read ",
            ],
        ];
        let syntax = random.below(2);
        let mut input = vec![u8::try_from(syntax).expect("below 2")];
        let some = |random: &mut Random, input: &mut Vec<u8>, max: usize| {
            for _ in 0..=random.below(max) {
                input.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes());
            }
        };
        for _ in 0..random.below(6) {
            input.extend_from_slice(WORDS[syntax][random.below(8)].as_bytes());
            some(random, &mut input, 3);
            input.push(b'\n');
        }
        for _ in 0..3 {
            input.push(0xFF);
            some(random, &mut input, 4);
        }
        input
    });
}

#[test]
fn session_input() {
    drive(
        "session_input",
        thrum_fuzz::session_input::target,
        |random| {
            let version = VERSIONS[random.below(VERSIONS.len())];
            let mut script = Vec::new();
            connect(version, random, &mut script);
            for _ in 0..random.below(24) {
                match random.below(12) {
                    0 => script.extend([9, random.byte()]),
                    1 | 2 => {
                        script.push(10);
                        script.extend(random.small_bytes(8));
                    }
                    3 => script.extend([12, random.byte() & 0x3F]),
                    4 => script.extend([13, random.byte()]),
                    5 => {
                        // The connection is lost and the client reconnects.
                        script.push(15);
                        connect(version, random, &mut script);
                    }
                    _ => feed(&of_client(version, random), &mut script),
                }
            }
            script
        },
    );
}

#[test]
fn proxy_header() {
    drive("proxy_header", thrum_fuzz::proxy_header::target, |random| {
        if random.below(3) == 0 {
            const WORDS: [&[u8]; 9] = [
                b"TCP4",
                b"TCP6",
                b"UNKNOWN",
                b"192.0.2.1",
                b"::1",
                b"8883",
                b" ",
                b"65536",
                b"\r\n",
            ];
            let count = 3 + random.below(8);
            let words = (0..count).flat_map(|_| [WORDS[random.below(WORDS.len())], b" "]);
            let line = words.flatten().copied();
            return b"PROXY "
                .iter()
                .copied()
                .chain(line)
                .chain(*b"\r\n")
                .collect();
        }
        let kind = [0x11, 0x11, 0x11, 0x21, 0x31, 0x00, 0x12][random.below(7)];
        let address_bytes = [0, 12, 12, 36, 216][random.below(5)];
        let mut body = random.bytes(address_bytes);
        for _ in 0..random.below(4) {
            let value = match random.below(3) {
                0 => random.small_bytes(4),
                1 => [&[7, 0, 0, 0, 0, 0x22, 0, 2], b"cn".as_slice()].concat(),
                _ => random.small_bytes(9),
            };
            body.push([3, 4, 0x20, 0x20, 0x21][random.below(5)]);
            body.extend(length(&value));
            body.extend(value);
        }
        let command = [0x21, 0x21, 0x21, 0x20, 0x22][random.below(5)];
        let signature = b"\r\n\r\n\0\r\nQUIT\n";
        [signature, [command, kind].as_slice(), &length(&body), &body].concat()
    });
}

#[test]
fn websocket_server() {
    use thrum_fuzz::websocket_server::{REQUEST, target};
    drive("websocket_server", target, |random| {
        let mut input = vec![random.byte()];
        if input[0] & 0x80 == 0 {
            const LINES: [&[u8]; 6] = [
                b"Origin: https://evil\r\n",
                b"Sec-WebSocket-Version: 8\r\n",
                b"Sec-WebSocket-Protocol: chat\r\n",
                b"Host: other\r\n",
                b"X: ",
                b"Connection: close\r\n",
            ];
            let line_end = REQUEST
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            input.extend_from_slice(&REQUEST[..line_end]);
            if random.below(2) == 0 {
                input.extend_from_slice(LINES[random.below(LINES.len())]);
            }
            input.extend_from_slice(&REQUEST[line_end..]);
        }
        for _ in 0..random.below(6) {
            const FIRST: [u8; 10] = [0x82, 0x82, 0x02, 0x00, 0x80, 0x89, 0x8A, 0x88, 0x81, 0xC2];
            let len = random.below(150);
            let payload = random.small_bytes(len);
            input.push(FIRST[random.below(FIRST.len())]);
            match u8::try_from(len) {
                Ok(short) if short < 126 => input.push(0x80 | short),
                _ => {
                    input.push(0xFE);
                    input.extend(length(&payload));
                }
            }
            input.extend(random.bytes(4));
            input.extend(payload);
        }
        input
    });
}

#[test]
fn tls_records() {
    use thrum_fuzz::tls_records::{hello, target};
    // A stream without modification.
    target(&[1]);
    target(&[3]);
    drive("tls_records", target, |random| match random.below(4) {
        0 => [vec![0], hello()].concat(),
        1 => {
            let mut input = vec![0];
            for _ in 0..=random.below(3) {
                let len = random.below(40);
                let payload = random.small_bytes(len);
                input.extend([[20, 21, 22, 23][random.below(4)], 3, 3]);
                input.extend(length(&payload));
                input.extend(payload);
            }
            input
        }
        _ => {
            let mut input = vec![[1, 3][random.below(2)]];
            for _ in 0..random.below(7) {
                // Most of the stream is left unmodified, so that later messages are reached.
                let what = if random.below(3) == 0 {
                    random.byte()
                } else {
                    0
                };
                input.extend([what, random.byte() & 3, random.byte(), random.byte()]);
            }
            input
        }
    });
}

/// Length as two bytes.
fn length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).expect("short").to_be_bytes()
}

fn decisions(random: &mut Random) -> Vec<u8> {
    let len = random.below(120);
    let mut choices = random.small_bytes(len);
    if let Some(kind) = choices.first_mut() {
        *kind = random.byte();
    }
    choices
}

fn packet(choices: &[u8], version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    with_packet(choices, version, |packet| {
        encode(packet, version, &mut bytes).expect("a generated packet can be encoded");
    });
    bytes
}

/// A packet that a client may send, in most cases.
fn of_client(version: Version, random: &mut Random) -> Vec<u8> {
    // The numbers of PUBLISH and its acknowledgements, SUBSCRIBE, UNSUBSCRIBE, PINGREQ and
    // DISCONNECT.
    const KINDS: [u8; 16] = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 7, 9, 11, 13];
    let mut choices = decisions(random);
    if random.below(16) > 0 {
        let kind = KINDS[random.below(KINDS.len())];
        choices.splice(0..choices.len().min(1), [kind]);
    }
    with_packet(&choices, version, |packet| {
        let mut packet = *packet;
        if let Packet::Publish(publish) = &mut packet
            && random.below(16) > 0
        {
            publish.properties.subscription_identifiers = SubscriptionIdentifiers::default();
        }
        let mut bytes = Vec::new();
        encode(&packet, version, &mut bytes).expect("a generated packet can be encoded");
        bytes
    })
}

/// A CONNECT that is accepted in most cases.
fn connect(version: Version, random: &mut Random, script: &mut Vec<u8>) {
    let mut choices = decisions(random);
    // Kind 5 is CONNECT.
    choices.splice(0..choices.len().min(1), [5]);
    with_packet(&choices, version, |packet| {
        let Packet::Connect(mut connect) = *packet else {
            panic!("kind 5 is CONNECT")
        };
        if random.below(8) > 0 {
            connect.client_id = "client";
            connect.properties.authentication_method = None;
            connect.properties.authentication_data = None;
        }
        if random.below(4) > 0 {
            connect.properties.maximum_packet_size = None;
        }
        let mut bytes = Vec::new();
        encode(&Packet::Connect(connect), version, &mut bytes).expect("a CONNECT can be encoded");
        feed(&bytes, script);
    });
}

/// Steps that pass these bytes to the session.
fn feed(bytes: &[u8], script: &mut Vec<u8>) {
    for chunk in bytes.chunks(255) {
        script.extend([0, u8::try_from(chunk.len()).expect("at most 255")]);
        script.extend_from_slice(chunk);
    }
}
