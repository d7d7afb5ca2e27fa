//! The socket of the interface, and the thread that serves it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::{Router, middleware};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thrum_files::{Folder, ListeningSocket, stand_back};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api::{self, Entrance, Shares};
use crate::program::Managed;
use crate::rest;
use crate::security::Security;
use crate::stalled::{Progress, Stalled};

/// Name of the socket in the data directory.
pub const SOCKET: &str = "control.sock";

/// Connections at a time; more wait in the backlog of the socket. A person or program needs one.
const CONNECTIONS_MAX: usize = 32;
/// Bytes of the head of a request; hyper limits the address in it to 65,534. A head that is
/// complete with the read that exceeds this limit is taken: up to twice as much.
const HEAD_BYTES_MAX: usize = 80 * 1024;
/// Fields of the head of a request.
const FIELDS_MAX: usize = 64;
/// A connection without a complete head of a request is closed after this time: it is idle or slow.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Longest time of requests that are under way at the end of the broker, which answers them first.
const STOP_TIME: Duration = Duration::from_secs(1);
/// Pause of accepting when the system has no more files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {}: {source}", .path.display())]
pub struct StartError {
    path: PathBuf,
    source: io::Error,
}

impl StartError {
    /// Another process listens there.
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// A socket that is served.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    /// None once it accepts no more.
    close: Option<oneshot::Sender<()>>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl ControlSocket {
    /// Makes the socket in the data directory of a broker, and begins to serve it.
    ///
    /// # Errors
    /// Another process listens there, something else has that name, or the system refuses.
    pub fn start(
        data_dir: &Path,
        managed: impl Into<Managed>,
        security: Security,
    ) -> Result<Self, StartError> {
        let path = data_dir.join(SOCKET);
        let failed = |source| StartError {
            path: path.clone(),
            source,
        };
        let folder = Folder::open(data_dir).map_err(failed)?;
        let socket = folder.listen(OsStr::new(SOCKET)).map_err(failed)?;
        let (close, closed) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(api::BLOCKING_MAX)
            .enable_all()
            .build()
            .map_err(failed)?;
        let counts = Arc::clone(&security.counts);
        let (router, changes) = api::router_and_changes(managed, security, Entrance::Local);
        let router = router.layer(middleware::from_fn_with_state(counts, api::count_answer));
        let interface = Interface { router, changes };
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                stand_back();
                runtime.block_on(serve(&socket, &interface, closed, stopped));
                // Threads that wait for an answer of the broker end with it.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self {
            path,
            close: Some(close),
            stop,
            thread,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts no more connections and removes the socket; requests under way go on.
    pub fn close(&mut self) {
        if let Some(close) = self.close.take() {
            // The thread may have ended.
            close.send(()).ok();
        }
    }

    /// Ends after the broker: requests under way are answered, as far as one second allows.
    pub fn stop(mut self) {
        self.close();
        let Self { stop, thread, .. } = self;
        // The thread may have ended.
        stop.send(()).ok();
        if thread.join().is_err() {
            tracing::error!("the thread of the control socket ended by a panic");
        }
    }
}

/// What is served, and the permits of changes, which go on without their requests.
struct Interface {
    router: Router,
    changes: Shares,
}

/// Accepts until `closed`, serves until `stopped`, and then answers the requests under way, and
/// waits for changes whose callers have left.
async fn serve(
    socket: &ListeningSocket,
    interface: &Interface,
    closed: oneshot::Receiver<()>,
    stopped: oneshot::Receiver<()>,
) {
    let listener = match listener(socket) {
        Ok(listener) => listener,
        Err(error) => {
            let path = socket.path();
            tracing::error!(path = %path.display(), %error, "cannot accept at the control socket");
            return;
        }
    };
    let mut connections = JoinSet::new();
    let (stop, stopping) = watch::channel(false);
    tokio::select! {
        () = accept(&listener, &interface.router, &mut connections, &stopping) => {}
        _ = closed => {}
    }
    drop(listener);
    socket.remove();
    // The broker ends what it does for them, as traces. The sender may be gone.
    stopped.await.ok();
    stop.send_replace(true);
    let ended = async {
        while connections.join_next().await.is_some() {}
        interface.changes.all_free().await;
    };
    if timeout(STOP_TIME, ended).await.is_err() {
        tracing::debug!("requests at the control socket are cut off by the end of the broker");
    }
}

/// Accepts connections until it is dropped.
async fn accept(
    listener: &UnixListener,
    router: &Router,
    connections: &mut JoinSet<()>,
    stopping: &watch::Receiver<bool>,
) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept at the control socket");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let (router, stopping) = (router.clone(), stopping.clone());
        connections.spawn(async move {
            serve_one(stream, router, stopping).await;
            drop(place);
        });
    }
}

fn listener(socket: &ListeningSocket) -> io::Result<UnixListener> {
    let listener = socket.listener()?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

async fn serve_one(stream: UnixStream, router: Router, stopping: watch::Receiver<bool>) {
    // A client that does not read its answers cannot occupy a place for long.
    let stream = Stalled::new(stream, Progress::after_head());
    let service = service_fn(move |request: Request<Incoming>| {
        rest::answer(router.clone(), request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = until_stop(stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the control socket ended");
    }
}

/// Waits for the end of the broker.
pub(crate) async fn until_stop(mut stopping: watch::Receiver<bool>) {
    // The sender is dropped at the end, too.
    stopping.wait_for(|is_stopping| *is_stopping).await.ok();
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;
    use tokio::time::{Instant, sleep_until};

    use super::*;
    use crate::login::Caller;

    /// Much longer than a connection may take; the clock is a virtual one.
    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn client_that_does_not_read_its_answers_loses_its_connection() {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let answer = "x".repeat(1 << 20);
            let router = Router::new().route("/", get(|| async move { answer }));
            let (client, server) = UnixStream::pair().expect("a pair of sockets");
            let request = b"GET / HTTP/1.1\r\nHost: thrum\r\n\r\n";
            assert_eq!(client.try_write(request).ok(), Some(request.len()));
            let (_stop, stopping) = watch::channel(false);
            let served = timeout(LONG, serve_one(server, router, stopping)).await;
            assert!(served.is_ok(), "the connection stays open");
        });
    }

    #[tokio::test]
    async fn a_client_that_sends_a_body_that_nobody_reads_sees_the_answer() {
        let refuse = || async { "it is too long" };
        let router = Router::new().route("/", axum::routing::post(refuse));
        for _ in 0..20 {
            let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
            let (_stop, stopping) = watch::channel(false);
            let served = tokio::spawn(serve_one(server, router.clone(), stopping));
            let head = "POST / HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n\
                Content-Length: 4000000\r\n\r\n";
            client.write_all(head.as_bytes()).await.expect("a reader");
            let sent = client.write_all(&vec![b'x'; 4_000_000]).await;
            sent.expect("a reader of the rest");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.ends_with("it is too long"), "{answer}");
            served.await.expect("it does not panic");
        }
    }

    /// Reads to the end, something each 20 s; returns the number of bytes.
    async fn read_slowly(client: &UnixStream) -> usize {
        let mut bytes = 0;
        loop {
            sleep(Duration::from_secs(20)).await;
            client.readable().await.expect("a connection");
            // Readable does not say that a byte is there.
            match client.try_read(&mut vec![0; 256 * 1024]) {
                Ok(0) => return bytes,
                read => bytes += read.unwrap_or(0),
            }
        }
    }

    #[test]
    fn an_answer_that_is_read_slowly_is_whole_however_long_it_takes() {
        block_on(async {
            let answer = "x".repeat(1 << 20);
            let len = answer.len();
            let router = Router::new().route("/", get(|| async move { answer }));
            let (client, server) = UnixStream::pair().expect("a pair of sockets");
            let request = b"GET / HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n\r\n";
            assert_eq!(client.try_write(request).ok(), Some(request.len()));
            let (_stop, stopping) = watch::channel(false);
            let served = tokio::spawn(serve_one(server, router, stopping));
            let began = Instant::now();
            let bytes = read_slowly(&client).await;
            assert!(bytes > len, "{bytes} bytes with the head");
            assert!(
                began.elapsed() > Duration::from_mins(1),
                "{:?}",
                began.elapsed()
            );
            served.await.expect("it does not panic");
        });
    }

    /// A socket in a directory of its own, and a request at it that the handler has begun.
    async fn begun(name: &str, finish: Arc<Notify>) -> (Stopping, UnixStream) {
        let data_dir = std::env::temp_dir();
        let data_dir = data_dir.join(format!("thrum-service-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&data_dir).expect("a temporary directory");
        let folder = Folder::open(&data_dir).expect("the directory");
        let socket = folder.listen(OsStr::new(SOCKET)).expect("a socket");
        let has_begun = Arc::new(Notify::new());
        let begins = Arc::clone(&has_begun);
        let answer = move || async move {
            begins.notify_one();
            finish.notified().await;
            "answer"
        };
        let router = Router::new().route("/", get(answer));
        let (close, closed) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let changes = Shares::new(4);
        let interface = Interface {
            router,
            changes: changes.clone(),
        };
        let served = async move { serve(&socket, &interface, closed, stopped).await };
        let served = tokio::spawn(served);
        let path = data_dir.join(SOCKET);
        let client = UnixStream::connect(&path).await.expect("a connection");
        let request = b"GET / HTTP/1.1\r\nHost: thrum\r\n\r\n";
        client.writable().await.expect("a connection");
        assert_eq!(client.try_write(request).ok(), Some(request.len()));
        has_begun.notified().await;
        let stopping = Stopping {
            data_dir,
            close,
            stop,
            served,
            changes,
        };
        (stopping, client)
    }

    struct Stopping {
        data_dir: PathBuf,
        close: oneshot::Sender<()>,
        stop: oneshot::Sender<()>,
        served: tokio::task::JoinHandle<()>,
        changes: Shares,
    }

    impl Stopping {
        async fn stop(self, before_the_end: impl FnOnce()) {
            let path = self.data_dir.join(SOCKET);
            self.close.send(()).expect("it is served");
            let is_removed = is_removed(&path).await;
            assert!(
                is_removed,
                "no request is accepted while others are answered"
            );
            // The broker takes its time, in which requests go on.
            sleep(10 * STOP_TIME).await;
            assert!(!self.served.is_finished());
            self.stop.send(()).expect("it is served");
            before_the_end();
            let ended = timeout(LONG, self.served).await;
            ended.expect("it ends").expect("it does not panic");
            std::fs::remove_dir(&self.data_dir).expect("the directory is empty");
        }
    }

    /// Whether a file is removed while other tasks run; the virtual clock stands still meanwhile.
    async fn is_removed(path: &Path) -> bool {
        for _ in 0..1000 {
            if !path.exists() {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    }

    fn read_all(client: &UnixStream) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let len = client.try_read(&mut bytes).unwrap_or(0);
        bytes.truncate(len);
        bytes
    }

    fn block_on(test: impl Future<Output = ()>) {
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(test);
    }

    #[test]
    fn a_request_under_way_is_answered_before_the_end() {
        block_on(async {
            let finish = Arc::new(Notify::new());
            let (stopping, client) = begun("answers", Arc::clone(&finish)).await;
            stopping.stop(|| finish.notify_one()).await;
            let answer = read_all(&client);
            assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{answer:?}");
            assert!(answer.ends_with(b"answer"), "{answer:?}");
        });
    }

    /// Ends the broker while a change without a request takes some time of the end; returns what is
    /// left of that time.
    async fn stop_within_change(takes: Duration) -> Duration {
        let finish = Arc::new(Notify::new());
        let (stopping, _client) = begun("changes", Arc::clone(&finish)).await;
        let share = stopping.changes.take(&Caller::local(), LONG).await;
        let ends_at = Instant::now() + 10 * STOP_TIME + takes;
        let change = tokio::spawn(sleep_until(ends_at).map(|()| drop(share)));
        stopping.stop(|| finish.notify_one()).await;
        change.abort();
        ends_at.saturating_duration_since(Instant::now())
    }

    #[test]
    fn a_change_whose_caller_has_left_ends_before_the_broker_in_the_time_of_a_request() {
        block_on(async {
            assert_eq!(stop_within_change(STOP_TIME / 2).await, Duration::ZERO);
            assert_eq!(stop_within_change(10 * STOP_TIME).await, 9 * STOP_TIME);
        });
    }

    #[test]
    fn a_request_that_takes_too_long_does_not_keep_the_broker() {
        block_on(async {
            let (stopping, client) = begun("cuts", Arc::new(Notify::new())).await;
            stopping.stop(|| {}).await;
            assert_eq!(read_all(&client), b"");
        });
    }
}
