//! An outage of the authentication backend while the broker is under a steady load.

use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_conformance::clock;

use crate::brief_clients::{Accounts, CLIENTS, Tally, visit_until_over};
use crate::figures::Figures;
use crate::node::Node;
use crate::permanent_clients::PermanentClients;

/// The time limit of a backend in these tests, as a configuration value.
pub const TIMEOUT: &str = "1s";
/// Longest time until a refusal, with a margin for a busy machine.
const REFUSAL_MAX: Duration = Duration::from_secs(6);
/// 90th percentile of the latency between permanent clients: far below the delay of a worker that
/// waits for a backend.
const LATENCY_MAX: Duration = Duration::from_millis(500);
/// Admissions that prove that the backend works.
const ADMISSIONS: u32 = 60;
/// Refusals that prove that the backend is down.
const REFUSALS: u32 = 24;
/// Denials that prove that wrong credentials are distinguished from an outage.
const DENIALS: u32 = 10;
/// Longest time for each step.
const STEP_MAX: Duration = Duration::from_mins(1);
/// Memory that the broker may grow by.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;
const POLL_EVERY: Duration = Duration::from_millis(10);

/// The running load and its counts.
#[derive(Debug)]
pub struct Outage<'a> {
    tally: &'a Tally,
}

/// Runs clients while `play` stops and restores the backend. Asserts that wrong credentials were
/// denied, nothing forbidden was delivered, connected clients were not disturbed, and figures and
/// memory are correct.
///
/// # Panics
/// One of these does not hold.
pub fn run_outage(node: &Node, accounts: &Accounts, backend: &str, play: impl FnOnce(&Outage<'_>)) {
    let tally = Tally::default();
    let permanent = PermanentClients::start(node, accounts);
    let permanent = std::thread::scope(|scope| {
        let over = Over(&tally);
        for number in 0..CLIENTS {
            let tally = &tally;
            scope.spawn(move || visit_until_over(node, accounts, tally, number * 1_000_003));
        }
        let permanent = scope.spawn(|| permanent.beat_until(&tally.is_over));
        let outage = Outage { tally: &tally };
        outage.await_admissions();
        let before = node.process().resident_bytes();
        play(&outage);
        let growth = node.process().resident_bytes().saturating_sub(before);
        assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes more");
        drop(over);
        permanent.join().expect("permanent clients")
    });
    node.assert_sound();
    let forbidden = permanent.seen().iter().find(|topic| *topic != "up/ann/x");
    assert_eq!(forbidden, None, "is delivered");
    assert!(!permanent.seen().is_empty(), "nothing is delivered");
    assert!(
        permanent.latency() < LATENCY_MAX,
        "{:?}",
        permanent.latency()
    );
    assert!(tally.slowest() < REFUSAL_MAX, "{:?}", tally.slowest());
    Figures::listen(node, accounts, backend).await_cover_of(&tally);
}

/// Ends the clients, also when a step fails.
struct Over<'a>(&'a Tally);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Outage<'_> {
    /// Stops the backend: later logins must fail.
    pub fn begin(&self, take_away: impl FnOnce()) {
        take_away();
        self.tally.is_down.store(true, Ordering::Release);
        let before = self.tally.unavailable();
        self.wait("clients are refused", || {
            self.tally.unavailable() >= before + REFUSALS
        });
    }

    /// Stops the backend; cached answers keep logins working.
    pub fn begin_unnoticed(&self, take_away: impl FnOnce()) {
        take_away();
        self.await_admissions();
    }

    /// Restores the backend: clients are admitted again.
    pub fn end(&self, give_back: impl FnOnce()) {
        // A client that connects from now on may reach the backend.
        self.tally.is_down.store(false, Ordering::Release);
        give_back();
        self.await_admissions();
    }

    fn await_admissions(&self) {
        let (admitted, denied) = (self.tally.admitted(), self.tally.denied());
        self.wait("clients are admitted", || {
            self.tally.admitted() >= admitted + ADMISSIONS
                && self.tally.denied() >= denied + DENIALS
        });
    }

    fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = clock::now() + STEP_MAX;
        while !holds() {
            assert!(
                clock::now() < deadline,
                "not in time: {what}: {:?}",
                self.tally
            );
            clock::sleep(POLL_EVERY);
        }
    }
}
