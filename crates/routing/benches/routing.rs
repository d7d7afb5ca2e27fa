//! Speed of the index at three sizes, half of the filters with wildcards, and its memory; speed of
//! shared subscriptions and retained messages.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use thrum_routing::shared::{Choice, Cursor, Group};
use thrum_routing::{Allowance, Destination, Index, Retained, Strategy};

const FILTERS: u32 = 1_000_000;
/// Filters of the timed build.
const BUILT: u32 = 200_000;
/// Smaller sizes, measured only in the warm cases.
const SMALLER: [(&str, u32); 2] = [("1k", 1_000), ("100k", 100_000)];
/// Topics of a steady load: warm in the cache, and not more than the exact filters of the smallest
/// index.
const WARM_TOPICS: u32 = 250;
const GROUP_MEMBERS: u32 = 100;
/// Number of deep filters, each with the same number of levels: as many as many clients together
/// may have.
const DEEP_FILTERS: u32 = 7_741;
const DEEP_LEVELS: u32 = 126;
/// Distributes consecutive numbers over all filters.
const STRIDE: u32 = 7_919;

/// Has the size of a session reference with subscription options.
#[expect(dead_code, reason = "only the size of the options counts here")]
#[derive(Clone)]
struct Subscriber {
    session: u32,
    subscription_identifier: u32,
    options: u8,
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
        options: 1,
    }
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

fn filled(filters: &[String]) -> Index<Subscriber> {
    let mut index = Index::with_seed(1);
    for (session, filter) in (0..).zip(filters) {
        index.insert(filter, subscriber(session));
    }
    index
}

/// Name, number of topics, and the function from a number to its topic.
type Case = (&'static str, u32, fn(u32) -> String);

const WARM: [Case; 4] = [
    ("exact hit, warm", WARM_TOPICS, |number| {
        topic(4 * number + 1)
    }),
    ("wildcard hit, warm", WARM_TOPICS, |number| {
        topic(2 * number)
    }),
    ("miss, same beginning", WARM_TOPICS, |number| {
        topic(FILTERS + number)
    }),
    ("miss, other beginning", WARM_TOPICS, |number| {
        format!("plant/{number}/state")
    }),
];
/// More topics than any cache holds.
const COLD: [Case; 2] = [
    ("exact hit, cold", 200_000, |number| {
        topic(4 * (number * STRIDE % 250_000) + 1)
    }),
    ("wildcard hit, cold", 200_000, |number| {
        topic(2 * (number * STRIDE % 500_000))
    }),
];

fn bench_match(criterion: &mut Criterion, size: &str, index: &Index<Subscriber>, cases: &[Case]) {
    let mut group = criterion.benchmark_group(format!("match of {size} filters"));
    for (name, count, topic) in cases {
        let topics: Vec<_> = (0..*count).map(topic).collect();
        let mut next = topics.iter().cycle();
        let mut found = Vec::new();
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                found.clear();
                index.matches(next.next().map_or("", String::as_str), &mut found);
                black_box(found.len())
            });
        });
    }
    group.finish();
}

/// Half of the levels are wildcards, chosen by pseudorandom bits.
fn deep_filter(number: u32) -> String {
    let bits = number.wrapping_mul(0x9E37_79B9);
    let levels: Vec<_> = (0..DEEP_LEVELS)
        .map(|level| {
            if bits >> (level % 32) & 1 == 0 {
                "a"
            } else {
                "+"
            }
        })
        .collect();
    levels.join("/")
}

/// A topic that follows the path of every filter and matches none.
fn bench_deep(criterion: &mut Criterion) {
    let filters: Vec<_> = (0..DEEP_FILTERS).map(deep_filter).collect();
    let index = filled(&filters);
    let topic = format!("{}t1", "a/".repeat(DEEP_LEVELS as usize));
    let mut found = Vec::new();
    let visits = index.matches(&topic, &mut found);
    report(&format!(
        "{DEEP_FILTERS} filters of {DEEP_LEVELS} levels: {} bytes each by count; {visits} visits of a match",
        index.memory_bytes() / filters.len(),
    ));
    let mut group = criterion.benchmark_group("match of deep filters");
    group.throughput(Throughput::Elements(visits as u64));
    group.bench_function("visits", |bencher| {
        bencher.iter(|| {
            found.clear();
            black_box(index.matches(&topic, &mut found))
        });
    });
    group.finish();
}

fn bench_pick(criterion: &mut Criterion) {
    let mut criterion = criterion.benchmark_group("pick of 100 members");
    for strategy in Strategy::ALL {
        let mut group = Group::new(strategy);
        for session in 0..GROUP_MEMBERS {
            group.add(subscriber(session), true);
        }
        let mut cursor = Cursor::default();
        let mut choice = Choice::default();
        criterion.bench_function(strategy.name(), |bencher| {
            bencher.iter(|| {
                // Distributed over 64 bits, like hashes and random numbers.
                choice.random = choice.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
                choice.topic_hash = choice.random;
                choice.client_hash = choice.random;
                group
                    .pick(&mut cursor, choice, |member| member.session % 2 == 0, None)
                    .map(Destination::key)
            });
        });
    }
    criterion.finish();
}

fn bench_changes(criterion: &mut Criterion, index: &mut Index<Subscriber>, filters: &[String]) {
    let mut group = criterion.benchmark_group("change of 1M filters");
    let mut numbers = (0..FILTERS)
        .map(|number| number.wrapping_mul(STRIDE) % FILTERS)
        .cycle();
    group.bench_function("remove and insert a filter", |bencher| {
        bencher.iter(|| {
            let number = numbers.next().unwrap_or_default();
            let filter = &filters[number as usize];
            black_box(index.remove(filter, number));
            black_box(index.insert(filter, subscriber(number)));
        });
    });
    let crowd = index.insert("crowd", subscriber(0)).filter;
    for session in 1..100_000 {
        index.insert("crowd", subscriber(session));
    }
    let mut sessions = (0..100_000_u32)
        .map(|session| session * 31 % 100_000)
        .cycle();
    group.bench_function("remove and insert one of 100k subscribers", |bencher| {
        bencher.iter(|| {
            let session = sessions.next().unwrap_or_default();
            black_box(index.remove_by_id(crowd, session));
            black_box(index.insert("crowd", subscriber(session)));
        });
    });
    group.finish();
}

fn bench_retained(criterion: &mut Criterion) {
    let mut retained = Retained::new();
    for number in 0..200_000 {
        retained.insert(&topic(number), u64::from(number));
    }
    let mut group = criterion.benchmark_group("retained, 200k topics");
    let mut numbers = (0..200_000_u32)
        .map(|number| number.wrapping_mul(STRIDE) % 200_000)
        .cycle();
    group.bench_function("replace", |bencher| {
        bencher.iter(|| {
            let number = numbers.next().unwrap_or_default();
            black_box(retained.insert(&topic(number), u64::from(number)))
        });
    });
    let mut position = None;
    group.bench_function("page of 100 of site/#", |bencher| {
        bencher.iter(|| {
            let mut sum = 0;
            let mut page = Allowance {
                messages: 100,
                visits: 1_600,
            };
            let after = position.as_ref();
            position = retained.next_page_within("site/#", after, &mut page, |message| {
                sum += *message;
            });
            black_box(sum)
        });
    });
    group.bench_function("200 matches of site/7/#", |bencher| {
        bencher.iter(|| {
            let mut sum = 0;
            let mut all = Allowance {
                messages: usize::MAX,
                visits: usize::MAX,
            };
            retained.next_page_within("site/7/#", None, &mut all, |message| sum += *message);
            black_box(sum)
        });
    });
    group.finish();
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

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn report(line: &str) {
    println!("{line}");
}

fn routing(criterion: &mut Criterion) {
    let filters: Vec<_> = (0..FILTERS).map(filter).collect();
    let before = resident_bytes();
    let mut index = filled(&filters);
    let resident = resident_bytes() - before;
    report(&format!(
        "{FILTERS} filters: {} bytes each by count, {} resident",
        index.memory_bytes() / filters.len(),
        resident / filters.len(),
    ));
    let mut group = criterion.benchmark_group("build");
    group.throughput(Throughput::Elements(u64::from(BUILT)));
    group.bench_function("200k filters", |bencher| {
        bencher.iter_with_large_drop(|| filled(&filters[..BUILT as usize]));
    });
    group.finish();
    for (size, count) in SMALLER {
        let index = filled(&filters[..count as usize]);
        bench_match(criterion, size, &index, &WARM);
    }
    bench_match(criterion, "1M", &index, &[&WARM[..], &COLD].concat());
    bench_changes(criterion, &mut index, &filters);
    bench_pick(criterion);
    bench_retained(criterion);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = bench_deep, routing
}
criterion_main!(benches);
