//! Pieces of text that are kept whole: pieces that do not fit are omitted, from the end.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Between two parts of a line.
const GAP: &str = "  ";

/// A label and its figure, or another piece that is shown whole or not at all.
pub(super) type Part = Line<'static>;

/// Style of a text, in addition to its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Quiet,
    Normal,
    Strong,
    Good,
    Bad,
}

impl Tone {
    pub(super) fn style(self) -> Style {
        match self {
            Self::Quiet => Style::new().fg(Color::DarkGray),
            Self::Normal => Style::new(),
            Self::Strong => Style::new().add_modifier(Modifier::BOLD),
            Self::Good => Style::new().fg(Color::Green),
            Self::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// Of a count of things that should not happen.
    pub(super) const fn of_faults(count: u64) -> Self {
        if count == 0 { Self::Normal } else { Self::Bad }
    }
}

pub(super) fn text(text: impl Into<String>, tone: Tone) -> Part {
    Line::from(Span::styled(text.into(), tone.style()))
}

/// `name figure`.
pub(super) fn named(name: &str, figure: impl Into<String>, tone: Tone) -> Part {
    Line::from(vec![
        Span::styled(format!("{name} "), Tone::Quiet.style()),
        Span::styled(figure.into(), tone.style()),
    ])
}

/// `name    figure` with the name filled up to a width.
pub(super) fn tabled(name: &str, name_width: usize, figure: &str, tone: Tone) -> Part {
    named(&format!("{name:<name_width$}"), figure, tone)
}

/// As many parts as fit into one line; of the first one as much as fits.
pub(super) fn fitted(parts: impl IntoIterator<Item = Part>, width: u16) -> Line<'static> {
    let mut lines = flowed(parts, width, 1);
    lines.pop().unwrap_or_default()
}

/// Whether all parts fit into one line.
pub(super) fn fit(parts: &[Part], width: u16) -> bool {
    let gaps = GAP.len() * parts.len().saturating_sub(1);
    let total: usize = parts.iter().map(Line::width).sum();
    total + gaps <= usize::from(width)
}

/// Parts side by side in as few lines as they need, at most `height`; the last line ends in `…` if
/// some are left out and the mark for that fits.
pub(super) fn flowed(
    parts: impl IntoIterator<Item = Part>,
    width: u16,
    height: u16,
) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for part in parts {
        let has_room = |line: &Line<'_>| line.width() + GAP.len() + part.width() <= width;
        let may_begin_line = lines.len() < usize::from(height);
        match lines.last_mut() {
            Some(line) if has_room(line) => {
                line.push_span(Span::raw(GAP));
                line.spans.extend(part.spans);
            }
            _ if may_begin_line => lines.push(part),
            Some(line) => {
                if line.width() + 2 <= width {
                    line.push_span(Span::styled(" …", Tone::Quiet.style()));
                }
                break;
            }
            None => break,
        }
    }
    lines
}

/// A text cut to a width, with `…` where something is missing.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if Span::raw(short.as_str()).width() >= width {
            short.pop();
            break;
        }
    }
    if width > 0 {
        short.push('…');
    }
    short
}

/// A text in lines of at most this width, broken between words; a longer word is cut.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word_width = Span::raw(word).width();
        match lines.last_mut() {
            Some(line) if Span::raw(line.as_str()).width() + 1 + word_width <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shortened(word, width)),
        }
    }
    lines
}

/// Time on a clock: `02:13`, `1:02:13`.
pub(super) fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text_of: &str) -> Vec<Part> {
        text_of
            .split(' ')
            .map(|word| text(word, Tone::Normal))
            .collect()
    }

    fn shown(lines: &[Line<'static>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parts_flow_into_the_lines_that_there_are() {
        let lines = flowed(words("one two three four"), 10, 2);
        assert_eq!(shown(&lines), ["one  two", "three …"]);
        let lines = flowed(words("one two three four"), 10, 3);
        assert_eq!(shown(&lines), ["one  two", "three", "four"]);
        assert_eq!(shown(&flowed(words("one"), 10, 0)), [""; 0]);
    }

    #[test]
    fn a_line_fits_exactly() {
        assert!(fit(&words("one two"), 8));
        assert!(!fit(&words("one two"), 7));
        assert_eq!(fitted(words("one two"), 8).to_string(), "one  two");
    }

    #[test]
    fn a_cut_text_has_a_mark() {
        assert_eq!(shortened("connection refused", 18), "connection refused");
        assert_eq!(shortened("connection refused", 10), "connectio…");
        assert_eq!(shortened("温度温度", 5), "温度…");
        assert_eq!(shortened("abc", 1), "…");
        assert_eq!(shortened("abc", 0), "");
    }

    #[test]
    fn a_text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("connection", 5), ["conn…"]);
    }

    #[test]
    fn a_clock_has_hours_only_when_needed() {
        assert_eq!(clock(133), "02:13");
        assert_eq!(clock(3733), "1:02:13");
    }
}
