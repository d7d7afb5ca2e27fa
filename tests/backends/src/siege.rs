//! A broker under a steady load, while the system that knows its users is taken away and given
//! back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_conformance::clock;

use crate::crowd::{CLIENTS, Cast, Tally, visit_until_over};
use crate::figures::Figures;
use crate::node::Node;
use crate::standing::Standing;

/// The time limit of a backend in these tests, as it stands in a configuration.
pub const TIMEOUT: &str = "1s";
/// A refusal may take that long, and some for a busy machine.
const REFUSAL_MAX: Duration = Duration::from_secs(6);
/// Nine of ten messages between clients that need nobody: far below what a worker would lose that
/// waited for a backend.
const LATENCY_MAX: Duration = Duration::from_millis(500);
/// Admissions that show that a system is in use.
const ADMISSIONS: u32 = 60;
/// Refusals that show that it is not.
const REFUSALS: u32 = 24;
/// Denials that show that those who may not come in are told apart.
const DENIALS: u32 = 10;
/// Longest time for each step.
const STEP_MAX: Duration = Duration::from_mins(1);
/// What the broker may take more than at the beginning.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;
const POLL_EVERY: Duration = Duration::from_millis(10);

/// The load and what it has come to.
#[derive(Debug)]
pub struct Siege<'a> {
    tally: &'a Tally,
}

/// Lets clients come and go while `play` takes the backend away and brings it back. In the end
/// nobody wrong was let in, nothing forbidden was delivered, whoever was connected did not notice,
/// and figures and memory are as they should be.
///
/// # Panics
/// One of these does not hold.
pub fn lay(node: &Node, cast: &Cast, backend: &str, play: impl FnOnce(&Siege<'_>)) {
    let tally = Tally::default();
    let standing = Standing::start(node, cast);
    let standing = std::thread::scope(|scope| {
        let over = Over(&tally);
        for number in 0..CLIENTS {
            let tally = &tally;
            scope.spawn(move || visit_until_over(node, cast, tally, number * 1_000_003));
        }
        let standing = scope.spawn(|| standing.beat_until(&tally.is_over));
        let siege = Siege { tally: &tally };
        siege.lets_in();
        let before = node.process().resident_bytes();
        play(&siege);
        let growth = node.process().resident_bytes().saturating_sub(before);
        assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes more");
        drop(over);
        standing.join().expect("clients that stay")
    });
    node.assert_sound();
    let forbidden = standing.seen().iter().find(|topic| *topic != "up/ann/x");
    assert_eq!(forbidden, None, "is delivered");
    assert!(!standing.seen().is_empty(), "nothing is delivered");
    assert!(standing.latency() < LATENCY_MAX, "{:?}", standing.latency());
    assert!(tally.slowest() < REFUSAL_MAX, "{:?}", tally.slowest());
    Figures::listen(node, cast, backend).tell_of(&tally);
}

/// Ends the clients also when a step fails.
struct Over<'a>(&'a Tally);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Siege<'_> {
    /// The system is taken away: nobody who comes afterwards is let in.
    pub fn shuts(&self, take_away: impl FnOnce()) {
        take_away();
        self.tally.is_shut.store(true, Ordering::Release);
        let before = self.tally.unavailable();
        self.wait("clients are refused", || {
            self.tally.unavailable() >= before + REFUSALS
        });
    }

    /// The system is taken away, and nobody notices: what it said before is enough.
    pub fn shuts_unnoticed(&self, take_away: impl FnOnce()) {
        take_away();
        self.lets_in();
    }

    /// The system is given back: clients are let in again.
    pub fn opens(&self, give_back: impl FnOnce()) {
        // Whoever comes from now on may meet it already.
        self.tally.is_shut.store(false, Ordering::Release);
        give_back();
        self.lets_in();
    }

    fn lets_in(&self) {
        let (admitted, denied) = (self.tally.admitted(), self.tally.denied());
        self.wait("clients are let in", || {
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
