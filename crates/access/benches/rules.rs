//! Speed of the checks of one client, which a publisher pays for each message, and of resolving its
//! rules; the memory that is held for it.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use thrum_access::{Identity, Resolved, Rules};
use thrum_codec::QoS;

/// Rules that fit the client before the one that decides, and that one.
const FITTING: [usize; 3] = [1, 10, 100];
/// Users of a file with a rule for each.
const USERS: u32 = 100_000;
const QOS: QoS = QoS::AtLeastOnce;

fn client() -> Identity {
    Identity {
        client_id: "device-4711".into(),
        username: Some("user-4711".into()),
        ..Identity::default()
    }
}

/// They differ from the topic in their third level, the last one fits.
fn rules(count: usize) -> Rules {
    let others = (1..count).map(|number| format!("allow all pubsub site/+/machine-{number}/%c/#"));
    let lines: Vec<_> = others
        .chain(["allow all pubsub site/+/device/%c/#".to_owned()])
        .collect();
    Rules::parse_list(&lines, "bench").expect("valid rules")
}

fn resolved(rules: &Rules) -> Resolved {
    let mut resolved = Resolved::default();
    resolved.add_set(rules, &client()).expect("few rules fit");
    resolved.set_default(Some(false));
    resolved.shrink_to_fit();
    resolved
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn report(line: &str) {
    println!("{line}");
}

fn bench_checks(criterion: &mut Criterion) {
    for count in FITTING {
        let resolved = resolved(&rules(count));
        report(&format!("{count} rules: {} bytes", resolved.memory_bytes()));
        let mut group = criterion.benchmark_group(format!("{count} rules"));
        group.bench_function("publish", |bencher| {
            let topic = "site/7/device/device-4711/state";
            bencher.iter(|| resolved.publish(black_box(topic), QOS, false).allowed);
        });
        group.bench_function("publish of another's topic", |bencher| {
            let topic = "site/7/device/device-4712/state";
            bencher.iter(|| resolved.publish(black_box(topic), QOS, false).allowed);
        });
        group.bench_function("subscribe", |bencher| {
            let filter = "site/7/device/device-4711/+/set";
            bencher.iter(|| resolved.subscribe(black_box(filter), QOS));
        });
        group.bench_function("subscribe to everything", |bencher| {
            bencher.iter(|| resolved.subscribe(black_box("#"), QOS));
        });
        group.finish();
    }
}

fn bench_resolve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve");
    let few = rules(3);
    group.bench_function("3 rules for all", |bencher| {
        bencher.iter(|| resolved(&few).len());
    });
    let lines: Vec<_> = (0..USERS)
        .map(|number| format!("allow user:user-{number} pubsub users/{number}/#"))
        .collect();
    let many = Rules::parse_list(&lines, "bench").expect("valid rules");
    group.bench_function("1 of 100k rules for users", |bencher| {
        bencher.iter(|| resolved(&many).len());
    });
    group.finish();
    let text = lines.join("\n");
    let mut group = criterion.benchmark_group("parse");
    group.bench_function("100k rules for users", |bencher| {
        bencher.iter_with_large_drop(|| Rules::parse(&text, "bench").map(|rules| rules.len()));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = bench_checks, bench_resolve
}
criterion_main!(benches);
