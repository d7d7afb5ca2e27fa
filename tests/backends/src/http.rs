//! An HTTP service of the test: its answer is a function of the request.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use thrum_conformance::clock;

use crate::process::{free_port, loopback};
use crate::restart::{Freezable, Restartable};
use crate::server::Tls;

/// A received request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: String,
    /// Path and parameters.
    pub path: String,
    /// Headers by name in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Status and body.
pub type Response = (u16, String);

type Answerer = Arc<dyn Fn(&Request) -> Response + Send + Sync>;

/// Interval at which a suspended service checks for its resumption.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The service.
pub struct HttpService {
    port: u16,
    answerer: Answerer,
    tls: Option<Arc<ServerConfig>>,
    is_frozen: Arc<AtomicBool>,
    running: Option<Running>,
}

struct Running {
    is_over: Arc<AtomicBool>,
    /// Guards the connections, to end them all.
    streams: Arc<Mutex<Vec<TcpStream>>>,
    thread: JoinHandle<()>,
}

impl fmt::Debug for HttpService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HttpService on port {}", self.port)
    }
}

impl HttpService {
    /// Starts it.
    pub fn start(answerer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::start_with(Arc::new(answerer), None)
    }

    /// Starts it with TLS.
    ///
    /// # Panics
    /// The certificate is invalid.
    pub fn start_tls(
        tls: &Tls,
        answerer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let certificate = CertificateDer::from_pem_slice(tls.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes());
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
            .expect("a certificate and its key");
        Self::start_with(Arc::new(answerer), Some(Arc::new(config)))
    }

    fn start_with(answerer: Answerer, tls: Option<Arc<ServerConfig>>) -> Self {
        let is_frozen = Arc::new(AtomicBool::new(false));
        let frozen = Arc::clone(&is_frozen);
        let thawed: Answerer = Arc::new(move |request| {
            while frozen.load(Ordering::Relaxed) {
                clock::sleep(LOOK_EVERY);
            }
            answerer(request)
        });
        let mut service = Self {
            port: free_port(),
            answerer: thawed,
            tls,
            is_frozen,
            running: None,
        };
        service.restart();
        service
    }

    /// A URL of it.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://localhost:{}{path}", self.port)
    }
}

impl Restartable for HttpService {
    fn kill(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        running.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(loopback(self.port)));
        running.thread.join().expect("a thread that ends");
        let streams = running
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for stream in &*streams {
            // It may have ended already.
            stream.shutdown(Shutdown::Both).unwrap_or_default();
        }
    }

    fn restart(&mut self) {
        let listener = TcpListener::bind(loopback(self.port)).expect("its port");
        let is_over = Arc::new(AtomicBool::new(false));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (over, kept) = (Arc::clone(&is_over), Arc::clone(&streams));
        let (answerer, tls) = (Arc::clone(&self.answerer), self.tls.clone());
        let thread = std::thread::spawn(move || {
            let streams = listener.incoming().filter_map(Result::ok);
            for stream in streams.take_while(|_| !over.load(Ordering::Relaxed)) {
                let copy = stream.try_clone().expect("a second handle");
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(copy);
                let (answerer, tls) = (Arc::clone(&answerer), tls.clone());
                std::thread::spawn(move || serve(stream, tls, &answerer));
            }
        });
        self.running = Some(Running {
            is_over,
            streams,
            thread,
        });
    }
}

impl Freezable for HttpService {
    fn freeze(&mut self) {
        self.is_frozen.store(true, Ordering::Relaxed);
    }

    fn thaw(&mut self) {
        self.is_frozen.store(false, Ordering::Relaxed);
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        self.thaw();
        self.kill();
    }
}

fn serve(stream: TcpStream, tls: Option<Arc<ServerConfig>>, answerer: &Answerer) {
    stream.set_nodelay(true).unwrap_or_default();
    match tls.map(ServerConnection::new) {
        Some(Ok(connection)) => answer_all(StreamOwned::new(connection, stream), answerer),
        Some(Err(_)) => {}
        None => answer_all(stream, answerer),
    }
}

/// Answers one request after the other until the connection ends.
fn answer_all(stream: impl Read + Write, answerer: &Answerer) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let (status, body) = answerer(&request);
        let answer = format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = stream.get_mut();
        if stream
            .write_all(answer.as_bytes())
            .and_then(|()| stream.flush())
            .is_err()
        {
            return;
        }
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let mut request = Request {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        request
            .headers
            .insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = request.headers.get("content-length");
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}
