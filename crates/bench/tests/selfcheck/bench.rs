//! Short runs, and the brokers they are against.

use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use thrum_bench::observe::Observer;
use thrum_bench::{BrokerProcess, Outcome, RunOptions, Target, run};
use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config};
use thrum_codec::Version;
use thrum_load::mark::Mark;
use thrum_load::scenario::{Group, Overrides, Rate, Reconnect, Scenario, find};
use thrum_transport::Endpoint;

use crate::fake_broker::Fate;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The law of a broker that keeps its promises.
pub(crate) fn lawful(_: Mark) -> Fate {
    Fate::Deliver
}

/// No observer.
pub(crate) struct NoObserver;

impl Observer for NoObserver {}

/// Two threads against a broker that is not watched.
pub(crate) fn options(address: SocketAddr) -> RunOptions {
    options_of(&address.to_string())
}

pub(crate) fn options_of(url: &str) -> RunOptions {
    RunOptions {
        targets: vec![Target {
            process: BrokerProcess::Unknown,
            ..Target::new(Endpoint::parse(url).unwrap())
        }],
        threads: Some(2),
        ..RunOptions::default()
    }
}

pub(crate) fn run_against(address: SocketAddr, scenario: Scenario) -> Outcome {
    run(scenario, &options(address), &mut NoObserver).unwrap()
}

/// Publishers with a subscriber each, a rate per publisher, QoS 1, no warm-up.
pub(crate) fn pairs(pairs: u32, rate: u64, hold: Duration) -> Scenario {
    let overrides = Overrides {
        publishers: Some(pairs),
        rate: Some(Rate::per_second(rate)),
        warm_up: Some(Duration::ZERO),
        hold: Some(hold),
        // Longer than anything takes: a run without losses ends before.
        drain: Some(Duration::from_secs(20)),
        ..Overrides::default()
    };
    find("p2p-1K").unwrap().with(&overrides).unwrap()
}

/// The group with a name.
pub(crate) fn group<'a>(scenario: &'a mut Scenario, name: &str) -> &'a mut Group {
    let mut groups = scenario.groups.iter_mut();
    groups.find(|group| group.name == name).unwrap()
}

/// All clients reconnect this long after they are lost.
pub(crate) fn reconnect_after(scenario: &mut Scenario, delay: Duration) {
    for group in &mut scenario.groups {
        group.client.reconnect = Some(Reconnect {
            delay,
            delay_max: delay.max(ms(100)),
        });
    }
}

/// The broker of this workspace on a free port, with two workers.
pub(crate) fn real_broker() -> (Broker, SocketAddr) {
    let mut config = Config::default();
    config.node.workers = Workers::Count(2);
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("mqtt".to_owned(), listener);
    let broker = Broker::start(config, Access::default()).unwrap();
    let address = broker.addresses()[0].socket_address().unwrap();
    (broker, address)
}

/// Checks several cases side by side: a run is mostly waiting.
pub(crate) fn at_once<T: Clone + Send>(cases: &[T], check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let (case, check) = (case.clone(), &check);
            scope.spawn(move || check(case));
        }
    });
}

/// Every message arrived once and in order, was promised, and belongs to this run.
#[track_caller]
pub(crate) fn assert_flawless(outcome: &Outcome) {
    let delivery = &outcome.delivery;
    assert_eq!(outcome.faults, [], "{delivery:?}");
    assert_eq!(
        (delivery.lost, delivery.excused, delivery.duplicated),
        (0, 0, 0)
    );
    assert_eq!(
        (delivery.wrong.misdelivered, delivery.wrong.foreign),
        (0, 0)
    );
    assert_eq!(outcome.result.errors, []);
    assert!(delivery.expected > 0);
}

/// Values of at least this much; bounds that are not bounds of a bucket are wrong by 0.1 %.
pub(crate) fn count_from(histogram: &Histogram<u64>, least: Duration) -> u64 {
    let least = u64::try_from(least.as_nanos()).unwrap();
    let recorded = histogram.iter_recorded();
    let slow = recorded.filter(|step| step.value_iterated_to() >= least);
    slow.map(|step| step.count_since_last_iteration()).sum()
}

/// Every value with how often it was recorded.
pub(crate) fn values(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let recorded = histogram.iter_recorded();
    recorded
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect()
}

pub(crate) const VERSIONS: [Version; 2] = [Version::V311, Version::V5];
