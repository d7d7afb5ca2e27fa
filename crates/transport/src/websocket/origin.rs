//! Web pages that may connect, RFC 6454.

/// The origin of a web page: scheme and host in lower case, the port unless it is the scheme's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Origin(Box<str>);

impl Origin {
    /// Reads an origin from a configuration or a browser; none if it is not an origin.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|other| other.is_ascii_alphanumeric() || "+-.".contains(other))
        };
        let is_authority = |authority: &str| {
            !authority.is_empty()
                && authority
                    .chars()
                    .all(|other| other.is_ascii_alphanumeric() || "-._~:[]".contains(other))
        };
        if !is_scheme(scheme) || !is_authority(authority) {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let authority = authority.to_ascii_lowercase();
        let own_port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let host = authority.strip_suffix(own_port).unwrap_or(&authority);
        Some(Self(format!("{scheme}://{host}").into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_without_case_and_without_their_own_port() {
        let same = |one, other| Origin::parse(one).unwrap() == Origin::parse(other).unwrap();
        assert!(same(
            "https://App.Example.org",
            "HTTPS://app.example.org:443"
        ));
        assert!(same("http://[::1]:80", "http://[::1]"));
        assert!(!same("http://app", "https://app"));
        assert!(!same("https://app:80", "https://app"));
        assert!(!same("https://app.example.org", "https://example.org"));
    }

    #[test]
    fn invalid_origins_are_none() {
        for text in [
            "",
            "app.example.org",
            "https://",
            "https://app/path",
            "https://user@app",
            "null",
            "1s://app",
            "https://a b",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }
}
