//! A run as one picture, for a chat or an issue.

#[cfg(feature = "png")]
mod render;
#[cfg(not(feature = "png"))]
#[path = "left_out.rs"]
mod render;

use crate::html::{Badge, Chart, Tile, badges, charts, paragraph, subtitle, tiles};
use crate::result::RunResult;
use crate::svg::{Drawing, Palette, Place, Size, clip};
pub use render::{PngError, render, require};
use thrum_figures::fraction;

/// Width of the picture in pixels.
const WIDTH: f64 = 1_200.0;
/// Points per line: more than there are pixels would only blur.
const POINTS_MAX: usize = 600;
/// The charts of the picture, in its order, if the run has them.
const CHARTS: [&str; 8] = [
    "rate",
    "e2e",
    "percentiles",
    "heat",
    "clients",
    "network",
    "broker-cpu",
    "broker-memory",
];
/// Charts that replace missing ones.
const SPARE: [&str; 4] = ["connect", "publish_ack", "trouble", "generator-cpu"];

/// The picture of a run: title, verdicts, key figures and the main charts.
///
/// # Errors
///
/// See [`PngError`]; usually a machine without fonts.
pub fn report(result: &RunResult) -> Result<Vec<u8>, PngError> {
    render(&picture(result).standalone(&Palette::LIGHT))
}

/// The picture as a drawing.
pub fn picture(result: &RunResult) -> Drawing {
    let all = charts(result, POINTS_MAX);
    let find = |id: &&str| all.iter().find(|chart| chart.id == *id);
    let mut shown: Vec<&Chart> = CHARTS.iter().filter_map(find).collect();
    let missing = CHARTS.len() - shown.len();
    shown.extend(SPARE.iter().filter_map(find).take(missing));

    let about = wrap(&subtitle(result), 130);
    let about = &about[..about.len().min(ABOUT_LINES_MAX)];
    let shift = fraction_of(about.len().saturating_sub(1)) * LINE;
    let lines = wrap(&paragraph(result), 138);
    let lines_top = 1_500.0 + shift;
    let tiles_top = lines_top + fraction_of(lines.len()) * LINE;
    let charts_top = tiles_top + 1_150.0;
    let rows = fraction_of(shown.len().div_ceil(2));
    let height = charts_top + rows * CHART_STEP + 350.0;
    let mut drawing = Drawing::new(WIDTH * 10.0, height, &result.scenario.name);
    drawing.raw("<style>.h0{font-size:320px;font-weight:700}.s0{font-size:150px}.n0{font-size:97px}.n1{font-size:86px}.t0{font-size:255px;font-weight:600}.bg{font-size:165px;font-weight:700}.bg.good{fill:");
    drawing.raw(
        &Palette::LIGHT.resolve("var(--good)}.bg.bad{fill:var(--bad)}.q{fill:var(--soft)}</style>"),
    );
    drawing.text(
        "h0",
        Place::new(MARGIN, 620.0),
        &clip(&result.scenario.name, 56),
    );
    for (index, line) in about.iter().enumerate() {
        let y = 900.0 + fraction_of(index) * LINE;
        drawing.text_full("s0 q", Place::new(MARGIN, y), &clip(line, 130));
    }
    draw_badges(&mut drawing, &badges(result), 1_210.0 + shift);
    for (index, line) in lines.iter().enumerate() {
        let y = lines_top + fraction_of(index) * LINE;
        drawing.text_full("s0", Place::new(MARGIN, y), line);
    }
    draw_tiles(&mut drawing, &tiles(result), tiles_top);
    for (index, chart) in shown.iter().enumerate() {
        let x = MARGIN + fraction_of(index % 2) * (CHART_WIDTH + 400.0);
        let y = charts_top + fraction_of(index / 2) * CHART_STEP;
        drawing.raw(&chart.drawing.nested(Place::new(x, y), CHART_WIDTH));
    }
    let by = format!("{} {}", result.tool.name, result.tool.version);
    drawing.text("s0 q", Place::new(MARGIN, height - 220.0), &by);
    drawing
}

const MARGIN: f64 = 400.0;
const CHART_WIDTH: f64 = 5_400.0;
const CHART_STEP: f64 = 2_450.0;

/// Distance of lines of text.
const LINE: f64 = 210.0;
/// Characters of a note of a key figure, and of one in smaller letters.
const NOTE_MAX: usize = 30;
const LONG_NOTE_MAX: usize = 34;
/// Most lines of what was run.
const ABOUT_LINES_MAX: usize = 3;

fn draw_badges(drawing: &mut Drawing, badges: &[Badge], y: f64) {
    let mut x = MARGIN;
    for badge in badges {
        let text = format!("{} {}", if badge.good { "✓" } else { "✗" }, badge.text);
        drawing.text(
            if badge.good { "bg good" } else { "bg bad" },
            Place::new(x, y),
            &text,
        );
        x += fraction_of(text.chars().count()) * 125.0 + 250.0;
    }
}

fn draw_tiles(drawing: &mut Drawing, tiles: &[Tile], top: f64) {
    const COLUMNS: usize = 6;
    let width = (WIDTH * 10.0 - 2.0 * MARGIN + 150.0) / fraction_of(COLUMNS);
    for (index, tile) in tiles.iter().take(COLUMNS).enumerate() {
        let x = MARGIN + fraction_of(index) * width;
        drawing.rectangle("card", Place::new(x, top), Size::new(width - 150.0, 880.0));
        drawing.text("a", Place::new(x + 110.0, top + 230.0), tile.name);
        drawing.text("t0", Place::new(x + 110.0, top + 540.0), &tile.value);
        let is_long = tile.note.chars().count() > NOTE_MAX;
        drawing.text(
            if is_long { "n1 q" } else { "n0 q" },
            Place::new(x + 110.0, top + 760.0),
            &clip(&tile.note, LONG_NOTE_MAX),
        );
    }
}

/// Lines of at most this many characters.
fn wrap(text: &str, characters_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < characters_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(clip(word, characters_max)),
        }
    }
    lines
}

fn fraction_of(count: usize) -> f64 {
    fraction(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_none_is_lost() {
        let text = "one two three four five six";
        let lines = wrap(text, 10);
        assert!(lines.iter().all(|line| line.chars().count() <= 10));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn the_run_is_described_in_full_with_a_long_summary() {
        let mut result = RunResult::default();
        result.scenario.summary = "a long summary (changed: many things) ".repeat(4);
        result.started = "2026-11-22T06:24:15Z".to_owned();
        let svg = picture(&result).standalone(&Palette::LIGHT);
        assert!(svg.contains("2026-11-22T06:24:15Z</text>"), "{svg}");
    }
}
