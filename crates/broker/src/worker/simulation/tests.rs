//! Many runs, and checks that they cover what they should.

use std::ops::Range;

use thrum_codec::QoS;
use thrum_engine::node::metrics::Counter;

use super::checker;
use super::expected;
use super::history::{Entry, Event};
use super::run::run;
use super::world::World;

/// Runs of the simulation, unless `THRUM_SIM_SEEDS` says otherwise.
const SEEDS: Range<u64> = 0..1000;
/// Runs that the tests of the simulation itself use.
const SAMPLE: Range<u64> = 0..100;

/// The seeds of one of the tests that share them.
fn seeds(part: u64, parts: u64) -> impl Iterator<Item = u64> {
    let range = std::env::var("THRUM_SIM_SEEDS").map_or(SEEDS, |text| {
        let (first, end) = text.split_once("..").expect("THRUM_SIM_SEEDS=first..end");
        first.parse().unwrap()..end.parse().unwrap()
    });
    range.filter(move |seed| seed % parts == part)
}

fn run_all(part: u64, parts: u64) {
    for seed in seeds(part, parts) {
        if let Err(failure) = run(seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_node_keeps_its_promises_in_even_runs() {
    run_all(0, 2);
}

#[test]
fn a_node_keeps_its_promises_in_odd_runs() {
    run_all(1, 2);
}

#[test]
fn a_seed_repeats_the_same_run() {
    for seed in SAMPLE.take(20) {
        let [first, second] = [seed, seed].map(|seed| run(seed).unwrap().history);
        let differs = first
            .iter()
            .zip(&second)
            .position(|(one, other)| one != other);
        assert_eq!(
            differs,
            None,
            "seed {seed}: {:?}",
            differs.map(|at| first[at])
        );
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// Events that must happen in a number of runs, so that green runs mean something.
#[derive(Debug, Default)]
struct Coverage {
    resumed: u32,
    redelivered: u32,
    exactly_once: u32,
    retained: u32,
    wills: u32,
    restarts: u32,
    refused: u32,
    over_tls: u32,
    written: u32,
    counters: [u64; COUNTERS.len()],
}

const COUNTERS: [Counter; 12] = [
    Counter::SinkRefused,
    Counter::QuestionsAsked,
    Counter::Takeovers,
    Counter::Handovers,
    Counter::Queued,
    Counter::LimitOutput,
    Counter::MailboxFull,
    Counter::PublishersPaused,
    Counter::SharedRedispatched,
    Counter::SessionsExpired,
    Counter::DroppedQueueFull,
    Counter::ReviewsAwaited,
];

impl Coverage {
    fn add(&mut self, world: &World) {
        for Entry { event, .. } in &world.history {
            let count = match event {
                Event::Connected {
                    session_present: true,
                    ..
                } => &mut self.resumed,
                Event::Received { retain: true, .. } => &mut self.retained,
                Event::Received { dup: true, .. } => &mut self.redelivered,
                Event::Received { client, .. } if *client == world.watcher() => &mut self.wills,
                Event::Received {
                    qos: QoS::ExactlyOnce,
                    ..
                } => &mut self.exactly_once,
                Event::Restarted => &mut self.restarts,
                Event::Written { .. } => &mut self.written,
                Event::Refused { .. } => &mut self.refused,
                _ => continue,
            };
            *count += 1;
        }
        if world.plan.scheme.is_tls() {
            let events = world.history.iter().map(|entry| entry.event);
            let connected = events.filter(|event| matches!(event, Event::Connected { .. }));
            self.over_tls += u32::try_from(connected.count()).unwrap();
        }
        for (count, counter) in self.counters.iter_mut().zip(COUNTERS) {
            // These are the counters of the last node of the run.
            *count += world.machine.node.state.metrics.total(counter);
        }
    }
}

#[test]
fn the_runs_cover_the_events_that_they_test() {
    let mut seen = Coverage::default();
    for seed in SAMPLE {
        seen.add(&run(seed).unwrap());
    }
    let Coverage {
        resumed,
        redelivered,
        exactly_once,
        retained,
        wills,
        restarts,
        refused,
        over_tls,
        written,
        counters,
    } = seen;
    let events = [
        resumed,
        redelivered,
        exactly_once,
        retained,
        wills,
        restarts,
        over_tls,
        written,
    ];
    assert!(events.iter().all(|count| *count > 30), "{seen:?}");
    assert!(refused > 0, "{seen:?}");
    assert!(counters.iter().all(|count| *count > 0), "{seen:?}");
}

/// Breaks histories by a change, asserts that the checker rejects each, and returns their number.
fn count_rejected(
    is_wrong_without: impl Fn(&[Entry], usize) -> bool,
    change: impl Fn(&mut Vec<Entry>, usize),
) -> usize {
    let mut count = 0;
    for seed in SAMPLE {
        let world = run(seed).unwrap();
        if world.plan.allowances.queues_overflow {
            continue;
        }
        let places = 0..world.history.len();
        for place in places
            .filter(|place| is_wrong_without(&world.history, *place))
            .take(20)
        {
            let mut history = world.history.clone();
            change(&mut history, place);
            let checked = checker::check(&history, world.plan.allowances);
            assert!(
                checked.is_err(),
                "seed {seed}, {place}: {:?}",
                world.history[place]
            );
            count += 1;
        }
    }
    count
}

#[test]
fn a_duplicate_of_a_message_with_qos_2_is_rejected() {
    let count = count_rejected(expected::is_exactly_once, |history, place| {
        history.insert(place, history[place]);
    });
    assert!(count > 50, "{count}");
}

#[test]
fn a_missing_expected_message_is_rejected() {
    let count = count_rejected(expected::is_expected_message, |history, place| {
        history.remove(place);
    });
    assert!(count > 50, "{count}");
}

#[test]
fn a_missing_expected_will_is_rejected() {
    let count = count_rejected(expected::is_expected_will, |history, place| {
        history.remove(place);
    });
    assert!(count > 10, "{count}");
}
