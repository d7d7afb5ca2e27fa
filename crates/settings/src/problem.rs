//! Errors in a configuration, and their positions.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::nearest;

/// A configuration file and its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// For each line of a converted text, its source line; empty for all others.
    pub made_of: Vec<Option<At>>,
}

impl Source {
    /// A file as it was read.
    pub fn new(path: PathBuf, text: String) -> Self {
        Self {
            path,
            text,
            made_of: Vec::new(),
        }
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The displayed path of the file: relative to the directory of the first file.
    pub file: String,
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
}

impl fmt::Display for At {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    source: Arc<Source>,
    span: Range<usize>,
    /// The text behind the key is not shown.
    hides_value: bool,
    /// Its line is not shown.
    hides_line: bool,
}

/// Parts of a file that may contain secrets.
const SECRETS: &str = "auth";

impl Place {
    /// The piece at these bytes.
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        Self {
            source: Arc::clone(source),
            span,
            hides_value: false,
            hides_line: false,
        }
    }

    /// The same in a text that could not be parsed as a whole: the erroneous value is unknown, and
    /// none is shown where secrets may be.
    #[must_use]
    pub fn without_value(self) -> Self {
        let line = self.source.text[self.line_start()..].trim_start();
        let before = self.source.text[..self.line_start()].lines();
        let header = before
            .rev()
            .map(str::trim_start)
            .find(|line| line.starts_with('['));
        let table = header
            .unwrap_or_default()
            .trim_start_matches(['[', ' ', '"', '\'']);
        Self {
            hides_value: line.starts_with(SECRETS) || table.starts_with(SECRETS),
            ..self
        }
    }

    /// Its line, as far as it is shown.
    fn shown_line(&self) -> String {
        let line = self.source.text[self.line_start()..].lines().next();
        let line = line.unwrap_or_default();
        match line.split_once('=') {
            Some((key, _)) if self.hides_value => format!("{key}= ..."),
            None if self.hides_value && !line.trim_start().starts_with('[') => "...".to_owned(),
            _ => line.to_owned(),
        }
    }

    /// Another piece of the same file.
    #[must_use]
    pub fn with_span(&self, span: Range<usize>) -> Self {
        Self::new(&self.source, span)
    }

    /// The first position of a word in it; all of it if the word does not occur literally.
    #[must_use]
    pub fn narrowed_to(self, word: &str) -> Self {
        let text = self.source.text.get(self.span.clone());
        match text.and_then(|text| text.find(word)) {
            None => self,
            Some(offset) => {
                let start = self.span.start + offset;
                self.with_span(start..start + word.len())
            }
        }
    }

    /// The file and the line that the user wrote; no line for a key that the conversion added.
    pub fn written_at(&self) -> (&PathBuf, Option<usize>) {
        let line = self.line();
        if !self.is_made() {
            return (&self.source.path, Some(line));
        }
        let at = self.source.made_of.get(line - 1).and_then(Option::as_ref);
        at.map_or((&self.source.path, None), |at| (&at.path, Some(at.line)))
    }

    /// The file with the line and the column.
    fn shown_at(&self) -> String {
        let (path, written) = self.written_at();
        let path = path.display();
        match written {
            // The column would be that of the converted text.
            Some(line) if self.is_made() => format!("{path}:{line}"),
            Some(line) => {
                let lead = &self.before()[self.line_start()..];
                format!("{path}:{line}:{}", lead.chars().count() + 1)
            }
            None => path.to_string(),
        }
    }

    /// The line it begins on, from 1.
    fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// Whether the text is another one than that in the file.
    fn is_made(&self) -> bool {
        !self.source.made_of.is_empty()
    }

    fn before(&self) -> &str {
        self.source
            .text
            .get(..self.span.start)
            .unwrap_or(&self.source.text)
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |newline| newline + 1)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place in a file, if it is in one.
    pub place: Option<Place>,
    /// Another origin: a variable, a flag.
    pub origin: String,
    /// The error and the expected value.
    pub message: String,
}

impl Problem {
    /// A problem of a whole file, a variable or a flag.
    pub fn general(origin: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: None,
            origin: origin.into(),
            message: message.into(),
        }
    }

    /// A problem at a place in a file.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            origin: String::new(),
            message: message.into(),
        }
    }
}

impl Problem {
    /// Where it is: the file with its line, the variable or the flag.
    fn written_at(&self) -> String {
        self.place
            .as_ref()
            .map_or_else(|| self.origin.clone(), Place::shown_at)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(formatter, "{}: {}", self.origin, self.message);
        };
        if place.hides_line {
            return write!(formatter, "{}: {}", place.shown_at(), self.message);
        }
        let text = &place.source.text;
        let start = place.line_start();
        let line = place.shown_line();
        let lead = &place.before()[start..];
        let marked = text.get(place.span.clone()).unwrap_or_default();
        let carets = marked
            .lines()
            .next()
            .map_or(1, |first| first.chars().count())
            .max(1);
        let number = place.line();
        let margin = " ".repeat(number.to_string().len());
        // Tabs stay tabs, so that the caret stands under its text.
        let indent: String = lead
            .chars()
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        writeln!(formatter, "{}: {}", place.shown_at(), self.message)?;
        writeln!(formatter, "  {number} | {line}")?;
        if place.hides_value {
            return write!(
                formatter,
                "  {margin} | (not shown: there may be a secret in it)"
            );
        }
        write!(formatter, "  {margin} | {indent}{}", "^".repeat(carets))
    }
}

/// Everything that is wrong; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// The same without the lines of the files: any of them may have a secret, whatever its key is
    /// called.
    #[must_use]
    pub fn without_lines(mut self) -> Self {
        let places = self
            .0
            .iter_mut()
            .filter_map(|problem| problem.place.as_mut());
        places.for_each(|place| place.hides_line = true);
        self
    }

    /// Where they are, for those who may not read the files.
    pub fn places(&self) -> String {
        let places: Vec<String> = self.0.iter().map(Problem::written_at).collect();
        places.join(", ")
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\nerror: " };
            write!(formatter, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The message about an unknown key of a table, whose name is empty for the file itself. It
/// proposes the nearest known key, then one of another table.
pub fn unknown_key(
    name: &str,
    table: &str,
    known: &[&str],
    elsewhere: impl FnOnce() -> Option<String>,
) -> String {
    let within = if table.is_empty() {
        String::new()
    } else {
        format!(" in [{table}]")
    };
    let meant = nearest(name, known.iter().copied())
        .map(str::to_owned)
        .or_else(elsewhere);
    let hint = meant.map_or_else(
        || format!("; keys here are {}", known.join(", ")),
        |meant| format!(", did you mean {meant:?}?"),
    );
    format!("unknown key {name:?}{within}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let source = Arc::new(Source::new(PathBuf::from("a.toml"), text.to_owned()));
        Problem::at(Place::new(&source, span), "wrong").to_string()
    }

    #[test]
    fn a_problem_shows_its_line_with_carets_under_its_piece() {
        let text = "a = 1\n\tb\u{e4} = 'x'\n";
        assert_eq!(
            shown(text, 7..10),
            "a.toml:2:2: wrong\n  2 | \tb\u{e4} = 'x'\n    | \t^^"
        );
        // A piece of several lines is marked to the end of the first.
        assert_eq!(
            shown(text, 4..9),
            "a.toml:1:5: wrong\n  1 | a = 1\n    |     ^"
        );
        assert_eq!(shown("", 0..0), "a.toml:1:1: wrong\n  1 | \n    | ^");
    }

    #[test]
    fn a_problem_without_its_line_has_its_place_and_its_message() {
        let text = "a = 1\npasword = 'hidden'\n";
        let source = Arc::new(Source::new(PathBuf::from("a.toml"), text.to_owned()));
        let problem = Problem::at(Place::new(&source, 6..13), "unknown key");
        let shown = Problems::from(problem).without_lines().to_string();
        assert_eq!(shown, "a.toml:2:1: unknown key");
    }

    #[test]
    fn several_problems_are_several_errors() {
        let general = Problem::general("THRUM_A", "no number");
        let mut problems = Problems::from(general.clone());
        problems.0.push(general);
        assert_eq!(
            problems.to_string(),
            "THRUM_A: no number\nerror: THRUM_A: no number"
        );
    }

    #[test]
    fn an_unknown_key_gets_the_nearest_one_then_one_of_another_table() {
        let known = ["clients", "publish"];
        let message = |name, table, elsewhere: Option<&str>| {
            unknown_key(name, table, &known, || elsewhere.map(str::to_owned))
        };
        assert_eq!(
            message("cleints", "groups.a", Some("b.c")),
            "unknown key \"cleints\" in [groups.a], did you mean \"clients\"?"
        );
        assert_eq!(
            message("colour", "", Some("b.colour")),
            "unknown key \"colour\", did you mean \"b.colour\"?"
        );
        assert_eq!(
            message("colour", "", None),
            "unknown key \"colour\"; keys here are clients, publish"
        );
    }
}
