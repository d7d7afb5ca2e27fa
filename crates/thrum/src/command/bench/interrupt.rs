//! The end of runs by ^C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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

/// Set by ^C, by a request to end, and when the terminal is closed; the second one ends the program
/// at once.
pub(super) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let ends: &[i32] = if hangup_is_ignored() {
        &[SIGINT, SIGTERM]
    } else {
        &[SIGHUP, SIGINT, SIGTERM]
    };
    let mut signals = Signals::new(ends)?;
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

/// Whether this program was started with `nohup`: it must outlive its terminal then.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, SIGHUP)
}

/// Whether a signal is ignored, in the text of `/proc/self/status`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_started_to_outlive_its_terminal_does() {
        let status = "Name:\tthrum\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP));
    }
}
