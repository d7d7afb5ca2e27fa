//! Counts connections or handshakes, and waits until there are none left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Counts connections or handshakes.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    taken: AtomicUsize,
    emptied: Notify,
}

/// One of them; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Permits>);

impl Permits {
    pub(crate) fn take(self: &Arc<Self>) -> Permit {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Permit(Arc::clone(self))
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until none is taken, as long as `time` at most; returns how many are.
    pub(crate) async fn wait_until_empty(&self, time: Duration) -> usize {
        let empty = async {
            // Registered before the check, so that no end in between is missed.
            let mut emptied = self.emptied.notified();
            while self.taken() != 0 {
                emptied.await;
                emptied = self.emptied.notified();
            }
        };
        match timeout(time, empty).await {
            Ok(()) => 0,
            Err(_) => self.taken(),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.0.taken.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}
