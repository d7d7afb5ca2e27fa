//! One connection: TLS, then HTTP/1.1 or HTTP/2, or MQTT over WebSocket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST};
use axum::http::{HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::CertificateDer;
use socket2::SockRef;
use thrum_broker::{HttpPort, WebSocketClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::answers::{Answers, Ending, StreamTasks};
use super::forwarded;
use super::held::Room;
use super::places::{Place, Places};
use super::websocket;
use crate::api::{Peer, Problem};
use crate::rest;
use crate::service::until_stop;
use crate::stalled::{Progress, Stalled};

/// Time for TLS, and for the first line of a request.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// A connection without a complete head of a request is closed after this time: it is idle or slow.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Bytes of the head of a request over HTTP/1.1.
const HEAD_BYTES_MAX: usize = 80 * 1024;
/// The same over HTTP/2, where a connection may have [`STREAMS_MAX`] of them at a time.
const STREAM_HEAD_BYTES_MAX: u32 = 16 * 1024;
/// Fields of the head of a request.
const FIELDS_MAX: usize = 64;
/// Requests under way at a time on a connection of HTTP/2: a page with all of its parts.
const STREAMS_MAX: u32 = 32;
/// Bytes of bodies that a peer of HTTP/2 may send before they are read, on all streams of its
/// connection.
const UNREAD_BYTES_MAX: u32 = 256 * 1024;
/// Bytes of an answer over HTTP/2 that wait for the connection. They are a part of the answer.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// Bytes that wait in the system for a reader that does not take them. Without a limit they are
/// megabytes, and whoever reads nothing is noticed only when they are full.
const UNSENT_BYTES_MAX: u32 = 64 * 1024;
/// A peer of HTTP/2 is asked for a sign of life at this interval, and has as long to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Bytes of a body that is read before the request is answered.
const SMALL_BODY_BYTES: u64 = 16 * 1024;
/// Time for it.
const BODY_TIME: Duration = Duration::from_secs(15);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) places: Places,
    /// Memory of the answers of all connections.
    pub(super) room: Room,
    /// True at the end of the broker.
    pub(super) stopping: watch::Receiver<bool>,
}

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) place: Arc<Place>,
}

/// The end of a connection that requests come from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Its address: the client's, or that of a proxy.
    pub(super) address: SocketAddr,
    pub(super) is_tls: bool,
    /// Its verified certificate.
    pub(super) certificate: Option<CertificateDer<'static>>,
    /// It is taken for as long as a request has it.
    pub(super) place: Arc<Place>,
    pub(super) progress: Progress,
    /// Its requests over HTTP/2.
    answers: Answers,
    /// Memory of its answers.
    room: Room,
}

/// Serves a connection until it ends.
pub(super) async fn serve(arrived: Arrived, port: HttpPort, shared: Arc<Shared>) {
    let room = shared.room.of_connection();
    let begun = tokio::select! {
        begun = begin(arrived, &port, room) => begun,
        () = until_stop(shared.stopping.clone()) => return,
    };
    match begun {
        Some(Begun::Plain(stream, origin)) => answer(stream, origin, port, &shared).await,
        Some(Begun::Tls(stream, origin)) => answer(*stream, origin, port, &shared).await,
        None => {}
    }
}

/// A connection whose requests can be read.
enum Begun {
    Plain(TcpStream, Origin),
    Tls(Box<TlsStream<TcpStream>>, Origin),
}

/// TLS, or a look at the first line; none if the connection has ended or is a worker's.
async fn begin(arrived: Arrived, port: &HttpPort, room: Room) -> Option<Begun> {
    let Arrived {
        stream,
        address,
        place,
    } = arrived;
    let mut origin = Origin {
        address,
        is_tls: false,
        certificate: None,
        place,
        progress: Progress::default(),
        answers: Answers::default(),
        room,
    };
    let Some(tls) = port.tls() else {
        let is_websocket = websocket::is_asked_for(&stream, port);
        match timeout(HANDSHAKE_TIME, is_websocket).await {
            // A proxy names its client in the head of the request.
            Ok(Ok(true)) if !port.is_proxy(address.ip()) => admit(stream, address, port),
            Ok(Ok(_)) => {
                limit_unsent(&stream);
                return Some(Begun::Plain(stream, origin));
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "a connection ended"),
            Err(_) => tracing::debug!(%address, "no request in time at the HTTP port"),
        }
        return None;
    };
    limit_unsent(&stream);
    match timeout(HANDSHAKE_TIME, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate = certificates.and_then(|all| all.first());
            origin.is_tls = true;
            origin.certificate = certificate.map(|one| one.clone().into_owned());
            return Some(Begun::Tls(Box::new(stream), origin));
        }
        Ok(Err(error)) => tracing::debug!(%address, %error, "TLS failed at the HTTP port"),
        Err(_) => tracing::debug!(%address, "TLS took too long at the HTTP port"),
    }
    None
}

fn limit_unsent(stream: &TcpStream) {
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the system does not limit what waits for a reader");
    }
}

/// The broker reads the request itself, and answers it.
fn admit(stream: TcpStream, address: SocketAddr, port: &HttpPort) {
    match stream.into_std() {
        Ok(socket) => {
            let client = WebSocketClient {
                socket: socket.into(),
                address,
                certificate: None,
            };
            if !port.admit(client) {
                tracing::debug!(%address, "the broker takes no client now");
            }
        }
        Err(error) => tracing::debug!(%address, %error, "a connection ended"),
    }
}

/// Answers the requests of a connection until it ends.
async fn answer<S>(stream: S, origin: Origin, port: HttpPort, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = shared.router.clone();
    let connected = Connected {
        address: origin.address,
        answers: origin.answers.clone(),
        stopping: shared.stopping.clone(),
    };
    let stream = Stalled::new(stream, origin.progress.clone());
    let route = move |request| route(request, origin.clone(), port.clone(), router.clone());
    connected.run(stream, route).await;
}

/// A connection whose requests are answered.
struct Connected {
    address: SocketAddr,
    answers: Answers,
    stopping: watch::Receiver<bool>,
}

impl Connected {
    /// Answers until it ends, or has to.
    async fn run<S, R, A>(self, stream: S, route: R)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        R: Fn(Request<Incoming>) -> A,
        A: Future<Output = Result<Response, Infallible>> + Send + 'static,
    {
        let Self {
            address,
            answers,
            stopping,
        } = self;
        let builder = builder();
        let connection =
            builder.serve_connection_with_upgrades(TokioIo::new(stream), service_fn(route));
        let mut connection = pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = until_stop(stopping) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            ending = answers.until_over() => {
                tracing::debug!(%address, ?ending, "a connection to the HTTP port is closed");
                match ending {
                    Ending::Stalled => return,
                    Ending::Idle => connection.as_mut().graceful_shutdown(),
                }
                tokio::select! {
                    served = connection => served,
                    _ = answers.until_left() => return,
                }
            }
        };
        if let Err(error) = served {
            tracing::debug!(%address, %error, "a connection to the HTTP port ended");
        }
    }
}

/// HTTP/1.1 and HTTP/2 with their limits.
fn builder() -> Builder<StreamTasks> {
    let mut builder = Builder::new(StreamTasks);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(STREAM_HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_connection_window_size(UNREAD_BYTES_MAX)
        .initial_stream_window_size(UNREAD_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    builder
}

/// A reload has taken the address away: its connections end with the next request.
fn closed() -> Response {
    let problem = Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "listener removed",
        "the broker no longer listens at this address",
        "connect to another address of the broker",
    );
    let mut response = problem.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Whether a request says once for which host it is, as HTTP/1.1 demands (RFC 9112, 3.2): a proxy
/// in front may take another of two for the right one.
fn has_one_host(request: &Request<Incoming>) -> bool {
    request.version() != Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1
}

fn no_host() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "no host",
        "a request over HTTP/1.1 has exactly one header Host",
        "send Host: with the name or address of the broker, once",
    )
}

/// Answers one request.
async fn route(
    request: Request<Incoming>,
    origin: Origin,
    port: HttpPort,
    router: Router,
) -> Result<Response, Infallible> {
    origin.progress.note_request();
    let is_http2 = request.version() == Version::HTTP_2;
    // Asked for each request: a reload may name other proxies.
    let begin = || {
        let end = origin.address.ip();
        origin.answers.begin(end, |end| port.is_proxy(end))
    };
    let under_way = is_http2.then(begin);
    let response = respond(request, origin, port, router).await?;
    Ok(match under_way {
        Some(under_way) => under_way.answered(response),
        None => response,
    })
}

async fn respond(
    mut request: Request<Incoming>,
    origin: Origin,
    port: HttpPort,
    router: Router,
) -> Result<Response, Infallible> {
    if port.is_closed() {
        return Ok(closed());
    }
    if !has_one_host(&request) {
        return Ok(no_host().into_response());
    }
    let is_proxy = |address| port.is_proxy(address);
    let end = Peer {
        address: origin.address.ip(),
        is_tls: origin.is_tls,
    };
    let sender = forwarded::sender(request.headers(), end, is_proxy);
    if port.is_websocket(request.uri().path()) {
        let address = SocketAddr::new(sender.address, origin.address.port());
        return Ok(websocket::relay(request, address, origin, &port).await);
    }
    let extensions = request.extensions_mut();
    extensions.insert(sender);
    extensions.insert(port);
    extensions.insert(origin.room);
    match with_small_body(request).await {
        Ok(request) => rest::answer(router, request).await,
        Err(problem) => Ok(problem.into_response()),
    }
}

/// A small body is read before the request is answered: a request that is refused without its body
/// would end with a reset of the connection, and many clients then do not see the answer.
async fn with_small_body(request: Request<Incoming>) -> Result<Request, Problem> {
    let len = request.body().size_hint().exact();
    if len.is_none_or(|len| len == 0 || len > SMALL_BODY_BYTES) {
        return Ok(request.map(Body::new));
    }
    let (parts, body) = request.into_parts();
    match timeout(BODY_TIME, body.collect()).await {
        Ok(Ok(read)) => Ok(Request::from_parts(parts, Body::from(read.to_bytes()))),
        Ok(Err(error)) => Err(Problem::bad_request(format!(
            "the body ended early: {error}"
        ))),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "request took too long",
            format!("the body was not here within {} s", BODY_TIME.as_secs()),
            "send the whole body at once",
        )),
    }
}

#[cfg(test)]
mod tests;
