//! Rows of a list, page by page.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Fetched, Listing, Row};
use crate::command::Failure;
use crate::command::running::{Broker, Method, encoded};

/// Rows of a page: the limit of the broker.
const PAGE: u64 = 1000;
/// Rows that are kept at once: some gigabytes.
const ROWS_MAX: usize = 5_000_000;

/// What to ask for.
#[derive(Clone, Debug)]
pub(in crate::command) struct Question {
    /// Path of the route, without its query.
    path: String,
    /// Names and values of the query.
    parameters: Vec<(&'static str, String)>,
    /// The list has no pages.
    is_whole: bool,
    /// The broker sorts, as the parameters say.
    pub(super) is_sorted: bool,
    /// Notes on what was found.
    pub(super) notes: fn(&Fetched) -> Vec<String>,
    /// A key that is not shown.
    leaves_out: Option<&'static str>,
}

impl Question {
    /// A list without parameters.
    pub(in crate::command) fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            parameters: Vec::new(),
            is_whole: false,
            is_sorted: false,
            notes: |_| Vec::new(),
            leaves_out: None,
        }
    }

    /// With a parameter, if it has a value.
    #[must_use]
    pub(in crate::command) fn with(
        mut self,
        name: &'static str,
        value: Option<impl Into<String>>,
    ) -> Self {
        if let Some(value) = value {
            self.parameters.push((name, value.into()));
        }
        self
    }

    /// Sorted by the broker.
    #[must_use]
    pub(in crate::command) fn sorted(mut self, key: &str, is_descending: bool) -> Self {
        self.is_sorted = true;
        let descending = is_descending.then_some("true");
        self.with("sort", Some(key)).with("descending", descending)
    }

    /// With notes on what was found.
    #[must_use]
    pub(in crate::command) fn with_notes(mut self, notes: fn(&Fetched) -> Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// Without a key that no command takes.
    #[must_use]
    pub(in crate::command) fn without(mut self, key: &'static str) -> Self {
        self.leaves_out = Some(key);
        self
    }

    /// The answer is one page, and takes no limit.
    #[must_use]
    pub(in crate::command) fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    fn page(&self, rows: u64, cursor: Option<&str>) -> String {
        if self.is_whole {
            return self.path.clone();
        }
        let mut path = format!("{}?limit={rows}", self.path);
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|(name, value)| (*name, &**value));
        for (name, value) in parameters.chain(cursor) {
            path.extend(["&", name, "=", &encoded(value)]);
        }
        path
    }
}

/// Reads so many rows, or all.
pub(super) fn fetch(
    broker: &Broker,
    listing: &Listing,
    question: &Question,
    wanted: Option<u64>,
) -> anyhow::Result<Fetched> {
    let mut fetched = Fetched::default();
    let mut cursor = None;
    loop {
        let missing = wanted.map(|wanted| wanted - fetched.rows.len() as u64);
        let path = question.page(missing.unwrap_or(PAGE).min(PAGE), cursor.as_deref());
        let page: BTreeMap<String, Box<RawValue>> = broker.call(Method::Get, &path, "")?;
        cursor = fetched.add(page, listing.member)?;
        let is_enough = wanted.is_some_and(|wanted| fetched.rows.len() as u64 >= wanted);
        if cursor.is_none() || is_enough {
            break;
        }
        if fetched.rows.len() >= ROWS_MAX {
            return Err(Failure::usage(format!(
                "there are more than {ROWS_MAX} {}: select some of them",
                listing.many
            )));
        }
    }
    fetched.has_more = cursor.is_some();
    if !question.is_sorted && !listing.identity.is_empty() {
        fetched.remove_repeated(listing.identity);
    }
    if let Some(key) = question.leaves_out {
        for row in &mut fetched.rows {
            *row = row.without(key);
        }
    }
    Ok(fetched)
}

impl Fetched {
    /// Takes a page; returns the cursor of the next one.
    fn add(
        &mut self,
        page: BTreeMap<String, Box<RawValue>>,
        member: &str,
    ) -> anyhow::Result<Option<String>> {
        let mut cursor = None;
        for (name, value) in page {
            match name.as_str() {
                "next" => cursor = serde_json::from_str(value.get())?,
                "matching" => self.matching = serde_json::from_str(value.get())?,
                name if name == member => {
                    let rows: Vec<Box<RawValue>> = serde_json::from_str(value.get())?;
                    self.rows.extend(rows.into_iter().map(Row::new));
                }
                _ => self.note(name, value.get()),
            }
        }
        Ok(cursor)
    }

    /// A member that is neither a number nor a text has no place here.
    fn note(&mut self, name: String, value: &str) {
        if let Ok(number) = serde_json::from_str::<u64>(value) {
            *self.others.entry(name).or_default() += number;
        } else if let Ok(text) = serde_json::from_str(value) {
            self.texts.insert(name, text);
        }
    }

    /// What ended and began again during an unsorted listing may be on two pages: the later row is
    /// kept.
    fn remove_repeated(&mut self, identity: &str) {
        let names = self.rows.iter().map(|row| row.get(identity));
        let names: Vec<String> = names
            .map(|name| {
                name.map(|name| super::row::plain(&name))
                    .unwrap_or_default()
            })
            .collect();
        let last: BTreeMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(place, name)| (&**name, place))
            .collect();
        if last.len() == names.len() {
            return;
        }
        let mut places = names.iter().enumerate();
        self.rows.retain(|_| {
            let place = places.next();
            place.is_some_and(|(place, name)| last.get(&**name) == Some(&place))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> BTreeMap<String, Box<RawValue>> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn pages_are_put_together_and_a_repeated_row_is_listed_once() {
        let mut fetched = Fetched::default();
        let first =
            r#"{"rows":[{"id":"a","n":1},{"id":"b","n":1}],"next":"x","matching":4,"lost":2}"#;
        assert_eq!(
            fetched.add(page(first), "rows").unwrap().as_deref(),
            Some("x")
        );
        let last = r#"{"rows":[{"id":"a","n":2}],"next":null,"matching":3,"lost":1}"#;
        assert_eq!(fetched.add(page(last), "rows").unwrap(), None);
        fetched.remove_repeated("id");
        let rows: Vec<&str> = fetched.rows.iter().map(Row::text).collect();
        assert_eq!(rows, [r#"{"id":"b","n":1}"#, r#"{"id":"a","n":2}"#]);
        assert_eq!(fetched.matching, Some(3));
        assert_eq!(fetched.others["lost"], 3);
    }

    #[test]
    fn a_page_is_asked_for_with_its_parameters() {
        let question = Question::new("/clients")
            .with("user", Some("a&b"))
            .with("address", None::<String>)
            .sorted("user", true);
        assert_eq!(
            question.page(5, Some("c/d")),
            "/clients?limit=5&user=a%26b&sort=user&descending=true&cursor=c%2Fd"
        );
    }
}
