//! What another tool would have shown of the same run, beside the exact figures.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::grid;
use crate::hdr::HistogramError;
use crate::result::{Broker, Distribution, RunResult};
use thrum_figures::{figure, fraction, latency, rate, ratio};

/// `XMeter` puts this many bytes before every payload.
const XMETER_PREFIX_BYTES: u32 = 24;

/// The percentiles of its tables.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
];

/// The field `compat` of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compat {
    /// As `XMeter` shows the run.
    pub xmeter: Xmeter,
}

/// The figures of a run as the tables of `XMeter` have them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Xmeter {
    /// The latency that it measures, as this tool names it: from the actual send, so `service`, or
    /// `connect` where nothing is delivered.
    pub latency: &'static str,
    /// Its values in whole milliseconds, each without its fraction; values that never arrived are
    /// not among them.
    pub milliseconds: Option<Milliseconds>,
    /// Bytes of a payload, with the prefix.
    pub payload_bytes: Option<u32>,
    /// Its publishers wait for acknowledgements: messages that the broker of this run held back,
    /// which they would not have sent in time.
    pub held_back_messages: u64,
}

/// Values in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct Milliseconds {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

/// A result with the figures of another tool, as `result.json` has them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WithCompat<'a> {
    /// The result.
    #[serde(flatten)]
    pub run: &'a RunResult,
    /// The figures, if they are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<&'a Compat>,
}

impl Compat {
    /// The figures of a run as `XMeter` would have shown them.
    ///
    /// # Errors
    /// The histogram of the run cannot be read.
    pub fn xmeter(run: &RunResult) -> Result<Self, HistogramError> {
        let of = &run.latency_ns;
        let (latency, distribution) = match &of.service {
            Some(service) => ("service", Some(service)),
            None => ("connect", of.connect.as_ref()),
        };
        let histogram = distribution.map(Distribution::histogram).transpose()?;
        Ok(Self {
            xmeter: Xmeter {
                latency,
                milliseconds: histogram.as_ref().and_then(Milliseconds::of),
                payload_bytes: run
                    .scenario
                    .payload_bytes
                    .map(|bytes| bytes.saturating_add(XMETER_PREFIX_BYTES)),
                held_back_messages: run.rates.held_back_messages,
            },
        })
    }
}

impl Milliseconds {
    /// Of a histogram of nanoseconds, none if it is empty. A value counts as the middle of its
    /// bucket, as in its mean: that is exact to 0.05 %.
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let truncated: Vec<(u64, u64)> = histogram
            .iter_recorded()
            .map(|bucket| {
                let value = histogram.median_equivalent(bucket.value_iterated_to());
                (value / 1_000_000, bucket.count_at_value())
            })
            .collect();
        let count = histogram.len();
        let sum: f64 = truncated
            .iter()
            .map(|(value, times)| fraction(*value) * fraction(*times))
            .sum();
        let at = |quantile: f64| {
            let rank = (quantile * fraction(count)).ceil().max(1.0);
            let mut before = 0;
            let found = truncated.iter().find(|(_, times)| {
                before += times;
                fraction(before) >= rank
            });
            found
                .or_else(|| truncated.last())
                .map_or(0, |(value, _)| *value)
        };
        let [p50, p75, p90, p95, p99] = PERCENTILES.map(|(_, quantile)| at(quantile));
        Some(Self {
            count,
            mean: sum / fraction(count),
            p50,
            p75,
            p90,
            p95,
            p99,
            max: truncated.last().map_or(0, |(value, _)| *value),
        })
    }

    const fn percentiles(&self) -> [u64; 5] {
        [self.p50, self.p75, self.p90, self.p95, self.p99]
    }
}

impl Xmeter {
    /// A block for the terminal: each figure as `XMeter` shows it, as it is, and why they differ.
    pub fn text(&self, run: &RunResult) -> String {
        let mut rows = vec![
            ["", "XMeter", "exact", "because XMeter"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let exact = run.latency_ns.find(self.latency);
        if let Some((shown, exact)) = self.milliseconds.zip(exact) {
            rows.extend(self.latency_rows(&shown, exact));
        }
        if run.has_load() {
            let (sent, received) = (run.rates.sent, run.rates.received);
            rows.push(row(
                "msg rate (pub:sub)",
                format!("{}:{}", thousands(sent), thousands(received)),
                format!("{} : {}", rate(sent), rate(received)),
                "rounds",
            ));
        }
        if let Some((shown, exact)) = self.payload_bytes.zip(run.scenario.payload_bytes) {
            rows.push(row(
                "payload",
                format!("{exact} B"),
                format!("{shown} B sent by XMeter, {exact} B here"),
                "leaves out its prefix of 24 B",
            ));
        }
        rows.extend(cpu_row(run));
        let mut text = String::from("\nAs XMeter shows it\n");
        text.push_str(&grid::grid(&rows, 4));
        for note in self.notes(run) {
            writeln!(text, "  {note}").ok();
        }
        text
    }

    fn latency_rows(&self, shown: &Milliseconds, exact: &Distribution) -> [Vec<String>; 2] {
        let name = match self.latency {
            "service" => "pub-to-sub latency",
            _ => "connect latency",
        };
        let joined = |values: Vec<String>| values.join("/");
        // XMeter withholds nothing.
        let figure = |name: &str| match exact.quantiles.figure(name) {
            Some(value) if !exact.withheld.contains_key(name) => latency(value),
            _ => "–".to_owned(),
        };
        [
            row(
                &format!("average {name} (ms)"),
                format!("{:.2}", shown.mean),
                format!("{} {}", self.latency, figure("mean")),
                "drops the fraction of each ms",
            ),
            row(
                "p50/75/90/95/99 (ms)",
                joined(shown.percentiles().map(|value| value.to_string()).to_vec()),
                joined(PERCENTILES.map(|(name, _)| figure(name)).to_vec()),
                "drops the fraction of each ms",
            ),
        ]
    }

    /// What no figure of this run can show.
    fn notes(&self, run: &RunResult) -> Vec<String> {
        let mut notes = Vec::new();
        let due = run.rates.held_back_messages + run.delivery.sent_messages;
        if run.scenario.load.closed_loop {
            notes.push(
                "closed loop: as in this run, no latency has the wait before the send".to_owned(),
            );
        } else if let Some(e2e) = &run.latency_ns.e2e {
            notes.push(format!(
                "closed loop: XMeter's publishers wait for the broker, and its latency leaves the wait out; with it \
                 (e2e) the mean is {}, p99 {}",
                e2e.figure_text("mean"),
                e2e.figure_text("p99")
            ));
        }
        if self.held_back_messages > 0 {
            let part = 100.0 * ratio(self.held_back_messages, due);
            notes.push(format!(
                "the broker held back {} messages ({}%): XMeter would have sent fewer",
                self.held_back_messages,
                figure(part)
            ));
        }
        notes
    }
}

/// CPU of the broker, if it runs on this machine: the cores of another one are not known. What is
/// withheld is so in both forms, since the other tool has no such reading either.
fn cpu_row(run: &RunResult) -> Option<Vec<String>> {
    let is_here = |broker: &&Broker| broker.host.is_empty() && run.machine.cores > 0;
    let usage = &run.brokers.first().filter(is_here)?.usage;
    let cores = fraction(u64::try_from(run.machine.cores).unwrap_or(u64::MAX));
    let both = |text: &dyn Fn(f64) -> String| {
        let max = run
            .validity
            .unless_withheld("broker.cores.max", text(usage.cores_max));
        let average = run
            .validity
            .unless_withheld("broker.cores", text(usage.cores_avg));
        format!("{max}/{average}")
    };
    let why = run
        .validity
        .reasons_withheld(&["broker.cores.max", "broker.cores"]);
    let why = why.map_or_else(
        || "counts the whole machine; this is the broker's part".to_owned(),
        |why| format!("withholds nothing; {why}"),
    );
    Some(row(
        "max/avg CPU",
        both(&|used| format!("{:.0}%", 100.0 * used / cores)),
        format!("{} cores", both(&figure)),
        &why,
    ))
}

fn row(name: &str, shown: String, exact: String, why: &str) -> Vec<String> {
    vec![name.to_owned(), shown, exact, why.to_owned()]
}

/// As in the published tables: `50k`, `7.6k`, `200`.
fn thousands(per_second: f64) -> String {
    if per_second.round() >= 1_000.0 {
        let text = format!("{:.1}", per_second / 1_000.0);
        format!("{}k", text.strip_suffix(".0").unwrap_or(&text))
    } else {
        format!("{per_second:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn of(values: &[u64]) -> Milliseconds {
        let distribution = sample::distribution(values);
        Milliseconds::of(&distribution.histogram().unwrap()).unwrap()
    }

    #[test]
    fn every_value_loses_its_fraction_before_the_mean() {
        // One in twenty reads 1 ms and the others 0, as in a published average of 0.05 ms.
        let mut values = vec![700_000; 19];
        values.push(1_200_000);
        let shown = of(&values);
        assert_eq!(
            (shown.count, shown.p50, shown.p95, shown.p99),
            (20, 0, 0, 1)
        );
        assert!((shown.mean - 0.05).abs() < 1e-12, "{shown:?}");
        assert_eq!(shown.max, 1);
    }

    #[test]
    fn percentiles_are_those_of_the_truncated_values() {
        let values: Vec<u64> = (0..100).map(|ms| ms * 1_000_000 + 500_000).collect();
        let shown = of(&values);
        assert_eq!(shown.percentiles(), [49, 74, 89, 94, 98]);
        assert!((shown.mean - 49.5).abs() < 1e-9, "{shown:?}");
        assert!(Milliseconds::of(&Histogram::new(3).unwrap()).is_none());
    }

    #[test]
    fn the_block_has_both_truths() {
        let run = sample::run();
        let compat = Compat::xmeter(&run).unwrap();
        assert_eq!(compat.xmeter.latency, "service");
        assert_eq!(compat.xmeter.payload_bytes, Some(40));
        // 0.4, 0.45, 1.95 and 20.5 ms.
        let mean = compat.xmeter.milliseconds.unwrap().mean;
        assert!((mean - 5.25).abs() < 1e-12, "{mean}");
        let text = compat.xmeter.text(&run);
        for part in [
            "As XMeter shows it",
            "average pub-to-sub latency (ms)  5.25",
            "0/1/20/20/20",
            "1k:1k",
            "40 B sent by XMeter, 16 B here",
            "closed loop: XMeter's publishers wait for the broker",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_run_of_connections_has_their_latency_alone() {
        let run = sample::idle_run();
        let compat = Compat::xmeter(&run).unwrap();
        assert_eq!(compat.xmeter.latency, "connect");
        let text = compat.xmeter.text(&run);
        assert!(
            text.contains("average connect latency (ms)  1.00"),
            "{text}"
        );
        assert!(
            !text.contains("payload") && !text.contains("closed loop"),
            "{text}"
        );
    }

    #[test]
    fn a_result_with_it_is_read_as_one_without() {
        let run = sample::run();
        let compat = Compat::xmeter(&run).unwrap();
        let with = WithCompat {
            run: &run,
            compat: Some(&compat),
        };
        let json = serde_json::to_string(&with).unwrap();
        assert!(
            json.contains("\"compat\":{\"xmeter\":{\"latency\":\"service\""),
            "{json}"
        );
        assert!(serde_json::from_str::<RunResult>(&json).unwrap() == run);
    }

    #[test]
    fn rates_are_written_as_in_the_published_tables() {
        for (per_second, text) in [
            (50_000.0, "50k"),
            (7_640.0, "7.6k"),
            (999.8, "1k"),
            (200.4, "200"),
        ] {
            assert_eq!(thousands(per_second), text);
        }
    }
}
