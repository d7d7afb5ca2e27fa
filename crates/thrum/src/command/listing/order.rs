//! Sorting rows.

use std::cmp::Ordering;

use serde_json::Value;

use super::Row;
use super::row::plain;
use crate::command::shown::parse_time;

/// An order of rows.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) key: &'a str,
    /// Decides between equal values; empty for none.
    pub(super) identity: &'a str,
    pub(super) is_descending: bool,
}

/// A value to sort by; one that is not there comes last in both directions.
#[derive(Clone, Debug, PartialEq)]
enum Rank {
    Number(f64),
    Text(String),
    Missing,
}

impl Order<'_> {
    /// Sorts; equal rows are in the order of their identity, and else stay in theirs.
    pub(super) fn sort(&self, rows: &mut Vec<Row>) {
        let ranks = rows.iter().map(|row| {
            let value = row.value();
            let of = |key| super::row::at(&value, key).cloned().unwrap_or(Value::Null);
            let identity = if self.identity.is_empty() {
                String::new()
            } else {
                plain(&of(self.identity))
            };
            (rank(&of(self.key)), identity)
        });
        let ranks: Vec<(Rank, String)> = ranks.collect();
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_by(|&one, &other| {
            let (one, other) = (&ranks[one], &ranks[other]);
            let missing = |rank: &Rank| *rank == Rank::Missing;
            let by_missing = missing(&one.0).cmp(&missing(&other.0));
            let by_value = compare(&one.0, &other.0).then_with(|| one.1.cmp(&other.1));
            by_missing.then(if self.is_descending {
                by_value.reverse()
            } else {
                by_value
            })
        });
        let mut taken: Vec<Option<Row>> = std::mem::take(rows).into_iter().map(Some).collect();
        let sorted = places.into_iter().filter_map(|place| taken[place].take());
        rows.extend(sorted);
    }
}

fn rank(value: &Value) -> Rank {
    match value {
        Value::Null => Rank::Missing,
        Value::Bool(yes) => Rank::Number(f64::from(u8::from(*yes))),
        Value::Number(number) => number.as_f64().map_or(Rank::Missing, Rank::Number),
        Value::Array(values) => Rank::Number(precise(values.len() as u64)),
        Value::String(text) => match time(text) {
            Some(millis) => Rank::Number(precise(millis)),
            None => Rank::Text(text.clone()),
        },
        Value::Object(_) => Rank::Text(value.to_string()),
    }
}

/// A time, whose fraction of a second need not be written.
fn time(text: &str) -> Option<u64> {
    let looks_so = text.as_bytes().get(10) == Some(&b'T') && text.ends_with('Z');
    looks_so.then(|| parse_time(text)).flatten()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds and counts have less than 53 bits"
)]
const fn precise(number: u64) -> f64 {
    number as f64
}

/// Numbers come before texts.
fn compare(one: &Rank, other: &Rank) -> Ordering {
    match (one, other) {
        (Rank::Number(one), Rank::Number(other)) => one.total_cmp(other),
        (Rank::Text(one), Rank::Text(other)) => one.cmp(other),
        (Rank::Number(_), Rank::Text(_)) => Ordering::Less,
        (Rank::Text(_), Rank::Number(_)) => Ordering::Greater,
        (Rank::Missing, _) | (_, Rank::Missing) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::listing::tests::rows;

    fn sorted(key: &str, is_descending: bool) -> Vec<String> {
        let mut rows = rows(&[
            r#"{"id":"b","at":"2026-11-22T10:00:00.5Z","n":9}"#,
            r#"{"id":"c","at":null,"n":10}"#,
            r#"{"id":"a","at":null,"n":9}"#,
            r#"{"id":"d","at":"2026-11-22T10:00:00Z","n":10}"#,
        ]);
        let order = Order {
            key,
            identity: "id",
            is_descending,
        };
        order.sort(&mut rows);
        rows.iter()
            .map(|row| plain(&row.get("id").unwrap()))
            .collect()
    }

    #[test]
    fn numbers_times_and_texts_are_sorted_and_what_is_missing_comes_last() {
        assert_eq!(sorted("id", false), ["a", "b", "c", "d"]);
        assert_eq!(sorted("id", true), ["d", "c", "b", "a"]);
        assert_eq!(sorted("n", true), ["d", "c", "b", "a"]);
        assert_eq!(sorted("at", false), ["d", "b", "a", "c"]);
        assert_eq!(sorted("at", true), ["b", "d", "c", "a"]);
    }
}
