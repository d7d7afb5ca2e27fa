//! Where the broker listens, from what a person types.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Port of MQTT over TCP.
const DEFAULT_PORT: u16 = 1883;

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
}

/// Why a target cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A scheme other than `mqtt` and `tcp`.
    #[error("cannot connect to '{0}': only mqtt://HOST:PORT is supported")]
    Scheme(String),
    /// Not HOST:PORT.
    #[error("'{0}' is no target: write mqtt://HOST:PORT")]
    Malformed(String),
    /// The name has no address.
    #[error("no address for '{host}': {cause}")]
    Unresolved {
        /// Name of the host.
        host: String,
        /// What the resolver said.
        cause: String,
    },
}

impl Target {
    /// Reads `mqtt://HOST:PORT`, `tcp://HOST:PORT`, `HOST:PORT` or `HOST`.
    ///
    /// # Errors
    /// Another scheme, no host, or a port that is none.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let malformed = || TargetError::Malformed(text.to_owned());
        let address = match text.split_once("://") {
            Some(("mqtt" | "tcp", rest)) => rest,
            Some(_) => return Err(TargetError::Scheme(text.to_owned())),
            None => text,
        };
        let address = address.strip_suffix('/').unwrap_or(address);
        let (host, port) = split_port(address).ok_or_else(malformed)?;
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(malformed)?,
            None => DEFAULT_PORT,
        };
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            return Err(malformed());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// The first address of the host.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn resolve(&self) -> Result<SocketAddr, TargetError> {
        let unresolved = |cause: String| TargetError::Unresolved {
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
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "mqtt://[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "mqtt://{}:{}", self.host, self.port)
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Target::parse(text).unwrap().to_string(), expected);
    }

    #[test]
    fn targets_are_read_with_and_without_scheme_and_port() {
        check("mqtt://127.0.0.1:1884", "mqtt://127.0.0.1:1884");
        check("tcp://broker", "mqtt://broker:1883");
        check("localhost", "mqtt://localhost:1883");
        check("localhost:2000/", "mqtt://localhost:2000");
        check("mqtt://[::1]:1884", "mqtt://[::1]:1884");
        check("::1", "mqtt://[::1]:1883");
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "mqtt://",
            "mqtt://host:port",
            "host:0",
            "host:70000",
            "[::1",
            "a b",
        ] {
            assert!(
                matches!(Target::parse(text), Err(TargetError::Malformed(_))),
                "{text}"
            );
        }
        assert!(matches!(
            Target::parse("mqtts://host"),
            Err(TargetError::Scheme(_))
        ));
    }

    #[test]
    fn addresses_need_no_resolver() {
        let address = Target::parse("mqtt://[::1]:7").unwrap().resolve().unwrap();
        assert_eq!(address, "[::1]:7".parse().unwrap());
    }
}
