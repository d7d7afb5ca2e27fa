//! Any bytes as the begin of a connection behind a proxy: read alike however they come, within the
//! limit.

use thrum_transport::proxy_protocol::{Header, ProxyError, V2_BYTES_MAX, parse};

use crate::{Sight, sight};

/// Reads the input as a header.
///
/// # Panics
/// If bytes that come one by one are read otherwise, or more are wanted than a header may have.
pub fn target(input: &[u8]) -> Sight {
    let whole = parse(input);
    let mut first = Ok(None);
    let mut taken = 0;
    for end in 0..=input.len() {
        (first, taken) = (parse(&input[..end]), end);
        if first != Ok(None) {
            break;
        }
    }
    assert_eq!(whole, first, "bytes that come one by one");
    match &whole {
        Ok(None) => assert!(input.len() < V2_BYTES_MAX),
        Ok(Some((header, len))) => {
            assert_eq!(*len, taken);
            check(header, &input[..*len]);
        }
        Err(_) => assert!(taken <= V2_BYTES_MAX),
    }
    sight(&(kind(&whole), whole.as_ref().err().map(ToString::to_string)))
}

/// A name is told as it stands in the header, and both addresses are of one family.
fn check(header: &Header, bytes: &[u8]) {
    let Header::Proxied(client) = header else {
        return;
    };
    let family = |address: std::net::SocketAddr| address.is_ipv4();
    assert_eq!(client.source.map(family), client.destination.map(family));
    if let Some(name) = client.tls.as_ref().and_then(|tls| tls.common_name.as_ref()) {
        let name = name.as_bytes();
        assert!(!name.is_empty() && bytes.windows(name.len()).any(|window| window == name));
    }
}

/// What was found, without the addresses.
fn kind(found: &Result<Option<(Header, usize)>, ProxyError>) -> u8 {
    match found {
        Ok(None) => 0,
        Err(_) => 1,
        Ok(Some((Header::Local, _))) => 2,
        Ok(Some((Header::Unknown, _))) => 3,
        Ok(Some((Header::Proxied(client), _))) => match (&client.source, &client.tls) {
            (None, _) => 4,
            (Some(address), None) => 5 + u8::from(address.is_ipv4()),
            (Some(_), Some(tls)) => 7 + u8::from(tls.common_name.is_some()),
        },
    }
}
