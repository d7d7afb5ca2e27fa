//! Takes the terminal for full-screen drawing and always restores it.

use std::io::{self, BufWriter, Stderr};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// Room for one frame, so that it reaches the terminal in one piece.
const FRAME_BYTES: usize = 64 * 1024;

/// The terminal is ours; there is one per process.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

pub(super) type Screen = Terminal<CrosstermBackend<BufWriter<Stderr>>>;

/// Switches to the alternate screen and raw mode.
///
/// # Errors
/// The terminal cannot be switched; it is unchanged then.
pub(super) fn take() -> io::Result<Screen> {
    give_back_on_panic();
    IS_TAKEN.store(true, Ordering::SeqCst);
    let screen = switch();
    if screen.is_err() {
        give_back();
    }
    screen
}

fn switch() -> io::Result<Screen> {
    enable_raw_mode()?;
    execute!(io::stderr(), EnterAlternateScreen, Hide)?;
    let output = BufWriter::with_capacity(FRAME_BYTES, io::stderr());
    Terminal::new(CrosstermBackend::new(output))
}

/// Restores the terminal; the second time does nothing.
pub fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // Without a terminal there is nothing to restore.
        execute!(io::stderr(), Show, LeaveAlternateScreen).ok();
        disable_raw_mode().ok();
    }
}

/// Whether the terminal is still drawn on.
pub(super) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::SeqCst)
}

/// A panic that aborts runs no destructors, so the hook restores the terminal before the message.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            previous(panic);
        }));
    });
}
