//! Draws one frame: no clock, no input, no output; the same snapshot gives the same frame.

mod broker;
mod canvas;
mod clients;
mod compact;
mod errors;
mod footer;
mod full;
mod header;
mod health;
mod help;
mod latency;
mod marks;
mod phrase;
pub(crate) mod plain;
mod plot;
mod rate;
#[cfg(test)]
mod tests;
mod thresholds;

use ratatui::Frame;
use ratatui::layout::{Rect, Size};

pub(crate) use plot::bars;

use super::snapshot::Snapshot;
use super::view::{Mode, ViewState};

/// From this size on every panel is shown.
const FULL: Size = Size::new(80, 24);

/// Below this size there is one line of text.
const LEAST: Size = Size::new(40, 10);

/// Draws the snapshot with the settings of the view.
pub(crate) fn render(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &ViewState) {
    let area = frame.area();
    if has_room(area, FULL) {
        full::draw(frame, snapshot, view);
    } else if has_room(area, LEAST) {
        compact::draw(frame, snapshot, view);
    } else {
        compact::draw_one_line(frame, snapshot, view);
    }
    if view.mode == Mode::Help {
        help::draw(frame, snapshot.series.is_some());
    }
    plain::apply(frame.buffer_mut(), view.look);
}

const fn has_room(area: Rect, least: Size) -> bool {
    area.width >= least.width && area.height >= least.height
}
