//! The seconds of all threads combined: the series, the sums of the hold, the errors, the log of
//! histograms.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use hdrhistogram::Histogram;
use thrum_figures::{SECOND_NS, as_index, fraction};
use thrum_load::floors::Delays;
use thrum_load::histogram::add;
use thrum_load::pacing::Warp;
use thrum_load::plan::Plan;
use thrum_report::hlog;
use thrum_report::live::{LatencyKind, SecondLatencies};
use thrum_report::result::{self, ErrorCount, Quantiles, Resources, Second, Stage};

use crate::agents::Used;
use crate::outcome::response_bound;
use crate::record::{Latencies, Slice};
use crate::sent_before::SentBefore;
use crate::swarm::{Timeline, page};

/// Delay after its end at which a second is complete: threads hand theirs over within a tenth of
/// it, agents a little later.
const CLOSE_DELAY_NS: u64 = SECOND_NS / 2;

/// Seconds that stay open for a thread that is late with the last one of a stage. Each takes about
/// a megabyte.
const OPEN_MAX: usize = 60;

/// What is said of a second that came after so long that another stage has it.
const TOO_LATE: &str = "a second of a thread came too late: the series has it in a later stage";

/// Emptied seconds that are kept to be used again: one is open while the one before is closed. Each
/// takes about 5 MB, and clearing that much for every second costs more than all of the rest here.
const SPARE_MAX: usize = 2;

/// Reasons of errors kept over the whole run.
const REASONS_MAX: usize = 100;

/// The beginning of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    /// When the first connection is opened.
    pub(crate) ramp_start_ns: u64,
    /// When it was begun, in seconds of Unix time.
    pub(crate) started_unix: u64,
    /// Threads of all its generators.
    pub(crate) threads: u32,
}

/// Collects the seconds of a run.
pub(crate) struct Collector {
    ramp_start_ns: u64,
    threads: u32,
    /// Begin of the latest second of each thread.
    latest_ns: BTreeMap<u32, u64>,
    timeline: Option<Timeline>,
    warp: Warp,
    open: BTreeMap<u64, Open>,
    /// Empty.
    spare: Vec<Slice>,
    /// Everything before it is closed.
    closed_ns: u64,
    /// The hold's latencies, and for the whole run those of connecting, subscribing and
    /// reconnecting.
    pub(crate) latencies: Latencies,
    /// The delays of each thread, by its number: in the hold, and of connections in the whole run.
    pub(crate) delays: BTreeMap<u32, Delays>,
    /// Closed seconds.
    pub(crate) seconds: Vec<Second>,
    /// The latencies of those that were closed since somebody emptied this list.
    pub(crate) latest: Vec<SecondLatencies>,
    sent_before: SentBefore,
    errors: BTreeMap<String, ErrorCount>,
    log: Option<BufWriter<File>>,
    log_error: Option<io::Error>,
}

/// A second under way.
struct Open {
    slice: Slice,
    up: Option<u64>,
    broker: Option<Resources>,
    generator: Option<Resources>,
}

impl Open {
    /// A second of which nothing is known yet, in a spare slice if there is one.
    fn with(spare: Option<Slice>) -> Self {
        Self {
            slice: spare.unwrap_or_default(),
            up: None,
            broker: None,
            generator: None,
        }
    }

    /// Adds what is of the same second; returns the slice that it was in.
    fn join(&mut self, other: Self) -> Slice {
        self.slice.merge(&other.slice);
        self.up = other.up.or(self.up);
        self.broker = other.broker.or(self.broker);
        self.generator = other.generator.or(self.generator);
        other.slice
    }
}

impl Collector {
    /// A collector that writes every second's histograms to a file, if one is given.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn new(began: Began, log: Option<&Path>) -> io::Result<Self> {
        let log = log.map(File::create).transpose()?;
        let mut collector = Self {
            ramp_start_ns: began.ramp_start_ns,
            threads: began.threads,
            latest_ns: BTreeMap::new(),
            timeline: None,
            warp: Warp::identity(),
            open: BTreeMap::new(),
            spare: Vec::new(),
            closed_ns: began.ramp_start_ns,
            latencies: Latencies::new(),
            delays: BTreeMap::new(),
            seconds: Vec::new(),
            latest: Vec::new(),
            sent_before: SentBefore::new(),
            errors: BTreeMap::new(),
            log: log.map(BufWriter::new),
            log_error: None,
        };
        collector.write_log(&hlog::header(fraction(began.started_unix)));
        Ok(collector)
    }

    /// The load has its times, or others than before.
    pub(crate) fn set_load(&mut self, timeline: Timeline, warp: Warp) {
        (self.timeline, self.warp) = (Some(timeline), warp);
    }

    /// Adds a thread's second; one that arrives too late is added to the oldest that is still open,
    /// which is of the same stage.
    pub(crate) fn take(&mut self, slice: &Slice) {
        self.add_up(slice);
        let latest_ns = self.latest_ns.entry(slice.thread).or_default();
        *latest_ns = slice.start_ns.max(*latest_ns);
        let (start_ns, _) = page(self.ramp_start_ns, self.timeline, slice.start_ns);
        let entered_ns = start_ns.max(self.closed_ns);
        if self.stage_at(entered_ns) != self.stage_at(start_ns) {
            self.count_error(self.seconds_at(start_ns), TOO_LATE, 1);
        }
        self.open_second(entered_ns).slice.merge(slice);
    }

    /// The open second that begins at a time.
    fn open_second(&mut self, start_ns: u64) -> &mut Open {
        let spare = &mut self.spare;
        let open = || Open::with(spare.pop());
        self.open.entry(start_ns).or_insert_with(open)
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
        let open = self.open_second(start_ns.max(self.closed_ns));
        open.up = Some(up);
        open.broker = broker.or(open.broker);
        open.generator = generator.or(open.generator);
    }

    /// Adds what agents saw in a second.
    pub(crate) fn note_use(&mut self, used: &Used) {
        let (start_ns, _) = page(self.ramp_start_ns, self.timeline, used.at_ns);
        let open = self.open_second(start_ns.max(self.closed_ns));
        used.enter(&mut open.broker, &mut open.generator);
    }

    /// Closes the seconds that are complete; true if there was one.
    pub(crate) fn close(&mut self, plan: &Plan, now_ns: u64) -> bool {
        let before = self.seconds.len();
        while !self.open.is_empty() {
            let (_, end_ns) = page(self.ramp_start_ns, self.timeline, self.closed_ns);
            let is_over = end_ns.saturating_add(CLOSE_DELAY_NS) <= now_ns;
            if !is_over || (self.is_waited_for(end_ns) && self.open.len() < OPEN_MAX) {
                break;
            }
            self.close_until(plan, end_ns);
        }
        self.seconds.len() > before
    }

    /// Closes everything at the end of the run.
    pub(crate) fn close_all(&mut self, plan: &Plan, now_ns: u64) {
        while !self.open.is_empty() {
            let (_, end_ns) = page(self.ramp_start_ns, self.timeline, self.closed_ns);
            self.close_until(plan, end_ns.min(now_ns.max(self.closed_ns + 1)));
        }
    }

    /// Whether a thread may still hand over what belongs to the stage that ends at this time: the
    /// series must not have it in the next one.
    fn is_waited_for(&self, end_ns: u64) -> bool {
        let later = self
            .latest_ns
            .values()
            .filter(|latest_ns| **latest_ns >= end_ns);
        self.stage_at(self.closed_ns) != self.stage_at(end_ns)
            && later.count() < as_index(self.threads)
    }

    /// Closes the next second, which nobody may have seen anything of.
    fn close_until(&mut self, plan: &Plan, end_ns: u64) {
        let mut whole: Option<Open> = None;
        while let Some(entry) = self
            .open
            .first_entry()
            .filter(|entry| *entry.key() < end_ns)
        {
            let open = entry.remove();
            match &mut whole {
                None => whole = Some(open),
                Some(whole) => self.spare(whole.join(open)),
            }
        }
        let whole = whole.unwrap_or_else(|| Open::with(self.spare.pop()));
        self.close_one(plan, self.closed_ns, end_ns, &whole);
        self.spare(whole.slice);
    }

    /// Keeps a second to be used again.
    fn spare(&mut self, mut slice: Slice) {
        if self.spare.len() < SPARE_MAX {
            slice.restart(0);
            self.spare.push(slice);
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
            self.count_error(at, reason, *times);
        }
    }

    fn count_error(&mut self, at: f64, reason: &str, times: u64) {
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
        let kind = latency_kind(plan);
        let of_kind = match kind {
            LatencyKind::EndToEnd => &latencies.response,
            LatencyKind::Acknowledgement => &latencies.publish_ack,
            LatencyKind::Connect => &latencies.connect,
        };
        self.latest.push(SecondLatencies::new(kind, of_kind));
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
                e2e_bound: response_bound(latencies, &excess),
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

/// The latencies that a run is about.
pub(crate) fn latency_kind(plan: &Plan) -> LatencyKind {
    match (plan.publishers().is_empty(), plan.subscribers()) {
        (true, _) => LatencyKind::Connect,
        (false, 0) => LatencyKind::Acknowledgement,
        (false, _) => LatencyKind::EndToEnd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(threads: u32) -> Collector {
        let began = Began {
            ramp_start_ns: SECOND_NS,
            started_unix: 0,
            threads,
        };
        Collector::new(began, None).unwrap()
    }

    fn plan() -> Plan {
        let scenario = thrum_load::scenario::find("p2p-1K").unwrap();
        crate::plan(scenario, "t").unwrap()
    }

    /// A second of a thread, in which it sent one message.
    fn second(thread: u32, at: u64) -> Slice {
        let mut slice = Slice {
            start_ns: at * SECOND_NS,
            thread,
            ..Slice::default()
        };
        slice.counts.sent = 1;
        slice
    }

    /// Ramp from second 1 on, warm-up from 3, hold from 4 to 6.
    const TIMELINE: Timeline = Timeline {
        start_ns: 3 * SECOND_NS,
        hold_start_ns: 4 * SECOND_NS,
        hold_end_ns: 6 * SECOND_NS,
    };

    /// Stage, begin and messages sent of each second of the series.
    fn series(collector: &Collector) -> Vec<(Stage, u64, u64)> {
        let seconds = collector.seconds.iter();
        seconds
            .map(|of| (of.stage, thrum_figures::whole(of.at.round()) + 1, of.sent))
            .collect()
    }

    #[test]
    fn a_second_of_a_late_thread_stays_in_its_stage() {
        let (mut collector, plan) = (collector(2), plan());
        collector.set_load(TIMELINE, Warp::identity());
        for at in 1..9 {
            collector.take(&second(0, at));
            if at < 5 {
                collector.take(&second(1, at));
            }
            collector.close(&plan, (at + 2) * SECOND_NS);
        }
        // The other thread was stopped from the last second of the hold on: that one waits.
        assert_eq!(series(&collector).last(), Some(&(Stage::Hold, 4, 2)));
        collector.take(&second(1, 5));
        collector.take(&second(1, 8));
        collector.close(&plan, 10 * SECOND_NS);
        let expected = [
            (Stage::Ramp, 1, 2),
            (Stage::Ramp, 2, 2),
            (Stage::WarmUp, 3, 2),
            (Stage::Hold, 4, 2),
            (Stage::Hold, 5, 2),
            (Stage::Drain, 6, 1),
            (Stage::Drain, 7, 1),
            (Stage::Drain, 8, 2),
        ];
        assert_eq!(series(&collector), expected);
        assert_eq!(collector.errors(), []);
    }

    #[test]
    fn a_thread_that_is_late_for_a_minute_is_told_of() {
        let (mut collector, plan) = (collector(2), plan());
        collector.set_load(TIMELINE, Warp::identity());
        for at in 1..80 {
            collector.take(&second(0, at));
            collector.close(&plan, (at + 2) * SECOND_NS);
        }
        collector.take(&second(1, 2));
        collector.close_all(&plan, 90 * SECOND_NS);
        let errors = collector.errors();
        assert_eq!((errors[0].reason.as_str(), errors[0].count), (TOO_LATE, 1));
        let sent: u64 = collector.seconds.iter().map(|second| second.sent).sum();
        assert_eq!(sent, 80);
    }

    #[test]
    fn a_second_of_which_nobody_saw_anything_is_in_the_series() {
        let (mut collector, plan) = (collector(1), plan());
        collector.set_load(TIMELINE, Warp::identity());
        for at in [1, 2, 3, 5, 6] {
            collector.take(&second(0, at));
        }
        collector.close_all(&plan, 7 * SECOND_NS);
        let hold = collector
            .seconds
            .iter()
            .filter(|of| of.stage == Stage::Hold);
        let hold: Vec<(f64, u64, u64)> = hold.map(|of| (of.span, of.offered, of.sent)).collect();
        assert_eq!(hold, [(1.0, 1_000, 0), (1.0, 1_000, 1)]);
    }

    #[test]
    fn an_error_has_its_first_and_last_second_in_any_order_of_reports() {
        let mut collector = collector(1);
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
