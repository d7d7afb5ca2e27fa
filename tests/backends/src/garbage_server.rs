//! A server that sends the same garbage to every client and closes the connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use thrum_codec::ReasonCode;

use crate::client::{Authenticator, LoginAttempt, LoginResult};
use crate::process::loopback;

/// Random answers tried in addition to the given ones.
const RANDOM: u64 = 40;
const RANDOM_BYTES_MAX: u64 = 200;
/// Longest wait for the client's first bytes.
const ASKED_MAX: Duration = Duration::from_millis(200);

/// Runs a check during which no code of ours may panic: in a program built to abort on panic, any
/// server could end the broker.
///
/// # Panics
/// A panic occurred.
pub fn without_panic(check: impl FnOnce()) {
    static PANICS: AtomicU32 = AtomicU32::new(0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        hook(panic);
    }));
    check();
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "there was a panic");
}

/// Asserts that clients are refused as `ServerUnavailable` whatever the server sends. `settings`
/// makes the settings of a backend for a port; `answers` are beginnings of real answers.
///
/// # Panics
/// A client gets another result.
pub fn is_refused(settings: impl Fn(u16) -> Value, answers: &[&[u8]]) {
    let server = GarbageServer::start_after_request();
    let random = (0..RANDOM).map(random_bytes);
    for said in answers.iter().map(|said| said.to_vec()).chain(random) {
        server.answer_with(&said);
        let authenticator = Authenticator::open(&settings(server.port()));
        match authenticator.log_in(&LoginAttempt::new("ann", "secret")) {
            LoginResult::Denied(ReasonCode::ServerUnavailable) => {}
            told => panic!("{said:?} is answered with {told:?}"),
        }
    }
}

/// A server that sends the same bytes on every connection.
#[derive(Debug)]
pub struct GarbageServer {
    port: u16,
    /// Guards the bytes to send.
    answer: Arc<Mutex<Vec<u8>>>,
}

impl GarbageServer {
    /// Starts a server that sends first; its answer is empty until [`Self::answer_with`].
    pub fn start() -> Self {
        Self::start_with(send_garbage)
    }

    /// Starts a server that answers after the client's first bytes.
    pub fn start_after_request() -> Self {
        Self::start_with(|mut stream, said| {
            let mut asked = [0; 1024];
            // The client may have closed the connection.
            stream.set_read_timeout(Some(ASKED_MAX)).unwrap_or_default();
            stream.read(&mut asked).map(drop).unwrap_or_default();
            send_garbage(stream, said);
        })
    }

    fn start_with(answer_one: fn(TcpStream, &[u8])) -> Self {
        let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
        let listener = TcpListener::bind(loopback(0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let said = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let said = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
                std::thread::spawn(move || answer_one(stream, &said));
            }
        });
        Self { port, answer }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the bytes that later connections get.
    pub fn answer_with(&self, said: &[u8]) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clear();
        answer.extend(said);
    }
}

fn send_garbage(mut stream: TcpStream, said: &[u8]) {
    stream.set_read_timeout(Some(ASKED_MAX)).unwrap_or_default();
    let mut asked = [0; 1024];
    stream.write_all(said).unwrap_or_default();
    stream.shutdown(Shutdown::Write).unwrap_or_default();
    // Closing a socket with unread input would discard the output.
    while stream.read(&mut asked).is_ok_and(|count| count > 0) {}
}

/// The same bytes for the same seed.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..next() % RANDOM_BYTES_MAX)
        .map(|_| next().to_le_bytes()[3])
        .collect()
}
