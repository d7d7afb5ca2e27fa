//! Events of the run: faults, changes of the load, notes.

use ratatui::text::Line;
use thrum_figures::whole;
use thrum_report::result::Mark;

use super::phrase::{Part, Tone, clock, shortened, text};
use crate::snapshot::Snapshot;

/// The panel: the latest marks, the newest last.
pub(super) fn lines(snapshot: &Snapshot, width: u16, height: u16) -> Vec<Line<'static>> {
    let marks = marks(snapshot);
    let from = marks.len().saturating_sub(usize::from(height));
    marks
        .iter()
        .skip(from)
        .map(|mark| part(mark, width))
        .collect()
}

/// The latest mark, if there is one.
pub(super) fn last(snapshot: &Snapshot, width: u16) -> Option<Part> {
    marks(snapshot).last().map(|mark| part(mark, width))
}

fn marks(snapshot: &Snapshot) -> &[Mark] {
    let marks = snapshot
        .figures
        .as_ref()
        .map(|figures| figures.marks.as_slice());
    marks.unwrap_or_default()
}

fn part(mark: &Mark, width: u16) -> Part {
    let line = format!("{} {}", clock(whole(mark.at.max(0.0))), mark.text);
    text(shortened(&line, usize::from(width)), Tone::Normal)
}
