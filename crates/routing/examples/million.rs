//! Cost of a million filters and a million retained topics: memory, changes, matches, pages.
//!
//! ```text
//! cargo run --release -p thrum-routing --example million [COUNT]
//! ```
//!
//! Times are processor times, the best of several rounds: other processes on the machine only add
//! to them. `resident` is the growth of this process including the allocator's overhead, `counted`
//! is the sum that the structures report.

use std::hint::black_box;
use std::time::Duration;

use thrum_routing::{Allowance, Destination, Index, Position, Retained};

const ROUNDS: usize = 5;
/// Topics of a steady load: warm in the cache, but more than the first-level cache holds.
const WARM_TOPICS: u32 = 1_000;
/// Distributes consecutive numbers over all filters.
const STRIDE: u32 = 7_919;

/// Has the size of a broker's session reference with subscription options.
#[expect(dead_code, reason = "only the size of the options counts here")]
#[derive(Clone, Copy)]
struct Subscriber {
    session: u32,
    subscription_identifier: u32,
    options: [u8; 4],
}

impl Destination for Subscriber {
    type Key = u32;

    fn key(&self) -> u32 {
        self.session
    }
}

fn subscriber(session: u32) -> Subscriber {
    Subscriber {
        session,
        subscription_identifier: 0,
        options: [1, 0, 0, 0],
    }
}

/// Half exact, half with wildcards, in the patterns of a fleet of devices.
fn filter(number: u32) -> String {
    let (site, line) = (number % 1_000, number % 50);
    match number % 8 {
        0 => format!("site/{site}/device/{number}/+"),
        2 => format!("device/{number}/#"),
        4 => format!("+/alarm/{number}/#"),
        6 => format!("site/+/line/{line}/machine/{number}/state"),
        1 | 5 => format!("device/{number}/cmd"),
        _ => format!("site/{site}/device/{number}/set/config"),
    }
}

/// Name, and the function from a number below [`WARM_TOPICS`] to its topic.
type Case = (&'static str, fn(u32) -> String);

const CASES: [Case; 5] = [
    ("exact hit", |number| {
        format!("device/{}/cmd", 8 * number + 1)
    }),
    ("wildcard hit", |number| {
        let device = 8 * number;
        format!("site/{}/device/{device}/temperature", device % 1_000)
    }),
    ("`+` in the middle", |number| {
        let machine = 8 * number + 6;
        format!("site/9/line/{}/machine/{machine}/state", machine % 50)
    }),
    ("several hits", |number| {
        format!("device/{}/cmd", 8 * number + 2)
    }),
    ("no hit", |number| format!("device/x{number}/temperature")),
];

#[expect(clippy::print_stdout, reason = "reports to its terminal")]
fn report(line: &str) {
    println!("{line}");
}

/// Processor time of one run, in multiples of a clock tick.
fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let start = processor_time();
    let result = run();
    (processor_time().saturating_sub(start), result)
}

/// Processor time of this thread, as reported by Linux.
fn processor_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat
        .split(' ')
        .next()
        .and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// Nanoseconds per operation, for `count` operations, in the best round.
fn best(count: usize, mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| timed(&mut round).0);
    per_one(times.min().unwrap_or_default(), count)
}

#[expect(clippy::cast_precision_loss, reason = "the number is printed")]
fn per_one(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

fn report_memory(what: &str, counted: usize, before: usize, count: usize) {
    let resident = resident_bytes().saturating_sub(before);
    report(&format!(
        "{what}: {} bytes each counted, {} resident",
        counted / count,
        resident / count
    ));
}

fn filters(count: u32) {
    let filters: Vec<_> = (0..count).map(filter).collect();
    let before = resident_bytes();
    let mut index = Index::with_seed(1);
    let (time, ()) = timed(|| {
        for (session, filter) in (0..).zip(&filters) {
            index.insert(filter, subscriber(session));
        }
    });
    report(&format!(
        "first insertion: {:.0} ns",
        per_one(time, filters.len())
    ));
    report_memory("filters", index.memory_bytes(), before, filters.len());
    for (name, topic) in CASES {
        let mut topics: Vec<_> = (0..WARM_TOPICS).map(topic).collect();
        if name == "several hits" {
            // In addition to `device/{n}/#`: an exact filter, and two that many sessions share.
            for (session, topic) in (0..).zip(&topics) {
                index.insert(topic, subscriber(session));
            }
            index.insert("device/+/cmd", subscriber(0));
            index.insert("#", subscriber(0));
        }
        topics.sort_by_key(|topic| topic.len().wrapping_mul(STRIDE as usize));
        let mut found = Vec::new();
        let mut hits = 0;
        let time = best(topics.len() * 100, || {
            hits = 0;
            for topic in (0..100).flat_map(|_| &topics) {
                found.clear();
                index.matches(topic, &mut found);
                hits += black_box(found.len());
            }
        });
        let hits = hits / (100 * topics.len());
        report(&format!("match, {name}, {hits} found: {time:.0} ns"));
    }
    let number = |step: u32| (step.wrapping_mul(STRIDE) % count) as usize;
    let remove = |index: &mut Index<Subscriber>| {
        for step in 0..count {
            let number = number(step);
            black_box(index.remove(&filters[number], u32::try_from(number).unwrap_or(0)));
        }
    };
    let (time, ()) = timed(|| remove(&mut index));
    report(&format!("removal: {:.0} ns", per_one(time, filters.len())));
    let (time, ()) = timed(|| {
        for step in 0..count {
            let number = number(step);
            let session = u32::try_from(number).unwrap_or(0);
            black_box(index.insert(&filters[number], subscriber(session)));
        }
    });
    report(&format!(
        "insertion in another order: {:.0} ns",
        per_one(time, filters.len())
    ));
}

fn retained(count: u32) {
    let topic = |number: u32| format!("site/{}/device/{number}/state", number % 1_000);
    let topics: Vec<_> = (0..count).map(topic).collect();
    let before = resident_bytes();
    let mut retained = Retained::new();
    let (time, ()) = timed(|| {
        for (number, topic) in (0_u64..).zip(&topics) {
            retained.insert(topic, number);
        }
    });
    report(&format!(
        "first store: {:.0} ns",
        per_one(time, topics.len())
    ));
    let resident = resident_bytes().saturating_sub(before);
    report(&format!(
        "retained topics: {} bytes each resident",
        resident / topics.len()
    ));
    let in_other_order = |step: u32| &topics[(step.wrapping_mul(STRIDE) % count) as usize];
    let time = best(topics.len(), || {
        for step in 0..count {
            black_box(retained.insert(in_other_order(step), u64::from(step)));
        }
    });
    report(&format!("replacing: {time:.0} ns"));
    let time = best(topics.len(), || {
        for step in 0..count {
            black_box(retained.get(in_other_order(step)));
        }
    });
    report(&format!("look-up by topic: {time:.0} ns"));
    for filter in [
        "#",
        "site/7/#",
        "site/+/device/77/state",
        "+/7/+/77/state",
        "site/+/+/+/device",
    ] {
        pages(&retained, filter);
    }
    let time = best(topics.len(), || {
        let mut sum = 0;
        let mut all = Allowance {
            messages: usize::MAX,
            visits: usize::MAX,
        };
        retained.next_page_within("#", None, &mut all, |message| sum += *message);
        black_box(sum);
    });
    report(&format!("all at once: {time:.0} ns each"));
}

/// A complete replay in pages of 64 messages.
fn pages(retained: &Retained<u64>, filter: &str) {
    let (mut found, mut count) = (0, 0);
    let mut position: Option<Position> = None;
    let (time, ()) = timed(|| {
        loop {
            let mut page = Allowance {
                messages: 64,
                visits: 1_024,
            };
            let after = position.as_ref();
            position = retained.next_page_within(filter, after, &mut page, |_| found += 1);
            count += 1;
            if position.is_none() {
                break;
            }
        }
    });
    let page = per_one(time, count);
    report(&format!(
        "replay of `{filter}`: {found} found in {count} pages of {page:.0} ns"
    ));
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let count = count.unwrap_or(1_000_000_u32).max(10_000);
    filters(count);
    retained(count);
}
