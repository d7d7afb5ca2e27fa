//! What workers do to each other: shared groups whose members come and go, and the counts of a
//! listener. One or two threads stand for the workers of a node with 64 of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use thrum_broker::contention::ListenerCounts;
use thrum_engine::contention::{ExpiredMessages, Publisher, SharedGroups, Texts};

const WORKERS: usize = 64;
const MEMBERS: [u64; 3] = [10, 1_000, 10_000];
const LISTENERS: usize = 4;
/// Connections that each measured run accepts and closes.
const ACCEPTS: usize = 50_000;
/// Spreads consecutive numbers over all members.
const STRIDE: u64 = 7_919;

fn filled(members: u64) -> (SharedGroups, u32) {
    let groups = SharedGroups::new(WORKERS);
    let mut group = 0;
    for session in 0..members {
        group = groups.join("a/+", session);
    }
    (groups, group)
}

fn publishers() -> Vec<Publisher> {
    (0..WORKERS).map(|_| Publisher::default()).collect()
}

/// Each of 64 workers publishes in turn, one message after each change.
fn bench_reconnects(criterion: &mut BenchmarkGroup<'_, WallTime>) {
    for members in MEMBERS {
        let (groups, group) = filled(members);
        let mut publishers = publishers();
        let (mut session, mut worker) = (0, 0);
        let mut publish = || {
            worker = (worker + 1) % WORKERS;
            black_box(groups.publish(&mut publishers[worker], "a/b"));
        };
        (0..WORKERS).for_each(|_| publish());
        criterion.bench_function(format!("goes and comes back, of {members}"), |bencher| {
            bencher.iter(|| {
                session = (session + STRIDE) % members;
                groups.set_online(group, session, false);
                publish();
                groups.set_online(group, session, true);
                publish();
            });
        });
        criterion.bench_function(format!("leaves and joins, of {members}"), |bencher| {
            bencher.iter(|| {
                session = (session + STRIDE) % members;
                groups.leave(group, session);
                publish();
                groups.join("a/+", session);
                publish();
            });
        });
    }
}

fn bench_picks(criterion: &mut BenchmarkGroup<'_, WallTime>) {
    for members in MEMBERS {
        let (groups, _) = filled(members);
        let mut publisher = Publisher::default();
        criterion.bench_function(format!("message, of {members}"), |bencher| {
            bencher.iter(|| groups.publish(&mut publisher, "a/b"));
        });
    }
    let (groups, group) = filled(10);
    let mut publisher = Publisher::default();
    criterion.bench_function("look-up, of 10", |bencher| {
        bencher.iter(|| {
            groups.forget(&mut publisher);
            groups.publish(&mut publisher, "a/b")
        });
    });
    let mut texts = Texts::default();
    criterion.bench_function("text for the disk", |bencher| {
        bencher.iter(|| groups.group_text_bytes(&mut texts, group));
    });
}

fn bench_groups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shared group");
    bench_reconnects(&mut group);
    bench_picks(&mut group);
    group.finish();
}

fn accept_and_close(counts: &ListenerCounts) {
    for number in 0..ACCEPTS / 2 {
        black_box(counts.accept(number % LISTENERS));
    }
    for number in 0..ACCEPTS / 2 {
        counts.close(number % LISTENERS);
    }
}

fn bench_accepts(criterion: &mut Criterion) {
    let counts = ListenerCounts::new(LISTENERS);
    let mut group = criterion.benchmark_group("listeners");
    group.bench_function("50,000 accepts by two threads", |bencher| {
        bencher.iter(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| accept_and_close(&counts));
                accept_and_close(&counts);
            });
        });
    });
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stops.load(Ordering::Relaxed) {
                accept_and_close(&counts);
            }
        });
        group.bench_function("look at a rate, accepts beside", |bencher| {
            bencher.iter(|| black_box(counts.has_rates(1)));
        });
        stops.store(true, Ordering::Relaxed);
    });
    group.finish();
}

/// What one worker does in one of its turns each second.
fn bench_sweep(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("retained messages");
    group.bench_function("sweep, all expired", |bencher| {
        bencher.iter_batched(
            || ExpiredMessages::new(100_000, WORKERS),
            |messages| {
                black_box(messages.sweep());
                messages
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = bench_groups, bench_accepts, bench_sweep
}
criterion_main!(benches);
