//! Signals: stop gracefully, read the configuration again; and periodic work between them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals as Received;

/// Exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;
/// Signals that wait while one is served; repeated ones add no information.
const WAITING_MAX: usize = 16;

/// The action to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Read the configuration again.
    Reload,
    /// No signal arrived within the requested time.
    Quiet,
}

/// Signals that arrived and wait to be served.
#[derive(Debug)]
pub(super) struct Signals {
    received: Receiver<i32>,
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
        // A write beyond the limit of the process is an error as on a full disk, and not its end.
        flag::register(SIGXFSZ, Arc::default())?;
        let mut arriving = Received::new([SIGHUP, SIGINT, SIGTERM])?;
        let (sender, received) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || {
            // Until they are no longer served.
            let mut signals = arriving.forever();
            while signals
                .next()
                .is_some_and(|signal| sender.send(signal).is_ok())
            {}
        })?;
        Ok(Self { received, stopping })
    }

    /// Serves signals until one asks to stop. `pause` is the time to wait for one, afterwards the
    /// result of `handle`; zero waits without a limit.
    pub(super) fn serve(self, mut pause: Duration, mut handle: impl FnMut(Event) -> Duration) {
        loop {
            let signal = if pause.is_zero() {
                self.received.recv().map_err(RecvTimeoutError::from)
            } else {
                self.received.recv_timeout(pause)
            };
            pause = match signal {
                Ok(SIGHUP) => handle(Event::Reload),
                Err(RecvTimeoutError::Timeout) => handle(Event::Quiet),
                Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            };
        }
        self.stopping.store(true, Ordering::SeqCst);
        tracing::info!("stopping; a second signal stops at once");
    }
}
