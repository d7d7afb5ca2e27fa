//! One connection: TLS, then HTTP/1.1 or HTTP/2, or MQTT over WebSocket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::CertificateDer;
use thrum_broker::{HttpPort, WebSocketClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use super::forwarded;
use super::places::{Place, Places};
use super::websocket;
use crate::api::{Peer, Problem};
use crate::service::until_stop;
use crate::stalled::{Progress, Stalled};

/// Time for TLS, and for the first line of a request.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// A connection without a complete head of a request is closed after this time: it is idle or slow.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Bytes of the head of a request over HTTP/1.1, and of its fields over HTTP/2.
const HEAD_BYTES_MAX: u32 = 80 * 1024;
/// Fields of the head of a request.
const FIELDS_MAX: usize = 64;
/// Requests under way at a time on a connection of HTTP/2: a page with all of its parts.
const STREAMS_MAX: u32 = 64;
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
}

/// Serves a connection until it ends.
pub(super) async fn serve(arrived: Arrived, port: HttpPort, shared: Arc<Shared>) {
    let begun = tokio::select! {
        begun = begin(arrived, &port) => begun,
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
async fn begin(arrived: Arrived, port: &HttpPort) -> Option<Begun> {
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
    };
    let Some(tls) = port.tls() else {
        let is_websocket = websocket::is_asked_for(&stream, port);
        match timeout(HANDSHAKE_TIME, is_websocket).await {
            // A proxy names its client in the head of the request.
            Ok(Ok(true)) if !port.is_proxy(address.ip()) => admit(stream, address, port),
            Ok(Ok(_)) => return Some(Begun::Plain(stream, origin)),
            Ok(Err(error)) => tracing::debug!(%address, %error, "a connection ended"),
            Err(_) => tracing::debug!(%address, "no request in time at the HTTP port"),
        }
        return None;
    };
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
    let (address, router) = (origin.address, shared.router.clone());
    let progress = origin.progress.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        route(request, origin.clone(), port.clone(), router.clone())
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIME)
        .max_buf_size(HEAD_BYTES_MAX as usize)
        .max_headers(FIELDS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    let stream = TokioIo::new(Stalled::new(stream, progress));
    let connection = builder.serve_connection_with_upgrades(stream, service);
    let mut connection = pin!(connection);
    let stops = until_stop(shared.stopping.clone());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stops => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%address, %error, "a connection to the HTTP port ended");
    }
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

/// Answers one request.
async fn route(
    mut request: Request<Incoming>,
    origin: Origin,
    port: HttpPort,
    router: Router,
) -> Result<Response, Infallible> {
    origin.progress.note_request();
    if port.is_closed() {
        return Ok(closed());
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
    request.extensions_mut().insert(sender);
    match with_small_body(request).await {
        Ok(request) => router.oneshot(request).await,
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
