//! Signals: stop gracefully, read the configuration again; tasks of other threads, and periodic
//! work between them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals as Received;

#[cfg(feature = "management")]
use super::tasks::{Ask, Task};

/// Exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;
/// Signals and tasks that wait while one is served; repeated signals add no information, and more
/// tasks are refused.
const WAITING_MAX: usize = 16;

/// The action to take.
#[derive(Debug)]
pub(super) enum Event {
    /// Read the configuration again.
    Reload,
    /// Do what another thread asks.
    #[cfg(feature = "management")]
    Task(Task),
    /// Nothing arrived within the requested time.
    Quiet,
}

/// What arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
    Signal(i32),
    #[cfg(feature = "management")]
    Task(Task),
}

/// What has arrived and waits to be served.
#[derive(Debug)]
pub(super) struct Signals {
    sender: SyncSender<Arrival>,
    received: Receiver<Arrival>,
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
        let arrived = sender.clone();
        thread.spawn(move || {
            // Until they are no longer served.
            let mut signals = arriving.forever();
            while signals
                .next()
                .is_some_and(|signal| arrived.send(Arrival::Signal(signal)).is_ok())
            {}
        })?;
        Ok(Self {
            sender,
            received,
            stopping,
        })
    }

    /// Asks the thread that serves them.
    #[cfg(feature = "management")]
    pub(super) fn ask(&self) -> Ask {
        Ask::new(self.sender.clone())
    }

    /// Serves signals until one asks to stop. `pause` is the time to wait for one, afterwards the
    /// result of `handle`; zero waits without a limit.
    pub(super) fn serve(self, mut pause: Duration, mut handle: impl FnMut(Event) -> Duration) {
        // Who asks meanwhile has a sender of its own.
        drop(self.sender);
        loop {
            let arrival = if pause.is_zero() {
                self.received.recv().map_err(RecvTimeoutError::from)
            } else {
                self.received.recv_timeout(pause)
            };
            pause = match arrival {
                Ok(Arrival::Signal(SIGHUP)) => handle(Event::Reload),
                #[cfg(feature = "management")]
                Ok(Arrival::Task(task)) => handle(Event::Task(task)),
                Err(RecvTimeoutError::Timeout) => handle(Event::Quiet),
                Ok(Arrival::Signal(_)) | Err(RecvTimeoutError::Disconnected) => break,
            };
        }
        self.stopping.store(true, Ordering::SeqCst);
        tracing::info!("stopping; a second signal stops at once");
    }
}
