//! Any bytes at the start of a connection from a proxy: the result is independent of their
//! partition, and within the limit.

use thrum_transport::proxy_protocol::{Header, ProxyError, V2_BYTES_MAX, parse};

use crate::{Sight, sight};

/// Parses the input as a header.
///
/// # Panics
/// If bytes that arrive one by one yield another result, or if more bytes are requested than a
/// header may have.
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
    assert_eq!(whole, first, "bytes that arrive one by one");
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

/// Checks that a name occurs unchanged in the header, and that both addresses have the same family.
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

/// The kind of the result, without the addresses.
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
