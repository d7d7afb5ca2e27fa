//! A chart under construction, and the output forms of a finished one.

use std::fmt::Write as _;

use super::palette::{Palette, STYLE};

/// Longest text drawn, in characters; names come from scenarios and may have any length.
const TEXT_MAX: usize = 90;

/// Width of a character as a part of the font size, on average, of common sans-serif fonts.
const CHARACTER: f64 = 0.56;

/// A place in a drawing, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

impl Place {
    /// A place.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
}

/// The relative size of a part of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Size {
    pub(crate) const fn new(width: f64, height: f64) -> Self {
        Self { width, height }
    }
}

/// A chart: elements in a coordinate system of tenths of a pixel.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width in tenths of a pixel.
    pub width: f64,
    /// Height in tenths of a pixel.
    pub height: f64,
    /// Its description, for screen readers.
    pub title: String,
    attributes: String,
    body: String,
}

impl Drawing {
    /// An empty drawing.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self {
            width,
            height,
            title: clip(title, TEXT_MAX),
            attributes: String::new(),
            body: String::new(),
        }
    }

    /// Adds an attribute to the outermost element.
    pub(super) fn attribute(&mut self, name: &str, value: &str) {
        write!(self.attributes, " {name}=\"{}\"", escape(value)).ok();
    }

    /// Adds text; `class` may hold `c` or `e` to centre or end it at `x`. Long texts are cut.
    pub(crate) fn text(&mut self, class: &str, at: Place, content: &str) {
        self.text_full(class, at, &clip(content, TEXT_MAX));
    }

    /// Adds text of any length.
    pub(crate) fn text_full(&mut self, class: &str, at: Place, content: &str) {
        write!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            number(at.x),
            number(at.y),
            escape(content)
        )
        .ok();
    }

    /// Adds a rectangle from its upper left corner.
    pub(crate) fn rectangle(&mut self, class: &str, at: Place, size: Size) {
        write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            number(at.x),
            number(at.y),
            number(size.width.max(0.0)),
            number(size.height.max(0.0))
        )
        .ok();
    }

    /// Adds a straight line.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        write!(
            self.body,
            "<path class=\"{class}\" d=\"{}\"/>",
            path(&[from, to])
        )
        .ok();
    }

    /// Adds a path; `name` is what a reader of the chart calls it.
    pub(super) fn path(&mut self, class: &str, name: &str, d: &str) {
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" data-n=\"{}\"", escape(&clip(name, TEXT_MAX)))
        };
        write!(self.body, "<path class=\"{class}\"{name} d=\"{d}\"/>").ok();
    }

    /// Adds markup that is known to be well-formed.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// The element for a page whose style sheet holds [`STYLE`].
    pub fn inline(&self) -> String {
        format!(
            "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\"{}>{}</svg>",
            escape(&self.title),
            number(self.width),
            number(self.height),
            self.attributes,
            self.body
        )
    }

    /// The element as a part of another drawing, at a place and with a width in that drawing's
    /// units.
    pub fn nested(&self, at: Place, width: f64) -> String {
        let height = width * self.height / self.width;
        format!(
            "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">{}</svg>",
            number(at.x),
            number(at.y),
            number(width),
            number(height),
            number(self.width),
            number(self.height),
            self.body
        )
    }

    /// A standalone file, with the palette's colours in it.
    pub fn standalone(&self, palette: &Palette) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">\
             <title>{}</title><style>{}</style>\
             <rect class=\"paper\" width=\"{}\" height=\"{}\"/>{}</svg>",
            number(self.width / 10.0),
            number(self.height / 10.0),
            number(self.width),
            number(self.height),
            escape(&self.title),
            palette.resolve(STYLE),
            number(self.width),
            number(self.height),
            self.body
        )
    }
}

/// A path through points: one absolute start, then relative whole steps.
pub(super) fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 6 + 8);
    let mut previous = None;
    for &(x, y) in points {
        let (x, y) = (x.round(), y.round());
        match previous {
            None => {
                write!(text, "M{} {}l", number(x), number(y)).ok();
            }
            Some((last_x, last_y)) => {
                step(&mut text, x - last_x);
                step(&mut text, y - last_y);
            }
        }
        previous = Some((x, y));
    }
    if points.len() == 1 {
        text.push_str("10 0");
    }
    text
}

/// A path of steps: each value lasts until the next point. Relative and whole, as those of
/// [`path`].
pub(super) fn steps(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 6 + 8);
    let mut previous = None;
    for &(x, y) in points {
        let (x, y) = (x.round(), y.round());
        let Some((last_x, last_y)) = previous.replace((x, y)) else {
            write!(text, "M{} {}", number(x), number(y)).ok();
            continue;
        };
        for (letter, by) in [('h', x - last_x), ('v', y - last_y)] {
            if by != 0.0 {
                write!(text, "{letter}{}", number(by)).ok();
            }
        }
    }
    text
}

/// A sign separates as well as a space does.
fn step(text: &mut String, by: f64) {
    let digits = number(by);
    if !text.ends_with('l') && !digits.starts_with('-') {
        text.push(' ');
    }
    text.push_str(&digits);
}

/// A coordinate as a whole number; a value that is not finite is 0, as no browser draws it.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.0}");
    if text == "-0" { "0".to_owned() } else { text }
}

/// Width of a text in a font of `size`, estimated.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    thrum_figures::fraction(u64::try_from(text.chars().count()).unwrap_or(u64::MAX))
        * size
        * CHARACTER
}

/// Text of at most `max` characters; an ellipsis marks a cut.
pub(crate) fn clip(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Text as content or attribute value of XML and HTML; characters that XML forbids become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control < ' ' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_relative_and_do_not_drift() {
        assert_eq!(path(&[(1.4, 2.0), (2.8, 0.0), (4.2, 5.0)]), "M1 2l2-2 1 5");
        assert_eq!(path(&[(7.0, 8.0)]), "M7 8l10 0");
    }

    #[test]
    fn a_step_goes_along_and_then_up_or_down() {
        let points = [(1.0, 9.0), (4.0, 9.0), (6.0, 2.0), (8.0, 2.0)];
        assert_eq!(steps(&points), "M1 9h3h2v-7h2");
        assert_eq!(steps(&[]), "");
    }

    #[test]
    fn markup_in_text_is_text() {
        assert_eq!(
            escape("<a b=\"c\">&'\u{1}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }

    #[test]
    fn not_a_number_is_drawn_at_zero() {
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(f64::INFINITY), "0");
        assert_eq!(number(-0.2), "0");
    }
}
