//! Clients that come, do what they may, try what they may not, and leave: some hundred of them a
//! second.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, DISCONNECT, Publish, Version, subscribe, unique};
use thrum_conformance::received::Packet;
use thrum_conformance::wire::{Event, Wire};

use crate::node::Node;

/// Clients at a time.
pub const CLIENTS: u64 = 6;
/// Time between the visits of one of them, at least: 300 visits a second in all.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for an answer that has to come: the limits that are tested are far below.
const PATIENCE: Duration = Duration::from_secs(30);
/// One visit of so many is by somebody who may not come in.
const WRONG_EVERY: u64 = 4;

const BAD_USER_NAME_OR_PASSWORD: u8 = 0x86;
const NOT_AUTHORIZED: u8 = 0x87;
const SERVER_UNAVAILABLE: u8 = 0x88;
const SERVER_BUSY: u8 = 0x89;

/// What a client shows.
pub type Credentials = (String, String);

/// Who comes, and what they may not do.
#[derive(Clone, Debug)]
pub struct Cast {
    /// May publish to `up/ann/#` and subscribe to `down/CLIENT/+`, whoever is asked.
    pub ann: Credentials,
    /// May do everything.
    pub root: Credentials,
    /// May not come in.
    pub wrong: Vec<Credentials>,
    /// Topics that `ann` may not publish to.
    pub forbidden: Vec<&'static str>,
    /// What a system that is down has to do with it: clients that show nothing new may still be let
    /// in.
    pub outlives_backend: bool,
}

impl Cast {
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

/// What became of them.
#[derive(Debug, Default)]
pub struct Tally {
    admitted: AtomicU32,
    /// Refused because nobody could be asked.
    unavailable: AtomicU32,
    /// Those who may not come in, and were told so.
    denied: AtomicU32,
    /// The longest that one who was refused had to wait, in ms.
    slowest_ms: AtomicU64,
    /// The system that knows them is down: nobody who comes from now on is let in.
    pub is_shut: AtomicBool,
    /// They leave for good.
    pub is_over: AtomicBool,
}

impl Tally {
    /// Visits that were admitted.
    pub fn admitted(&self) -> u32 {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Visits that were refused because nobody could be asked.
    pub fn unavailable(&self) -> u32 {
        self.unavailable.load(Ordering::Relaxed)
    }

    /// Visits that were refused because of what they showed.
    pub fn denied(&self) -> u32 {
        self.denied.load(Ordering::Relaxed)
    }

    /// The longest that one who was refused had to wait.
    pub fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest_ms.load(Ordering::Relaxed))
    }
}

/// One of the clients comes again and again until it is over.
///
/// # Panics
/// Somebody is let in who should not be, kept out who should not be, or allowed what is not.
pub fn visit_until_over(node: &Node, cast: &Cast, tally: &Tally, number: u64) {
    let mut visits = number;
    while !tally.is_over.load(Ordering::Relaxed) {
        let next = clock::now() + PAUSE;
        visit(node, cast, tally, visits);
        visits += 1;
        clock::sleep(next.saturating_duration_since(clock::now()));
    }
}

fn visit(node: &Node, cast: &Cast, tally: &Tally, number: u64) {
    let round = usize::try_from(number / WRONG_EVERY).expect("a small number");
    let version = Version::STANDARD[round % 2];
    let is_wrong = number.is_multiple_of(WRONG_EVERY);
    let (username, password) = if is_wrong {
        &cast.wrong[round % cast.wrong.len()]
    } else {
        &cast.ann
    };
    let was_shut = tally.is_shut.load(Ordering::Acquire);
    let begun = clock::now();
    let connect = Connect::new(version).credentials(username, password);
    let mut wire = Wire::open(node.address(), version);
    wire.send(&connect.bytes());
    let code = packet(&mut wire, "CONNACK").connack(version).code;
    let took = u64::try_from(begun.elapsed().as_millis()).expect("a short time");
    let is_shut = was_shut && tally.is_shut.load(Ordering::Acquire);
    match meaning(version, code) {
        0 => {
            assert!(!is_wrong, "{username:?} is let in with {password:?}");
            let may_be = !is_shut || cast.outlives_backend;
            assert!(may_be, "{username:?} is let in while nobody can be asked");
            act(&mut wire, cast, &connect.client_id);
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

/// Does what is allowed, and tries what is not.
fn act(wire: &mut Wire, cast: &Cast, client_id: &str) {
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
    let forbidden = cast.forbidden.iter().map(|topic| (*topic, NOT_AUTHORIZED));
    for (topic, expected) in allowed.into_iter().chain(forbidden) {
        wire.send(&Publish::new(version, topic, 1, client_id.as_bytes()).bytes());
        let told = packet(wire, "PUBACK").ack(version).codes;
        let expected = if version == Version::V5 { expected } else { 0 };
        assert_eq!(told, [expected], "{topic} {version:?}");
    }
    wire.send(&DISCONNECT);
}

/// The next packet, which has to come.
///
/// # Panics
/// It does not.
pub fn packet(wire: &mut Wire, what: &str) -> Packet {
    match wire.next(PATIENCE) {
        Event::Packet(packet) => packet,
        other => panic!("{what} expected, got {other:?}"),
    }
}

/// A code of CONNACK as MQTT 5.0 has it.
fn meaning(version: Version, code: u8) -> u8 {
    match (version, code) {
        (Version::V5, code) => code,
        (_, 3) => SERVER_UNAVAILABLE,
        (_, 4) => BAD_USER_NAME_OR_PASSWORD,
        (_, code) => code,
    }
}

/// A name for a client that stays.
pub fn name(prefix: &str) -> String {
    unique(prefix)
}
