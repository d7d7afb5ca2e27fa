//! What is wrong with a configuration, and where.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use super::mosquitto::At;

/// A configuration file as it was read.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it was read.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) text: String,
    /// For each line of a text that was made of another file, the line it comes from; empty for all
    /// others.
    pub(crate) made_of: Vec<Option<At>>,
}

impl Source {
    /// A file as it was read.
    pub(crate) fn new(path: PathBuf, text: String) -> Self {
        Self {
            path,
            text,
            made_of: Vec::new(),
        }
    }
}

/// A piece of a file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    source: Rc<Source>,
    span: Range<usize>,
    /// What stands behind the key is not shown.
    hides_value: bool,
}

/// Where secrets may stand in a file.
const SECRETS: &str = "auth";

impl Place {
    pub(crate) fn new(source: &Rc<Source>, span: Range<usize>) -> Self {
        Self {
            source: Rc::clone(source),
            span,
            hides_value: false,
        }
    }

    /// The same in a text that could not be read as a whole: nobody knows which value it is, and
    /// where secrets may stand none is shown.
    pub(crate) fn without_value(self) -> Self {
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
    pub(crate) fn with_span(&self, span: Range<usize>) -> Self {
        Self::new(&self.source, span)
    }

    /// The first place of a word in it; all of it if the word is not there as it is.
    pub(crate) fn narrowed_to(self, word: &str) -> Self {
        let text = self.source.text.get(self.span.clone());
        match text.and_then(|text| text.find(word)) {
            None => self,
            Some(offset) => {
                let start = self.span.start + offset;
                self.with_span(start..start + word.len())
            }
        }
    }

    /// The file and the line in it where the user wrote it; no line if nobody did, in a text that
    /// was made of another.
    pub(crate) fn written_at(&self) -> (&PathBuf, Option<usize>) {
        let line = self.line();
        if !self.is_made() {
            return (&self.source.path, Some(line));
        }
        let at = self.source.made_of.get(line - 1).and_then(Option::as_ref);
        at.map_or((&self.source.path, None), |at| (&at.path, Some(at.line)))
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
#[derive(Debug)]
pub(crate) struct Problem {
    /// The place in a file, if it is in one.
    pub(crate) place: Option<Place>,
    /// Where else it comes from: a variable, a flag.
    pub(crate) origin: String,
    /// What is wrong and what is expected.
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(formatter, "{}: {}", self.origin, self.message);
        };
        let text = &place.source.text;
        let start = place.line_start();
        let line = place.shown_line();
        let lead = text[start..]
            .get(..place.span.start - start)
            .unwrap_or_default();
        let column = lead.chars().count() + 1;
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
        let (path, written) = place.written_at();
        let path = path.display();
        let at = match written {
            // The column is that of the text that was made.
            Some(line) if place.is_made() => format!("{path}:{line}"),
            Some(line) => format!("{path}:{line}:{column}"),
            None => path.to_string(),
        };
        writeln!(formatter, "{at}: {}", self.message)?;
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
#[derive(Debug)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

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
