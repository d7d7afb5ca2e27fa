//! The columns of the tables, and the median of several rounds.

use serde::Serialize;

use super::{VersusBroker, VersusScenario};
use crate::metric::{Better, Unit};
use crate::result::RunResult;
use crate::svg::value_text;
use thrum_figures::{self as units, fraction};

/// The median of several rounds and how far they lay apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median; of an even number of rounds the mean of the two in the middle.
    pub median: f64,
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
    /// Rounds that counted and had the figure.
    pub rounds: usize,
}

impl Spread {
    /// Of the figures of rounds; none if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self {
            median,
            min,
            max,
            rounds: values.len(),
        })
    }

    /// `1.2ms`; of cores the number alone.
    pub fn text(&self, unit: Unit) -> String {
        cell_text(self.median, unit)
    }

    /// `[1.1ms..1.4ms]`; empty if there was one round or all agree.
    pub fn range_text(&self, unit: Unit) -> String {
        if self.rounds < 2 {
            return String::new();
        }
        let (low, high) = (cell_text(self.min, unit), cell_text(self.max, unit));
        if low == high {
            return String::new();
        }
        format!("[{low}..{high}]")
    }
}

/// The rounds that count: the generator did not limit them. If it limited every
/// round, all of them are shown as what they are, see [`void_note`](super::void_note).
pub fn counted<R>(rounds: &[R], is_valid: impl Fn(&R) -> bool) -> Vec<&R> {
    let valid: Vec<&R> = rounds.iter().filter(|round| is_valid(round)).collect();
    if valid.is_empty() {
        rounds.iter().collect()
    } else {
        valid
    }
}

fn cell_text(value: f64, unit: Unit) -> String {
    if unit == Unit::Cores {
        units::figure(value)
    } else {
        value_text(value, unit)
    }
}

/// A row of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Unit of its figures.
    pub unit: Unit,
    /// Which end is better.
    pub better: Better,
    /// Whether it gets a chart.
    pub chart: bool,
    /// Its name in [`RunResult::metrics`].
    pub metric: &'static str,
}

/// Not in the list of figures: resident memory at the end of a run in which it had become stable.
const STABLE_MEMORY: &str = "memory stable at";

impl Column {
    /// The figure over all rounds of a broker; rounds that withhold it do not count.
    pub fn spread(&self, broker: &VersusBroker) -> Option<Spread> {
        let runs = counted(&broker.runs, |run| run.validity.valid);
        Spread::of(runs.into_iter().filter_map(|run| self.of(run)).collect())
    }

    /// The most of the figure that may be the generator's in a round that counts, in nanoseconds.
    pub fn bound(&self, broker: &VersusBroker) -> Option<u64> {
        let (distribution, figure) = self.metric.split_once('.')?;
        let runs = counted(&broker.runs, |run| run.validity.valid);
        let bounds = runs
            .into_iter()
            .filter_map(|run| run.latency_ns.find(distribution)?.bound_of(figure));
        bounds.max()
    }

    fn of(&self, run: &RunResult) -> Option<f64> {
        if self.name == STABLE_MEMORY {
            let usage = run.brokers.first().map(|broker| &broker.usage)?;
            usage.rss_stable_seconds?;
            if run.validity.why_withheld("broker.rss.stable").is_some() {
                return None;
            }
            return Some(fraction(usage.memory_end.rss_bytes));
        }
        run.metrics.get(self.metric).copied()
    }
}

const fn column(name: &'static str, unit: Unit, better: Better, metric: &'static str) -> Column {
    Column {
        name,
        unit,
        better,
        chart: false,
        metric,
    }
}

const fn charted(mut column: Column) -> Column {
    column.chart = true;
    column
}

const fn latency(name: &'static str, metric: &'static str) -> Column {
    column(name, Unit::Nanoseconds, Better::Lower, metric)
}

const fn cores(name: &'static str, metric: &'static str) -> Column {
    column(name, Unit::Cores, Better::Lower, metric)
}

const fn memory(name: &'static str, metric: &'static str) -> Column {
    column(name, Unit::Bytes, Better::Lower, metric)
}

/// Latency and CPU first.
const MESSAGES: [Column; 9] = [
    latency("p50", "e2e.p50"),
    latency("p75", "e2e.p75"),
    latency("p90", "e2e.p90"),
    latency("p95", "e2e.p95"),
    charted(latency("p99", "e2e.p99")),
    latency("avg latency", "e2e.mean"),
    charted(column(
        "CPU per message",
        Unit::Microseconds,
        Better::Lower,
        "broker.cpu_per_message",
    )),
    column(
        "CPU of the whole machine per message",
        Unit::Microseconds,
        Better::Lower,
        "machine.cpu_per_message",
    ),
    column(
        "messages per core",
        Unit::PerSecond,
        Better::Higher,
        "broker.messages_per_core",
    ),
];

const CONNECTIONS: [Column; 2] = [
    latency("connect p50", "connect.p50"),
    charted(latency("connect p99", "connect.p99")),
];

const CPU: [Column; 2] = [
    cores("max CPU cores, user + system", "broker.cores.max"),
    charted(cores("avg CPU cores, user + system", "broker.cores")),
];

const MESSAGE_RATE: Column = charted(column(
    "message rate",
    Unit::PerSecond,
    Better::Higher,
    "rate.received",
));

const CONNECT_RATE: Column = charted(column(
    "connect rate",
    Unit::PerSecond,
    Better::Higher,
    "connect.rate",
));

const MEMORY: [Column; 4] = [
    charted(memory("max memory", "broker.rss")),
    memory("avg memory", "broker.rss.avg"),
    memory("memory per connection", "broker.bytes_per_connection"),
    memory(
        "kernel memory per connection",
        "machine.kernel_bytes_per_connection",
    ),
];

/// The rows that suit a scenario.
pub fn columns(scenario: &VersusScenario) -> Vec<Column> {
    if scenario.connections_only() {
        let first = CONNECTIONS.into_iter().chain(CPU).chain([CONNECT_RATE]);
        first
            .chain(MEMORY)
            .chain([memory(STABLE_MEMORY, "")])
            .collect()
    } else {
        let first = MESSAGES.into_iter().chain(CPU).chain([MESSAGE_RATE]);
        first.chain(MEMORY).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_between_the_middle_rounds() {
        let three = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.median, three.min, three.max), (2.0, 1.0, 3.0));
        let four = Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap();
        assert!((four.median - 2.5).abs() < 1e-9);
        assert_eq!(Spread::of(vec![f64::NAN]), None);
    }

    #[test]
    fn one_round_has_no_range() {
        let one = Spread::of(vec![2e6]).unwrap();
        assert_eq!(one.text(Unit::Nanoseconds), "2ms");
        assert_eq!(one.range_text(Unit::Nanoseconds), "");
        let three = Spread::of(vec![2e6, 4e6, 3e6]).unwrap();
        assert_eq!(three.range_text(Unit::Nanoseconds), "[2ms..4ms]");
        let wide = Spread::of(vec![9e8, 2e9]).unwrap();
        assert_eq!(wide.range_text(Unit::Nanoseconds), "[900ms..2s]");
        assert_eq!(wide.text(Unit::Cores), "1 450 000 000");
    }

    #[test]
    fn both_ends_of_a_range_have_their_unit() {
        let range = |values: [f64; 2], unit| Spread::of(values.to_vec()).unwrap().range_text(unit);
        assert_eq!(range([1e5, 1.72e8], Unit::Nanoseconds), "[100µs..172ms]");
        assert_eq!(range([881.0, 1_300.0], Unit::Bytes), "[881 B..1.3 KiB]");
        assert_eq!(range([0.03, 0.05], Unit::Cores), "[0.03..0.05]");
    }

    #[test]
    fn rounds_that_the_generator_limited_count_only_where_there_are_no_others() {
        let rounds = [(5_000, true), (4_792, false)];
        assert_eq!(counted(&rounds, |round| round.1), [&rounds[0]]);
        assert_eq!(counted(&rounds[1..], |round| round.1), [&rounds[1]]);
    }
}
