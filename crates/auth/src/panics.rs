//! Panics: those of the libraries that parse other systems' answers cost one answer, all others end
//! the program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo};

use futures_util::FutureExt as _;
use thiserror::Error;
use tracing::error;

use crate::clock;
use crate::warning_limit::WarningLimit;

thread_local! {
    /// Whether a panic of this thread is caught.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// A library panicked over an answer.
#[derive(Clone, Copy, Debug, Error)]
#[error("bad answer: the library that reads it failed, the log says where")]
pub(crate) struct Panicked;

impl From<Panicked> for String {
    fn from(panicked: Panicked) -> Self {
        panicked.to_string()
    }
}

/// Whether a panic of this thread, now, is caught by the service: it then costs one answer, which
/// is a denial. For the panic hook of a program that ends by any other panic; a caught one is
/// written to the log instead.
///
/// The threads of the service run the client libraries of other systems, which trust their answers.
pub fn is_panic_caught(panic: &PanicHookInfo<'_>) -> bool {
    static WARNINGS: WarningLimit = WarningLimit::new();
    let is_caught = IS_CAUGHT.get();
    if is_caught && let Some(silent) = WARNINGS.now(clock::uptime().as_secs()) {
        let place = panic.location().map(tracing::field::display);
        let what = panic.payload_as_str().unwrap_or_default();
        error!(
            what,
            place,
            silent,
            "a library failed over the answer of another system: the clients that wait for it are denied"
        );
    }
    is_caught
}

/// The calling thread belongs to the runtime, which catches what its tasks throw.
pub(crate) fn catch_on_this_thread() {
    IS_CAUGHT.set(true);
}

/// Runs our own code on any thread: a panic in it ends the program, because the state that it
/// leaves behind is unknown.
pub(crate) fn own<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_CAUGHT.set(self.0);
        }
    }
    let _before = Before(IS_CAUGHT.replace(false));
    work()
}

/// Awaits a future that may panic; a panic is an error, and all state of the future is dropped at
/// once.
pub(crate) async fn caught<T, E: From<Panicked>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| Err(Panicked.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_panics_of_libraries_are_caught_on_a_thread_of_the_service() {
        let thread = std::thread::spawn(|| {
            let before = IS_CAUGHT.get();
            catch_on_this_thread();
            let within = own(|| IS_CAUGHT.get());
            (before, within, IS_CAUGHT.get())
        });
        assert_eq!(thread.join().unwrap(), (false, false, true));
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_drops_the_state_in_use() {
        let used = Arc::new(());
        let held = Arc::clone(&used);
        let request = async move {
            tokio::task::yield_now().await;
            panic!("the library, which held {held:?}")
        };
        let found: Result<(), String> = caught(request).await;
        assert_eq!(found, Err(Panicked.into()));
        assert_eq!(Arc::strong_count(&used), 1);
    }
}
