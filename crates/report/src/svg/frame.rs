//! The common parts of all charts over time: positions, axes, stages, marks.

use super::drawing::{Drawing, Place, Size, clip, number, text_width};
use super::line::{StageBand, TimeMark};
use super::scale::{Scale, tick_text, time_text, time_ticks, time_title};
use crate::metric::Unit;
use crate::result::Stage;

/// Most marks drawn; a run with more has them in its list.
const MARKS_MAX: usize = 16;

pub(super) const WIDTH: f64 = 6_000.0;
pub(super) const LEFT: f64 = 700.0;
pub(super) const RIGHT: f64 = 4_960.0;
pub(super) const TOP: f64 = 520.0;
pub(super) const BOTTOM: f64 = 2_060.0;
/// Height of the strip below the plot that names the stages, away from the lines.
const STRIP: f64 = 145.0;
/// Positions of the values of a horizontal axis, and its title.
pub(super) const TICKS_Y: f64 = BOTTOM + STRIP + 160.0;
pub(super) const TITLE_Y: f64 = BOTTOM + STRIP + 320.0;
const HEIGHT: f64 = 2_590.0;
/// How far the number of a mark may be from its line.
const LABEL_SHIFT_MAX: f64 = 130.0;
/// Font size of the values of axes and of the labels of marks.
pub(super) const LABEL_SIZE: f64 = 105.0;
/// The same on a narrow screen, see `report.css`.
pub(super) const LABEL_SIZE_NARROW: f64 = 140.0;

/// The time axis of a chart and what lies along it.
pub(super) struct TimeFrame<'chart> {
    title: &'chart str,
    axis: &'chart str,
    seconds: f64,
}

impl<'chart> TimeFrame<'chart> {
    pub(super) fn new(title: &'chart str, axis: &'chart str, seconds: f64) -> Self {
        Self {
            title,
            axis,
            seconds: seconds.max(1.0),
        }
    }

    /// The position of a time.
    pub(super) fn x(&self, at: f64) -> f64 {
        LEFT + (at / self.seconds).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// A drawing with axes; later elements are clipped to the plot until the group is closed.
    pub(super) fn open(&self, y: Scale, unit: Unit, stages: &[StageBand]) -> Drawing {
        let mut drawing = titled(self.title, self.axis);
        drawing.attribute("data-t", &format!("{:.2}", self.seconds));
        drawing.attribute("data-x", &format!("{} {}", number(LEFT), number(RIGHT)));
        let (low, high) = y.range;
        drawing.attribute(
            "data-y",
            &format!(
                "{} {} {low} {high} {}",
                number(BOTTOM),
                number(TOP),
                u8::from(y.log)
            ),
        );
        drawing.attribute("data-u", unit_letter(unit));
        drawing.attribute("data-v", &number(TICKS_Y));
        self.stages(&mut drawing, stages);
        value_axis(&mut drawing, y, unit);
        self.time_axis(&mut drawing);
        drawing.raw(&format!(
            "<svg class=\"p\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">",
            number(LEFT),
            number(TOP - 20.0),
            number(RIGHT - LEFT + 20.0),
            number(BOTTOM - TOP + 40.0)
        ));
        drawing
    }

    fn stages(&self, drawing: &mut Drawing, stages: &[StageBand]) {
        let ends = |band: &StageBand| (self.x(band.from), self.x(band.to));
        for (index, band) in stages.iter().enumerate() {
            let (from, to) = ends(band);
            let shade = if index % 2 == 0 { "b" } else { "b o" };
            drawing.rectangle(
                shade,
                Place::new(from, TOP),
                Size::new(to - from, BOTTOM + STRIP - TOP),
            );
        }
        for band in stages {
            let (from, to) = ends(band);
            let name = stage_name(band.stage);
            let fits = |size: f64| to - from > text_width(name, size) + 60.0;
            if let Some(class) = label_class("g", fits(LABEL_SIZE), fits(LABEL_SIZE_NARROW)) {
                drawing.text(&class, Place::new(from + 40.0, BOTTOM + 115.0), name);
            }
        }
    }

    fn time_axis(&self, drawing: &mut Drawing) {
        drawing.line("x", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        drawing.raw("<g class=\"ticks\">");
        for tick in time_ticks(self.seconds) {
            let text = time_text(tick, self.seconds);
            drawing.text("v c", Place::new(self.x(tick), TICKS_Y), &text);
        }
        drawing.raw("</g>");
        let middle = f64::midpoint(LEFT, RIGHT);
        drawing.text("a c", Place::new(middle, TITLE_Y), time_title(self.seconds));
    }

    /// Vertical lines with numbers, and with words where there is room for them.
    pub(super) fn marks(&self, drawing: &mut Drawing, marks: &[TimeMark]) {
        let shown = &marks[..marks.len().min(MARKS_MAX)];
        let mut free = 0.0_f64;
        for (index, mark) in shown.iter().enumerate() {
            let x = self.x(mark.at);
            let next = shown.get(index + 1).map_or(WIDTH, |next| self.x(next.at));
            drawing.raw(&format!("<g class=\"at\" data-at=\"{:.2}\">", mark.at));
            drawing.line("m", (x, TOP - 50.0), (x, BOTTOM));
            let start = free.max(x - 30.0);
            let label = mark_label(index + 1, &mark.text, next - start - 90.0);
            if start < x + LABEL_SHIFT_MAX {
                free = start + text_width(&label, LABEL_SIZE) + 50.0;
                drawing.text("g", Place::new(start, TOP - 70.0), &label);
            }
            drawing.raw("</g>");
        }
    }
}

/// Ends the part that is clipped to the plot.
pub(super) fn close(drawing: &mut Drawing) {
    drawing.raw("</svg>");
}

/// A drawing with its title and the title of its vertical axis.
pub(super) fn titled(title: &str, axis: &str) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, HEIGHT, title);
    drawing.text("t", Place::new(0.0, 150.0), title);
    drawing.text("a", Place::new(0.0, 310.0), axis);
    drawing
}

/// Rules and values of the vertical axis.
pub(super) fn value_axis(drawing: &mut Drawing, y: Scale, unit: Unit) {
    for tick in y.ticks(unit) {
        let at = y.at(tick);
        drawing.line("k", (LEFT, at), (RIGHT, at));
        drawing.text(
            "v e",
            Place::new(LEFT - 50.0, at + 38.0),
            &tick_text(tick, unit),
        );
    }
}

/// Class of a label that fits or not: `far` is left out on narrow screens, where letters are
/// larger.
pub(super) fn label_class(class: &str, fits: bool, fits_narrow: bool) -> Option<String> {
    let narrow = if fits_narrow { "" } else { " far" };
    fits.then(|| format!("{class}{narrow}"))
}

/// `2 broker killed`, cut to the room there is; the number alone if that leaves no word.
fn mark_label(number: usize, text: &str, room: f64) -> String {
    let number = number.to_string();
    let full = format!("{number} {text}");
    let fits = (1..=full.chars().count().min(44))
        .rev()
        .find(|characters| text_width(&clip(&full, *characters), LABEL_SIZE) <= room);
    match fits {
        Some(characters) if characters >= number.len() + 6 => clip(&full, characters),
        _ => number,
    }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Ramp => "ramp",
        Stage::WarmUp => "warm-up",
        Stage::Hold => "hold",
        Stage::Drain => "drain",
    }
}

/// The format that the script of the page uses for values.
fn unit_letter(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Seconds => "s",
        Unit::PerSecond => "/s",
        Unit::Count => "",
        Unit::Share => "%",
        Unit::Bytes => "B",
        Unit::Cores => " cores",
        Unit::Microseconds => "µs",
    }
}
