//! Simulated brokers: equal ones seldom raise an alarm, and slower ones mostly do.
//!
//! The runs vary as those of a busy machine of two cores do: the response times have a heavy tail,
//! consecutive seconds resemble each other, each run has a level of its own (6 % in latency, 3 % in
//! CPU and memory), the machine drifts by 1 % from run to run, and one run of 100 goes wrong.

use std::f64::consts::TAU;

use super::*;
use crate::result::{Latencies, Quantiles, Resources, Second, Stage};
use thrum_figures::{fraction, whole};

const SECONDS: u32 = 20;
const MESSAGES: u64 = 250;
const CONNECTS: f64 = 1_000.0;
const PAIRS: usize = 400;

/// Deviations of logarithms.
const LATENCY_OF_RUN: f64 = 0.06;
const CPU_OF_RUN: f64 = 0.03;
const MEMORY_OF_RUN: f64 = 0.03;
const DRIFT: f64 = 0.01;
const LATENCY_OF_SECOND: f64 = 0.15;
const CPU_OF_SECOND: f64 = 0.05;

/// What a second keeps of the level of the one before.
const CORRELATION: f64 = 0.6;

const BAD_RUN: f64 = 0.01;

/// A broker by its factors of latency and CPU.
#[derive(Clone, Copy)]
struct Broker {
    latency: f64,
    cpu: f64,
}

const USUAL: Broker = Broker {
    latency: 1.0,
    cpu: 1.0,
};

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (fraction(self.0 >> 12) + 0.5) / fraction(1 << 52)
    }

    /// Normally distributed with the deviation 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// A quantile in nanoseconds of this many response times of a heavy tail (Pareto): the part of
    /// values below it is almost normally distributed.
    fn quantile(&mut self, quantile: f64, values: f64) -> f64 {
        let error = (quantile * (1.0 - quantile) / values).sqrt() * self.normal();
        let least = 0.5 / values;
        pareto((quantile + error).clamp(least, 1.0 - least))
    }
}

fn pareto(part: f64) -> f64 {
    100_000.0 * (1.0 - part).powf(-0.4)
}

/// Quantiles of the response times of a second, and of several seconds together.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

fn named(count: u64, [p50, p90, p99]: [f64; 3]) -> Quantiles {
    Quantiles {
        count,
        p50: whole(p50),
        p90: whole(p90),
        p99: whole(p99),
        ..Quantiles::default()
    }
}

/// A run that started as the `number`th, when the machine had drifted by so much.
fn run(
    random: &mut Random,
    broker: Broker,
    number: usize,
    drift: f64,
    template: &RunResult,
) -> RunResult {
    let mut run = template.clone();
    run.started = format!("2026-11-21T09:{number:02}:00Z");
    let bad = if random.uniform() < BAD_RUN { 3.0 } else { 1.0 };
    let latency_level = broker.latency * bad * (drift + LATENCY_OF_RUN * random.normal()).exp();
    let cpu_level = broker.cpu * (drift + CPU_OF_RUN * random.normal()).exp();
    let mut all = [0.0; 3];
    let mut cpu = 0.0;
    let (mut slow, mut dear) = (random.normal(), random.normal());
    for number in 0..SECONDS {
        let fresh = (1.0 - CORRELATION * CORRELATION).sqrt();
        slow = CORRELATION * slow + fresh * random.normal();
        dear = CORRELATION * dear + fresh * random.normal();
        let level = latency_level * (LATENCY_OF_SECOND * slow).exp();
        let values = fraction(MESSAGES);
        let e2e = QUANTILES.map(|quantile| level * random.quantile(quantile, values));
        let cores = 0.01 * cpu_level * (CPU_OF_SECOND * dear).exp();
        cpu += cores;
        for (sum, quantile) in all.iter_mut().zip(e2e) {
            *sum += quantile / f64::from(SECONDS);
        }
        run.series.push(Second {
            at: f64::from(number),
            span: 1.0,
            stage: Stage::Hold,
            sent: MESSAGES,
            received: MESSAGES,
            e2e: Some(named(MESSAGES, e2e)),
            broker: Some(Resources {
                cores_user: cores,
                rss_bytes: 8 << 20,
                ..Resources::default()
            }),
            ..Second::default()
        });
    }
    run.latency_ns.e2e = Some(Distribution {
        quantiles: named(MESSAGES * u64::from(SECONDS), all),
        ..Distribution::default()
    });
    let connects = QUANTILES.map(|quantile| latency_level * random.quantile(quantile, CONNECTS));
    run.latency_ns.connect = Some(Distribution {
        quantiles: named(whole(CONNECTS), connects),
        ..run.latency_ns.connect.unwrap_or_default()
    });
    run.rates.received = fraction(MESSAGES) * (1.0 + 0.0005 * random.normal());
    let usage = &mut run.brokers[0].usage;
    usage.cores_avg = cpu / f64::from(SECONDS);
    usage.cpu_us_per_message = Some(usage.cores_avg * 1e6 / fraction(MESSAGES));
    usage.rss_max_bytes = whole(8e6 * (MEMORY_OF_RUN * random.normal()).exp());
    run.fill_metrics();
    run
}

/// The order of the runs of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Alternated,
    OneAfterTheOther,
}

fn pair(
    random: &mut Random,
    template: &RunResult,
    (runs, order): (usize, Order),
    candidate: Broker,
) -> Comparison {
    let mut drift = 0.0;
    let mut sides = [Vec::new(), Vec::new()];
    for number in 0..2 * runs {
        drift += DRIFT * random.normal();
        let side = match order {
            // A B B A A B B A
            Order::Alternated => usize::from(number.div_ceil(2) % 2 == 1),
            Order::OneAfterTheOther => number / runs,
        };
        let broker = [USUAL, candidate][side];
        sides[side].push(run(random, broker, number, drift, template));
    }

    Comparison::new(&sides[0], &sides[1])
}

/// What the runs have in common. The shape of the connect times is all that the error of a
/// percentile of one run needs.
fn template() -> RunResult {
    let mut run = sample::run();
    let connects: Vec<u64> = (0..1_000_u32)
        .map(|place| whole(pareto((f64::from(place) + 0.5) / CONNECTS)))
        .collect();
    let connect = Distribution {
        hdr: sample::distribution(&connects).hdr,
        ..Distribution::default()
    };
    run.latency_ns = Latencies {
        connect: Some(connect),
        ..Latencies::default()
    };
    run.series.clear();
    run.metrics.clear();
    run
}

/// Pairs of `PAIRS` that raise an alarm over a figure, or over any.
fn alarms(runs: usize, order: Order, candidate: Broker, metric: Option<&str>) -> usize {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let template = template();
    let is_alarm = |_: &usize| {
        let comparison = pair(&mut random, &template, (runs, order), candidate);
        let worse = comparison.regressions();
        worse
            .iter()
            .any(|row| metric.is_none_or(|metric| row.metric == metric))
    };
    (0..PAIRS).filter(is_alarm).count()
}

fn check_equal(runs: usize, order: Order) {
    let alarms = alarms(runs, order, USUAL, None);
    assert!(
        alarms * 100 <= PAIRS * 5,
        "{runs} a side, {order:?}: {alarms} of {PAIRS}"
    );
}

#[test]
fn equal_brokers_seldom_raise_an_alarm_with_one_run_a_side() {
    check_equal(1, Order::OneAfterTheOther);
}

#[test]
fn equal_brokers_seldom_raise_an_alarm_with_two_runs_a_side() {
    check_equal(2, Order::Alternated);
}

#[test]
fn equal_brokers_seldom_raise_an_alarm_with_three_runs_a_side() {
    check_equal(3, Order::Alternated);
}

#[test]
fn equal_brokers_seldom_raise_an_alarm_with_four_runs_a_side() {
    check_equal(4, Order::Alternated);
}

#[test]
fn equal_brokers_seldom_raise_an_alarm_if_one_was_measured_after_the_other() {
    check_equal(4, Order::OneAfterTheOther);
}

#[test]
fn a_p99_of_half_as_much_again_is_found_with_four_runs_a_side() {
    let slower = Broker {
        latency: 1.5,
        ..USUAL
    };
    for order in [Order::Alternated, Order::OneAfterTheOther] {
        let found = alarms(4, order, slower, Some("e2e.p99"));
        assert!(found * 100 >= PAIRS * 90, "{order:?}: {found} of {PAIRS}");
    }
}

#[test]
fn a_fifth_more_cpu_is_found_with_four_runs_a_side() {
    let dearer = Broker { cpu: 1.2, ..USUAL };
    for order in [Order::Alternated, Order::OneAfterTheOther] {
        let found = alarms(4, order, dearer, Some("broker.cpu_per_message"));
        assert!(found * 100 >= PAIRS * 90, "{order:?}: {found} of {PAIRS}");
    }
}
