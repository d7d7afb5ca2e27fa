//! MQTT over WebSocket at the HTTP port. The broker answers the request for the upgrade itself:
//! over plain TCP it gets the socket before a byte was read, else one end of a pair of sockets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use thrum_broker::{HttpPort, WebSocketClient};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::connection::Origin;
use super::places::RelayPlace;
use crate::api::Problem;

/// Bytes that show the path of a request.
const START_BYTES: usize = 1024;
/// Interval of looks at a connection that has sent a part of a line.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Bytes of the broker's answer: its head, and a sentence if it refuses.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// Fields of the broker's answer.
const FIELDS_MAX: usize = 16;
/// Time of a client to close after the broker has ended.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// Time of the broker to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Whether the first request of a connection is for MQTT. Nothing is read.
///
/// # Errors
/// The connection failed.
pub(super) async fn is_asked_for(stream: &TcpStream, port: &HttpPort) -> io::Result<bool> {
    let mut bytes = [0; START_BYTES];
    let mut before = 0;
    loop {
        let len = stream.peek(&mut bytes).await?;
        let start = bytes.get(..len).unwrap_or_default();
        match path(start) {
            Path::Is(path) => return Ok(port.is_websocket(path)),
            Path::IsOther => return Ok(false),
            Path::IsIncomplete if len == 0 || len == START_BYTES => return Ok(false),
            Path::IsIncomplete => {}
        }
        // The socket stays ready to be read while a part of the line is in it.
        if len == before {
            sleep(LOOK_INTERVAL).await;
        }
        before = len;
    }
}

/// The path of a request as far as it is known.
#[derive(Debug, PartialEq, Eq)]
enum Path<'a> {
    Is(&'a str),
    /// It is no GET with a path.
    IsOther,
    IsIncomplete,
}

fn path(start: &[u8]) -> Path<'_> {
    const METHOD: &[u8] = b"GET ";
    let common = start.len().min(METHOD.len());
    if start[..common] != METHOD[..common] {
        return Path::IsOther;
    }
    let target = start.get(METHOD.len()..).unwrap_or_default();
    let Some(end) = target.iter().position(|byte| b" ?\r\n".contains(byte)) else {
        return Path::IsIncomplete;
    };
    std::str::from_utf8(&target[..end]).map_or(Path::IsOther, Path::Is)
}

/// Passes a request for MQTT to the broker, and then what client and broker send.
pub(super) async fn relay(
    request: Request<Incoming>,
    address: SocketAddr,
    origin: Origin,
    port: &HttpPort,
) -> Response {
    if request.version() != Version::HTTP_11 || request.method() != Method::GET {
        return Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "no WebSocket",
            "clients of MQTT connect here with WebSocket over HTTP/1.1",
            "ask with GET, Upgrade: websocket and Sec-WebSocket-Protocol: mqtt",
        )
        .into_response();
    }
    let Some(place) = origin.place.of_relay() else {
        port.count_over_limit();
        return too_many();
    };
    let asked = async {
        let (near, far) = UnixStream::pair()?;
        let mut near = near;
        near.write_all(&head(&request)).await?;
        let is_admitted = port.admit(WebSocketClient {
            socket: OwnedFd::from(far.into_std()?),
            address,
            certificate: origin.certificate.clone(),
        });
        if !is_admitted {
            return Err(io::Error::other("it is overloaded"));
        }
        let answer = read_answer(&mut near).await?;
        Ok::<_, io::Error>((near, answer))
    };
    let asked = timeout(ANSWER_TIME, asked).await;
    match asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok((near, answer)) => {
            let is_upgraded = answer.response.status() == StatusCode::SWITCHING_PROTOCOLS;
            if is_upgraded {
                origin.progress.note_upgrade();
                // The place of the page's connection is free when the upgrade is done.
                let carried = Carried {
                    address: origin.address,
                    near,
                    rest: answer.rest,
                    place,
                };
                tokio::spawn(carry(request, carried));
            }
            answer.response
        }
        Err(error) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no answer of the broker",
            format!("the broker takes no client now: {error}"),
            "connect again later",
        )
        .into_response(),
    }
}

fn too_many() -> Response {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many clients",
        "too many clients of MQTT over TLS are connected here",
        "connect again later, or to a listener of the broker for MQTT over WebSocket (transport = \"websocket\")",
    )
    .into_response()
}

/// A client of MQTT that is connected.
struct Carried {
    address: SocketAddr,
    near: UnixStream,
    /// The first bytes of the broker.
    rest: Vec<u8>,
    place: RelayPlace,
}

/// Carries bytes both ways until one side ends.
async fn carry(request: Request<Incoming>, carried: Carried) {
    let Carried {
        address,
        near,
        rest,
        place,
    } = carried;
    let carried = async {
        let upgraded = hyper::upgrade::on(request)
            .await
            .map_err(io::Error::other)?;
        let mut client = TokioIo::new(upgraded);
        client.write_all(&rest).await?;
        carry_both_ways(client, near).await
    };
    if let Err(error) = carried.await {
        tracing::debug!(%address, %error, "a WebSocket at the HTTP port ended");
    }
    drop(place);
}

/// When the broker has ended, the client has a moment to close: it may never do so.
async fn carry_both_ways<C>(client: C, near: UnixStream) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
{
    let (mut from_client, mut to_client) = split(client);
    let (mut from_broker, mut to_broker) = near.into_split();
    let mut down = pin!(async {
        copy(&mut from_broker, &mut to_client).await?;
        to_client.shutdown().await
    });
    let mut up = pin!(async {
        copy(&mut from_client, &mut to_broker).await?;
        to_broker.shutdown().await
    });
    tokio::select! {
        ended = &mut down => {
            ended?;
            timeout(CLOSE_TIME, up).await.unwrap_or(Ok(()))
        }
        ended = &mut up => {
            ended?;
            down.await
        }
    }
}

/// The request as the broker reads it.
fn head(request: &Request<Incoming>) -> Vec<u8> {
    let target = request.uri().path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let mut head = format!("GET {target} HTTP/1.1\r\n").into_bytes();
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The broker's answer, and the bytes behind its head.
struct Answer {
    response: Response,
    rest: Vec<u8>,
}

/// Reads the broker's answer: an upgrade, or a refusal with the end of the stream.
async fn read_answer(near: &mut UnixStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    loop {
        let len = near.read_buf(&mut bytes).await?;
        let is_over = len == 0;
        if let Some(answer) = answer(&bytes, is_over)? {
            return Ok(answer);
        }
        if is_over || bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// None while a part is missing.
fn answer(bytes: &[u8], is_over: bool) -> io::Result<Option<Answer>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let parsed_bytes = parsed.parse(bytes).map_err(io::Error::other)?;
    let httparse::Status::Complete(len) = parsed_bytes else {
        return Ok(None);
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    let is_upgraded = status == StatusCode::SWITCHING_PROTOCOLS;
    if !is_upgraded && !is_over {
        return Ok(None);
    }
    let rest = bytes.get(len..).unwrap_or_default().to_vec();
    let (body, rest) = if is_upgraded {
        (Body::empty(), rest)
    } else {
        (Body::from(rest), Vec::new())
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for field in parsed.headers.iter() {
        // The length is that of the body; the connection is this one's.
        let is_own = ["content-length", "connection"]
            .iter()
            .any(|own| field.name.eq_ignore_ascii_case(own));
        let value = HeaderValue::from_bytes(field.value);
        if let (Ok(name), Ok(value)) = (field.name.parse::<axum::http::HeaderName>(), value)
            && (is_upgraded || !is_own)
        {
            response.headers_mut().append(name, value);
        }
    }
    Ok(Some(Answer { response, rest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_request_is_known_as_soon_as_it_is_complete() {
        assert_eq!(path(b""), Path::IsIncomplete);
        assert_eq!(path(b"GE"), Path::IsIncomplete);
        assert_eq!(path(b"GET /mqt"), Path::IsIncomplete);
        assert_eq!(path(b"GET /mqtt HT"), Path::Is("/mqtt"));
        assert_eq!(path(b"GET /mqtt?a=b"), Path::Is("/mqtt"));
        assert_eq!(path(b"POST /mqtt "), Path::IsOther);
        assert_eq!(path(b"PRI * HTTP/2.0\r\n"), Path::IsOther);
        assert_eq!(path(b"\x16\x03\x01"), Path::IsOther);
    }

    #[test]
    fn an_upgrade_is_complete_with_its_head_and_a_refusal_with_its_end() {
        let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\n\r\n\x20\x02";
        assert!(answer(&upgrade[..40], false).unwrap().is_none());
        let read = answer(upgrade, false).unwrap().unwrap();
        assert_eq!(read.response.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(read.response.headers()["connection"], "Upgrade");
        assert_eq!(read.rest, [0x20, 2]);
        let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
        assert!(answer(refusal, false).unwrap().is_none());
        let read = answer(refusal, true).unwrap().unwrap();
        assert_eq!(read.response.status(), StatusCode::FORBIDDEN);
        assert!(read.response.headers().is_empty() && read.rest.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_ends_after_the_broker_though_the_client_does_not_close() {
        let (client, mut far) = tokio::io::duplex(64);
        let (near, mut broker) = UnixStream::pair().unwrap();
        broker.write_all(b"bye").await.unwrap();
        drop(broker);
        let ended = timeout(Duration::from_hours(1), carry_both_ways(client, near)).await;
        assert!(ended.is_ok());
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"bye");
    }
}
