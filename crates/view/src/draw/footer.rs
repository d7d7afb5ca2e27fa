//! The last line: keys, the note that is being written, or what the last key did.

use ratatui::text::{Line, Span};

use super::phrase::{Part, Tone, fit, fitted, text};
use crate::snapshot::Snapshot;
use crate::view::{Load, Mode, ViewState};

/// Keys and their functions, in the order of use.
const KEYS: [(&str, &str); 7] = [
    ("+/-", "rate"),
    ("space", "pause"),
    ("e", "extend"),
    ("n", "note"),
    ("t", "time scale"),
    ("?", "help"),
    ("q", "stop & report"),
];

/// The same in a series of runs, whose load stays as planned; `q` ends only the present one.
const SERIES_KEYS: [(&str, &str); 5] = [
    ("n", "note"),
    ("t", "time scale"),
    ("?", "help"),
    ("q", "end run"),
    ("^C", "end all"),
];

/// The same in the order of importance, where not all of them fit.
const SHORT_KEYS: [(&str, &str); 6] = [
    ("q", "stop"),
    ("?", "help"),
    ("+/-", "rate"),
    ("space", "pause"),
    ("n", "note"),
    ("t", "time"),
];

/// The same in a series.
const SHORT_SERIES_KEYS: [(&str, &str); 5] = [
    ("^C", "end all"),
    ("q", "end run"),
    ("?", "help"),
    ("n", "note"),
    ("t", "time"),
];

pub(super) fn line(snapshot: &Snapshot, view: &ViewState, width: u16) -> Line<'static> {
    if let Mode::Note(note) = &view.mode {
        return note_line(note, usize::from(width));
    }
    if let Some(notice) = &view.notice {
        return fitted([text(notice.text.clone(), Tone::Strong)], width);
    }
    match view.load {
        Load::Stopping | Load::Interrupted | Load::EndNow => {
            return fitted(
                [
                    text("stopping, the report is being written", Tone::Strong),
                    key("^C", "end at once, without a report"),
                ],
                width,
            );
        }
        Load::Running | Load::Paused => {}
    }
    let resume = view.load == Load::Paused;
    let keys = |of: &[(&'static str, &'static str)]| -> Vec<Part> {
        let named = |&(name, effect): &(&'static str, &'static str)| match effect {
            "pause" if resume => key(name, "resume"),
            _ => key(name, effect),
        };
        of.iter().map(named).collect()
    };
    let (all, short) = if snapshot.series.is_some() {
        (&SERIES_KEYS[..], &SHORT_SERIES_KEYS[..])
    } else {
        (&KEYS[..], &SHORT_KEYS[..])
    };
    let all = keys(all);
    if fit(&all, width) {
        fitted(all, width)
    } else {
        fitted(keys(short), width)
    }
}

fn key(name: &str, effect: &str) -> Part {
    Line::from(vec![
        Span::styled(name.to_owned(), Tone::Strong.style()),
        Span::styled(format!(" {effect}"), Tone::Quiet.style()),
    ])
}

/// The end of the note is always seen, because that is where letters are added.
fn note_line(note: &str, width: usize) -> Line<'static> {
    const HINT: &str = "  Enter keeps it, Esc drops it";
    let prompt = "note: ";
    let room = width.saturating_sub(prompt.len() + 1);
    let hidden = (0..note.chars().count())
        .find(|skipped| Span::raw(after(note, *skipped)).width() <= room)
        .unwrap_or(0);
    let shown = after(note, hidden).to_owned();
    let left = room - Span::raw(shown.as_str()).width().min(room);
    let mut line = Line::from(vec![
        Span::styled(prompt, Tone::Quiet.style()),
        Span::styled(shown, Tone::Strong.style()),
        Span::styled("_", Tone::Strong.style()),
    ]);
    if left >= HINT.len() {
        line.push_span(Span::styled(HINT, Tone::Quiet.style()));
    }
    line
}

/// The text without its first characters.
fn after(text: &str, skipped: usize) -> &str {
    let from = text
        .char_indices()
        .nth(skipped)
        .map_or(text.len(), |(at, _)| at);
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_note_is_seen() {
        assert_eq!(note_line("abcdefghij", 12).to_string(), "note: fghij_");
        assert_eq!(note_line("温度温度", 12).to_string(), "note: 温度_");
        let line = note_line("abc", 60).to_string();
        assert_eq!(line, "note: abc_  Enter keeps it, Esc drops it");
    }
}
