//! A server that answers whatever comes with the same nonsense, and hangs up.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use thrum_codec::ReasonCode;

use crate::client::{Door, Told, Visitor};
use crate::process::loopback;

/// Random answers that are tried besides the given ones.
const RANDOM: u64 = 40;
const RANDOM_BYTES_MAX: u64 = 200;
/// Longest time that a client gets to speak first.
const ASKED_MAX: Duration = Duration::from_millis(200);

/// Runs a check, and nothing of ours panics meanwhile: a program that is built to end at a panic
/// would be ended by whoever plays the server.
///
/// # Panics
/// Something did.
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

/// Clients are refused because the server is unavailable, whatever it says. `settings` makes the
/// settings of a backend for a port; `answers` are beginnings of what a real server says.
///
/// # Panics
/// One is not.
pub fn is_refused(settings: impl Fn(u16) -> Value, answers: &[&[u8]]) {
    let babbler = Babbler::start_polite();
    let random = (0..RANDOM).map(random_bytes);
    for said in answers.iter().map(|said| said.to_vec()).chain(random) {
        babbler.say(&said);
        let door = Door::open(&settings(babbler.port()));
        match door.knock(&Visitor::new("ann", "secret")) {
            Told::Out(ReasonCode::ServerUnavailable) => {}
            told => panic!("{said:?} is answered with {told:?}"),
        }
    }
}

/// A server that says the same to everybody.
#[derive(Debug)]
pub struct Babbler {
    port: u16,
    /// Guards what it says.
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Babbler {
    /// Starts one that speaks first, and has nothing to say yet.
    pub fn start() -> Self {
        Self::start_with(babble)
    }

    /// Starts one that lets the client speak first.
    pub fn start_polite() -> Self {
        Self::start_with(|mut stream, said| {
            let mut asked = [0; 1024];
            // A client that has gone is told nothing.
            stream.set_read_timeout(Some(ASKED_MAX)).unwrap_or_default();
            stream.read(&mut asked).map(drop).unwrap_or_default();
            babble(stream, said);
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

    /// Says this from now on.
    pub fn say(&self, said: &[u8]) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clear();
        answer.extend(said);
    }
}

fn babble(mut stream: TcpStream, said: &[u8]) {
    stream.set_read_timeout(Some(ASKED_MAX)).unwrap_or_default();
    let mut asked = [0; 1024];
    stream.write_all(said).unwrap_or_default();
    stream.shutdown(Shutdown::Write).unwrap_or_default();
    // What is closed while something is unread takes back what was said.
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
