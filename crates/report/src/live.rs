//! A run while it goes on, for programs: a line of JSON for each second, and one for its end.
//!
//! `thrum bench run --progress jsonl` prints them. Fields are only added; what changes or goes away
//! changes [`LIVE_SCHEMA`].

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;
use thrum_figures::fraction;

use crate::progress::stage_name;
use crate::result::{Mark, MarkKind, Quantiles, Resources, RunResult, Second, Validity, Withheld};
use crate::threshold::ThresholdResult;

/// Version of the lines.
pub const LIVE_SCHEMA: &str = "thrum-bench-progress/1";

/// Reasons of errors in a line; the rest are one more, `other`.
const REASONS_MAX: usize = 20;
/// Marks in a line: faults, changes of the load, notes.
const MARKS_MAX: usize = 20;
/// Characters of a mark in a line; the result has all of them.
const MARK_CHARS_MAX: usize = 200;
/// Thresholds in a line.
const THRESHOLDS_MAX: usize = 50;
/// Buckets of a decade; with [`DECADES`] of them and the two ends a line has at most 37 buckets.
const BUCKETS_PER_DECADE: f64 = 5.0;
/// Upper end of the first bucket: 10 µs.
const FIRST_NS: f64 = 10_000.0;
/// From [`FIRST_NS`] to 100 s.
const DECADES: f64 = 7.0;
const NS_PER_MS: f64 = 1e6;
/// The share of messages that arrived, which is judged when none is on its way any longer.
const DELIVERED: &str = "delivered";

/// What the latencies of a run are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// From the intended send time to the arrival.
    #[default]
    EndToEnd,
    /// From PUBLISH to its acknowledgement: nobody receives.
    Acknowledgement,
    /// From the opening of a connection to CONNACK: nobody publishes.
    Connect,
}

/// Latencies of a bucket: above `low_ms`, up to `high_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "(f64, f64, u64)")]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct Bucket {
    pub low_ms: f64,
    pub high_ms: f64,
    pub count: u64,
}

impl From<Bucket> for (f64, f64, u64) {
    fn from(bucket: Bucket) -> Self {
        (bucket.low_ms, bucket.high_ms, bucket.count)
    }
}

/// The latencies of a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecondLatencies {
    /// What they are of.
    pub kind: LatencyKind,
    /// Those with a latency, the shortest first.
    pub buckets: Vec<Bucket>,
}

impl SecondLatencies {
    /// Of a histogram in nanoseconds.
    pub fn new(kind: LatencyKind, histogram: &Histogram<u64>) -> Self {
        let mut counts = BTreeMap::new();
        for value in histogram.iter_recorded() {
            let bucket = bucket_of(value.value_iterated_to());
            *counts.entry(bucket).or_insert(0) += value.count_at_value();
        }
        let buckets = counts.into_iter().map(|(bucket, count)| Bucket {
            low_ms: if bucket == 0 {
                0.0
            } else {
                edge_ms(bucket - 1)
            },
            high_ms: edge_ms(bucket),
            count,
        });
        Self {
            kind,
            buckets: buckets.collect(),
        }
    }
}

/// Number of the bucket; latencies above the last edge are in the last one.
fn bucket_of(ns: u64) -> u32 {
    let last = DECADES * BUCKETS_PER_DECADE + 1.0;
    let bucket = ((fraction(ns) / FIRST_NS).log10() * BUCKETS_PER_DECADE).ceil();
    let bucket = thrum_figures::whole(bucket.clamp(0.0, last));
    u32::try_from(bucket).unwrap_or(0)
}

/// Its upper end.
fn edge_ms(bucket: u32) -> f64 {
    let ms = FIRST_NS / NS_PER_MS * 10.0_f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE);
    // Three digits are enough to name an edge.
    (ms * 1e5).round() / 1e5
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveLine {
    /// Before the first connection.
    Begin(Box<LiveBegin>),
    /// A second.
    Sample(Box<LiveSample>),
    /// After the last one.
    End(Box<LiveEnd>),
}

/// What is known before the first connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct LiveBegin {
    pub schema: &'static str,
    pub scenario: String,
    pub target: String,
    pub clients: u32,
    /// Ramp, warm-up, hold, and the longest drain.
    pub planned_secs: f64,
}

/// A second of a run. A figure that was not measured is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct LiveSample {
    /// From 1.
    pub n: u64,
    /// From the first connection to its beginning.
    pub at_secs: f64,
    pub stage: &'static str,
    pub clients: u64,
    pub offered_per_sec: f64,
    pub sent_per_sec: f64,
    pub received_per_sec: f64,
    pub latency: Option<LatencyKind>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Since the sample before.
    pub errors: BTreeMap<String, u64>,
    pub broker_cores: Option<f64>,
    pub broker_rss_bytes: Option<u64>,
    pub generator_cores: Option<f64>,
    pub thresholds: Vec<LiveThreshold>,
    /// What happened since the sample before.
    pub marks: Vec<LiveMark>,
    pub histogram: Vec<Bucket>,
}

/// A fault, a change of the load or a note.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveMark {
    /// From the first connection.
    pub at_secs: f64,
    /// What it is.
    pub kind: MarkKind,
    /// The factor of a rate, the seconds of an extension.
    pub value: Option<f64>,
    /// What happened, cut if it is long.
    pub text: String,
}

impl From<&Mark> for LiveMark {
    fn from(mark: &Mark) -> Self {
        let mut text: String = mark.text.chars().take(MARK_CHARS_MAX).collect();
        if text.len() < mark.text.len() {
            text.push('…');
        }
        Self {
            at_secs: mark.at,
            kind: mark.kind,
            value: mark.value,
            text,
        }
    }
}

/// A limit and the figure of the run so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveThreshold {
    /// Name of the figure.
    pub what: String,
    /// The condition: `< 50ms`.
    pub limit: String,
    /// The figure in the unit of the metric.
    pub value: Option<f64>,
    /// The figure with its unit: `3.9ms`.
    pub value_text: String,
    /// Whether it is kept; null while there is no figure, or if only the end decides.
    pub pass: Option<bool>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct LiveEnd {
    pub schema: &'static str,
    pub exit_code: u8,
    /// Where the run is kept; null if it is not.
    pub folder: Option<String>,
    pub verdict: LiveVerdict,
    /// Null if the run ended before its hold.
    pub figures: Option<LiveFigures>,
    pub thresholds: Vec<LiveThreshold>,
    pub stages: Vec<LiveStage>,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveVerdict {
    /// Whether the figures measure the broker.
    pub valid: bool,
    /// Whether the broker kept the promises of the protocol and all limits.
    pub pass: bool,
    /// Whether somebody changed its rate or its length while it went on, or paused it.
    pub changed: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

/// The figures of the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct LiveFigures {
    pub latency: Option<LatencyKind>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub sent_per_sec: f64,
    pub received_per_sec: f64,
    pub delivered_ratio: Option<f64>,
    pub lost: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub broker_cores: Option<f64>,
    pub broker_rss_bytes: Option<u64>,
    /// Why a latency, which may be there all the same, is not one of the broker.
    pub withheld: BTreeMap<&'static str, String>,
}

/// A stage that the run had.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct LiveStage {
    pub name: &'static str,
    pub from_secs: f64,
    pub to_secs: f64,
}

/// Makes samples of results so far.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    samples: u64,
    errors: BTreeMap<String, u64>,
    /// How many marks were told.
    marks: usize,
}

impl Sampler {
    /// The seconds that have passed since the last call: as many as have latencies here, the last
    /// ones of the series.
    pub fn samples(&mut self, so_far: &RunResult, latest: &[SecondLatencies]) -> Vec<LiveSample> {
        let first = so_far.series.len().saturating_sub(latest.len());
        let seconds = so_far.series.iter().skip(first);
        let mut samples: Vec<LiveSample> = seconds
            .zip(latest)
            .map(|(second, latencies)| self.sample(second, latencies))
            .collect();
        // Both are of the whole run so far.
        if let Some(last) = samples.last_mut() {
            last.errors = self.new_errors(so_far);
            last.thresholds = thresholds_so_far(so_far);
            let new = so_far.marks.iter().skip(self.marks).take(MARKS_MAX);
            last.marks = new.map(LiveMark::from).collect();
            // Those that have no room are told in the next line.
            self.marks += last.marks.len();
        }
        samples
    }

    fn sample(&mut self, second: &Second, latencies: &SecondLatencies) -> LiveSample {
        self.samples += 1;
        let of = match latencies.kind {
            LatencyKind::EndToEnd => second.e2e,
            LatencyKind::Acknowledgement => second.publish_ack,
            LatencyKind::Connect => second.connect,
        };
        let per_sec = |messages| {
            if second.span > 0.0 {
                fraction(messages) / second.span
            } else {
                0.0
            }
        };
        let ms = |figure: fn(&Quantiles) -> u64| of.as_ref().map(|of| in_ms(figure(of)));
        LiveSample {
            n: self.samples,
            at_secs: second.at,
            stage: stage_name(second.stage),
            clients: second.up,
            offered_per_sec: per_sec(second.offered),
            sent_per_sec: per_sec(second.sent),
            received_per_sec: per_sec(second.received),
            latency: of.map(|_| latencies.kind),
            p50_ms: ms(|of| of.p50),
            p99_ms: ms(|of| of.p99),
            p999_ms: ms(|of| of.p99_9),
            max_ms: ms(|of| of.max),
            broker_cores: second.broker.as_ref().map(cores),
            broker_rss_bytes: second.broker.map(|broker| broker.rss_bytes),
            generator_cores: second.generator.as_ref().map(cores),
            histogram: latencies.buckets.clone(),
            ..LiveSample::default()
        }
    }

    /// The errors since the last call.
    fn new_errors(&mut self, so_far: &RunResult) -> BTreeMap<String, u64> {
        let mut new = BTreeMap::new();
        for error in &so_far.errors {
            let before = self.errors.insert(error.reason.clone(), error.count);
            let count = error.count.saturating_sub(before.unwrap_or(0));
            if count == 0 {
                continue;
            }
            let has_room = new.len() < REASONS_MAX;
            let reason = if has_room {
                error.reason.as_str()
            } else {
                "other"
            };
            *new.entry(reason.to_owned()).or_insert(0) += count;
        }
        new
    }
}

impl LiveEnd {
    /// The end of a run that is kept in a folder, if it is.
    pub fn new(run: &RunResult, folder: Option<String>) -> Self {
        let kind = match (&run.latency_ns.e2e, run.scenario.payload.is_empty()) {
            (_, true) => LatencyKind::Connect,
            (Some(_), false) => LatencyKind::EndToEnd,
            (None, false) => LatencyKind::Acknowledgement,
        };
        let thresholds = thresholds(run);
        let is_missed = |of: &&ThresholdResult| of.is_missed(&run.validity);
        let missed = run.thresholds.iter().filter(is_missed).map(|of| {
            let (metric, condition) = (&of.metric, &of.condition);
            format!("{metric} {condition} is missed: {}", of.measured_text())
        });
        let missed: Vec<String> = missed.take(THRESHOLDS_MAX).collect();
        let Validity { valid, limits, .. } = &run.validity;
        let pass = run.verdict.pass && missed.is_empty();
        let reasons = limits.iter().chain(&run.verdict.faults).cloned();
        Self {
            schema: LIVE_SCHEMA,
            exit_code: run.exit_code,
            folder,
            verdict: LiveVerdict {
                valid: *valid,
                pass,
                changed: run.marks.iter().any(|mark| mark.kind.changes_the_load()),
                reasons: reasons.chain(missed).collect(),
            },
            figures: figures(run, kind),
            thresholds,
            stages: stages(&run.series),
        }
    }
}

/// The figures of the hold, if there was one.
fn figures(run: &RunResult, kind: LatencyKind) -> Option<LiveFigures> {
    let had_hold = run
        .series
        .iter()
        .any(|second| stage_name(second.stage) == "hold");
    let latencies = &run.latency_ns;
    let of = match kind {
        LatencyKind::EndToEnd => latencies.e2e.as_ref(),
        LatencyKind::Acknowledgement => latencies.publish_ack.as_ref(),
        LatencyKind::Connect => latencies.connect.as_ref(),
    };
    let mut withheld = BTreeMap::new();
    let mut ms = |key, name: &str, figure: fn(&Quantiles) -> u64| {
        let of = of?;
        let why = of.withheld.get(name);
        withheld.extend(why.map(|why| (key, why.to_string())));
        // What the generator may have added to is still what was measured.
        let is_measured = matches!(why, None | Some(Withheld::Generator { .. }));
        is_measured.then(|| in_ms(figure(&of.quantiles)))
    };
    let p50_ms = ms("p50_ms", "p50", |of| of.p50);
    let p99_ms = ms("p99_ms", "p99", |of| of.p99);
    let p999_ms = ms("p999_ms", "p99.9", |of| of.p99_9);
    let max_ms = ms("max_ms", "max", |of| of.max);
    let (delivery, broker) = (&run.delivery, run.brokers.first());
    let ratio = fraction(delivery.delivered) / fraction(delivery.expected.max(1));
    had_hold.then(|| LiveFigures {
        latency: of.map(|_| kind),
        p50_ms,
        p99_ms,
        p999_ms,
        max_ms,
        withheld,
        sent_per_sec: run.rates.sent,
        received_per_sec: run.rates.received,
        delivered_ratio: (delivery.expected > 0).then_some(ratio),
        lost: delivery.lost,
        duplicates: delivery.duplicated,
        out_of_order: delivery.reordered,
        broker_cores: broker.map(|broker| broker.usage.cores_avg),
        broker_rss_bytes: broker.map(|broker| broker.usage.rss_max_bytes),
    })
}

fn thresholds(run: &RunResult) -> Vec<LiveThreshold> {
    let some = run.thresholds.iter().take(THRESHOLDS_MAX);
    let shown = some.map(|of| LiveThreshold {
        what: of.metric.clone(),
        limit: of.condition.clone(),
        value: of.measured,
        value_text: of.measured_text(),
        pass: of.measured.map(|_| of.pass),
    });
    shown.collect()
}

/// The same while the run is under way: messages on their way are not lost.
fn thresholds_so_far(run: &RunResult) -> Vec<LiveThreshold> {
    let mut thresholds = thresholds(run);
    let at_the_end = |of: &&mut LiveThreshold| of.what == DELIVERED;
    for undecided in thresholds.iter_mut().filter(at_the_end) {
        undecided.pass = None;
    }
    thresholds
}

fn stages(series: &[Second]) -> Vec<LiveStage> {
    let mut stages: Vec<LiveStage> = Vec::new();
    for second in series {
        let (name, to_secs) = (stage_name(second.stage), second.at + second.span);
        match stages.last_mut().filter(|last| last.name == name) {
            Some(last) => last.to_secs = to_secs,
            None => stages.push(LiveStage {
                name,
                from_secs: second.at,
                to_secs,
            }),
        }
    }
    stages
}

fn cores(of: &Resources) -> f64 {
    of.cores_user + of.cores_system
}

fn in_ms(ns: u64) -> f64 {
    fraction(ns) / NS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn latencies(values: &[u64]) -> SecondLatencies {
        let mut histogram = Histogram::new(3).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        SecondLatencies::new(LatencyKind::EndToEnd, &histogram)
    }

    #[test]
    fn buckets_are_a_fifth_of_a_decade_and_the_ends_take_the_rest() {
        let of = |ns| {
            let buckets = latencies(&[ns]).buckets;
            assert_eq!(buckets.len(), 1, "{ns}");
            (buckets[0].low_ms, buckets[0].high_ms)
        };
        assert_eq!(of(1), (0.0, 0.01));
        assert_eq!(of(9_000), (0.0, 0.01));
        assert_eq!(of(12_000), (0.01, 0.01585));
        assert_eq!(of(1_200_000), (1.0, 1.58489));
        assert_eq!(of(99_000_000_000), (63_095.734_45, 100_000.0));
        assert!(of(900_000_000_000).0 > 99_999.0);
        let many: Vec<u64> = (0..2_000).map(|step| 1 << (step % 42)).collect();
        let buckets = latencies(&many).buckets;
        assert!(buckets.len() <= 40, "{}", buckets.len());
        let counted: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!(counted, 2_000);
    }

    #[test]
    fn a_sample_has_the_figures_of_its_second_and_numbers_go_on() {
        let run = sample::run();
        let mut sampler = Sampler::default();
        let two = [latencies(&[1_200_000]), latencies(&[1_200_000])];
        let samples = sampler.samples(&run, &two);
        let numbers: Vec<u64> = samples.iter().map(|sample| sample.n).collect();
        assert_eq!(numbers, [1, 2]);
        let last = &samples[1];
        assert_eq!((last.stage, last.clients), ("hold", 2_000));
        assert_eq!(last.broker_cores, Some(1.0));
        let p50_ms = last.p50_ms.unwrap();
        assert!((0.8..0.801).contains(&p50_ms), "{p50_ms}");
        assert_eq!(last.errors["reset by the broker"], 2);
        let kept: Vec<_> = last.thresholds.iter().map(|of| of.pass).collect();
        // That of `delivered` is undecided.
        assert_eq!(kept, [Some(true), None, Some(false)]);
        assert_eq!(
            last.thresholds[0].value_text,
            run.thresholds[0].measured_text()
        );
        let next = sampler.samples(&run, &two[..1]);
        assert_eq!((next[0].n, next[0].errors.len()), (3, 0));
    }

    #[test]
    fn every_mark_is_told_once_in_the_sample_after_it() {
        let mut run = sample::run();
        let mark = |at, text: &str| Mark {
            at,
            text: text.to_owned(),
            ..Mark::default()
        };
        run.marks = vec![mark(0.5, "one")];
        let mut sampler = Sampler::default();
        let mut told = |run: &RunResult| {
            let samples = sampler.samples(run, &[SecondLatencies::default()]);
            let marks = samples[0].marks.iter();
            marks.map(|mark| mark.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told(&run), ["one"]);
        assert!(told(&run).is_empty());
        run.marks.push(mark(1.5, "two"));
        assert_eq!(told(&run), ["two"]);
        // More than a line has room for, and longer ones.
        let many = (0..30).map(|_| mark(2.5, &"长".repeat(1_000)));
        run.marks.extend(many);
        let lines = [told(&run), told(&run), told(&run)];
        assert_eq!(lines.each_ref().map(Vec::len), [20, 10, 0]);
        assert_eq!(lines[0][0].chars().count(), MARK_CHARS_MAX + 1);
    }

    #[test]
    fn messages_on_their_way_do_not_miss_a_limit() {
        let mut run = sample::run();
        run.thresholds[0].metric = "delivered".to_owned();
        run.thresholds[0].pass = false;
        let sampled = Sampler::default().samples(&run, &[SecondLatencies::default()]);
        assert_eq!(sampled[0].thresholds[0].pass, None);
        let end = LiveEnd::new(&run, None);
        assert_eq!(end.thresholds[0].pass, Some(false));
    }

    #[test]
    fn a_line_is_bounded() {
        let mut run = sample::run();
        run.errors = (0..100)
            .map(|number| crate::result::ErrorCount {
                reason: format!("reason {number}"),
                count: 1,
                ..Default::default()
            })
            .collect();
        let sampled = Sampler::default().samples(&run, &[SecondLatencies::default()]);
        assert_eq!(sampled[0].errors.len(), REASONS_MAX + 1);
        assert_eq!(sampled[0].errors["other"], 80);
    }

    #[test]
    fn the_end_names_every_reason_and_the_stages() {
        let end = LiveEnd::new(&sample::bad_run(), None);
        assert_eq!(
            (end.exit_code, end.verdict.valid, end.verdict.pass),
            (7, false, false)
        );
        let reasons = end.verdict.reasons.join("\n");
        for part in [
            "generator lag",
            "messages lost: 3",
            "broker.rss < 4MiB is missed: 8 MiB",
        ] {
            assert!(reasons.contains(part), "{part}: {reasons}");
        }
        let stages: Vec<_> = end.stages.iter().map(|of| (of.name, of.to_secs)).collect();
        assert_eq!(stages, [("ramp", 2.0), ("hold", 12.0)]);
        let figures = end.figures.unwrap();
        assert_eq!((figures.lost, figures.broker_cores), (3, Some(1.0)));
        let mut some = sample::run();
        let e2e = some.latency_ns.e2e.as_mut().unwrap();
        let (bound, seen) = (9, 10);
        e2e.withheld
            .insert("p50".to_owned(), Withheld::Generator { bound, seen });
        e2e.withheld.insert(
            "p99".to_owned(),
            Withheld::TooFew {
                values: 4,
                needed: 100,
            },
        );
        let figures = LiveEnd::new(&some, None).figures.unwrap();
        assert_eq!((figures.p50_ms.is_some(), figures.p99_ms), (true, None));
        assert_eq!(figures.withheld.len(), 2);
        let mut short = sample::run();
        short.series.truncate(2);
        assert_eq!(LiveEnd::new(&short, None).figures, None);
    }

    #[test]
    fn lines_name_their_type_and_buckets_are_triples() {
        let sample = LiveSample {
            histogram: latencies(&[1_200_000]).buckets,
            ..LiveSample::default()
        };
        let json = serde_json::to_value(LiveLine::Sample(Box::new(sample))).unwrap();
        assert_eq!(json["type"], "sample");
        assert_eq!(json["histogram"][0], serde_json::json!([1.0, 1.58489, 1]));
    }
}
