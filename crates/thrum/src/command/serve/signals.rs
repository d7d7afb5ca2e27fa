//! Signals: stop gracefully, read the configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Received;

/// Exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Signals that arrived and wait to be served.
#[derive(Debug)]
pub(super) struct Signals {
    received: Received,
    stopping: Arc<AtomicBool>,
}

impl Signals {
    /// Takes the signals from now on.
    pub(super) fn new() -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one, while the broker stops, ends the program at once.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stopping))?;
        }
        Ok(Self {
            received: Received::new([SIGHUP, SIGINT, SIGTERM])?,
            stopping,
        })
    }

    /// Serves signals until one asks to stop.
    pub(super) fn serve(mut self, mut reload: impl FnMut()) {
        for signal in self.received.forever() {
            if signal == SIGHUP {
                reload();
                continue;
            }
            self.stopping.store(true, Ordering::SeqCst);
            tracing::info!("stopping; a second signal stops at once");
            return;
        }
    }
}
