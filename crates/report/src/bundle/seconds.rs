//! The run second by second: `series.csv` and `latency.hlog` are what the result has, and the
//! result is their sum.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::{BundleError, LOG, RESULT, SERIES};
use crate::csv;
use crate::hlog::{self, Interval};
use crate::metric::DISTRIBUTIONS;
use crate::result::{Distribution, Quantiles, RunResult, Second, Stage};
use thrum_figures::{count, fraction, utc_text, whole};

/// Times in a log are rounded to milliseconds.
const ROUNDING_SECONDS: f64 = 0.000_6;

/// Relative difference of sums of the same numbers.
const ROUNDING: f64 = 1e-9;

/// Messages due may differ by this part of the clients: at either end of the hold by a thousandth.
const OFFERED_ESTIMATED: f64 = 0.002;

/// Latencies that a result has of the whole run; it has the others of hold and drain.
const OF_WHOLE_RUN: [&str; 4] = ["connect", "subscribe", "reconnect", "open_lag"];

fn disagrees(what: String) -> BundleError {
    BundleError::Disagrees { what }
}

/// Every row of the table is the second of the result.
pub(super) fn table(run: &RunResult, bytes: &[u8]) -> Result<String, BundleError> {
    let mut rows = bytes.split_inclusive(|byte| *byte == b'\n');
    for (number, expected) in (0..).zip(csv::rows(run)) {
        let row = rows.next().and_then(|row| row.strip_suffix(b"\n"));
        if row != Some(expected.as_bytes()) {
            let row = if number == 0 {
                "the head".to_owned()
            } else {
                format!("row {number}")
            };
            let what = format!("{row} of {SERIES} is not that of the seconds in {RESULT}");
            return Err(disagrees(what));
        }
    }
    if rows.next().is_some() {
        let what = format!("{SERIES} has more rows than {RESULT} has seconds");
        return Err(disagrees(what));
    }
    Ok(format!(
        "{SERIES}: {} seconds, those of {RESULT}",
        run.series.len()
    ))
}

/// A count: its name, that of a second, and that of the run.
type Count = (&'static str, fn(&Second) -> u64, u64);

/// What was counted in the whole run is the sum of its seconds.
pub(super) fn sums(run: &RunResult) -> Result<String, BundleError> {
    let ascend = |pair: &[Second]| pair[0].at < pair[1].at && pair[0].stage <= pair[1].stage;
    if !run.series.windows(2).all(ascend) {
        return Err(disagrees(format!("the seconds of {RESULT} do not ascend")));
    }
    let (delivery, clients) = (&run.delivery, &run.clients);
    let sums: [Count; 8] = [
        ("sent", |second| second.sent, delivery.sent_messages),
        (
            "acknowledged",
            |second| second.acknowledged,
            delivery.acknowledged,
        ),
        (
            "held back",
            |second| second.held_back,
            run.rates.held_back_messages,
        ),
        (
            "bytes sent",
            |second| second.bytes_sent,
            delivery.bytes_sent,
        ),
        (
            "bytes received",
            |second| second.bytes_received,
            delivery.bytes_received,
        ),
        (
            "clients ready",
            |second| second.connected,
            clients.ready.saturating_add(clients.reconnected),
        ),
        ("clients failed", |second| second.failed, clients.failed),
        (
            "connections lost",
            |second| second.lost,
            clients.lost.saturating_add(clients.cut),
        ),
    ];
    for (name, of, whole) in sums {
        let sum = run
            .series
            .iter()
            .fold(0_u64, |sum, second| sum.saturating_add(of(second)));
        if sum != whole {
            let what = format!("{RESULT} has {name}: {whole}, and the sum of its seconds is {sum}");
            return Err(disagrees(what));
        }
    }
    let figures = hold(run)?;
    Ok(format!(
        "sums: {} counts of the run are those of its seconds, {figures} figures of the hold those of its own",
        sums.len()
    ))
}

/// The hold lasts as long as its seconds, and its rates are the counts of these. Returns how many
/// figures that are.
fn hold(run: &RunResult) -> Result<usize, BundleError> {
    let seconds = || run.series.iter().filter(|of| of.stage == Stage::Hold);
    let lasts = run.scenario.stages.hold;
    let sum = |of: fn(&Second) -> u64| fraction(seconds().map(of).fold(0, u64::saturating_add));
    let rates = &run.rates;
    // How much of the load is due in a second is an estimate from some of the publishers.
    let estimated = 2.0 + fraction(run.clients.wanted) * OFFERED_ESTIMATED;
    let figures = [
        (
            "a hold of seconds",
            lasts,
            seconds().map(|of| of.span).sum(),
            ROUNDING_SECONDS,
        ),
        (
            "messages sent in the hold",
            rates.sent * lasts,
            sum(|of| of.sent),
            0.5,
        ),
        (
            "messages received in the hold",
            rates.received * lasts,
            sum(|of| of.received),
            0.5,
        ),
        (
            "messages due in the hold",
            rates.offered * lasts,
            sum(|of| of.offered),
            estimated,
        ),
    ];
    for (name, kept, sum, most) in figures {
        // A number that is none is never near.
        let is_near = (kept - sum).abs() <= most + ROUNDING * sum;
        if !is_near {
            let what = format!("{RESULT} has {name}: {kept}, and its seconds have {sum}");
            return Err(disagrees(what));
        }
    }
    Ok(figures.len())
}

/// The log has the histogram of every figure of every second, and their sums are the latencies of
/// the run.
pub(super) fn log(run: &RunResult, log: &[u8]) -> Result<String, BundleError> {
    let wrong = |error: String| disagrees(format!("{LOG}: {error}"));
    let log = std::str::from_utf8(log).map_err(|error| wrong(error.to_string()))?;
    let lines = without_header(run, log)?;
    let head_lines = log[..log.len() - lines.len()].lines().count();
    let mut matched = Matched::new(run);
    for (number, line) in (head_lines + 1..).zip(lines.split_inclusive('\n')) {
        let at_line = |what: &str| wrong(format!("line {number} {what}"));
        let found = hlog::read(line, |_| true).map_err(|error| at_line(&error.to_string()))?;
        let [interval] = found.as_slice() else {
            return Err(at_line("is not an interval"));
        };
        let head = hlog::line_head(
            &interval.tag,
            interval.start_seconds,
            interval.duration_seconds,
            &interval.histogram,
        );
        if !line.starts_with(&head) {
            return Err(at_line("has another time or maximum than its histogram"));
        }
        matched.take(interval).map_err(|what| at_line(&what))?;
    }
    matched.finish().map_err(wrong)
}

/// The lines behind the header, which has the start of the run.
fn without_header<'log>(run: &RunResult, log: &'log str) -> Result<&'log str, BundleError> {
    let start = log.lines().nth(1).and_then(|line| {
        let text = line.strip_prefix("#[StartTime: ")?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    let start = start.filter(|start| (0.0..1e12).contains(start));
    let start = whole(start.unwrap_or_default());
    let lines = log.strip_prefix(&hlog::header(fraction(start)));
    let is_whole = log.ends_with('\n');
    lines
        .filter(|_| is_whole && utc_text(start) == run.started)
        .ok_or_else(|| {
            let what = format!("{LOG} was cut off, or its header is not that of the run's start");
            disagrees(what)
        })
}

/// What a second of a result has of a latency.
enum InSecond {
    /// Results do not have this latency by second.
    NotKept,
    /// There was none.
    Nothing,
    /// There was some.
    Figures(Quantiles),
}

/// The seconds of a run for which the intervals of a log were found.
struct Matched<'a> {
    run: &'a RunResult,
    /// The present second.
    second: usize,
    /// The first of [`DISTRIBUTIONS`] that may follow in it.
    next: usize,
    hold_from: Option<f64>,
    sums: BTreeMap<&'static str, Histogram<u64>>,
    intervals: u64,
    values: u64,
}

impl<'a> Matched<'a> {
    fn new(run: &'a RunResult) -> Self {
        let hold = run.series.iter().find(|second| second.stage >= Stage::Hold);
        Self {
            run,
            second: 0,
            next: 0,
            hold_from: hold.map(|second| second.at),
            sums: BTreeMap::new(),
            intervals: 0,
            values: 0,
        }
    }

    /// The next interval: of the present second, or of a later one.
    fn take(&mut self, interval: &Interval) -> Result<(), String> {
        let tag = DISTRIBUTIONS.iter().position(|name| *name == interval.tag);
        let tag = tag.ok_or("is of no latency of a run")?;
        while self.next > tag || !self.is_now(interval) {
            if self.second == self.run.series.len() {
                return Err(format!("is of no second of {RESULT}, or not in its place"));
            }
            self.skip(DISTRIBUTIONS.len())?;
            self.second += 1;
            self.next = 0;
        }
        self.skip(tag)?;
        self.next = tag + 1;
        let computed = Quantiles::from_histogram(&interval.histogram);
        let is_same = match self.present(DISTRIBUTIONS[tag]) {
            InSecond::NotKept => true,
            InSecond::Nothing => false,
            InSecond::Figures(kept) => kept == computed,
        };
        if interval.histogram.is_empty() || !is_same {
            return Err(format!("is not what {RESULT} has of its second"));
        }
        self.add(DISTRIBUTIONS[tag], interval)
    }

    fn is_now(&self, interval: &Interval) -> bool {
        let is_near = |left: f64, right: f64| (left - right).abs() < ROUNDING_SECONDS;
        self.run.series.get(self.second).is_some_and(|second| {
            is_near(second.at, interval.start_seconds)
                && is_near(second.span, interval.duration_seconds)
        })
    }

    /// No interval follows for the latencies before this one: the present second must have none.
    fn skip(&mut self, tag: usize) -> Result<(), String> {
        for name in DISTRIBUTIONS.iter().take(tag).skip(self.next) {
            if let InSecond::Figures(_) = self.present(name) {
                let second = self.second + 1;
                return Err(format!(
                    "comes after second {second}, whose {name} is missing"
                ));
            }
        }
        Ok(())
    }

    /// What the present second has of a latency.
    fn present(&self, name: &str) -> InSecond {
        let Some(second) = self.run.series.get(self.second) else {
            return InSecond::NotKept;
        };
        let kept = match name {
            "e2e" => second.e2e,
            "service" => second.service,
            "publish_ack" => second.publish_ack,
            "connect" => second.connect,
            "reconnect" => second.reconnect,
            "generator_lag" => second.delays.sending,
            "receive_lag" => second.delays.reading,
            "open_lag" => second.delays.opening,
            _ => return InSecond::NotKept,
        };
        kept.map_or(InSecond::Nothing, InSecond::Figures)
    }

    fn add(&mut self, tag: &'static str, interval: &Interval) -> Result<(), String> {
        self.intervals += 1;
        self.values = self.values.saturating_add(interval.histogram.len());
        let begins = self.run.series[self.second].at;
        let is_of_hold = self.hold_from.is_some_and(|from| begins >= from);
        if !is_of_hold && !OF_WHOLE_RUN.contains(&tag) {
            return Ok(());
        }
        let Some(sum) = self.sums.get_mut(tag) else {
            self.sums.insert(tag, interval.histogram.clone());
            return Ok(());
        };
        let added = sum.add(&interval.histogram);
        added.map_err(|error| error.to_string())
    }

    /// The log ends: its sums are the latencies of the run.
    fn finish(mut self) -> Result<String, String> {
        while self.second < self.run.series.len() {
            let skipped = self.skip(DISTRIBUTIONS.len());
            skipped.map_err(|what| format!("its end {what}"))?;
            self.second += 1;
            self.next = 0;
        }
        // A thread that hands over a second late has it entered into the next one, which may be
        // the first of the hold.
        let is_exact = self.run.validity.valid && self.run.agents.is_empty();
        for (name, kept) in self.run.latency_ns.named() {
            let kept = kept.map(Distribution::histogram).transpose();
            let kept = kept.map_err(|error| error.to_string())?;
            let is_same = match (self.sums.get(name), &kept) {
                (None, None) => true,
                (Some(sum), Some(kept)) if is_exact => sum == kept,
                (Some(sum), Some(kept)) => is_part(kept, sum),
                (Some(_), None) => !is_exact,
                (None, Some(_)) => false,
            };
            if !is_same {
                return Err(format!("its seconds do not add up to {name} of {RESULT}"));
            }
        }
        Ok(format!(
            "{LOG}: {} intervals, {} values; those of {RESULT}, second by second and in all",
            count(self.intervals),
            count(self.values)
        ))
    }
}

/// Whether all values of one are in the other.
fn is_part(part: &Histogram<u64>, whole: &Histogram<u64>) -> bool {
    let mut buckets = part.iter_recorded();
    buckets.all(|bucket| whole.count_at(bucket.value_iterated_to()) >= bucket.count_at_value())
}
