//! The contents of one frame, copied from the run so that drawing never delays it.

use std::sync::Arc;
use std::time::Duration;

use thrum_bench::Status;
use thrum_report::RunResult;
use thrum_report::result::{
    Clients, Delivery, Distribution, ErrorCount, Mark, Quantiles, Resources, ScenarioDescription,
    Stage, ThreadLoad, Validity,
};
use thrum_report::threshold::ThresholdResult;

use super::history::{History, Timing};

/// Most reasons of errors that are kept for the view.
const ERRORS_MAX: usize = 20;

/// Most marks that are kept for the view, the latest ones.
const MARKS_MAX: usize = 50;

/// Most thresholds that are kept for the view.
const THRESHOLDS_MAX: usize = 50;

/// Everything that a frame shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Scenario and target.
    pub(crate) title: Arc<str>,
    /// Where the series is that the run is part of, if it is.
    pub(crate) series: Option<Arc<str>>,
    /// The stage of the run; none before its first connection.
    pub(crate) now: Option<Now>,
    /// The figures of the last full second; none in the first one.
    pub(crate) figures: Option<Arc<Figures>>,
}

/// The stage of a run, many times per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) stage: Stage,
    pub(crate) elapsed: Duration,
    /// Planned length of the stage; 0 if unknown.
    pub(crate) planned: Duration,
    pub(crate) clients: u64,
    pub(crate) ready: u64,
    pub(crate) failed: u64,
    pub(crate) lost: u64,
    /// Deliveries that are due and did not happen yet.
    pub(crate) in_flight: u64,
}

impl From<&Status> for Now {
    fn from(status: &Status) -> Self {
        let progress = &status.progress;
        Self {
            stage: match status.stage {
                Stage::Ramp => Stage::Ramp,
                Stage::WarmUp => Stage::WarmUp,
                Stage::Hold => Stage::Hold,
                Stage::Drain => Stage::Drain,
            },
            elapsed: status.elapsed,
            planned: status.planned,
            clients: u64::from(status.clients),
            ready: progress.ready,
            failed: progress.failed,
            lost: progress.lost,
            in_flight: progress.expected.saturating_sub(progress.distinct),
        }
    }
}

/// The figures of a run so far, as much of them as a screen can show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Version, quality of service and payload: `v5 QoS 1 16 B`.
    pub(crate) load: String,
    pub(crate) closed_loop: bool,
    pub(crate) clients: Clients,
    pub(crate) delivery: Delivery,
    /// Of the latency that is shown: of the hold so far, without its histogram.
    pub(crate) latency: Option<Distribution>,
    /// The most frequent first.
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) thresholds: Vec<ThresholdResult>,
    pub(crate) broker: Option<BrokerFigures>,
    pub(crate) generator: GeneratorFigures,
    pub(crate) validity: Validity,
    /// Whether the validity is that of the figures which the run is about: before its messages
    /// have latencies, it would be that of connecting.
    pub(crate) is_judged: bool,
    pub(crate) history: History,
}

/// The first broker that is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrokerFigures {
    /// Its host, or the number of its process.
    pub(crate) name: String,
    /// In the last second; none if it was not measured then.
    pub(crate) last: Option<Resources>,
    /// Cores in use second by second.
    pub(crate) cores: Vec<f64>,
}

/// The generator.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneratorFigures {
    pub(crate) last: Option<Resources>,
    /// The thread that is busiest.
    pub(crate) busiest: Option<ThreadLoad>,
    /// From the intended to the actual send.
    pub(crate) lag: Option<Quantiles>,
    /// Longest time that a message may have waited to be read.
    pub(crate) receive_lag: Option<Quantiles>,
}

impl Figures {
    /// Copies what is shown; its cost is bounded by the seconds of the run, about 20 ns each.
    pub(crate) fn new(so_far: &RunResult) -> Self {
        let mut errors = so_far.errors.clone();
        errors.sort_by_key(|error| std::cmp::Reverse(error.count));
        errors.truncate(ERRORS_MAX);
        let marks_from = so_far.marks.len().saturating_sub(MARKS_MAX);
        let history = History::new(&so_far.series);
        let last = so_far.series.last();
        let latencies = &so_far.latency_ns;
        let latency = match history.timing {
            Timing::EndToEnd => latencies.e2e.as_ref(),
            Timing::Acknowledgement => latencies.publish_ack.as_ref(),
            Timing::Connect => latencies.connect.as_ref(),
        };
        let has_publishers = !so_far.scenario.payload.is_empty();
        let is_judged = !has_publishers || (latency.is_some() && history.timing != Timing::Connect);
        Self {
            is_judged,
            load: load_text(&so_far.scenario),
            closed_loop: so_far.scenario.load.closed_loop,
            clients: so_far.clients.clone(),
            delivery: so_far.delivery.clone(),
            latency: latency.map(without_histogram),
            errors,
            marks: so_far.marks.get(marks_from..).unwrap_or_default().to_vec(),
            thresholds: first(&so_far.thresholds, THRESHOLDS_MAX),
            broker: so_far.brokers.first().map(|broker| BrokerFigures {
                name: match (broker.host.as_str(), broker.pid) {
                    ("", 0) => String::new(),
                    ("", pid) => format!("pid {pid}"),
                    (host, _) => host.to_owned(),
                },
                last: last.and_then(|second| second.broker),
                cores: history
                    .recent
                    .iter()
                    .map(|point| point.broker_cores)
                    .collect(),
            }),
            generator: GeneratorFigures {
                last: last.and_then(|second| second.generator),
                busiest: busiest(&so_far.generator.threads),
                lag: quantiles(latencies.generator_lag.as_ref()),
                receive_lag: quantiles(latencies.receive_lag.as_ref()),
            },
            validity: so_far.validity.clone(),
            history,
        }
    }
}

fn quantiles(of: Option<&Distribution>) -> Option<Quantiles> {
    of.map(|found| found.quantiles)
}

/// All but the text of the histogram, which is long and not shown.
fn without_histogram(of: &Distribution) -> Distribution {
    Distribution {
        quantiles: of.quantiles,
        bound: of.bound,
        missing: of.missing,
        missing_over: of.missing_over,
        withheld: of.withheld.clone(),
        curve: of.curve.clone(),
        hdr: String::new(),
    }
}

fn first<T: Clone>(all: &[T], limit: usize) -> Vec<T> {
    all.iter().take(limit).cloned().collect()
}

fn busiest(threads: &[ThreadLoad]) -> Option<ThreadLoad> {
    let by_load = |one: &&ThreadLoad, other: &&ThreadLoad| one.busy.total_cmp(&other.busy);
    threads.iter().max_by(by_load).copied()
}

fn load_text(scenario: &ScenarioDescription) -> String {
    let mut parts = Vec::new();
    if !scenario.mqtt_version.is_empty() {
        let short = scenario.mqtt_version.trim_end_matches(".0");
        parts.push(format!("v{short}"));
    }
    if let Some(qos) = scenario.qos {
        parts.push(format!("QoS {qos}"));
    }
    if let Some(bytes) = scenario.payload_bytes {
        parts.push(thrum_figures::bytes(f64::from(bytes)));
    }
    if !matches!(scenario.transport.as_str(), "" | "tcp") {
        parts.push(scenario.transport.clone());
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_most_frequent_errors_are_kept() {
        let mut result = sample::result(3);
        result.errors = (0..100)
            .map(|count| ErrorCount {
                reason: format!("reason {count}"),
                count,
                ..ErrorCount::default()
            })
            .collect();
        let errors = Figures::new(&result).errors;
        assert_eq!(errors.len(), ERRORS_MAX);
        assert_eq!(errors[0].count, 99);
    }

    #[test]
    fn the_latest_marks_are_kept() {
        let mut result = sample::result(3);
        result.marks = (0..100)
            .map(|number| Mark {
                at: f64::from(number),
                text: String::new(),
                ..Mark::default()
            })
            .collect();
        let marks = Figures::new(&result).marks;
        assert_eq!(marks.len(), MARKS_MAX);
        assert!(marks.last().is_some_and(|mark| mark.at > 98.5));
    }

    #[test]
    fn the_load_is_described_in_one_line() {
        let result = sample::result(3);
        assert_eq!(load_text(&result.scenario), "v5 QoS 1 16 B");
        assert_eq!(load_text(&ScenarioDescription::default()), "");
        let secure = ScenarioDescription {
            mqtt_version: "3.1.1".to_owned(),
            transport: "tls".to_owned(),
            ..ScenarioDescription::default()
        };
        assert_eq!(load_text(&secure), "v3.1.1 tls");
    }
}
