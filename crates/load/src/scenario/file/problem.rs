//! Errors in a scenario file, and their positions.

use std::fmt;
use std::ops::Range;

/// Most problems that one error lists.
pub(super) const PROBLEMS_MAX: usize = 20;

/// Why a scenario cannot be loaded: everything that is wrong with it, up to 20 problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", joined(.problems))]
pub struct ScenarioError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or other source of the text.
    pub origin: String,
    /// Its place in the text, if it has one.
    pub place: Option<Place>,
    /// The error and the accepted values.
    pub message: String,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in the line, from 1.
    pub column: usize,
    /// Number of characters that are meant.
    pub length: usize,
    /// The whole line.
    pub excerpt: String,
}

impl Place {
    /// The position of a range of bytes in a text; the part after the end of the line is omitted.
    pub(super) fn new(text: &str, span: &Range<usize>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = text[line_start..].lines().next().unwrap_or_default();
        let marked = text.get(span.clone()).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            length: marked.chars().count().max(1),
            excerpt: excerpt.to_owned(),
        }
    }
}

impl ScenarioError {
    /// A single problem without a place.
    pub(super) fn general(origin: &str, message: String) -> Self {
        let problem = Problem {
            origin: origin.to_owned(),
            place: None,
            message,
        };
        Self {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(formatter, "{}: {}", self.origin, self.message);
        };
        let Place { line, column, .. } = *place;
        let margin = " ".repeat(line.to_string().len());
        // Tabs stay tabs, so that the caret stands under its text.
        let lead = place.excerpt.chars().take(column - 1);
        let indent: String = lead
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        writeln!(
            formatter,
            "{}:{line}:{column}: {}",
            self.origin, self.message
        )?;
        writeln!(formatter, "  {line} | {}", place.excerpt)?;
        write!(
            formatter,
            "  {margin} | {indent}{}",
            "^".repeat(place.length)
        )
    }
}

fn joined(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
