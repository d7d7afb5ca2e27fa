//! The list of keys, in front of everything else.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Padding, Paragraph};

use super::phrase::{Tone, tabled};

/// Every key, and what it does.
const KEYS: [(&str, &str); 8] = [
    ("+ -", "10 % more or less load"),
    ("space", "pause and resume"),
    ("e", "hold 30 s longer"),
    ("n", "write a note"),
    ("t", "1, 2, 5 minutes or all"),
    ("q", "end this run, report"),
    ("^C", "end all runs; again: now"),
    ("?", "this list"),
];

/// Width of the names of keys.
const NAMES: usize = 5;

/// Width and height with borders; fits into the least size that has panels.
const SIZE: (u16, u16) = (36, 10);

/// Keys that have no function in a series: its load stays as planned.
const ALONE: [&str; 3] = ["+ -", "space", "e"];

pub(super) fn draw(frame: &mut Frame<'_>, is_in_series: bool) {
    let area = centred(frame.area());
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(name, effect)| {
            if is_in_series && ALONE.contains(name) {
                tabled(name, NAMES, "not in a series", Tone::Quiet)
            } else {
                tabled(name, NAMES, effect, Tone::Normal)
            }
        })
        .collect();
    let block = Block::bordered()
        .title(" keys ")
        .padding(Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn centred(area: Rect) -> Rect {
    let (width, height) = (SIZE.0.min(area.width), SIZE.1.min(area.height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
}
