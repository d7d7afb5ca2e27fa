//! `mqtt://[user[:password]@]host[:port]/topic`, the value of `-L`; `quic://` is the other scheme.

use thrum_transport::Scheme;

use super::Stop;

/// The parts of a URL that are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// TCP or QUIC.
    pub(super) scheme: Scheme,
    pub(super) username: Option<String>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) topic: Option<String>,
}

const FORM: &str = "the form is mqtt://[user[:password]@]host[:port]/topic, or quic://…";

impl Default for Url {
    fn default() -> Self {
        Self {
            scheme: Scheme::Mqtt,
            username: None,
            password: None,
            host: String::new(),
            port: None,
            topic: None,
        }
    }
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, Stop> {
        if text.starts_with("mqtts://") {
            return Err(Stop::usage(
                "-L mqtts://: TLS over TCP is not supported yet; use mqtt:// or quic://",
            ));
        }
        let wrong = |what: &str| Stop::usage(format!("-L {text}: {what}; {FORM}"));
        let schemes = [("mqtt://", Scheme::Mqtt), ("quic://", Scheme::Quic)];
        let mut schemes = schemes.into_iter();
        let (scheme, rest) = schemes
            .find_map(|(prefix, scheme)| Some((scheme, text.strip_prefix(prefix)?)))
            .ok_or_else(|| wrong("neither an mqtt:// nor a quic:// URL"))?;
        let (authority, topic) = match rest.split_once('/') {
            Some((authority, topic)) => (authority, Some(topic)),
            None => (rest, None),
        };
        let mut url = Self {
            scheme,
            topic: topic.filter(|topic| !topic.is_empty()).map(str::to_owned),
            ..Self::default()
        };
        let place = match authority.rsplit_once('@') {
            Some((credentials, place)) => {
                let (name, password) = match credentials.split_once(':') {
                    Some((name, password)) => (name, Some(password)),
                    None => (credentials, None),
                };
                let name = String::from_utf8(decode(name));
                url.username = Some(name.map_err(|_| wrong("user name is not UTF-8"))?);
                url.password = password.map(decode);
                place
            }
            None => authority,
        };
        let (host, port) = split_port(place).ok_or_else(|| wrong("bad host or port"))?;
        let port = port
            .map(str::parse)
            .transpose()
            .map_err(|_| wrong("bad port"))?;
        Ok(Self {
            host: host.to_owned(),
            port,
            ..url
        })
    }
}

/// Host and port, the host without the brackets of an IPv6 address.
fn split_port(place: &str) -> Option<(&str, Option<&str>)> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        if !rest.is_empty() && !rest.starts_with(':') {
            return None;
        }
        (host, rest.strip_prefix(':'))
    } else {
        match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    (!host.is_empty()).then_some((host, port))
}

/// Resolves `%41`; anything else stands for itself.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high * 16 + low);
            rest = &rest[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// User name, password, host, port, topic.
    type Parts<'a> = (
        Option<&'a str>,
        Option<&'a [u8]>,
        &'a str,
        Option<u16>,
        Option<&'a str>,
    );

    fn check(text: &str, expected: Parts<'_>) {
        let url = Url::parse(text).unwrap();
        let found = (
            url.username.as_deref(),
            url.password.as_deref(),
            url.host.as_str(),
            url.port,
            url.topic.as_deref(),
        );
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_part_but_the_host_may_be_absent() {
        check("mqtt://h", (None, None, "h", None, None));
        check("mqtt://h/", (None, None, "h", None, None));
        check(
            "mqtt://h:1884/a/b",
            (None, None, "h", Some(1884), Some("a/b")),
        );
        check("mqtt://u@h/t", (Some("u"), None, "h", None, Some("t")));
        check(
            "mqtt://u:p%40%zz:@[::1]:1/t",
            (Some("u"), Some(b"p@%zz:"), "::1", Some(1), Some("t")),
        );
    }

    #[test]
    fn quic_is_a_scheme_of_its_own() {
        check("quic://u@h:1/t", (Some("u"), None, "h", Some(1), Some("t")));
        assert_eq!(Url::parse("quic://h").unwrap().scheme, Scheme::Quic);
        assert_eq!(Url::parse("mqtt://h").unwrap().scheme, Scheme::Mqtt);
    }

    #[test]
    fn other_urls_are_refused_with_the_form_to_use() {
        for text in [
            "http://h",
            "mqtt://",
            "mqtt://h:x/t",
            "mqtt://[::1/t",
            "mqtt://:1883/t",
        ] {
            let stop = Url::parse(text).unwrap_err();
            assert_eq!(stop.code, 2);
            assert!(stop.message.contains(FORM), "{}", stop.message);
        }
        assert!(Url::parse("mqtts://h").unwrap_err().message.contains("TLS"));
    }
}
