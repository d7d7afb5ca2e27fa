//! The sender of a request that came through proxies.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};

use crate::api::Peer;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Proxies in a row that are followed.
const PROXIES_MAX: usize = 16;

/// The sender: the other end of the connection, or, where that is a trusted proxy, the last address
/// that the proxies name and that is none of them. What a stranger writes into the headers counts
/// for nothing.
pub(super) fn sender(headers: &HeaderMap, end: Peer, is_proxy: impl Fn(IpAddr) -> bool) -> Peer {
    let mut peer = Peer {
        address: end.address.to_canonical(),
        ..end
    };
    if !is_proxy(peer.address) {
        return peer;
    }
    let proto = headers.get_all(FORWARDED_PROTO).iter().next_back();
    peer.is_tls |= proto.is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"));
    let fields = headers.get_all(FORWARDED_FOR).iter().rev();
    let named = fields.flat_map(|field| field.to_str().unwrap_or_default().rsplit(','));
    for text in named.take(PROXIES_MAX) {
        let Ok(address) = text.trim().parse::<IpAddr>() else {
            break;
        };
        peer.address = address.to_canonical();
        if !is_proxy(peer.address) {
            break;
        }
    }
    peer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sender as seen behind `end`, where 10.0.0.0/8 and 127.0.0.1 are proxies.
    fn seen(end: &str, fields: &[(&'static str, &'static str)]) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let is_proxy = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets()[0] == 10 || address.is_loopback(),
            IpAddr::V6(_) => false,
        };
        let end = Peer {
            address: end.parse().unwrap(),
            is_tls: false,
        };
        let peer = sender(&headers, end, is_proxy);
        (peer.address.to_string(), peer.is_tls)
    }

    #[test]
    fn what_a_stranger_writes_counts_for_nothing() {
        let fields = [
            ("x-forwarded-for", "10.0.0.9"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(seen("192.0.2.1", &fields), ("192.0.2.1".to_owned(), false));
        assert_eq!(
            seen("::ffff:192.0.2.1", &fields),
            ("192.0.2.1".to_owned(), false)
        );
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_sender() {
        let of = |value| seen("127.0.0.1", &[("x-forwarded-for", value)]).0;
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("8.8.8.8, 192.0.2.7, 10.1.1.1"), "192.0.2.7");
        assert_eq!(of("8.8.8.8, nonsense, 10.1.1.1"), "10.1.1.1");
        assert_eq!(of("2001:db8::1"), "2001:db8::1");
        let twice = [
            ("x-forwarded-for", "8.8.8.8"),
            ("x-forwarded-for", "192.0.2.7"),
        ];
        assert_eq!(seen("10.0.0.1", &twice).0, "192.0.2.7");
        assert_eq!(seen("10.0.0.1", &[]).0, "10.0.0.1");
    }

    #[test]
    fn a_proxy_says_whether_it_was_asked_over_tls() {
        assert!(seen("10.0.0.1", &[("x-forwarded-proto", "https")]).1);
        assert!(!seen("10.0.0.1", &[("x-forwarded-proto", "http")]).1);
    }
}
