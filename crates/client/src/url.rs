//! The value of `-L`: target, user, and often a topic.

use std::path::PathBuf;

use thrum_transport::{Endpoint, Scheme};

use super::Stop;

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// With user name and password, if they are there.
    pub(super) endpoint: Endpoint,
    /// Socket of this machine, in place of host and port.
    pub(super) unix: Option<PathBuf>,
    pub(super) topic: Option<String>,
}

impl Url {
    /// Reads what [`Endpoint::parse_with_topic`] does, and `unix:PATH` or `unix:///PATH`.
    pub(super) fn parse(text: &str) -> Result<Self, Stop> {
        let wrong = |error: &dyn std::fmt::Display| Stop::usage(format!("-L: {error}"));
        if is_unix(text) {
            let path = unix_path(text).ok_or_else(|| {
                wrong(&format!(
                    "{text:?} names no socket of this machine: write unix:///run/thrum.sock"
                ))
            })?;
            return Ok(Self {
                endpoint: localhost(Scheme::Mqtt)?,
                unix: Some(path.into()),
                topic: None,
            });
        }
        let read = Endpoint::parse_with_topic(text).map_err(|error| wrong(&error))?;
        let (endpoint, topic) = read;
        Ok(Self {
            endpoint,
            unix: None,
            topic,
        })
    }
}

fn is_unix(text: &str) -> bool {
    let path = text.strip_prefix("unix:");
    // `unix:1883` is a host of that name.
    path.is_some_and(|path| path.parse::<u16>().is_err())
}

fn unix_path(text: &str) -> Option<&str> {
    let path = text.strip_prefix("unix:")?;
    let path = match path.strip_prefix("//") {
        Some(path) => Some(path).filter(|path| path.starts_with('/'))?,
        None => path,
    };
    Some(path).filter(|path| !path.is_empty() && !path.ends_with('/'))
}

/// The server name behind a Unix socket, for TLS and WebSocket.
pub(super) fn localhost(scheme: Scheme) -> Result<Endpoint, Stop> {
    Endpoint::new(scheme, "localhost", None).map_err(|error| Stop::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, endpoint: &str, unix: Option<&str>, topic: Option<&str>) {
        let url = Url::parse(text).unwrap();
        assert_eq!(url.endpoint.to_string(), endpoint);
        assert_eq!(url.unix, unix.map(PathBuf::from));
        assert_eq!(url.topic.as_deref(), topic);
    }

    #[test]
    fn a_topic_follows_the_host_where_there_is_no_websocket() {
        check("mqtt://h", "mqtt://h:1883", None, None);
        check("mqtts://h:1/a/b", "mqtts://h:1", None, Some("a/b"));
        check("quic://u@h/#", "quic://h:14567", None, Some("#"));
        check("wss://h/a/b", "wss://h:443/a/b", None, None);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_path() {
        let place = "mqtt://localhost:1883";
        check("unix:/run/a.sock", place, Some("/run/a.sock"), None);
        check("unix:///run/a.sock", place, Some("/run/a.sock"), None);
        check("unix:a.sock", place, Some("a.sock"), None);
        check("unix:1884", "mqtt://unix:1884", None, None);
    }

    #[test]
    fn other_urls_are_refused_with_the_form_to_use() {
        for (text, words) in [
            ("http://h", "use mqtt://"),
            ("mqtt://", "the host is missing"),
            ("mqtt://h:x/t", "write mqtt://HOST:PORT"),
            ("unix://", "unix:///run/thrum.sock"),
            ("unix://host/run/a.sock", "unix:///run/thrum.sock"),
            ("unix:/", "unix:///run/thrum.sock"),
            ("unix:", "unix:///run/thrum.sock"),
        ] {
            let stop = Url::parse(text).unwrap_err();
            assert_eq!(stop.code, 2);
            assert!(stop.message.contains(words), "{}", stop.message);
        }
    }

    #[test]
    fn a_password_in_a_wrong_url_is_not_repeated() {
        let stop = Url::parse("mqtt://me:secret@h:x/t").unwrap_err();
        assert!(!stop.message.contains("secret"), "{}", stop.message);
    }
}
