//! One request to the collector, over HTTP or gRPC, and what its answer means.

use std::error::Error as _;
use std::io::Write as _;
use std::time::Duration;

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt as _, Limited};
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, TE,
};
use reqwest::{Body, Client, StatusCode, Url};
use thrum_broker::Signal;
use thrum_broker::config::TelemetryProtocol;

use super::settings::{TelemetryError, TelemetrySettings};
use crate::clock::Clock;
use crate::wire::{Field, Fields};

/// Bytes of an answer: it has a few counts and a text.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Characters of a text of the collector in our log.
const TEXT_MAX: usize = 200;
/// Codes of gRPC after which OTLP lets a request be repeated: cancelled, deadline exceeded,
/// aborted, out of range, unavailable, data loss. Resource exhausted is one if a pause is named.
const REPEATABLE: [u64; 6] = [1, 4, 10, 11, 14, 15];
/// Resource exhausted.
const EXHAUSTED: u64 = 8;

/// Sends requests to a collector.
#[derive(Debug)]
pub(super) struct Exporter {
    clock: Clock,
    client: Client,
    protocol: TelemetryProtocol,
    endpoint: Url,
    headers: HeaderMap,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The collector has it, but for some items, for a reason.
    Accepted { rejected: u64, message: String },
    /// It may be repeated, after a pause if the collector asks for one.
    Later {
        why: String,
        pause: Option<Duration>,
    },
    /// It would be refused again.
    Refused(String),
}

impl Exporter {
    pub(super) fn new(settings: &TelemetrySettings) -> Result<Self, TelemetryError> {
        let mut headers = settings.headers.clone();
        let (kind, encoding) = match settings.protocol {
            TelemetryProtocol::Http => ("application/x-protobuf", CONTENT_ENCODING),
            TelemetryProtocol::Grpc => {
                headers.insert(TE, HeaderValue::from_static("trailers"));
                ("application/grpc", HeaderName::from_static("grpc-encoding"))
            }
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(encoding, HeaderValue::from_static("gzip"));
        Ok(Self {
            clock: Clock::start(),
            client: settings.client()?,
            protocol: settings.protocol,
            endpoint: settings.endpoint.clone(),
            headers,
        })
    }

    /// The address of the collector.
    pub(super) fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Sends a request.
    pub(super) async fn send(&self, signal: Signal, request: &[u8]) -> Outcome {
        let body = match self.protocol {
            TelemetryProtocol::Http => zipped(request),
            TelemetryProtocol::Grpc => framed(&zipped(request)),
        };
        let request = self.client.post(self.address(signal));
        let request = request.headers(self.headers.clone()).body(body);
        let answer = match request.send().await {
            Ok(answer) => Response::<Body>::from(answer),
            Err(error) => return unreachable(&error),
        };
        let (head, body) = answer.into_parts();
        let collected = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(collected) => collected,
            Err(error) => {
                return Outcome::Later {
                    why: format!("its answer was cut off: {error}"),
                    pause: None,
                };
            }
        };
        let trailers = collected.trailers().cloned();
        let bytes = collected.to_bytes();
        let pause = pause(&head.headers, self.clock.now().wall_millis);
        match self.protocol {
            TelemetryProtocol::Http => of_http(head.status, pause, &bytes),
            TelemetryProtocol::Grpc if head.status != StatusCode::OK => {
                of_http(head.status, pause, &[])
            }
            TelemetryProtocol::Grpc => {
                // An answer without messages has the status in its head.
                let status = trailers.unwrap_or(head.headers);
                of_grpc(&status, bytes.get(FRAME_HEAD..).unwrap_or_default())
            }
        }
    }

    fn address(&self, signal: Signal) -> Url {
        let path = match (self.protocol, signal) {
            (TelemetryProtocol::Http, Signal::Metrics) => "v1/metrics",
            (TelemetryProtocol::Http, Signal::Logs) => "v1/logs",
            (TelemetryProtocol::Http, Signal::Traces) => "v1/traces",
            (TelemetryProtocol::Grpc, Signal::Metrics) => {
                "opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
            }
            (TelemetryProtocol::Grpc, Signal::Logs) => {
                "opentelemetry.proto.collector.logs.v1.LogsService/Export"
            }
            (TelemetryProtocol::Grpc, Signal::Traces) => {
                "opentelemetry.proto.collector.trace.v1.TraceService/Export"
            }
        };
        let mut address = self.endpoint.clone();
        let below = address.path().trim_end_matches('/').to_owned();
        address.set_path(&format!("{below}/{path}"));
        address
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // A vector takes everything.
    out.write_all(bytes).ok();
    out.finish().unwrap_or_default()
}

/// Bytes in front of a message of gRPC: whether it is compressed, and its length.
const FRAME_HEAD: usize = 5;

fn framed(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(FRAME_HEAD + message.len());
    out.push(1);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// An error with its causes, which reqwest does not show.
fn unreachable(error: &reqwest::Error) -> Outcome {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        why = format!("{why}: {inner}");
        cause = inner.source();
    }
    Outcome::Later {
        why: with_remedy(why),
        pause: None,
    }
}

/// With what to do where the words of the library do not tell.
fn with_remedy(why: String) -> String {
    if !why.contains("CaUsedAsEndEntity") {
        return why;
    }
    format!(
        "{why}: the collector shows the certificate of an authority (CA:TRUE) as its own; give it one that this \
         authority has signed, or a self-signed one without CA:TRUE (openssl req -x509 -addext \
         basicConstraints=critical,CA:FALSE)"
    )
}

/// The pause that `Retry-After` asks for: seconds, or a date. [RFC 9110, 10.2.3]
fn pause(headers: &HeaderMap, wall_millis: u64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTimeParser::new().parse_timestamp(text).ok()?;
    let until = u64::try_from(until.as_millisecond()).unwrap_or(0);
    Some(Duration::from_millis(until.saturating_sub(wall_millis)))
}

/// An answer of HTTP. [OTLP 1.9, "OTLP/HTTP Response"]
fn of_http(status: StatusCode, pause: Option<Duration>, body: &[u8]) -> Outcome {
    if status.is_success() {
        return accepted(body);
    }
    // The body is a `google.rpc.Status`, or the text of a proxy.
    let told = Fields(body).bytes_of(2).map_or_else(String::new, text);
    let why = format!("it answers {status}{}", with_colon(&told));
    match status.as_u16() {
        429 | 502 | 503 | 504 => Outcome::Later { why, pause },
        _ => Outcome::Refused(why),
    }
}

/// The status of gRPC. [OTLP 1.9, "OTLP/gRPC Response"]
fn of_grpc(status: &HeaderMap, message: &[u8]) -> Outcome {
    let field = |name: &str| status.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = field("grpc-status").and_then(|code| code.parse().ok()) else {
        return Outcome::Refused("it does not answer as gRPC does".to_owned());
    };
    if code == 0 {
        return accepted(message);
    }
    let told = field("grpc-message").unwrap_or_default();
    let told = text(&percent_decoded(told));
    let why = format!(
        "it answers with the status {code} of gRPC{}",
        with_colon(&told)
    );
    let pause = field("grpc-status-details-bin").and_then(retry_delay);
    let is_repeatable = REPEATABLE.contains(&code) || (code == EXHAUSTED && pause.is_some());
    if is_repeatable {
        Outcome::Later { why, pause }
    } else {
        Outcome::Refused(why)
    }
}

/// The answers of all signals have the same numbers: partial success 1 (rejected 1, message 2).
fn accepted(answer: &[u8]) -> Outcome {
    let partial = Fields(answer).bytes_of(1).map(Fields);
    let rejected = partial.clone().and_then(|partial| partial.number_of(1));
    let message = partial.and_then(|partial| partial.bytes_of(2));
    Outcome::Accepted {
        rejected: rejected.unwrap_or(0),
        message: message.map_or_else(String::new, text),
    }
}

/// The pause in a `google.rpc.Status` (details 3), whose details are of any type (name 1, bytes 2):
/// `RetryInfo` (delay 1), `Duration` (seconds 1).
fn retry_delay(details: &str) -> Option<Duration> {
    let bytes = STANDARD.decode(details);
    let bytes = bytes.or_else(|_| STANDARD_NO_PAD.decode(details)).ok()?;
    let mut all = Fields(&bytes).filter_map(|field| match field {
        (3, Field::Bytes(any)) => Some(Fields(any)),
        _ => None,
    });
    let is_retry = |any: &Fields<'_>| {
        let name = any.clone().bytes_of(1).unwrap_or_default();
        name.ends_with(b"google.rpc.RetryInfo")
    };
    let delay = Fields(Fields(all.find(is_retry)?.bytes_of(2)?).bytes_of(1)?);
    Some(Duration::from_secs(delay.number_of(1).unwrap_or(0)))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(decoded.unwrap_or(*first));
        rest = &behind[if decoded.is_some() { 2 } else { 0 }..];
    }
    out
}

/// A text of the collector for a line of the log.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let printable = text.chars().filter(|letter| !letter.is_control());
    printable.take(TEXT_MAX).collect()
}

fn with_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Message;

    /// Seconds before a repetition, 0 for any; none if there is none.
    fn later(outcome: &Outcome) -> Option<u64> {
        match outcome {
            Outcome::Later { pause, .. } => Some(pause.map_or(0, |pause| pause.as_secs())),
            Outcome::Accepted { .. } | Outcome::Refused(_) => None,
        }
    }

    #[test]
    fn the_certificate_of_an_authority_is_refused_with_what_to_do() {
        let told = with_remedy("Other(OtherError(CaUsedAsEndEntity))".to_owned());
        assert!(told.contains("CaUsedAsEndEntity"), "{told}");
        assert!(told.contains("this authority has signed"), "{told}");
        let other = "connection refused".to_owned();
        assert_eq!(with_remedy(other.clone()), other);
    }

    #[test]
    fn a_pause_is_named_in_seconds_or_by_its_end() {
        // 2026-11-26T23:00:00Z
        let now = 1_795_734_000_000;
        for (text, expected) in [
            ("7", Some(7)),
            ("Thu, 26 Nov 2026 23:01:30 GMT", Some(90)),
            ("Thu, 26 Nov 2026 22:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            let expected = expected.map(Duration::from_secs);
            assert_eq!(pause(&headers, now), expected, "{text}");
        }
        assert_eq!(pause(&HeaderMap::new(), now), None);
    }

    #[test]
    fn only_four_answers_of_http_let_a_request_be_repeated() {
        let pause = Some(Duration::from_secs(7));
        for code in [400, 401, 404, 413, 500] {
            let status = StatusCode::from_u16(code).unwrap();
            assert_eq!(later(&of_http(status, pause, &[])), None, "{code}");
        }
        for code in [429, 502, 503, 504] {
            let status = StatusCode::from_u16(code).unwrap();
            assert_eq!(later(&of_http(status, pause, &[])), Some(7), "{code}");
        }
    }

    #[test]
    fn exhausted_resources_are_repeated_only_with_a_pause_in_the_details() {
        let mut status = Message::default();
        status.number(1, EXHAUSTED);
        for (name, seconds) in [("google.rpc.ErrorInfo", 9), ("google.rpc.RetryInfo", 3)] {
            status.message(3, |any| {
                any.text(1, &format!("type.googleapis.com/{name}"));
                any.message(2, |info| info.message(1, |delay| delay.number(1, seconds)));
            });
        }
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_static("8"));
        headers.insert("grpc-message", HeaderValue::from_static("too%20much%"));
        assert_eq!(
            of_grpc(&headers, &[]),
            Outcome::Refused("it answers with the status 8 of gRPC: too much%".to_owned())
        );
        let details = STANDARD_NO_PAD.encode(&status.0);
        headers.insert("grpc-status-details-bin", details.parse().unwrap());
        assert_eq!(later(&of_grpc(&headers, &[])), Some(3));
    }

    #[test]
    fn codes_of_grpc_are_repeated_as_otlp_says() {
        let repeated = (1..=16_u64).filter(|code| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", code.to_string().parse().unwrap());
            later(&of_grpc(&headers, &[])).is_some()
        });
        assert_eq!(repeated.collect::<Vec<_>>(), [1, 4, 10, 11, 14, 15]);
        let refused = of_grpc(&HeaderMap::new(), &[]);
        assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
    }

    #[test]
    fn a_partial_success_tells_what_was_rejected_in_printable_words() {
        let mut answer = Message::default();
        answer.message(1, |partial| {
            partial.number(1, 4);
            partial.text(2, &format!("too old\n\u{1b}[31m{}", "x".repeat(500)));
        });
        let Outcome::Accepted { rejected, message } = accepted(&answer.0) else {
            panic!("it is accepted");
        };
        assert_eq!((rejected, message.chars().count()), (4, TEXT_MAX));
        assert!(message.starts_with("too old[31mxxx"), "{message}");
        let whole = Outcome::Accepted {
            rejected: 0,
            message: String::new(),
        };
        assert_eq!(accepted(&[]), whole);
    }
}
