//! The opening handshake, RFC 6455 section 4: one HTTP request and its answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thrum_codec::websocket::SUBPROTOCOL;

use crate::endpoint::{Endpoint, Scheme};
use crate::error::LayerError;
use crate::websocket::fields::{FIELDS_MAX, accept_of, has_token, values};

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Length of a refusal's text that is repeated.
const REASON_BYTES_MAX: usize = 100;

/// The request of all connections to one target, except the key.
#[derive(Debug)]
pub(crate) struct Request {
    head: String,
}

/// One handshake that waits for its answer.
#[derive(Debug)]
pub(super) struct Upgrade {
    accept: String,
    /// The received part of the answer.
    head: Vec<u8>,
}

impl Request {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let (path, host) = (&endpoint.path, host(endpoint));
        // [MQTT-6.0.0-3] [MQTT3-6.0.0-3]
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\
             Sec-WebSocket-Key: "
        );
        Self { head }
    }

    /// Appends the request with this key; returns the handshake that takes its answer.
    pub(super) fn send(&self, key: [u8; 16], wire_out: &mut Vec<u8>) -> Upgrade {
        let key = STANDARD.encode(key);
        for part in [self.head.as_str(), key.as_str(), "\r\n\r\n"] {
            wire_out.extend_from_slice(part.as_bytes());
        }
        Upgrade {
            accept: accept_of(&key),
            head: Vec::new(),
        }
    }
}

impl Upgrade {
    /// Takes bytes of the answer; returns those behind its head, once it is complete and valid.
    pub(super) fn receive<'a>(
        &mut self,
        wire_in: &'a [u8],
    ) -> Result<Option<&'a [u8]>, LayerError> {
        let held = self.head.len();
        let space = HEAD_BYTES_MAX - held;
        self.head
            .extend_from_slice(wire_in.get(..space).unwrap_or(wire_in));
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(&self.head);
        // A refusal is more useful than an error about the rest of its head.
        if let Some(status) = response.code.filter(|status| *status != 101) {
            if parsed == Ok(httparse::Status::Partial) && response.reason.is_none() {
                return self.wait();
            }
            return Err(refusal(status, response.reason));
        }
        match parsed {
            Ok(httparse::Status::Complete(head_len)) => {
                self.check(response.headers)?;
                Ok(Some(wire_in.get(head_len - held..).unwrap_or_default()))
            }
            Ok(httparse::Status::Partial) => self.wait(),
            Err(httparse::Error::TooManyHeaders) => Err(LayerError::HeadTooLong(HEAD_BYTES_MAX)),
            Err(_) if is_tls(&self.head) => Err(LayerError::TlsNotHttp),
            Err(_) if response.code.is_none() => Err(LayerError::NotHttp),
            Err(_) => Err(LayerError::Handshake("its head is not HTTP")),
        }
    }

    fn wait<'a>(&self) -> Result<Option<&'a [u8]>, LayerError> {
        if self.head.len() < HEAD_BYTES_MAX {
            Ok(None)
        } else {
            Err(LayerError::HeadTooLong(HEAD_BYTES_MAX))
        }
    }

    /// Section 4.1, the client's checks.
    fn check(&self, fields: &[httparse::Header<'_>]) -> Result<(), LayerError> {
        if !has_token(fields, "Upgrade", "websocket") {
            return Err(LayerError::Handshake("no 'Upgrade: websocket'"));
        }
        if !has_token(fields, "Connection", "upgrade") {
            return Err(LayerError::Handshake("no 'Connection: Upgrade'"));
        }
        if !values(fields, "Sec-WebSocket-Accept").any(|value| value == self.accept) {
            return Err(LayerError::Handshake(
                "Sec-WebSocket-Accept does not fit the key, something between answers from a cache",
            ));
        }
        if values(fields, "Sec-WebSocket-Extensions").any(|value| !value.is_empty()) {
            return Err(LayerError::Handshake(
                "it chose an extension that was not offered",
            ));
        }
        // [MQTT-6.0.0-3] [MQTT3-6.0.0-3]
        if !values(fields, "Sec-WebSocket-Protocol").any(|value| value == SUBPROTOCOL) {
            return Err(LayerError::NoSubprotocol);
        }
        Ok(())
    }
}

/// An alert or a handshake message of TLS; HTTP never begins with these bytes.
fn is_tls(head: &[u8]) -> bool {
    matches!(head, [0x15 | 0x16, ..])
}

/// The value of `Host`; the default port is omitted, as by browsers.
fn host(endpoint: &Endpoint) -> String {
    let authority = endpoint.authority();
    let port = match endpoint.scheme {
        Scheme::Ws | Scheme::Mqtt => Scheme::Ws.default_port(),
        Scheme::Wss | Scheme::Mqtts | Scheme::Quic => Scheme::Wss.default_port(),
    };
    match authority.strip_suffix(&format!(":{port}")) {
        Some(host) => host.to_owned(),
        None => authority,
    }
}

fn refusal(status: u16, reason: Option<&str>) -> LayerError {
    let reason: String = reason
        .unwrap_or_default()
        .chars()
        .take(REASON_BYTES_MAX)
        .collect();
    let space = if reason.is_empty() { "" } else { " " };
    LayerError::Status {
        status,
        reason: format!("{space}{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the example in RFC 6455 section 1.3.
    const KEY: [u8; 16] = *b"the sample nonce";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn upgrade() -> (String, Upgrade) {
        let request = Request::new(&Endpoint::parse("ws://broker:8083/mqtt?x=1").unwrap());
        let mut out = Vec::new();
        let upgrade = request.send(KEY, &mut out);
        (String::from_utf8(out).unwrap(), upgrade)
    }

    fn answer(fields: &[&str]) -> String {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\n{}\r\n\r\n",
            fields.join("\r\n")
        )
    }

    fn good() -> Vec<String> {
        vec![
            "Upgrade: WebSocket".to_owned(),
            "connection: keep-alive, Upgrade".to_owned(),
            format!("Sec-WebSocket-Accept: {ACCEPT}"),
            "Sec-WebSocket-Protocol: mqtt".to_owned(),
        ]
    }

    /// The valid answer with one line replaced.
    fn with(index: usize, line: &str) -> String {
        let mut lines = good();
        line.clone_into(&mut lines[index]);
        answer(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[track_caller]
    fn refused(answer: &str, expected: &str) {
        let error = upgrade().1.receive(answer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        // The same when every byte arrives alone.
        let mut alone = upgrade().1;
        let found = answer
            .as_bytes()
            .chunks(1)
            .find_map(|byte| alone.receive(byte).err());
        assert_eq!(found, Some(error));
    }

    #[test]
    fn the_request_asks_for_mqtt() {
        // [MQTT-6.0.0-3] [MQTT3-6.0.0-3]
        let (request, _) = upgrade();
        assert_eq!(
            request,
            "GET /mqtt?x=1 HTTP/1.1\r\nHost: broker:8083\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
    }

    #[test]
    fn the_default_port_is_not_part_of_the_host() {
        let host_of = |text| host(&Endpoint::parse(text).unwrap());
        assert_eq!(host_of("ws://broker"), "broker");
        assert_eq!(host_of("wss://[::1]:443"), "[::1]");
        assert_eq!(host_of("wss://broker:80"), "broker:80");
    }

    #[test]
    fn bytes_after_the_head_are_handed_on() {
        let text = format!("{}\u{2}rest", with(0, "Upgrade: websocket"));
        for cut in 0..text.len() - 5 {
            let (front, back) = text.as_bytes().split_at(cut);
            let mut upgrade = upgrade().1;
            assert_eq!(upgrade.receive(front), Ok(None));
            assert_eq!(upgrade.receive(back), Ok(Some(b"\x02rest".as_slice())));
        }
    }

    #[test]
    fn answers_other_than_101_are_refused_with_their_status() {
        refused(
            "HTTP/1.1 404 Not Found\r\n",
            "answered 404 Not Found: check port",
        );
        refused("HTTP/1.1 200 \r\n", "answered 200: check port");
    }

    #[test]
    fn an_answer_that_is_not_http_is_refused() {
        refused("\x15\x03\x01\x00\x02\x02\x46", "speaks TLS on this port");
        refused("\x20\x02\x00\x00", "does not speak HTTP");
    }

    #[test]
    fn an_answer_must_fit_the_request() {
        refused(&with(0, "Upgrade: h2c"), "no 'Upgrade: websocket'");
        refused(&with(1, "Connection: close"), "no 'Connection: Upgrade'");
        refused(&with(2, "Sec-WebSocket-Accept: x"), "does not fit the key");
        refused(
            &with(
                0,
                "Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate",
            ),
            "an extension that was not offered",
        );
        refused(&with(3, "X: mqtt"), "did not choose the sub-protocol");
        refused(&with(3, "Sec-WebSocket-Protocol: chat"), "did not choose");
    }

    #[test]
    fn a_head_over_the_limit_is_refused() {
        refused(
            &with(3, &format!("X: {}", "x".repeat(9000))),
            "of over 8192 bytes",
        );
        refused(&with(3, &"X: y\r\n".repeat(80)), "of over 8192 bytes");
    }
}
