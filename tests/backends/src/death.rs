//! The death of a server while clients knock, and its return.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use thrum_codec::ReasonCode;
use thrum_conformance::clock;

use crate::client::{Door, Told, Visitor};

/// Clients that knock at the same time.
const KNOCKERS: u32 = 8;
/// Admissions that show that the server is in use.
const WARM_UP: u32 = 50;
/// Refusals that show that its death was noticed.
const REFUSALS: u32 = 50;
/// Longest time from the return of the server to the first client that is let in again.
const RETURN_MAX: Duration = Duration::from_secs(20);
/// Longest time for each other step.
const STEP_MAX: Duration = Duration::from_mins(1);
const POLL_EVERY: Duration = Duration::from_millis(10);

/// A server that can be killed and started again on the same port.
pub trait Mortal {
    /// Ends it at once.
    fn kill(&mut self);
    /// Starts it again, and waits until it serves.
    fn revive(&mut self);
}

/// A server that can be stopped in its tracks: it takes connections, and answers nothing.
pub trait Freezable {
    /// Stops it.
    fn freeze(&mut self);
    /// Lets it go on.
    fn thaw(&mut self);
}

#[derive(Default)]
struct Tally {
    admitted: AtomicU32,
    unavailable: AtomicU32,
    /// Answers that nobody expects: right passwords that are called wrong, for one.
    strange: AtomicU32,
    is_over: AtomicBool,
}

/// Clients with the right password knock without a pause. They are let in; after `kill` each is
/// told that the server is unavailable, in time; after `revive` they are let in again, by a service
/// that was not restarted.
///
/// # Panics
/// One of these does not hold.
pub fn is_survived(door: &Door, backend: &str, visitor: &Visitor, server: &mut impl Mortal) {
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for _ in 0..KNOCKERS {
            scope.spawn(|| knock_until_over(door, visitor, &tally));
        }
        let _over = Over(&tally);
        wait("clients are let in", STEP_MAX, || {
            tally.admitted.load(Ordering::Relaxed) >= WARM_UP
        });
        server.kill();
        wait("clients are refused", STEP_MAX, || {
            tally.unavailable.load(Ordering::Relaxed) >= REFUSALS
        });
        let errors = door.counts(backend).errors;
        assert!(errors >= u64::from(REFUSALS), "{errors} errors are counted");
        let before = tally.admitted.load(Ordering::Relaxed);
        server.revive();
        wait("clients are let in again", RETURN_MAX, || {
            tally.admitted.load(Ordering::Relaxed) >= before + WARM_UP
        });
    });
    assert_eq!(tally.strange.load(Ordering::Relaxed), 0, "strange answers");
}

/// Ends the clients also when a step fails.
struct Over<'a>(&'a Tally);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

fn knock_until_over(door: &Door, visitor: &Visitor, tally: &Tally) {
    while !tally.is_over.load(Ordering::Relaxed) {
        match door.knock(visitor) {
            Told::In(_) => tally.admitted.fetch_add(1, Ordering::Relaxed),
            Told::Out(ReasonCode::ServerUnavailable | ReasonCode::ServerBusy) => {
                // Refusals come at once: a pause keeps eight of these from being all that the
                // machine does.
                clock::sleep(Duration::from_millis(1));
                tally.unavailable.fetch_add(1, Ordering::Relaxed)
            }
            Told::Out(_) => tally.strange.fetch_add(1, Ordering::Relaxed),
        };
    }
}

fn wait(what: &str, longest: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + longest;
    while !holds() {
        assert!(clock::now() < deadline, "not in time: {what}");
        clock::sleep(POLL_EVERY);
    }
}

/// A client is let in, sooner or later.
///
/// # Panics
/// It is not.
pub fn comes_back(door: &Door, visitor: &Visitor) {
    wait("a client is let in", RETURN_MAX, || {
        matches!(door.knock(visitor), Told::In(_))
    });
}
