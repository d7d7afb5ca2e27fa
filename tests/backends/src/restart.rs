//! A server that is killed and restarted while clients log in.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use thrum_codec::ReasonCode;
use thrum_conformance::clock;

use crate::client::{Authenticator, LoginAttempt, LoginResult};

/// Clients that log in at the same time.
const CLIENTS: u32 = 8;
/// Admissions that prove that the server is in use.
const WARM_UP: u32 = 50;
/// Refusals that prove that the kill was noticed.
const REFUSALS: u32 = 50;
/// Longest time from the restart of the server to the first admitted client.
const RETURN_MAX: Duration = Duration::from_secs(20);
/// Longest time for each other step.
const STEP_MAX: Duration = Duration::from_mins(1);
const POLL_EVERY: Duration = Duration::from_millis(10);

/// A server that can be killed and started again on the same port.
pub trait Restartable {
    /// Kills it.
    fn kill(&mut self);
    /// Starts it again and waits until it serves.
    fn restart(&mut self);
}

/// A server that can be suspended: it accepts connections and answers nothing.
pub trait Freezable {
    /// Suspends it.
    fn freeze(&mut self);
    /// Resumes it.
    fn thaw(&mut self);
}

#[derive(Default)]
struct Tally {
    admitted: AtomicU32,
    unavailable: AtomicU32,
    /// Unexpected answers, such as a correct password treated as wrong.
    strange: AtomicU32,
    is_over: AtomicBool,
}

/// Clients with the right password log in without a pause. The service admits them; after `kill` it
/// refuses each in time as unavailable; after `restart` it admits them again, without a restart of
/// its own.
///
/// # Panics
/// One of these does not hold.
pub fn logins_recover(
    authenticator: &Authenticator,
    backend: &str,
    attempt: &LoginAttempt,
    server: &mut impl Restartable,
) {
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| log_in_until_over(authenticator, attempt, &tally));
        }
        let _over = Over(&tally);
        wait("clients are admitted", STEP_MAX, || {
            tally.admitted.load(Ordering::Relaxed) >= WARM_UP
        });
        server.kill();
        wait("clients are refused", STEP_MAX, || {
            tally.unavailable.load(Ordering::Relaxed) >= REFUSALS
        });
        let errors = authenticator.counts(backend).errors;
        assert!(errors >= u64::from(REFUSALS), "{errors} errors are counted");
        let before = tally.admitted.load(Ordering::Relaxed);
        server.restart();
        wait("clients are admitted again", RETURN_MAX, || {
            tally.admitted.load(Ordering::Relaxed) >= before + WARM_UP
        });
    });
    assert_eq!(tally.strange.load(Ordering::Relaxed), 0, "strange answers");
}

/// Ends the clients, also when a step fails.
struct Over<'a>(&'a Tally);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

fn log_in_until_over(authenticator: &Authenticator, attempt: &LoginAttempt, tally: &Tally) {
    while !tally.is_over.load(Ordering::Relaxed) {
        match authenticator.log_in(attempt) {
            LoginResult::Admitted(_) => tally.admitted.fetch_add(1, Ordering::Relaxed),
            LoginResult::Denied(ReasonCode::ServerUnavailable | ReasonCode::ServerBusy) => {
                // Refusals are immediate: the pause keeps eight threads from using the whole
                // machine.
                clock::sleep(Duration::from_millis(1));
                tally.unavailable.fetch_add(1, Ordering::Relaxed)
            }
            LoginResult::Denied(_) => tally.strange.fetch_add(1, Ordering::Relaxed),
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

/// Waits until a client is admitted.
///
/// # Panics
/// It is not admitted in time.
pub fn admits_again(authenticator: &Authenticator, attempt: &LoginAttempt) {
    wait("a client is admitted", RETURN_MAX, || {
        matches!(authenticator.log_in(attempt), LoginResult::Admitted(_))
    });
}
