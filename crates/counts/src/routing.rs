//! Lookups in an index of 100,000 filters, half of them with wildcards, and the choice of a member
//! of a shared subscription.

use std::hint::black_box;

use thrum_routing::shared::{Choice, Cursor, Group, Strategy};
use thrum_routing::{Destination, Index};

use crate::repeat;

const FILTERS: u32 = 100_000;
/// Number of topics that are looked up in turn.
const TOPICS: u32 = 1_000;
/// Distributes consecutive numbers over all filters.
const STRIDE: u32 = 7_919;
const GROUP_MEMBERS: u32 = 10;

#[derive(Clone)]
struct Subscriber(u32);

impl Destination for Subscriber {
    type Key = u32;

    fn key(&self) -> u32 {
        self.0
    }
}

pub(crate) fn match_exact(times: u32) {
    look_up(times, TOPICS, |number| topic(4 * number + 1));
}

/// Looks up one topic repeatedly, as a publisher with one topic does.
pub(crate) fn match_exact_repeated(times: u32) {
    look_up(times, 1, |number| topic(4 * number + 1));
}

pub(crate) fn match_wildcard(times: u32) {
    look_up(times, TOPICS, |number| topic(2 * number));
}

/// Descends the trie as far as the others, and finds no filter.
pub(crate) fn match_nothing(times: u32) {
    look_up(times, TOPICS, |number| topic(FILTERS + number));
}

/// The last subscriber of a filter leaves, and another subscribes.
pub(crate) fn replace_filter(times: u32) {
    let mut index = filled();
    let filters: Vec<_> = (0..TOPICS)
        .map(|number| number * STRIDE % FILTERS)
        .map(|number| (number, filter(number)))
        .collect();
    let mut next = filters.iter().cycle();
    repeat(times, || {
        let (number, filter) = next.next()?;
        black_box(index.remove(filter, *number));
        Some(index.insert(filter, Subscriber(*number)).filter)
    });
}

pub(crate) fn pick_of_shared_group(times: u32) {
    let mut group = Group::new(Strategy::RoundRobin);
    for session in 0..GROUP_MEMBERS {
        group.add(Subscriber(session), true);
    }
    let mut cursor = Cursor::default();
    repeat(times, || {
        let choice = black_box(Choice::default());
        group
            .pick(&mut cursor, choice, |_| true, None)
            .map(Destination::key)
    });
}

fn look_up(times: u32, count: u32, topic: fn(u32) -> String) {
    let index = filled();
    let topics: Vec<_> = (0..count)
        .map(|number| topic(number * STRIDE % (FILTERS / 4)))
        .collect();
    let mut next = topics.iter().cycle();
    let mut found = Vec::new();
    repeat(times, || {
        found.clear();
        index.matches(next.next().map_or("", String::as_str), &mut found);
        found.len()
    });
}

fn filled() -> Index<Subscriber> {
    let mut index = Index::with_seed(1);
    for number in 0..FILTERS {
        index.insert(&filter(number), Subscriber(number));
    }
    index
}

fn topic(number: u32) -> String {
    format!("site/{}/device/{number}", number % 1_000)
}

/// Every second filter has a wildcard: `#` below a device, or `+` in place of the site.
fn filter(number: u32) -> String {
    match number % 4 {
        0 => format!("{}/#", topic(number)),
        2 => format!("site/+/device/{number}"),
        _ => topic(number),
    }
}
