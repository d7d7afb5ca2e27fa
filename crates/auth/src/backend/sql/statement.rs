//! A query with placeholders: they become its parameters, so that no value can change it.

use std::borrow::Cow;
use std::sync::Arc;

use thiserror::Error;

use super::Dialect;
use crate::template::{NotText, Part, Place, Placeholder, Template, TemplateError, Values};

/// A query and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    text: Arc<str>,
    parameters: Vec<Placeholder>,
}

/// Why a text is not a statement.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum StatementError {
    /// A placeholder is wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A placeholder stands where a parameter cannot.
    #[error("{0} stands inside quotes: leave the quotes out, it is a parameter")]
    Quoted(String),
    /// There is none.
    #[error("the query is empty")]
    Empty,
}

impl Statement {
    /// Reads a query.
    pub(crate) fn parse(
        query: &str,
        dialect: Dialect,
        place: Place,
    ) -> Result<Self, StatementError> {
        if query.trim().is_empty() {
            return Err(StatementError::Empty);
        }
        let mut parts = Vec::new();
        for piece in pieces(query) {
            match piece {
                Piece::Literal(literal) => {
                    check_literal(literal)?;
                    parts.push(Part::Text(literal.to_owned()));
                }
                Piece::Code(code) => parts.extend_from_slice(Template::parse(code, place)?.parts()),
            }
        }
        let (mut text, mut parameters) = (String::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(&part),
                Part::Value(placeholder) => {
                    parameters.push(placeholder);
                    dialect.push_marker(parameters.len(), &mut text);
                }
            }
        }
        Ok(Self {
            text: text.into(),
            parameters,
        })
    }

    /// The query with its parameters' markers.
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Whether it uses this placeholder.
    pub(crate) fn uses(&self, placeholder: &Placeholder) -> bool {
        self.parameters.contains(placeholder)
    }

    /// The values of the parameters; unknown ones are null.
    pub(crate) fn values<'a>(
        &self,
        values: &Values<'a>,
    ) -> Result<Vec<Option<Cow<'a, str>>>, NotText> {
        self.parameters
            .iter()
            .map(|parameter| values.of(parameter))
            .collect()
    }
}

impl Dialect {
    /// The marker of the parameter with this number, from 1.
    fn push_marker(self, number: usize, text: &mut String) {
        match self {
            Self::Postgres => {
                text.push('$');
                text.push_str(&number.to_string());
            }
            Self::MySql | Self::Sqlite => text.push('?'),
        }
    }
}

/// A stretch of a query.
enum Piece<'a> {
    /// Where a parameter can stand.
    Code(&'a str),
    /// Text in quotes, with them, or a comment.
    Literal(&'a str),
}

/// The terminator of a stretch with this beginning.
const LITERALS: [(&str, &str); 5] = [
    ("'", "'"),
    ("\"", "\""),
    ("`", "`"),
    ("--", "\n"),
    ("/*", "*/"),
];

/// Splits a query at quotes and comments. A doubled quote inside quotes makes two pieces, which is
/// as good.
fn pieces(query: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = query;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let begin = LITERALS
            .iter()
            .filter_map(|(open, close)| Some((rest.find(open)?, *open, *close)))
            .min_by_key(|(at, ..)| *at);
        let (cut, is_literal) = match begin {
            None => (rest.len(), false),
            Some((0, open, close)) => {
                let inner = &rest[open.len()..];
                let end = inner
                    .find(close)
                    .map_or(rest.len(), |at| open.len() + at + close.len());
                (end, true)
            }
            Some((at, ..)) => (at, false),
        };
        let (taken, tail) = rest.split_at(cut);
        rest = tail;
        Some(if is_literal {
            Piece::Literal(taken)
        } else {
            Piece::Code(taken)
        })
    })
}

/// Text in quotes is not parsed, so a placeholder in it is a mistake.
fn check_literal(literal: &str) -> Result<(), StatementError> {
    if let Some((_, tail)) = literal.split_once("${") {
        let name = tail.split('}').next().unwrap_or_default();
        return Err(StatementError::Quoted(format!("${{{name}}}")));
    }
    match literal.trim_matches(['\'', '"']) {
        mark @ ("%u" | "%c") => Err(StatementError::Quoted(mark.to_owned())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_access::Identity;

    use super::*;

    fn text(query: &str, dialect: Dialect) -> String {
        let statement = Statement::parse(query, dialect, Place::Login).expect("a statement");
        statement.text().as_ref().to_owned()
    }

    #[test]
    fn placeholders_become_parameters() {
        let query = "SELECT password_hash FROM u WHERE name = ${username} AND id = %c -- it's '${'";
        assert_eq!(
            text(&query.replace("${'", ""), Dialect::Postgres),
            "SELECT password_hash FROM u WHERE name = $1 AND id = $2 -- it's '"
        );
        for dialect in [Dialect::MySql, Dialect::Sqlite] {
            assert_eq!(
                text("SELECT 'a''%d' WHERE x LIKE '%x' AND n = %u;", dialect),
                "SELECT 'a''%d' WHERE x LIKE '%x' AND n = ?;"
            );
        }
    }

    #[test]
    fn a_placeholder_in_quotes_is_refused() {
        for query in [
            "SELECT 1 WHERE n = '${username}'",
            "SELECT 1 WHERE n = \"${client_id}\"",
            "SELECT 1 WHERE n LIKE '%${username}%'",
            "SELECT 1 WHERE n = '%u'",
        ] {
            let error = Statement::parse(query, Dialect::Postgres, Place::Login).expect_err(query);
            assert!(matches!(error, StatementError::Quoted(_)), "{query}");
        }
        assert_eq!(
            Statement::parse(" ", Dialect::MySql, Place::Login),
            Err(StatementError::Empty)
        );
    }

    proptest! {
        /// For every client name: the query stays the same, and the name is one value.
        #[test]
        fn no_name_changes_the_query(client_id in ".{0,40}", username in ".{0,40}") {
            let query = "SELECT password_hash FROM u WHERE name = ${username} AND id = ${client_id}";
            let statement = Statement::parse(query, Dialect::Postgres, Place::Login).expect("a statement");
            let identity = Identity {
                client_id: client_id.as_str().into(),
                username: Some(username.as_str().into()),
                ..Identity::default()
            };
            let values = statement.values(&Values::of_identity(&identity)).expect("text");
            prop_assert_eq!(values, vec![Some(username.into()), Some(client_id.into())]);
            prop_assert_eq!(
                &*statement.text(),
                "SELECT password_hash FROM u WHERE name = $1 AND id = $2"
            );
        }
    }
}
