//! The identifiers of runs: the time of the beginning and a number, as names of folders.

use thrum_storage::WallMillis;

use crate::command::shown::{parse_time, time};

/// Letters of an identifier: a time without separators and a number.
const ID_LEN: usize = 19;
/// Runs that may begin within a second; one more has the name of the next second.
const SAME_SECOND_MAX: u32 = 100;
/// Milliseconds of a second.
const SECOND_MILLIS: WallMillis = 1_000;

/// The first identifier of a time that is behind the last one given: none is given twice, and their
/// order is that of the runs, whatever the clock does.
pub(super) fn next_id(at: WallMillis, last: String) -> String {
    let numbers = 0..SAME_SECOND_MAX;
    let mut now = numbers.clone().map(|number| id(at, number));
    if let Some(id) = now.find(|id| *id > last) {
        return id;
    }
    // The clock was set back: the second of the last one, or the one behind it.
    let seconds = began_at(&last);
    let mut later = [seconds, seconds + SECOND_MILLIS].into_iter();
    let found = later.find_map(|at| numbers.clone().map(|n| id(at, n)).find(|id| *id > last));
    found.unwrap_or(last)
}

/// The time of an identifier.
fn began_at(id: &str) -> WallMillis {
    let part = |from, to| id.get(from..to).unwrap_or("00");
    let (date, clock) = (part(0, 8), part(9, 15));
    let split = |text: &str, at: usize| text.get(at..at + 2).unwrap_or("00").to_owned();
    let year = date.get(..4).unwrap_or("1970");
    let text = format!(
        "{year}-{}-{}T{}:{}:{}Z",
        split(date, 4),
        split(date, 6),
        split(clock, 0),
        split(clock, 2),
        split(clock, 4)
    );
    parse_time(&text).unwrap_or(0)
}

/// `20261126T221500Z-01`.
fn id(at: WallMillis, number: u32) -> String {
    let text = time(at);
    let seconds = text.split('.').next().unwrap_or_default().chars();
    let digits: String = seconds.filter(|one| !matches!(one, '-' | ':')).collect();
    format!("{digits}Z-{number:02}")
}

/// Whether a name has the form of one; such a name is never a path.
pub(super) fn is_id(name: &str) -> bool {
    name.len() == ID_LEN
        && name.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'T',
            15 => byte == b'Z',
            16 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_identifier_is_given_twice_and_their_order_is_that_of_the_runs() {
        let at = 1_700_000_000_000;
        let mut last = String::new();
        for step in 0..250 {
            // The clock goes back in the middle.
            let next = next_id(if step > 20 { at - 60_000 } else { at }, last.clone());
            assert!(next > last && is_id(&next), "{step}: {next} after {last}");
            last = next;
        }
        assert_eq!(began_at("20231114T221320Z-07"), at);
        assert!(is_id(&id(at, 7)) && !is_id("20231114T221320Z-0/"));
    }
}
