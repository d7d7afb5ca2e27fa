//! Whether a page of the same origin sent a request: browsers say so in headers that no page can
//! set.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};

/// Sent by browsers to addresses with TLS and to this machine.
const FETCH_SITE: &str = "sec-fetch-site";

/// What the headers of a request tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentBy {
    /// A page of this origin.
    OwnPage,
    /// A page of another origin, also one of another port or subdomain.
    OtherPage,
    /// No browser, or a very old one.
    Unknown,
}

/// Who sent a request, by its headers.
///
/// `Sec-Fetch-Site` is what the browser found itself, so it holds behind proxies as well. Without
/// it `Origin` has to name the host that the request was sent to.
pub(super) fn sent_by(headers: &HeaderMap, uri: &Uri) -> SentBy {
    let mut sites = headers.get_all(FETCH_SITE).iter().peekable();
    if sites.peek().is_some() {
        return if sites.all(|site| site == "same-origin") {
            SentBy::OwnPage
        } else {
            SentBy::OtherPage
        };
    }
    let mut origins = headers.get_all(ORIGIN).iter().peekable();
    if origins.peek().is_none() {
        return SentBy::Unknown;
    }
    // HTTP/2 has it in the address.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    let is_own = |origin: &axum::http::HeaderValue| {
        let origin = origin.to_str().ok()?;
        let rest = origin.split_once("://")?.1;
        Some(rest.eq_ignore_ascii_case(host?))
    };
    if origins.all(|origin| is_own(origin) == Some(true)) {
        SentBy::OwnPage
    } else {
        SentBy::OtherPage
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn found(fields: &[(&str, &str)]) -> SentBy {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        sent_by(&headers, &Uri::from_static("/api/v1/login"))
    }

    #[test]
    fn a_page_of_this_origin_is_known_by_what_the_browser_says() {
        let host = ("host", "broker.example:8080");
        for fields in [
            &[host, ("sec-fetch-site", "same-origin")][..],
            &[host, ("origin", "http://broker.example:8080")],
            &[host, ("origin", "https://Broker.Example:8080")],
            // A proxy has changed the host, and the browser has compared before.
            &[
                host,
                ("origin", "https://a.example"),
                ("sec-fetch-site", "same-origin"),
            ],
        ] {
            assert_eq!(found(fields), SentBy::OwnPage, "{fields:?}");
        }
    }

    #[test]
    fn another_page_is_one_of_another_site_host_or_port() {
        let host = ("host", "broker.example:8080");
        for fields in [
            &[host, ("sec-fetch-site", "cross-site")][..],
            &[host, ("sec-fetch-site", "same-site")],
            &[host, ("sec-fetch-site", "none")],
            &[
                host,
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[host, ("origin", "http://broker.example:8081")],
            &[host, ("origin", "http://broker.example")],
            &[host, ("origin", "http://evil.example")],
            &[host, ("origin", "http://evil.example/broker.example:8080")],
            &[host, ("origin", "null")],
            &[
                host,
                ("origin", "http://broker.example:8080"),
                ("origin", "http://evil.example"),
            ],
            &[("origin", "http://broker.example:8080")],
        ] {
            assert_eq!(found(fields), SentBy::OtherPage, "{fields:?}");
        }
    }

    #[test]
    fn a_program_says_nothing() {
        assert_eq!(found(&[("host", "broker.example:8080")]), SentBy::Unknown);
    }
}
