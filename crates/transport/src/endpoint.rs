//! Addresses of brokers and listeners, from user input.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Path of a WebSocket endpoint that names none; most brokers use it.
const DEFAULT_PATH: &str = "/mqtt";

/// The transport of MQTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Over TCP.
    Mqtt,
    /// Over TLS.
    Mqtts,
    /// In WebSocket frames.
    Ws,
    /// In WebSocket frames over TLS.
    Wss,
    /// Over QUIC, one bidirectional stream with TLS inside.
    Quic,
}

/// A broker's address.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The transport of MQTT.
    pub scheme: Scheme,
    /// Name or address of the host, an IPv6 address without brackets.
    pub host: String,
    /// TCP port, or UDP port of QUIC.
    pub port: u16,
    /// Path and query of a WebSocket endpoint, from its first slash; empty for the others.
    pub path: String,
    /// User name for CONNECT.
    pub username: Option<String>,
    /// Password for CONNECT.
    pub password: Option<String>,
}

/// Why an endpoint cannot be used; a password is never part of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// An unknown scheme.
    #[error("cannot connect to '{0}': use mqtt://, mqtts://, ws://, wss:// or quic://")]
    Scheme(String),
    /// Not SCHEME://HOST:PORT.
    #[error("'{target}' is not a target, {why}: write mqtt://HOST:PORT")]
    Malformed {
        /// The given text.
        target: String,
        /// The error.
        why: &'static str,
    },
    /// The name has no address.
    #[error("no address for '{host}': {cause}")]
    Unresolved {
        /// Name of the host.
        host: String,
        /// The error of the resolver.
        cause: String,
    },
}

impl EndpointError {
    fn malformed(text: &str, why: &'static str) -> Self {
        Self::Malformed {
            target: without_credentials(text),
            why,
        }
    }
}

impl Scheme {
    /// TLS protects it, as a layer of its own or as a part of QUIC.
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Mqtts | Self::Wss | Self::Quic)
    }

    /// It goes over UDP, in QUIC.
    pub const fn is_quic(self) -> bool {
        matches!(self, Self::Quic)
    }

    /// MQTT travels in WebSocket frames.
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// The default port: the registered ones of MQTT, those of HTTP for WebSocket, and that of EMQX
    /// for QUIC, which has none registered.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Mqtt => 1883,
            Self::Mqtts => 8883,
            Self::Ws => 80,
            Self::Wss => 443,
            Self::Quic => 14_567,
        }
    }

    /// The scheme as it is written before `://`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mqtt => "mqtt",
            Self::Mqtts => "mqtts",
            Self::Ws => "ws",
            Self::Wss => "wss",
            Self::Quic => "quic",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        // Schemes have no case, RFC 3986 section 3.1.
        Some(match text.to_ascii_lowercase().as_str() {
            "mqtt" | "tcp" => Self::Mqtt,
            "mqtts" | "ssl" | "tls" => Self::Mqtts,
            "ws" => Self::Ws,
            "wss" => Self::Wss,
            "quic" | "mqtt-quic" => Self::Quic,
            _ => return None,
        })
    }
}

impl Endpoint {
    /// A host by this scheme, on the default port if none is named, and the usual path of a
    /// WebSocket.
    ///
    /// # Errors
    /// An invalid host name.
    pub fn new(scheme: Scheme, host: &str, port: Option<u16>) -> Result<Self, EndpointError> {
        let path = read_path(scheme, "");
        let checked = check_host(host).and(path);
        let path = checked.map_err(|why| EndpointError::malformed(host, why))?;
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port: port.unwrap_or_else(|| scheme.default_port()),
            path,
            username: None,
            password: None,
        })
    }

    /// Reads `[SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/PATH]`.
    ///
    /// The scheme is `mqtt` (also `tcp`), `mqtts` (also `ssl`, `tls`), `ws`, `wss` or `quic` (also
    /// `mqtt-quic`), without one `mqtt`. User name and password may be percent-encoded.
    ///
    /// # Errors
    /// An unknown scheme, no host, an invalid port, a path where the scheme has none.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = split_scheme(text)?;
        Self::read(scheme, rest).map_err(|why| EndpointError::malformed(text, why))
    }

    /// The same with a topic in the place of the path, as it is: `mqtt://HOST/TOPIC`. A WebSocket
    /// has its path there, and so no topic.
    ///
    /// # Errors
    /// As [`Endpoint::parse`].
    pub fn parse_with_topic(text: &str) -> Result<(Self, Option<String>), EndpointError> {
        let (scheme, rest) = split_scheme(text)?;
        let (rest, topic) = match rest.split_once('/') {
            Some((rest, topic)) if !scheme.is_websocket() => (rest, topic),
            _ => (rest, ""),
        };
        let endpoint = Self::read(scheme, rest);
        let endpoint = endpoint.map_err(|why| EndpointError::malformed(text, why))?;
        Ok((endpoint, (!topic.is_empty()).then(|| topic.to_owned())))
    }

    /// The text behind the scheme.
    fn read(scheme: Scheme, rest: &str) -> Result<Self, &'static str> {
        let ends_authority: &[char] = if scheme.is_websocket() {
            &['/', '?', '#']
        } else {
            &['/']
        };
        let authority_len = rest.find(ends_authority).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_len);
        let (credentials, address) = split_credentials(authority);
        let path = read_path(scheme, path)?;
        let (host, port) = split_port(address).ok_or("a bracket is missing")?;
        check_host(host)?;
        let port = match port.map(str::parse) {
            Some(Ok(0) | Err(_)) => return Err("the port is not 1 to 65535"),
            Some(Ok(port)) => port,
            None => scheme.default_port(),
        };
        let (username, password) = read_credentials(credentials)
            .ok_or("user name or password is not percent-encoded UTF-8 (% is written %25)")?;
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port,
            path,
            username,
            password,
        })
    }

    /// The first address of the host; asks the resolver of the system, which may take seconds.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn resolve(&self) -> Result<SocketAddr, EndpointError> {
        let unresolved = |cause: String| EndpointError::Unresolved {
            host: self.host.clone(),
            cause,
        };
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(address, self.port));
        }
        let mut addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| unresolved(error.to_string()))?;
        addresses
            .next()
            .ok_or_else(|| unresolved("the name has none".to_owned()))
    }

    /// `HOST:PORT` with brackets around an IPv6 address.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Without user name and password, so it may stand in logs and reports.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.as_str();
        write!(formatter, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Endpoint({self})")
    }
}

/// The scheme, and the rest behind it.
fn split_scheme(text: &str) -> Result<(Scheme, &str), EndpointError> {
    let unknown = || EndpointError::Scheme(without_credentials(text));
    match text.split_once("://") {
        Some((scheme, rest)) => Ok((Scheme::parse(scheme).ok_or_else(unknown)?, rest)),
        // A socket of this machine has neither host nor port; `unix:1883` is a host with the name
        // `unix`.
        None if text.starts_with("unix:") && text.contains(['/', '.']) => Err(unknown()),
        None => Ok((Scheme::Mqtt, text)),
    }
}

/// A target in a form without secrets.
fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    match split_credentials(rest) {
        (Some(_), rest) => format!("{scheme}***@{rest}"),
        (None, rest) => format!("{scheme}{rest}"),
    }
}

/// The part before the last `@`, so that a password may contain one.
fn split_credentials(text: &str) -> (Option<&str>, &str) {
    match text.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, text),
    }
}

fn read_credentials(text: Option<&str>) -> Option<(Option<String>, Option<String>)> {
    let Some(text) = text else {
        return Some((None, None));
    };
    Some(match text.split_once(':') {
        Some((username, password)) => (
            Some(percent_decode(username)?),
            Some(percent_decode(password)?),
        ),
        None => (Some(percent_decode(text)?), None),
    })
}

fn read_path(scheme: Scheme, path: &str) -> Result<String, &'static str> {
    if !scheme.is_websocket() {
        return match path {
            "" | "/" => Ok(String::new()),
            _ => Err("only ws:// and wss:// have a path"),
        };
    }
    if path.contains('#') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the path has a character that must be percent-encoded");
    }
    Ok(match path {
        "" => DEFAULT_PATH.to_owned(),
        // A query needs a path before it.
        path if path.starts_with('?') => format!("{DEFAULT_PATH}{path}"),
        path => path.to_owned(),
    })
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let is_of_host = |byte: u8| !byte.is_ascii_control() && !b" @[]<>\"\\?#/".contains(&byte);
    if host.is_empty() {
        return Err("the host is missing");
    }
    if !host.bytes().all(is_of_host) {
        return Err("the host has a forbidden character");
    }
    Ok(())
}

fn split_port(address: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match address.split_once(':') {
        // More than one colon: an IPv6 address without brackets.
        Some((_, rest)) if rest.contains(':') => Some((address, None)),
        Some((host, port)) => Some((host, Some(port))),
        None => Some((address, None)),
    }
}

/// RFC 3986 section 2.1; none when a percent sign has no two digits, or the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        // A sign is no digit, but the number parser takes it.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Endpoint::parse(text).unwrap().to_string(), expected);
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let message = Endpoint::parse(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }

    #[track_caller]
    fn credentials(text: &str, username: Option<&str>, password: Option<&str>) {
        let endpoint = Endpoint::parse(text).unwrap();
        assert_eq!(endpoint.username.as_deref(), username);
        assert_eq!(endpoint.password.as_deref(), password);
        assert_eq!(endpoint.host, "host");
    }

    #[test]
    fn endpoints_are_read_with_and_without_scheme_and_port() {
        check("mqtt://127.0.0.1:1884", "mqtt://127.0.0.1:1884");
        check("tcp://broker", "mqtt://broker:1883");
        check("localhost", "mqtt://localhost:1883");
        check("localhost:2000/", "mqtt://localhost:2000");
        check("mqtt://[::1]:1884", "mqtt://[::1]:1884");
        check("::1", "mqtt://[::1]:1883");
        for scheme in ["mqtts", "ssl", "tls", "MQTTS"] {
            check(&format!("{scheme}://broker"), "mqtts://broker:8883");
        }
        for scheme in ["quic", "mqtt-quic"] {
            check(&format!("{scheme}://broker"), "quic://broker:14567");
        }
    }

    #[test]
    fn websocket_endpoints_have_a_path() {
        check("ws://broker", "ws://broker:80/mqtt");
        check("wss://broker", "wss://broker:443/mqtt");
        check("ws://broker:8083/", "ws://broker:8083/");
        check("wss://[::1]/a/b?c=d", "wss://[::1]:443/a/b?c=d");
        check("ws://broker?token=1", "ws://broker:80/mqtt?token=1");
    }

    #[test]
    fn credentials_are_percent_decoded() {
        credentials("host", None, None);
        credentials("user@host", Some("user"), None);
        credentials("mqtt://user:@host", Some("user"), Some(""));
        credentials("mqtts://u%40x:p%3Aa%25s@host", Some("u@x"), Some("p:a%s"));
        credentials("ws://u:a:b@c@host/x@y", Some("u"), Some("a:b@c"));
        credentials("%C3%A4@host", Some("ä"), None);
    }

    #[test]
    fn a_topic_stands_where_a_websocket_has_its_path() {
        for (text, place, topic) in [
            ("mqtt://host", "mqtt://host:1883", None),
            ("mqtts://host/", "mqtts://host:8883", None),
            ("host:1/a", "mqtt://host:1", Some("a")),
            ("quic://[::1]/a/+/#", "quic://[::1]:14567", Some("a/+/#")),
            ("mqtt://u:p#@host//?a@b", "mqtt://host:1883", Some("/?a@b")),
            ("ws://host/a/b", "ws://host:80/a/b", None),
        ] {
            let (endpoint, found) = Endpoint::parse_with_topic(text).unwrap();
            assert_eq!(endpoint.to_string(), place);
            assert_eq!(found.as_deref(), topic);
        }
        let error = Endpoint::parse_with_topic("mqtt://u:secret@host:x/t").unwrap_err();
        let expected = "'mqtt://***@host:x/t' is not a target, the port is not 1 to 65535";
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn the_parts_of_an_endpoint_make_one() {
        let made = |scheme, host, port| {
            Endpoint::new(scheme, host, port).map(|endpoint| endpoint.to_string())
        };
        assert_eq!(
            made(Scheme::Wss, "::1", None).unwrap(),
            "wss://[::1]:443/mqtt"
        );
        assert_eq!(made(Scheme::Mqtts, "h", Some(1)).unwrap(), "mqtts://h:1");
        for host in ["", "a b", "a/b", "ws://a"] {
            assert!(made(Scheme::Mqtt, host, None).is_err(), "{host}");
        }
    }

    #[test]
    fn invalid_endpoints_are_refused_with_the_cause() {
        refused("", "the host is missing");
        refused("mqtt://", "the host is missing");
        refused("ws:///mqtt", "the host is missing");
        for text in ["mqtt://host:port", "host:0", "host:70000", "host:"] {
            refused(text, "the port is not 1 to 65535");
        }
        refused("[::1", "a bracket is missing");
        refused("[::1]x", "a bracket is missing");
        refused("a b", "forbidden character");
        refused("mqtt://host/topic", "only ws:// and wss:// have a path");
        refused("mqtt://host?a=b", "forbidden character");
        refused("ws://host/a b", "must be percent-encoded");
        refused("ws://host/a\r\nX: y", "must be percent-encoded");
        refused("ws://host/#part", "must be percent-encoded");
        for user in ["%", "%4", "%+4", "%FF"] {
            refused(&format!("{user}@host"), "is not percent-encoded UTF-8");
        }
        for text in [
            "http://host",
            "unix:/run/broker",
            "unix:broker.sock",
            "unix:///broker",
        ] {
            refused(text, "use mqtt://, mqtts://, ws://, wss:// or quic://");
        }
        check("unix:1884", "mqtt://unix:1884");
    }

    #[test]
    fn a_password_is_never_shown() {
        let endpoint = Endpoint::parse("mqtt://user:secret@host").unwrap();
        assert_eq!(endpoint.to_string(), "mqtt://host:1883");
        assert_eq!(format!("{endpoint:?}"), "Endpoint(mqtt://host:1883)");
        for text in [
            "http://user:secret@host",
            "mqtt://user:secret@",
            "user:secret@host:0",
            "u:%secret@host",
            "u:a/secret@host",
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }

    #[test]
    fn addresses_need_no_resolver() {
        let address = Endpoint::parse("wss://[::1]:7").unwrap().resolve().unwrap();
        assert_eq!(address, "[::1]:7".parse().unwrap());
    }
}
