//! Lines of a mosquitto configuration: a name, a space, and a value up to the end of the line.
//!
//! With mosquitto's rules: a `#` begins a comment in the first column only, only spaces separate
//! name and value, and a value of one word may be followed by anything.

use std::ops::Range;
use std::sync::Arc;

use thrum_settings::problem::{At, Place, Problem, Source};

/// Words in names of options whose values are secret.
const SECRETS: [&str; 5] = ["pass", "psk", "secret", "token", "key"];

/// A line with a setting.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// Name of the option.
    pub(super) name: String,
    /// The rest of the line, without surrounding blanks.
    pub(super) value: String,
    /// Its position.
    pub(super) at: At,
    source: Arc<Source>,
    name_span: Range<usize>,
    value_span: Range<usize>,
}

impl Statement {
    /// The first word of the value; of a number, a truth value or a choice nothing else counts.
    pub(super) fn word(&self) -> &str {
        self.value.split(' ').next().unwrap_or_default()
    }

    /// The rest after the first word.
    pub(super) fn after_word(&self) -> &str {
        let rest = self.value.split_once(' ').map_or("", |(_, rest)| rest);
        rest.trim()
    }

    /// Whether its value must not be shown.
    pub(super) fn is_secret(&self) -> bool {
        let is_named = SECRETS.iter().any(|word| self.name.contains(word));
        is_named && !self.name.ends_with("file")
    }

    /// Something is wrong with the name.
    pub(super) fn wrong_name(&self, message: String) -> Problem {
        self.problem(self.name_span.clone(), message)
    }

    /// Something is wrong with the value.
    pub(super) fn wrong_value(&self, message: String) -> Problem {
        let span = if self.value.is_empty() {
            self.name_span.clone()
        } else {
            self.value_span.clone()
        };
        self.problem(span, message)
    }

    /// The error of a position shows its line, which must not contain a secret.
    fn problem(&self, span: Range<usize>, message: String) -> Problem {
        let place = (!self.is_secret()).then(|| Place::new(&self.source, span));
        Problem {
            place,
            origin: self.at.to_string(),
            message,
        }
    }
}

/// Parses a file. `file` is its displayed path.
pub(super) fn statements(source: &Arc<Source>, file: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in source.text.split_inclusive('\n').enumerate() {
        let at = At {
            file: file.to_owned(),
            path: source.path.clone(),
            line: number + 1,
        };
        found.extend(statement(source, line, start, at));
        start += line.len();
    }
    found
}

fn statement(source: &Arc<Source>, line: &str, start: usize, at: At) -> Option<Statement> {
    let line = line.trim_end_matches(['\n', '\r']);
    if line.starts_with('#') {
        return None;
    }
    let text = line.trim_start_matches(' ');
    if text.is_empty() {
        return None;
    }
    let name_start = start + line.len() - text.len();
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let value = rest.trim();
    let value_start = name_start + name.len() + 1 + rest.len() - rest.trim_start().len();
    Some(Statement {
        name: name.to_owned(),
        value: value.to_owned(),
        at,
        source: Arc::clone(source),
        name_span: name_start..name_start + name.len(),
        value_span: value_start..value_start + value.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn check(text: &str, expected: &[(&str, &str, usize)]) {
        let source = Arc::new(Source::new(PathBuf::from("a.conf"), text.to_owned()));
        let found = statements(&source, "a.conf");
        let found: Vec<_> = found
            .iter()
            .map(|found| (&*found.name, &*found.value, found.at.line))
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_line_is_a_name_and_a_value() {
        check(
            "port 1883\r\n\npersistence  true \n",
            &[("port", "1883", 1), ("persistence", "true", 3)],
        );
        check(
            "  user a b\t\nno_value",
            &[("user", "a b", 1), ("no_value", "", 2)],
        );
        check("", &[]);
        check("   \n", &[]);
    }

    #[test]
    fn a_comment_begins_in_the_first_column() {
        check(
            "# port 1\n #port 2\nport 3 # three\n",
            &[("#port", "2", 2), ("port", "3 # three", 3)],
        );
    }

    #[test]
    fn a_problem_points_at_name_or_value() {
        let source = Arc::new(Source::new(
            PathBuf::from("a.conf"),
            "\n port  x\n".to_owned(),
        ));
        let statement = &statements(&source, "a.conf")[0];
        assert_eq!(
            statement.wrong_value("no number".to_owned()).to_string(),
            "a.conf:2:8: no number\n  2 |  port  x\n    |        ^"
        );
        assert_eq!(
            statement.wrong_name("no option".to_owned()).to_string(),
            "a.conf:2:2: no option\n  2 |  port  x\n    |  ^^^^"
        );
        let source = Arc::new(Source::new(
            PathBuf::from("a.conf"),
            "auth_opt_password x".to_owned(),
        ));
        let secret = statements(&source, "a.conf")[0].wrong_name("no option".to_owned());
        assert_eq!(secret.to_string(), "a.conf:1: no option");
    }
}
