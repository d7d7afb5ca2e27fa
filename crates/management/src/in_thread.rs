//! Work that waits, beside the threads of sockets.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Why there is no result of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The broker stops.
    Stopped,
    /// It ended by a panic: a defect of the broker, which its log shows.
    Panicked,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stopped => "the broker is stopping",
            Self::Panicked => "this request met a defect of the broker: it ended by a panic",
        })
    }
}

impl From<JoinError> for Unfinished {
    fn from(error: JoinError) -> Self {
        if error.is_panic() {
            Self::Panicked
        } else {
            Self::Stopped
        }
    }
}

/// Works in another thread when there is a permit for it.
///
/// # Errors
/// The thread ended early.
pub(crate) async fn in_thread<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    // The semaphore is never closed.
    let permit = Arc::clone(permits).acquire_owned().await;
    let task = spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    Ok(task.await?)
}
