//! Version 2: a binary header.

use std::net::{IpAddr, SocketAddr};

use super::tlv::{Extensions, extensions};
use super::{Header, Proxied, ProxyError, V2_BYTES_MAX};

pub(super) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length of the rest.
const FIXED_BYTES: usize = 16;

const COMMAND_LOCAL: u8 = 0;
const COMMAND_PROXY: u8 = 1;

const FAMILY_UNSPECIFIED: u8 = 0;
const FAMILY_IPV4: u8 = 1;
const FAMILY_IPV6: u8 = 2;
const FAMILY_UNIX: u8 = 3;

const TRANSPORT_UNSPECIFIED: u8 = 0;
const TRANSPORT_STREAM: u8 = 1;
const TRANSPORT_DATAGRAM: u8 = 2;

/// Two paths of 108 bytes.
const UNIX_BYTES: usize = 216;

/// A header that begins with the signature, as far as it has arrived.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    let Some(&first) = bytes.get(SIGNATURE.len()) else {
        return Ok(None);
    };
    let (version, command) = (first >> 4, first & 0x0F);
    if version != 2 {
        return Err(ProxyError::Version(version));
    }
    if !matches!(command, COMMAND_LOCAL | COMMAND_PROXY) {
        return Err(ProxyError::Malformed("unknown command"));
    }
    let Some(&kind) = bytes.get(SIGNATURE.len() + 1) else {
        return Ok(None);
    };
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
        return Ok(None);
    };
    let [.., high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let total = FIXED_BYTES + length;
    if total > V2_BYTES_MAX {
        return Err(ProxyError::TooLong { bytes: total });
    }
    let Some(body) = rest.get(..length) else {
        return Ok(None);
    };
    let whole = bytes.get(..total).unwrap_or_default();
    let header = if command == COMMAND_LOCAL {
        // The rest is to be ignored, except the checksum.
        Header::Local
    } else {
        proxied(kind, body)?
    };
    let address_bytes = address_bytes(kind).unwrap_or(length).min(length);
    let found = extensions(whole, FIXED_BYTES + address_bytes);
    Ok(Some((with_extensions(header, found)?, total)))
}

/// Extensions of a header without a client are not read, except the checksum.
fn with_extensions(
    header: Header,
    found: Result<Extensions, ProxyError>,
) -> Result<Header, ProxyError> {
    match (header, found) {
        (Header::Proxied(proxied), found) => Ok(Header::Proxied(Proxied {
            tls: found?.tls,
            ..proxied
        })),
        (_, Err(ProxyError::Checksum)) => Err(ProxyError::Checksum),
        (header, _) => Ok(header),
    }
}

fn proxied(kind: u8, body: &[u8]) -> Result<Header, ProxyError> {
    let (family, transport) = (kind >> 4, kind & 0x0F);
    match transport {
        TRANSPORT_STREAM => {}
        TRANSPORT_DATAGRAM => return Err(ProxyError::Datagram),
        // The receiver uses the addresses of the socket.
        TRANSPORT_UNSPECIFIED => return Ok(Header::Unknown),
        _ => return Err(ProxyError::Malformed("unknown transport")),
    }
    let short = ProxyError::Malformed("shorter than its addresses");
    let (source, destination) = match family {
        FAMILY_UNSPECIFIED => return Ok(Header::Unknown),
        FAMILY_IPV4 => addresses::<4>(body).ok_or(short)?,
        FAMILY_IPV6 => addresses::<16>(body).ok_or(short)?,
        FAMILY_UNIX if body.len() >= UNIX_BYTES => {
            return Ok(Header::Proxied(Proxied {
                source: None,
                destination: None,
                tls: None,
            }));
        }
        FAMILY_UNIX => return Err(short),
        _ => return Err(ProxyError::Malformed("unknown address family")),
    };
    Ok(Header::Proxied(Proxied {
        source: Some(source),
        destination: Some(destination),
        tls: None,
    }))
}

/// Source and destination: two addresses, then two ports.
fn addresses<const BYTES: usize>(body: &[u8]) -> Option<(SocketAddr, SocketAddr)>
where
    IpAddr: From<[u8; BYTES]>,
{
    let (source, rest) = body.split_first_chunk::<BYTES>()?;
    let (destination, rest) = rest.split_first_chunk::<BYTES>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let destination_port = rest.first_chunk::<2>()?;
    let address = |ip: &[u8; BYTES], port: &[u8; 2]| {
        SocketAddr::new(IpAddr::from(*ip), u16::from_be_bytes(*port))
    };
    Some((
        address(source, source_port),
        address(destination, destination_port),
    ))
}

/// Bytes of the addresses of a family; none if everything is to be skipped.
const fn address_bytes(kind: u8) -> Option<usize> {
    match kind >> 4 {
        FAMILY_UNSPECIFIED => Some(0),
        FAMILY_IPV4 => Some(12),
        FAMILY_IPV6 => Some(36),
        FAMILY_UNIX => Some(UNIX_BYTES),
        _ => None,
    }
}
