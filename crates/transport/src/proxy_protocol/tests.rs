//! Headers of real proxies, and malformed ones.

use proptest::prelude::{any, prop, proptest};

use super::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const IPV4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x30, 0x39, 0x22, 0xB3];

/// A header of version 2.
fn v2(version_command: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[version_command, kind], &len, body].concat()
}

fn extension(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[kind], len.as_slice(), value].concat()
}

/// A header of a client over IPv4 with these extensions.
fn with(extensions: &[Vec<u8>]) -> Vec<u8> {
    v2(0x21, 0x11, &[&IPV4[..], &extensions.concat()].concat())
}

/// The header that is found when the bytes arrive one by one, and how many bytes that takes.
fn one_by_one(bytes: &[u8]) -> (Result<Option<(Header, usize)>, ProxyError>, usize) {
    for end in 0..bytes.len() {
        let found = parse(&bytes[..end]);
        if found != Ok(None) {
            return (found, end);
        }
    }
    (parse(bytes), bytes.len())
}

#[track_caller]
fn read(header: &[u8]) -> Header {
    let bytes = [header, b"\x10\x10MQTT follows"].concat();
    let (found, len) = parse(&bytes).unwrap().unwrap();
    assert_eq!(len, header.len());
    // Not before its last byte.
    assert_eq!(one_by_one(header), (Ok(Some((found.clone(), len))), len));
    found
}

#[track_caller]
fn client(header: &[u8]) -> Proxied {
    match read(header) {
        Header::Proxied(client) => client,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let error = parse(bytes).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    let (found, taken) = one_by_one(bytes);
    assert_eq!(found, Err(error));
    assert!(taken <= V2_BYTES_MAX);
}

#[test]
fn lines_of_version_1_are_read() {
    let found = client(b"PROXY TCP4 192.0.2.1 198.51.100.2 12345 8883\r\n");
    assert_eq!(found.source, Some("192.0.2.1:12345".parse().unwrap()));
    assert_eq!(
        found.destination,
        Some("198.51.100.2:8883".parse().unwrap())
    );
    let found = client(b"PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 0 65535\r\n");
    assert_eq!(found.source, Some("[2001:db8::1]:0".parse().unwrap()));
    assert_eq!(read(b"PROXY UNKNOWN\r\n"), Header::Unknown);
    assert_eq!(
        read(b"PROXY UNKNOWN ffff:: what ever 1 2\r\n"),
        Header::Unknown
    );
    // The longest of the specification.
    let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let longest = format!("PROXY UNKNOWN {all} {all} 65535 65535\r\n");
    assert_eq!(longest.len(), V1_BYTES_MAX);
    assert_eq!(read(longest.as_bytes()), Header::Unknown);
}

#[test]
fn lines_against_the_grammar_are_refused() {
    for (line, words) in [
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 12345\r\n",
            "not two ports",
        ),
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 1 65536\r\n",
            "not two ports",
        ),
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 1 +2\r\n",
            "not two ports",
        ),
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n",
            "not two ports",
        ),
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n",
            "words behind the ports",
        ),
        (
            "PROXY TCP4  192.0.2.1 198.51.100.2 1 2\r\n",
            "not two addresses",
        ),
        (
            "PROXY TCP4 192.0.2.01 198.51.100.2 1 2\r\n",
            "not two addresses",
        ),
        ("PROXY TCP4 ::1 ::2 1 2\r\n", "not two addresses"),
        (
            "PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n",
            "not two addresses",
        ),
        ("PROXY TCP4\r\n", "not two addresses"),
        ("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n", "neither TCP4"),
        ("PROXY \r\n", "neither TCP4"),
        ("PROXY  TCP4\r\n", "neither TCP4"),
        ("PROXX", "no PROXY header"),
        ("\x10\x0C\0\x04MQTT", "no PROXY header"),
        ("GET / HTTP/1.1\r\n", "no PROXY header"),
    ] {
        refused(line.as_bytes(), words);
    }
    refused(b"PROXY TCP4 \xFF\r\n", "not text");
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES_MAX - 15));
    assert_eq!(long.len(), V1_BYTES_MAX + 1);
    refused(long.as_bytes(), "over 107 bytes");
}

#[test]
fn headers_of_version_2_are_read() {
    let found = client(&v2(0x21, 0x11, &IPV4));
    assert_eq!(found.source, Some("192.0.2.1:12345".parse().unwrap()));
    assert_eq!(
        found.destination,
        Some("198.51.100.2:8883".parse().unwrap())
    );
    assert_eq!(found.tls, None);
    let mut ipv6 = [0; 36];
    ipv6[15] = 1;
    ipv6[31] = 2;
    ipv6[35] = 9;
    let found = client(&v2(0x21, 0x21, &ipv6));
    assert_eq!(found.source, Some("[::1]:0".parse().unwrap()));
    assert_eq!(found.destination, Some("[::2]:9".parse().unwrap()));
    let found = client(&v2(0x21, 0x31, &[b'/'; 216]));
    assert_eq!((found.source, found.destination), (None, None));
}

#[test]
fn headers_without_a_client_are_skipped() {
    assert_eq!(read(&v2(0x20, 0x00, b"")), Header::Local);
    assert_eq!(read(&v2(0x20, 0x11, &IPV4)), Header::Local);
    assert_eq!(read(&v2(0x20, 0x11, b"short")), Header::Local);
    assert_eq!(read(&v2(0x20, 0xFF, b"what ever")), Header::Local);
    assert_eq!(read(&v2(0x21, 0x00, b"what ever")), Header::Unknown);
    assert_eq!(read(&v2(0x21, 0x01, b"")), Header::Unknown);
}

#[test]
fn headers_against_the_grammar_are_refused() {
    refused(&v2(0x11, 0x11, &IPV4), "version 1");
    refused(&v2(0x31, 0x11, &IPV4), "version 3");
    refused(&v2(0x22, 0x11, &IPV4), "unknown command");
    refused(&v2(0x21, 0x12, &IPV4), "datagram");
    refused(&v2(0x21, 0x13, &IPV4), "unknown transport");
    refused(&v2(0x21, 0x41, &IPV4), "unknown address family");
    refused(&v2(0x21, 0x11, &IPV4[..11]), "shorter than its addresses");
    refused(&v2(0x21, 0x21, &IPV4), "shorter than its addresses");
    refused(&v2(0x21, 0x31, &[0; 215]), "shorter than its addresses");
    refused(&with(&[b"\x04\0".to_vec()]), "an extension is cut off");
    refused(&with(&[b"\x04\0\x02x".to_vec()]), "an extension is cut off");
    let longest = with(&[extension(4, &vec![0; V2_BYTES_MAX - 16 - 12 - 3])]);
    assert_eq!(longest.len(), V2_BYTES_MAX);
    client(&longest);
    let mut longer = with(&[extension(4, &vec![0; V2_BYTES_MAX - 16 - 12 - 2])]);
    longer.truncate(16);
    refused(&longer, "4097 bytes, the limit is 4096");
}

/// The extension of TLS: flags, whether the certificate was verified, and its contents.
fn ssl(client: u8, verify: u32, inside: &[Vec<u8>]) -> Vec<u8> {
    let value = [&[client], verify.to_be_bytes().as_slice(), &inside.concat()].concat();
    extension(0x20, &value)
}

#[test]
fn the_name_of_a_verified_certificate_is_returned() {
    let inside = [extension(0x21, b"TLSv1.3"), extension(0x22, b"meter 1")];
    let name = |client_flags, verify| {
        let header = with(&[extension(4, b""), ssl(client_flags, verify, &inside)]);
        client(&header).tls.map(|tls| tls.common_name)
    };
    assert_eq!(name(0x07, 0), Some(Some("meter 1".into())));
    // Presented on this connection, or on the one whose session was resumed.
    assert_eq!(name(0x03, 0), Some(Some("meter 1".into())));
    assert_eq!(name(0x05, 0), Some(Some("meter 1".into())));
    // Not verified, not presented, no TLS.
    assert_eq!(name(0x07, 1), Some(None));
    assert_eq!(name(0x01, 0), Some(None));
    assert_eq!(name(0x06, 0), None);
    let none = with(&[ssl(0x07, 0, &[extension(0x22, b"")])]);
    assert_eq!(client(&none).tls.unwrap().common_name, None);
}

#[test]
fn extensions_of_tls_against_the_grammar_are_refused() {
    refused(&with(&[extension(0x20, b"\x07\0\0\0")]), "TLS is cut off");
    refused(
        &with(&[ssl(7, 0, &[b"\x22\0\x09short".to_vec()])]),
        "an extension is cut off",
    );
    refused(&with(&[ssl(7, 0, &[extension(0x22, b"a\0b")])]), "not text");
    refused(&with(&[ssl(7, 0, &[extension(0x22, b"\xFF")])]), "not text");
}

/// The same header with the checksum that it should have, in its only extension of that type.
fn summed(mut header: Vec<u8>) -> Vec<u8> {
    let position = header
        .windows(3)
        .rposition(|three| three == [3, 0, 4])
        .unwrap()
        + 3;
    let sum = crc32c::crc32c(&header).to_be_bytes();
    header[position..position + 4].copy_from_slice(&sum);
    header
}

#[test]
fn a_checksum_is_checked() {
    let empty = extension(3, &[0; 4]);
    for header in [
        with(std::slice::from_ref(&empty)),
        with(&[
            extension(4, b"before"),
            empty.clone(),
            extension(5, b"after"),
        ]),
        v2(0x20, 0x11, &[&IPV4[..], &empty].concat()),
        v2(0x21, 0x00, &empty),
    ] {
        let good = summed(header);
        read(&good);
        let mut spoilt = good.clone();
        spoilt[good.len() - 1] ^= 1;
        refused(&spoilt, "checksum");
    }
    refused(&with(&[extension(3, &[0; 3])]), "a checksum has four bytes");
}

proptest! {
    #[test]
    fn any_bytes_are_read_alike_however_they_come(
        version_command in prop::sample::select(vec![0x20_u8, 0x21, 0x11]),
        kind in any::<u8>(),
        body in prop::collection::vec(any::<u8>(), 0..100),
        is_line in any::<bool>(),
    ) {
        let bytes = if is_line {
            [b"PROXY ".as_slice(), &body, b"\r\n"].concat()
        } else {
            v2(version_command, kind, &body)
        };
        let (found, taken) = one_by_one(&bytes);
        assert_eq!(parse(&bytes), found);
        if let Ok(Some((_, len))) = found {
            assert_eq!(len, taken);
        }
    }
}
