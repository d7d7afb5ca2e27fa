//! No terminal view of a benchmark: this program was built without it, and prints lines.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thrum_bench::Status;
use thrum_bench::observe::Observer;

/// The full-screen view of one run: not supported by this build.
#[derive(Debug)]
pub(crate) enum BenchView {}

impl BenchView {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn start(
        _title: &str,
        _series: Option<&str>,
        _interrupt: Arc<AtomicBool>,
        _end_now: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where the series is now.
    pub(crate) fn set_series(&self, _text: &str) {
        match *self {}
    }
}

impl Observer for BenchView {
    fn look(&mut self, _status: &Status) {
        match *self {}
    }
}

/// Whether a run is shown full screen.
pub(crate) const fn is_wanted(_no_tui: bool) -> bool {
    false
}

/// Nothing has been taken.
pub(crate) const fn restore_terminal() {}
