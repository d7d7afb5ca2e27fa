//! The most frequent errors.

use ratatui::text::Line;
use thrum_figures::{count, whole};
use thrum_report::result::ErrorCount;

use super::phrase::{Part, Tone, clock, shortened, text};
use crate::snapshot::Snapshot;

/// The panel: a line for each reason, the most frequent first.
pub(super) fn lines(snapshot: &Snapshot, width: u16, height: u16) -> Vec<Line<'static>> {
    let errors = snapshot
        .figures
        .as_ref()
        .map(|figures| figures.errors.as_slice());
    let errors = errors.unwrap_or_default();
    let shown = errors.iter().take(usize::from(height));
    shown
        .map(|error| text(line(error, usize::from(width)), Tone::Bad))
        .collect()
}

/// The most frequent error, and how many other reasons there are; nothing without errors.
pub(super) fn parts(snapshot: &Snapshot, width: u16) -> Vec<Part> {
    let errors = snapshot
        .figures
        .as_ref()
        .map(|figures| figures.errors.as_slice());
    match errors.unwrap_or_default() {
        [] => Vec::new(),
        [only] => vec![text(line(only, usize::from(width)), Tone::Bad)],
        [first, others @ ..] => {
            let more = format!("+{} more", others.len());
            let room = usize::from(width).saturating_sub(more.len() + 2);
            vec![text(line(first, room), Tone::Bad), text(more, Tone::Bad)]
        }
    }
}

/// `1 204 × connection refused  00:04-02:10`, without the times where there is no room for them.
fn line(error: &ErrorCount, width: usize) -> String {
    let what = format!("{} × {}", count(error.count), error.reason);
    let times = format!(
        "  {}-{}",
        clock(whole(error.first_seconds)),
        clock(whole(error.last_seconds))
    );
    if what.chars().count() + times.len() <= width {
        what + &times
    } else {
        shortened(&what, width)
    }
}
