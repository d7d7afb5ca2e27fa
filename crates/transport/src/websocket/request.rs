//! The request of the opening handshake and its answer, RFC 6455 section 4.2.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thrum_codec::websocket::SUBPROTOCOL;

use crate::client_fault::ClientFault;
use crate::error::LayerError;
use crate::websocket::accept::Terms;
use crate::websocket::fields::{FIELDS_MAX, accept_of, elements, has_token, values};
use crate::websocket::origin::Origin;

/// The version of RFC 6455.
const VERSION: &str = "13";

/// Bytes of a key, section 4.1.
const KEY_BYTES: usize = 16;

/// Names that clients use for MQTT. The specification has only the first one, and it is chosen if
/// it is offered; the others were in use before it or are another broker's.
const SUBPROTOCOLS: [&str; 5] = [SUBPROTOCOL, "mqttv3.1", "mqtt-v3", "mqtt-v3.1.1", "mqtt-v5"];

/// Bytes of a client's text that are repeated.
const QUOTED_CHARS_MAX: usize = 80;

/// An answer other than 101.
pub(super) struct Refusal {
    status: u16,
    /// Header fields of the status, each with its line end.
    fields: &'static str,
    why: Cow<'static, str>,
}

/// Appends the answer to a whole head.
pub(super) fn answer(head: &[u8], terms: &Terms, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let agreed = match request.parse(head) {
        // The head ends with the first blank line, whatever its lines end with.
        Ok(httparse::Status::Complete(bytes)) if bytes == head.len() => agree(&request, terms),
        Ok(_) => Err(Refusal::bad("the request's lines do not end with CR LF")),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::too_many_fields()),
        Err(_) => Err(Refusal::bad("the request is not HTTP/1.1")),
    };
    let (key, protocol) = agreed.map_err(|refusal| refusal.send(wire_out))?;
    let accept = accept_of(key);
    let (field, protocol, end) = match protocol {
        // [MQTT-6.0.0-4] [MQTT3-6.0.0-4]
        Some(protocol) => ("\r\nSec-WebSocket-Protocol: ", protocol, "\r\n\r\n"),
        None => ("", "", "\r\n\r\n"),
    };
    let line = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Accept: ";
    for part in [line, accept.as_str(), field, protocol, end] {
        wire_out.extend_from_slice(part.as_bytes());
    }
    Ok(())
}

/// Key and sub-protocol of a valid request.
fn agree<'h>(
    request: &httparse::Request<'h, '_>,
    terms: &Terms,
) -> Result<(&'h str, Option<&'static str>), Refusal> {
    let fields: &[httparse::Header<'h>] = request.headers;
    if request.method != Some("GET") {
        return Err(Refusal::method());
    }
    if request.version != Some(1) {
        return Err(Refusal::bad("the request is not HTTP/1.1"));
    }
    if one(fields, "Host").is_none() {
        return Err(Refusal::bad(
            "the request has no header field Host, or two of them",
        ));
    }
    if !has_token(fields, "Upgrade", "websocket") || !has_token(fields, "Connection", "upgrade") {
        return Err(Refusal::no_websocket());
    }
    let path = path_of(request.path.unwrap_or_default());
    if path != &*terms.path {
        return Err(Refusal::path(path, &terms.path));
    }
    check_origin(fields, terms)?;
    if one(fields, "Sec-WebSocket-Version") != Some(VERSION) {
        return Err(Refusal::version());
    }
    let key = one(fields, "Sec-WebSocket-Key").filter(|key| is_key(key));
    let key = key.ok_or_else(|| Refusal::bad("Sec-WebSocket-Key is not 16 bytes in base64"))?;
    Ok((key, subprotocol(fields)?))
}

/// The value of a header field that occurs once.
fn one<'h>(fields: &[httparse::Header<'h>], name: &str) -> Option<&'h str> {
    let mut found = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case(name));
    let value = found.next()?.value;
    match found.next() {
        None => str::from_utf8(value).ok().map(str::trim),
        Some(_) => None,
    }
}

/// The path of a target, which may be a whole address; without its query.
fn path_of(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, address)) if !target.starts_with('/') => address
            .find('/')
            .and_then(|start| address.get(start..))
            .unwrap_or("/"),
        _ => target,
    };
    path.split('?').next().unwrap_or_default()
}

fn check_origin(fields: &[httparse::Header<'_>], terms: &Terms) -> Result<(), Refusal> {
    if terms.origins.is_empty() {
        return Ok(());
    }
    for value in values(fields, "Origin") {
        let origin = Origin::parse(value);
        if !origin.is_some_and(|origin| terms.origins.contains(&origin)) {
            return Err(Refusal::origin(value));
        }
    }
    // Bytes that are not text are not an origin either, and `values` omits them.
    let is_text = |field: &httparse::Header<'_>| {
        !field.name.eq_ignore_ascii_case("Origin") || str::from_utf8(field.value).is_ok()
    };
    if !fields.iter().all(is_text) {
        return Err(Refusal::origin("no text"));
    }
    Ok(())
}

fn is_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|key| key.len() == KEY_BYTES)
}

/// The sub-protocol to choose; none where the client offers none.
///
/// A client must offer `mqtt` ([MQTT-6.0.0-3]), but no statement requires the server to refuse one
/// that does not: a client that offers nothing is accepted, as by other brokers, and the answer
/// names no protocol. A client that offers only other names does not use MQTT.
fn subprotocol(fields: &[httparse::Header<'_>]) -> Result<Option<&'static str>, Refusal> {
    let offered = |name: &str| elements(fields, "Sec-WebSocket-Protocol").any(|it| it == name);
    let chosen = SUBPROTOCOLS.into_iter().find(|name| offered(name));
    let has_offer = fields
        .iter()
        .any(|field| field.name.eq_ignore_ascii_case("Sec-WebSocket-Protocol"));
    if chosen.is_none() && has_offer {
        return Err(Refusal::bad(
            "none of the sub-protocols is MQTT's: offer 'mqtt' in Sec-WebSocket-Protocol",
        ));
    }
    Ok(chosen)
}

impl Refusal {
    fn bad(why: &'static str) -> Self {
        Self {
            status: 400,
            fields: "",
            why: why.into(),
        }
    }

    fn method() -> Self {
        Self {
            status: 405,
            fields: "Allow: GET\r\n",
            why: "this is an MQTT-over-WebSocket listener: a WebSocket begins with GET".into(),
        }
    }

    fn no_websocket() -> Self {
        Self {
            status: 426,
            fields: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            why: "this is an MQTT-over-WebSocket listener: connect an MQTT client by ws:// or \
                  wss://; there is no page here"
                .into(),
        }
    }

    fn version() -> Self {
        Self {
            status: 426,
            fields: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            why: "only version 13 of WebSocket is spoken here (RFC 6455)".into(),
        }
    }

    fn path(found: &str, expected: &str) -> Self {
        Self {
            status: 404,
            fields: "",
            why: format!(
                "no WebSocket on path '{}': this listener answers on '{expected}'",
                quoted(found)
            )
            .into(),
        }
    }

    fn origin(found: &str) -> Self {
        Self {
            status: 403,
            fields: "",
            why: format!(
                "pages of the origin '{}' may not connect: add it to the origins of the listener",
                quoted(found)
            )
            .into(),
        }
    }

    pub(super) fn head_too_long(bytes_max: usize) -> Self {
        Self {
            status: 431,
            fields: "",
            why: format!("the head of the request has over {bytes_max} bytes").into(),
        }
    }

    fn too_many_fields() -> Self {
        Self {
            status: 431,
            fields: "",
            why: format!("the request has over {FIELDS_MAX} header fields").into(),
        }
    }

    /// Appends the answer; returns its meaning for the connection.
    pub(super) fn send(self, wire_out: &mut Vec<u8>) -> LayerError {
        let Self {
            status,
            fields,
            why,
        } = self;
        let answer = format!(
            "HTTP/1.1 {status} {}\r\n{fields}Connection: close\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{why}\n",
            reason(status),
            why.len() + 1,
        );
        wire_out.extend_from_slice(answer.as_bytes());
        let why = why.into_owned();
        ClientFault::Refused { status, why }.into()
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    }
}

/// Text of a client that is safe in a log and in an answer.
fn quoted(words: &str) -> String {
    let mut quoted: String = words.escape_default().take(QUOTED_CHARS_MAX).collect();
    if words.escape_default().count() > QUOTED_CHARS_MAX {
        quoted.push('…');
    }
    quoted
}
