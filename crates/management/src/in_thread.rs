//! Work that waits, beside the threads of sockets.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Works in another thread when there is a permit for it; none if the thread ended early.
pub(crate) async fn in_thread<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // The semaphore is never closed.
    let permit = Arc::clone(permits).acquire_owned().await;
    let task = spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    task.await.ok()
}
