//! The end of runs by ^C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::iterator::Signals;

use super::complaint::INTERRUPTED;
use crate::tui;

/// The second ^C, when the terminal is restored: ends everything that runs.
#[expect(clippy::exit, reason = "the user ends the program at once")]
pub(super) fn end_now() {
    // Brokers have process groups of their own, which no ^C of a terminal reaches.
    thrum_compare::versus::kill_all();
    std::process::exit(i32::from(INTERRUPTED));
}

/// Set by ^C; the second one ends the program at once.
pub(super) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])?;
    let interrupted = Arc::clone(&flag);
    let watch = move || {
        for _ in signals.forever() {
            if interrupted.swap(true, Ordering::Relaxed) {
                tui::restore_terminal();
                end_now();
            }
        }
    };
    // It waits for signals until the program ends.
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)?;
    Ok(flag)
}
