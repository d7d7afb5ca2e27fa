//! Clients that connect, do allowed and forbidden things, and leave: some hundred a second.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, DISCONNECT, Publish, Version, subscribe, unique};
use thrum_conformance::received::Packet;
use thrum_conformance::wire::{Event, Wire};

use crate::node::Node;

/// Clients at a time.
pub const CLIENTS: u64 = 6;
/// Shortest time between two visits of a client: 300 visits a second in all.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for an answer: the tested limits are far below.
const PATIENCE: Duration = Duration::from_secs(30);
/// One visit in this many uses wrong credentials.
const WRONG_EVERY: u64 = 4;

const BAD_USER_NAME_OR_PASSWORD: u8 = 0x86;
const NOT_AUTHORIZED: u8 = 0x87;
const SERVER_UNAVAILABLE: u8 = 0x88;
const SERVER_BUSY: u8 = 0x89;

/// User name and password.
pub type Credentials = (String, String);

/// The accounts that clients use, and what is forbidden to them.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// May publish to `up/ann/#` and subscribe to `down/CLIENT/+`, with every backend.
    pub ann: Credentials,
    /// May do everything.
    pub root: Credentials,
    /// Credentials that must be denied.
    pub wrong: Vec<Credentials>,
    /// Topics that `ann` may not publish to.
    pub forbidden: Vec<&'static str>,
    /// Whether clients with cached credentials may be admitted while the backend is down.
    pub outlives_backend: bool,
}

impl Accounts {
    /// Passwords are `secret`.
    pub fn with_passwords() -> Self {
        let pair = |name: &str, password: &str| (name.to_owned(), password.to_owned());
        Self {
            ann: pair("ann", "secret"),
            root: pair("root", "secret"),
            wrong: [("ann", "wrong"), ("nobody", "secret"), ("root", "")]
                .map(|(name, password)| pair(name, password))
                .into(),
            forbidden: vec!["up/bob/x", "other"],
            outlives_backend: false,
        }
    }
}

/// Counts of the results.
#[derive(Debug, Default)]
pub struct Tally {
    admitted: AtomicU32,
    /// Visits refused because the backend was unavailable.
    unavailable: AtomicU32,
    /// Visits with wrong credentials that were denied.
    denied: AtomicU32,
    /// Longest time until a refusal, in ms.
    slowest_ms: AtomicU64,
    /// The backend is down: later logins must fail.
    pub is_down: AtomicBool,
    /// The clients must end.
    pub is_over: AtomicBool,
}

impl Tally {
    /// Visits that were admitted.
    pub fn admitted(&self) -> u32 {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Visits that were refused because the backend was unavailable.
    pub fn unavailable(&self) -> u32 {
        self.unavailable.load(Ordering::Relaxed)
    }

    /// Visits that were denied because of their credentials.
    pub fn denied(&self) -> u32 {
        self.denied.load(Ordering::Relaxed)
    }

    /// Longest time until a refusal.
    pub fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest_ms.load(Ordering::Relaxed))
    }
}

/// One client connects again and again until `is_over` is set.
///
/// # Panics
/// The broker admits wrong credentials, refuses right ones, or allows something forbidden.
pub fn visit_until_over(node: &Node, accounts: &Accounts, tally: &Tally, number: u64) {
    let mut visits = number;
    while !tally.is_over.load(Ordering::Relaxed) {
        let next = clock::now() + PAUSE;
        visit(node, accounts, tally, visits);
        visits += 1;
        clock::sleep(next.saturating_duration_since(clock::now()));
    }
}

fn visit(node: &Node, accounts: &Accounts, tally: &Tally, number: u64) {
    let round = usize::try_from(number / WRONG_EVERY).expect("a small number");
    let version = Version::STANDARD[round % 2];
    let is_wrong = number.is_multiple_of(WRONG_EVERY);
    let (username, password) = if is_wrong {
        &accounts.wrong[round % accounts.wrong.len()]
    } else {
        &accounts.ann
    };
    let was_down = tally.is_down.load(Ordering::Acquire);
    let begun = clock::now();
    let connect = Connect::new(version).credentials(username, password);
    let mut wire = Wire::open(node.address(), version);
    wire.send(&connect.bytes());
    let code = packet(&mut wire, "CONNACK").connack(version).code;
    let took = u64::try_from(begun.elapsed().as_millis()).expect("a short time");
    let is_down = was_down && tally.is_down.load(Ordering::Acquire);
    match meaning(version, code) {
        0 => {
            assert!(!is_wrong, "{username:?} is admitted with {password:?}");
            let may_be = !is_down || accounts.outlives_backend;
            assert!(may_be, "{username:?} is admitted while the backend is down");
            act(&mut wire, accounts, &connect.client_id);
            tally.admitted.fetch_add(1, Ordering::Relaxed);
        }
        SERVER_UNAVAILABLE | SERVER_BUSY => {
            tally.slowest_ms.fetch_max(took, Ordering::Relaxed);
            tally.unavailable.fetch_add(1, Ordering::Relaxed);
        }
        BAD_USER_NAME_OR_PASSWORD if is_wrong => {
            tally.denied.fetch_add(1, Ordering::Relaxed);
        }
        code => panic!("{username:?} with {password:?} is told {code:#04x} ({version:?})"),
    }
}

/// Does allowed and forbidden things.
fn act(wire: &mut Wire, accounts: &Accounts, client_id: &str) {
    let version = wire.version();
    let own = format!("down/{client_id}/+");
    let not_allowed = if version == Version::V5 {
        NOT_AUTHORIZED
    } else {
        0x80
    };
    for (filter, expected) in [(own.as_str(), 1), ("up/bob/#", not_allowed)] {
        wire.send(&subscribe(version, 1, &[(filter, 1)]));
        let told = packet(wire, "SUBACK").ack(version).codes;
        assert_eq!(told, [expected], "{filter} {version:?}");
    }
    let allowed = [("up/ann/x", 0)];
    let forbidden = accounts
        .forbidden
        .iter()
        .map(|topic| (*topic, NOT_AUTHORIZED));
    for (topic, expected) in allowed.into_iter().chain(forbidden) {
        wire.send(&Publish::new(version, topic, 1, client_id.as_bytes()).bytes());
        let told = packet(wire, "PUBACK").ack(version).codes;
        let expected = if version == Version::V5 { expected } else { 0 };
        assert_eq!(told, [expected], "{topic} {version:?}");
    }
    wire.send(&DISCONNECT);
}

/// The next packet.
///
/// # Panics
/// None arrives in time.
pub fn packet(wire: &mut Wire, what: &str) -> Packet {
    match wire.next(PATIENCE) {
        Event::Packet(packet) => packet,
        other => panic!("{what} expected, got {other:?}"),
    }
}

/// A CONNACK code as its MQTT 5.0 value.
fn meaning(version: Version, code: u8) -> u8 {
    match (version, code) {
        (Version::V5, code) => code,
        (_, 3) => SERVER_UNAVAILABLE,
        (_, 4) => BAD_USER_NAME_OR_PASSWORD,
        (_, code) => code,
    }
}

/// A unique client identifier.
pub fn name(prefix: &str) -> String {
    unique(prefix)
}
