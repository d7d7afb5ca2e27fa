//! The seconds of all threads combined: the series, the sums of the hold, the errors, the log of
//! histograms.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use hdrhistogram::Histogram;
use thrum_figures::{SECOND_NS, fraction};
use thrum_load::floors::Delays;
use thrum_load::histogram::add;
use thrum_load::pacing::Warp;
use thrum_load::plan::Plan;
use thrum_report::hlog;
use thrum_report::result::{self, ErrorCount, Quantiles, Resources, Second, Stage};

use crate::agents::Used;
use crate::outcome::response_bound;
use crate::record::{Latencies, Slice};
use crate::sent_before::SentBefore;
use crate::swarm::{Timeline, page};

/// Delay after its end at which a second is complete: threads hand theirs over within a tenth of
/// it, agents a little later.
const CLOSE_DELAY_NS: u64 = SECOND_NS / 2;

/// Reasons of errors kept over the whole run.
const REASONS_MAX: usize = 100;

/// Collects the seconds of a run.
pub(crate) struct Collector {
    ramp_start_ns: u64,
    timeline: Option<Timeline>,
    warp: Warp,
    open: BTreeMap<u64, Open>,
    /// Everything before it is closed.
    closed_ns: u64,
    /// The hold's latencies, and for the whole run those of connecting, subscribing and
    /// reconnecting.
    pub(crate) latencies: Latencies,
    /// The delays of each thread, by its number: in the hold, and of connections in the whole run.
    pub(crate) delays: BTreeMap<u32, Delays>,
    /// Closed seconds.
    pub(crate) seconds: Vec<Second>,
    sent_before: SentBefore,
    errors: BTreeMap<String, ErrorCount>,
    log: Option<BufWriter<File>>,
    log_error: Option<io::Error>,
}

/// A second under way.
#[derive(Default)]
struct Open {
    slice: Slice,
    up: Option<u64>,
    broker: Option<Resources>,
    generator: Option<Resources>,
}

impl Collector {
    /// A collector that writes every second's histograms to a file, if one is given.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn new(
        ramp_start_ns: u64,
        started_unix: u64,
        log: Option<&Path>,
    ) -> io::Result<Self> {
        let log = log.map(File::create).transpose()?;
        let mut collector = Self {
            ramp_start_ns,
            timeline: None,
            warp: Warp::identity(),
            open: BTreeMap::new(),
            closed_ns: 0,
            latencies: Latencies::new(),
            delays: BTreeMap::new(),
            seconds: Vec::new(),
            sent_before: SentBefore::new(),
            errors: BTreeMap::new(),
            log: log.map(BufWriter::new),
            log_error: None,
        };
        collector.write_log(&hlog::header(fraction(started_unix)));
        Ok(collector)
    }

    /// The load has its times, or others than before.
    pub(crate) fn set_load(&mut self, timeline: Timeline, warp: Warp) {
        (self.timeline, self.warp) = (Some(timeline), warp);
    }

    /// Adds a thread's second; one that arrives too late is added to the oldest that is still open.
    pub(crate) fn take(&mut self, slice: &Slice) {
        self.add_up(slice);
        let start_ns = slice.start_ns.max(self.closed_ns);
        self.open.entry(start_ns).or_default().slice.merge(slice);
    }

    /// Adds what was seen of clients, broker and generator at a time.
    pub(crate) fn note(
        &mut self,
        at_ns: u64,
        up: u64,
        broker: Option<Resources>,
        generator: Option<Resources>,
    ) {
        let (start_ns, _) = page(self.ramp_start_ns, self.timeline, at_ns);
        let open = self.open.entry(start_ns.max(self.closed_ns)).or_default();
        open.up = Some(up);
        open.broker = broker.or(open.broker);
        open.generator = generator.or(open.generator);
    }

    /// Adds what agents saw in a second.
    pub(crate) fn note_use(&mut self, used: &Used) {
        let (start_ns, _) = page(self.ramp_start_ns, self.timeline, used.at_ns);
        let open = self.open.entry(start_ns.max(self.closed_ns)).or_default();
        used.enter(&mut open.broker, &mut open.generator);
    }

    /// Closes the seconds that are complete; true if there was one.
    pub(crate) fn close(&mut self, plan: &Plan, now_ns: u64) -> bool {
        let before = self.seconds.len();
        while let Some((&start_ns, _)) = self.open.first_key_value() {
            let (_, end_ns) = page(self.ramp_start_ns, self.timeline, start_ns);
            if end_ns.saturating_add(CLOSE_DELAY_NS) > now_ns {
                break;
            }
            if let Some((start_ns, open)) = self.open.pop_first() {
                self.close_one(plan, start_ns, end_ns, &open);
            }
        }
        self.seconds.len() > before
    }

    /// Closes everything at the end of the run.
    pub(crate) fn close_all(&mut self, plan: &Plan, now_ns: u64) {
        while let Some((start_ns, open)) = self.open.pop_first() {
            let (_, end_ns) = page(self.ramp_start_ns, self.timeline, start_ns);
            let end_ns = end_ns.min(now_ns.max(start_ns + 1));
            self.close_one(plan, start_ns, end_ns, &open);
        }
    }

    /// Errors of the run so far, most frequent first.
    pub(crate) fn errors(&self) -> Vec<ErrorCount> {
        let mut errors: Vec<_> = self.errors.values().cloned().collect();
        errors.sort_by(|left, right| {
            right
                .count
                .cmp(&left.count)
                .then_with(|| left.reason.cmp(&right.reason))
        });
        errors
    }

    /// The most frequent error.
    pub(crate) fn main_error(&self) -> Option<String> {
        self.errors().into_iter().next().map(|error| error.reason)
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The log could not be written.
    pub(crate) fn finish_log(&mut self) -> io::Result<()> {
        if let Some(error) = self.log_error.take() {
            return Err(error);
        }
        self.log.take().map_or(Ok(()), |mut log| log.flush())
    }

    /// Seconds from the first connection to a time.
    pub(crate) fn seconds_at(&self, at_ns: u64) -> f64 {
        fraction(at_ns.saturating_sub(self.ramp_start_ns)) / 1e9
    }

    /// Enters a second into the sums.
    fn add_up(&mut self, slice: &Slice) {
        let in_hold = self
            .timeline
            .is_some_and(|timeline| slice.start_ns >= timeline.hold_start_ns);
        let sums = self.latencies.all_mut().zip(slice.latencies.all());
        for ((name, sum), (_, histogram)) in sums {
            let kind = name.strip_prefix("floor.").unwrap_or(name);
            if in_hold || matches!(kind, "connect" | "subscribe" | "reconnect" | "open_lag") {
                add(sum, histogram);
            }
        }
        let delays = self.delays.entry(slice.thread).or_default();
        delays.opening.merge(&slice.delays.opening);
        if in_hold {
            delays.expected += slice.delays.expected;
            delays.sending.merge(&slice.delays.sending);
            delays.reading.merge(&slice.delays.reading);
        }
        let at = self.seconds_at(slice.start_ns);
        for (reason, times) in &slice.reasons {
            let is_known = self.errors.contains_key(reason);
            let reason = if is_known || self.errors.len() < REASONS_MAX {
                reason
            } else {
                "other"
            };
            let error = self
                .errors
                .entry(reason.to_owned())
                .or_insert_with(|| ErrorCount {
                    reason: reason.to_owned(),
                    first_seconds: at,
                    ..ErrorCount::default()
                });
            error.count += times;
            // Threads hand over their seconds in any order.
            error.first_seconds = error.first_seconds.min(at);
            error.last_seconds = error.last_seconds.max(at);
        }
    }

    fn close_one(&mut self, plan: &Plan, start_ns: u64, end_ns: u64, open: &Open) {
        self.closed_ns = end_ns;
        let (at, span) = (self.seconds_at(start_ns), fraction(end_ns - start_ns) / 1e9);
        for (name, histogram) in open.slice.latencies.named() {
            if self.log.is_some() && !histogram.is_empty() {
                self.write_log(&hlog::line(name, at, span, histogram));
            }
        }
        let quantiles = |histogram: &Histogram<u64>| {
            (!histogram.is_empty()).then(|| Quantiles::from_histogram(histogram))
        };
        let (counts, latencies) = (&open.slice.counts, &open.slice.latencies);
        let excess = self.sent_before.enter(start_ns, latencies);
        let up_before = self.seconds.last().map_or(0, |second| second.up);
        self.seconds.push(Second {
            at,
            span,
            stage: self.stage_at(start_ns),
            up: open
                .up
                .unwrap_or_else(|| (up_before + counts.connected).saturating_sub(counts.lost)),
            connected: counts.connected,
            failed: counts.failed,
            lost: counts.lost,
            offered: self.offered(plan, start_ns, end_ns),
            sent: counts.sent,
            received: counts.received,
            acknowledged: counts.acknowledged,
            held_back: counts.held_back,
            bytes_sent: counts.bytes_out,
            bytes_received: counts.bytes_in,
            e2e: quantiles(&latencies.response),
            service: quantiles(&latencies.service),
            publish_ack: quantiles(&latencies.publish_ack),
            connect: quantiles(&latencies.connect),
            reconnect: quantiles(&latencies.reconnect),
            delays: result::Delays {
                sending: quantiles(&latencies.lag),
                reading: quantiles(&latencies.receive_lag),
                opening: quantiles(&latencies.open_lag),
                e2e_bound: response_bound(latencies, &excess.handing_over, &excess.answering),
            },
            broker: open.broker,
            generator: open.generator,
        });
    }

    fn stage_at(&self, at_ns: u64) -> Stage {
        match self.timeline {
            Some(timeline) if at_ns >= timeline.hold_end_ns => Stage::Drain,
            Some(timeline) if at_ns >= timeline.hold_start_ns => Stage::Hold,
            Some(timeline) if at_ns >= timeline.start_ns => Stage::WarmUp,
            _ => Stage::Ramp,
        }
    }

    /// Messages due within a second.
    fn offered(&self, plan: &Plan, start_ns: u64, end_ns: u64) -> u64 {
        let Some(timeline) = self.timeline else {
            return 0;
        };
        let due_before = |at_ns: u64| {
            let real_ns = at_ns
                .min(timeline.hold_end_ns)
                .saturating_sub(timeline.start_ns);
            plan.due_in_all(self.warp.virtual_ns(real_ns))
        };
        due_before(end_ns).saturating_sub(due_before(start_ns))
    }

    fn write_log(&mut self, text: &str) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.write_all(text.as_bytes()) {
            self.log = None;
            self.log_error = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_first_and_last_second_in_any_order_of_reports() {
        let mut collector = Collector::new(SECOND_NS, 0, None).unwrap();
        for second in [3, 2, 5, 4] {
            let mut slice = Slice {
                start_ns: second * SECOND_NS,
                ..Slice::default()
            };
            slice.note("reset by the broker", 2);
            collector.take(&slice);
        }
        let expected = ErrorCount {
            reason: "reset by the broker".to_owned(),
            count: 8,
            first_seconds: 1.0,
            last_seconds: 4.0,
        };
        assert_eq!(collector.errors(), [expected]);
    }
}
