//! The socket of the interface, and the thread that serves it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thrum_broker::Queries;
use thrum_files::{Folder, ListeningSocket};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::api;

/// Name of the socket in the data directory.
pub const SOCKET: &str = "control.sock";

/// Connections at a time; more wait in the backlog of the socket. One person or program needs one.
const CONNECTIONS_MAX: usize = 32;
/// Threads that wait for the answers of workers, each for one request; more requests wait for one
/// of them.
const WAITING_THREADS_MAX: usize = 8;
/// Bytes of the head of a request: a client identifier and a filter, both written with %. One that
/// is whole with the read that goes beyond is taken, so up to twice as much.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Fields of the head.
const FIELDS_MAX: usize = 64;
/// A connection without a whole head of a request is closed after this: it is idle, or slow.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Longest use of one connection: clients that do not read their answers cannot keep all of them.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// How long a request that is under way then may still take.
const CLOSE_TIME: Duration = Duration::from_secs(15);
/// How long accepting pauses when the system gives no more files.
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
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl ControlSocket {
    /// Makes the socket in the data directory of a broker, and begins to serve it.
    ///
    /// # Errors
    /// Somebody else listens there, or the system refuses.
    pub fn start(data_dir: &Path, queries: Queries) -> Result<Self, StartError> {
        let path = data_dir.join(SOCKET);
        let failed = |source| StartError {
            path: path.clone(),
            source,
        };
        let folder = Folder::open(data_dir).map_err(failed)?;
        let socket = folder.listen(OsStr::new(SOCKET)).map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(WAITING_THREADS_MAX)
            .enable_all()
            .build()
            .map_err(failed)?;
        let router = api::router(queries);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(&socket, router) => {}
                        _ = stopped => {}
                    }
                });
                // Who waits for an answer of the broker is not waited for.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self { path, stop, thread })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes it, with all connections, and removes the socket.
    pub fn stop(self) {
        let Self { stop, thread, .. } = self;
        // It may have ended.
        stop.send(()).ok();
        if thread.join().is_err() {
            tracing::error!("the thread of the control socket ended by a panic");
        }
    }
}

/// Accepts and serves until it is dropped.
async fn serve(socket: &ListeningSocket, router: Router) {
    let listener = match listener(socket) {
        Ok(listener) => listener,
        Err(error) => {
            let path = socket.path();
            tracing::error!(path = %path.display(), %error, "cannot accept at the control socket");
            return;
        }
    };
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        // Nobody closes it.
        let Ok(place) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept at the control socket");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let router = router.clone();
        connections.spawn(async move {
            serve_one(stream, router).await;
            drop(place);
        });
    }
}

fn listener(socket: &ListeningSocket) -> io::Result<UnixListener> {
    let listener = socket.listener()?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

async fn serve_one(stream: UnixStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let served = match timeout(CONNECTION_TIME, connection.as_mut()).await {
        Ok(served) => served,
        Err(_elapsed) => {
            connection.as_mut().graceful_shutdown();
            match timeout(CLOSE_TIME, connection).await {
                Ok(served) => served,
                Err(_elapsed) => {
                    tracing::debug!("a client of the control socket does not read its answer");
                    return;
                }
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the control socket ended");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

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
            let served = timeout(LONG, serve_one(server, router)).await;
            assert!(served.is_ok(), "the connection stays open");
        });
    }
}
