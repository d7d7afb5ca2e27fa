//! Version 1: one line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Header, Proxied, ProxyError, V1_BYTES_MAX};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

const LINE_END: &[u8] = b"\r\n";

/// A header that begins with the signature, as far as it has arrived.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    let found = bytes
        .windows(LINE_END.len())
        .take(V1_BYTES_MAX - LINE_END.len() + 1)
        .position(|window| window == LINE_END);
    let Some(end) = found else {
        return if bytes.len() < V1_BYTES_MAX {
            Ok(None)
        } else {
            Err(ProxyError::LineTooLong)
        };
    };
    let words = bytes.get(SIGNATURE.len()..end).unwrap_or_default();
    let words = str::from_utf8(words).map_err(|_| ProxyError::Malformed("it is not text"))?;
    Ok(Some((header(words)?, end + LINE_END.len())))
}

fn header(words: &str) -> Result<Header, ProxyError> {
    let mut words = words.split(' ');
    let address: fn(&str) -> Option<IpAddr> = match words.next() {
        Some("TCP4") => |word| word.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        Some("TCP6") => |word| word.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        // The rest is to be ignored.
        Some("UNKNOWN") => return Ok(Header::Unknown),
        _ => return Err(ProxyError::Malformed("neither TCP4, TCP6 nor UNKNOWN")),
    };
    let mut next_address = || words.next().and_then(address);
    let (source, destination) = next_address()
        .zip(next_address())
        .ok_or(ProxyError::Malformed("not two addresses of its family"))?;
    let mut next_port = || words.next().and_then(port);
    let (source_port, destination_port) = next_port()
        .zip(next_port())
        .ok_or(ProxyError::Malformed("not two ports"))?;
    if words.next().is_some() {
        return Err(ProxyError::Malformed("words behind the ports"));
    }
    Ok(Header::Proxied(Proxied {
        source: Some(SocketAddr::new(source, source_port)),
        destination: Some(SocketAddr::new(destination, destination_port)),
        tls: None,
    }))
}

/// Digits without a sign and without zeros before them.
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|digit| digit.is_ascii_digit());
    let is_shortest = word == "0" || !word.starts_with('0');
    (is_plain && is_shortest).then(|| word.parse().ok())?
}
