//! Collectors that read what they get with the library of OpenTelemetry.

use std::collections::VecDeque;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Far longer than anything here takes.
const TIME: Duration = Duration::from_secs(30);
/// Requests that wait for the test to look at them.
const KEPT: usize = 4096;

/// A request as a collector has read it.
#[derive(Debug)]
pub(super) enum Received {
    Metrics(HeaderMap, ExportMetricsServiceRequest),
    Logs(ExportLogsServiceRequest),
    Traces(ExportTraceServiceRequest),
}

/// What a collector does with the next request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Script {
    /// HTTP: this status, and this pause.
    Answer(u16, Option<&'static str>),
    /// gRPC: this code.
    Code(i32),
    /// Accepts it, but for so many items.
    Reject(i64),
    /// Never answers.
    Hang,
}

/// A collector; it accepts what its script does not name.
pub(super) struct TestCollector {
    pub(super) address: SocketAddr,
    pub(super) received: Receiver<Received>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct Shared {
    script: Arc<Mutex<VecDeque<Script>>>,
    received: SyncSender<Received>,
}

impl Shared {
    fn next(&self) -> Option<Script> {
        self.script.lock().expect("no panic").pop_front()
    }

    fn keep(&self, received: Received) {
        self.received
            .try_send(received)
            .expect("room, and a test that looks");
    }
}

/// An address that nobody listens at.
pub(super) fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

impl TestCollector {
    pub(super) fn http(address: SocketAddr, script: &[Script]) -> Self {
        Self::start(address, script, |listener, shared, stopped| async move {
            let router = Router::new()
                .fallback(take)
                .layer(DefaultBodyLimit::max(4 << 20))
                .with_state(shared);
            let served = axum_serve(listener, router);
            tokio::select! {
                () = served => {}
                _ = stopped => {}
            }
        })
    }

    pub(super) fn grpc(address: SocketAddr, script: &[Script]) -> Self {
        Self::start(address, script, |listener, shared, stopped| async move {
            let metrics = MetricsServiceServer::new(shared.clone());
            let traces = TraceServiceServer::new(shared.clone());
            let logs = LogsServiceServer::new(shared);
            let served = Server::builder()
                .add_service(metrics.accept_compressed(CompressionEncoding::Gzip))
                .add_service(logs.accept_compressed(CompressionEncoding::Gzip))
                .add_service(traces.accept_compressed(CompressionEncoding::Gzip))
                .serve_with_incoming(TcpIncoming::from(listener));
            tokio::select! {
                served = served => served.expect("it serves"),
                _ = stopped => {}
            }
        })
    }

    fn start<F>(
        address: SocketAddr,
        script: &[Script],
        serve: impl FnOnce(TcpListener, Shared, oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()>,
    {
        let listener = std::net::TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket");
        let (sender, received) = sync_channel(KEPT);
        let shared = Shared {
            script: Arc::new(Mutex::new(script.iter().copied().collect())),
            received: sender,
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket");
                serve(listener, shared, stopped).await;
            });
        });
        Self {
            address,
            received,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The next metrics.
    pub(super) fn metrics(&self) -> (HeaderMap, ExportMetricsServiceRequest) {
        loop {
            match self.received.recv_timeout(TIME).expect("a request") {
                Received::Metrics(headers, request) => return (headers, request),
                Received::Logs(_) | Received::Traces(_) => {}
            }
        }
    }

    /// The next lines of the log.
    pub(super) fn logs(&self) -> ExportLogsServiceRequest {
        loop {
            match self.received.recv_timeout(TIME).expect("a request") {
                Received::Logs(request) => return request,
                Received::Metrics(..) | Received::Traces(_) => {}
            }
        }
    }

    /// The next spans.
    pub(super) fn traces(&self) -> ExportTraceServiceRequest {
        loop {
            match self.received.recv_timeout(TIME).expect("a request") {
                Received::Traces(request) => return request,
                Received::Metrics(..) | Received::Logs(_) => {}
            }
        }
    }
}

impl Drop for TestCollector {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the collector does not panic");
        }
    }
}

/// Serves HTTP/1.1; connections end with the runtime.
async fn axum_serve(listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let stream = hyper_util::rt::TokioIo::new(stream);
            let connection = hyper::server::conn::http1::Builder::new();
            // The broker may close it at any time.
            connection.serve_connection(stream, service).await.ok();
        });
    }
}

async fn take(
    State(shared): State<Shared>,
    address: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut answer = HeaderMap::new();
    let mut rejected = 0;
    match shared.next() {
        Some(Script::Answer(status, pause)) => {
            if let Some(pause) = pause {
                answer.insert("retry-after", pause.parse().expect("a header"));
            }
            let status = StatusCode::from_u16(status).expect("a status");
            return (status, answer, b"no".to_vec());
        }
        Some(Script::Hang) => std::future::pending().await,
        Some(Script::Reject(items)) => rejected = items,
        Some(Script::Code(_)) | None => {}
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["content-encoding"], "gzip");
    let mut bytes = Vec::new();
    GzDecoder::new(&body[..])
        .read_to_end(&mut bytes)
        .expect("gzip");
    let received = match address.path() {
        "/v1/metrics" => {
            let request = ExportMetricsServiceRequest::decode(&bytes[..]);
            Received::Metrics(headers, request.expect("a request"))
        }
        "/v1/traces" => {
            let request = ExportTraceServiceRequest::decode(&bytes[..]);
            Received::Traces(request.expect("a request"))
        }
        "/v1/logs" => {
            let request = ExportLogsServiceRequest::decode(&bytes[..]);
            Received::Logs(request.expect("a request"))
        }
        other => panic!("a request to {other}"),
    };
    shared.keep(received);
    (StatusCode::OK, answer, partial(rejected).encode_to_vec())
}

fn partial(rejected: i64) -> ExportMetricsServiceResponse {
    ExportMetricsServiceResponse {
        partial_success: (rejected > 0).then(|| ExportMetricsPartialSuccess {
            rejected_data_points: rejected,
            error_message: "too old".to_owned(),
        }),
    }
}

impl Shared {
    async fn play(&self) -> Result<i64, Status> {
        match self.next() {
            Some(Script::Code(code)) => Err(Status::new(code.into(), "no room")),
            Some(Script::Hang) => std::future::pending().await,
            Some(Script::Reject(items)) => Ok(items),
            Some(Script::Answer(..)) | None => Ok(0),
        }
    }
}

#[tonic::async_trait]
impl MetricsService for Shared {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let rejected = self.play().await?;
        let (metadata, _, request) = request.into_parts();
        self.keep(Received::Metrics(metadata.into_headers(), request));
        Ok(Response::new(partial(rejected)))
    }
}

#[tonic::async_trait]
impl LogsService for Shared {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.play().await?;
        self.keep(Received::Logs(request.into_inner()));
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Shared {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.play().await?;
        self.keep(Received::Traces(request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
