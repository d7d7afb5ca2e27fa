//! Durations of the stages of stamped messages: one set of histograms for each worker.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

use crate::workers::WorkerId;

/// Two significant digits: no quantile is off by more than 1 %, and a histogram takes 30 KiB.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Longer durations count as this one: a minute.
pub const STAGE_NS_MAX: u64 = 60_000_000_000;
/// Number of stages.
const COUNT: usize = 8;

/// A stage of a message in the broker; the name is that of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MessageStage {
    /// From the wake-up of the worker to the read of the bytes: the longest time for which they
    /// can have lain in the socket while the worker served others.
    Waited,
    /// From the read of the bytes to the list of receivers: decoded, permitted, matched.
    Routed,
    /// Until the message stands in the output or the queue of its receiver; the way to another
    /// worker is part of it.
    Queued,
    /// Until the system has taken its last byte.
    Written,
    /// The three stages before together: from the read to the last byte written.
    Broker,
    /// From the list of receivers until the message stands in the output of the last one.
    FannedOut,
    /// From the last byte written to the PUBACK or PUBCOMP of the receiver.
    Acknowledged,
    /// From the read of the bytes until the publisher's PUBACK or PUBREC is written.
    Answered,
}

/// The stages and their names.
pub const MESSAGE_STAGES: [(&str, MessageStage); COUNT] = [
    ("waited", MessageStage::Waited),
    ("routed", MessageStage::Routed),
    ("queued", MessageStage::Queued),
    ("written", MessageStage::Written),
    ("broker", MessageStage::Broker),
    ("fanned_out", MessageStage::FannedOut),
    ("acknowledged", MessageStage::Acknowledged),
    ("answered", MessageStage::Answered),
];

/// The durations of one stage.
#[derive(Clone, Debug)]
pub struct StageSeries {
    /// In nanoseconds.
    pub histogram: Histogram<u64>,
    /// Their exact sum in nanoseconds.
    pub sum_ns: u64,
}

impl StageSeries {
    fn new() -> Self {
        let made = Histogram::new_with_bounds(1, STAGE_NS_MAX, SIGNIFICANT_DIGITS);
        Self {
            histogram: made.expect("constant bounds are valid"),
            sum_ns: 0,
        }
    }
}

/// The durations of all stages, and the stamped messages that have none.
#[derive(Clone, Debug)]
pub struct StageFigures {
    /// Messages that were stamped.
    pub stamped: u64,
    /// Of these, those that no session took.
    pub unreceived: u64,
    /// Deliveries and answers that were not followed because the table was full.
    pub table_full: u64,
    /// Deliveries and answers that were given up before they were written: the client was away or
    /// its connection ended, or the message was dropped from its queue.
    pub unfinished: u64,
    /// Counts up with each change.
    changes: u64,
    series: [StageSeries; COUNT],
}

impl StageFigures {
    pub(super) fn new() -> Self {
        Self {
            stamped: 0,
            unreceived: 0,
            table_full: 0,
            unfinished: 0,
            changes: 0,
            series: std::array::from_fn(|_| StageSeries::new()),
        }
    }

    /// Figures in which every duration has that count.
    #[cfg(any(test, feature = "testing"))]
    pub fn full(count: u32) -> Self {
        let mut figures = Self::new();
        for (_, stage) in MESSAGE_STAGES {
            let series = &mut figures.series[stage as usize];
            let mut ns = 1;
            while ns <= STAGE_NS_MAX {
                series.histogram.saturating_record_n(ns, count.into());
                ns = series.histogram.next_non_equivalent(ns);
            }
        }
        figures
    }

    /// The durations of a stage.
    pub fn series(&self, stage: MessageStage) -> &StageSeries {
        &self.series[stage as usize]
    }

    /// Enters the duration of a stage, for that many deliveries.
    pub(super) fn enter(&mut self, stage: MessageStage, ns: u64, deliveries: u32) {
        let series = &mut self.series[stage as usize];
        let (ns, deliveries) = (ns.clamp(1, STAGE_NS_MAX), u64::from(deliveries));
        series.histogram.saturating_record_n(ns, deliveries);
        series.sum_ns = series.sum_ns.wrapping_add(ns.saturating_mul(deliveries));
    }

    fn add(&mut self, other: &Self) {
        self.stamped += other.stamped;
        self.unreceived += other.unreceived;
        self.table_full += other.table_full;
        self.unfinished += other.unfinished;
        for (sum, more) in self.series.iter_mut().zip(&other.series) {
            let added = sum.histogram.add(&more.histogram);
            debug_assert!(added.is_ok(), "histograms of one kind");
            sum.sum_ns = sum.sum_ns.wrapping_add(more.sum_ns);
        }
    }
}

/// The figures of all workers of a node.
#[derive(Debug)]
pub struct NodeStages {
    /// None where no message is stamped. Each lock guards the figures of one worker, which takes it
    /// for stamped messages only; the other side is the thread that publishes them each second.
    workers: Box<[Mutex<Option<Box<StageFigures>>>]>,
}

impl NodeStages {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// Makes room for the figures of a worker, or drops them.
    pub(super) fn switch(&self, worker: WorkerId, is_on: bool) {
        let mut figures = self.lock(worker.index());
        if is_on {
            figures.get_or_insert_with(|| Box::new(StageFigures::new()));
        } else {
            *figures = None;
        }
    }

    /// Changes the figures of a worker, if it stamps messages.
    pub(super) fn record(&self, worker: WorkerId, enter: impl FnOnce(&mut StageFigures)) {
        if let Some(figures) = self.lock(worker.index()).as_deref_mut() {
            figures.changes += 1;
            enter(figures);
        }
    }

    /// A number that differs after each change; none if no message is stamped. It costs far less
    /// than the figures.
    pub fn changes(&self) -> Option<u64> {
        let of = |worker| self.lock(worker).as_deref().map(|figures| figures.changes);
        (0..self.workers.len())
            .filter_map(of)
            .reduce(u64::wrapping_add)
    }

    /// The figures of all workers together since the start; none if no message is stamped.
    pub fn merged(&self) -> Option<StageFigures> {
        let mut sum: Option<StageFigures> = None;
        for number in 0..self.workers.len() {
            let figures = self.lock(number);
            match (&mut sum, figures.as_deref()) {
                (Some(sum), Some(more)) => sum.add(more),
                (None, Some(first)) => sum = Some(first.clone()),
                (_, None) => {}
            }
        }
        sum
    }

    fn lock(&self, worker: usize) -> std::sync::MutexGuard<'_, Option<Box<StageFigures>>> {
        // Counters stay valid whatever panicked.
        let lock = self.workers[worker].lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_own_place_and_name() {
        for (place, (_, stage)) in MESSAGE_STAGES.iter().enumerate() {
            assert_eq!(*stage as usize, place);
        }
    }

    #[test]
    fn the_figures_of_all_workers_are_added_up() {
        let node = NodeStages::new(3);
        assert!(node.merged().is_none());
        for (number, ns) in [(0, 1_000), (2, 5_000)] {
            node.switch(WorkerId::new(number), true);
            node.record(WorkerId::new(number), |figures| {
                figures.stamped += 1;
                figures.enter(MessageStage::Queued, ns, 3);
            });
        }
        // The worker in the middle stamps nothing.
        node.record(WorkerId::new(1), |figures| figures.stamped += 100);
        let all = node.merged().unwrap();
        assert_eq!(all.stamped, 2);
        let queued = all.series(MessageStage::Queued);
        assert_eq!((queued.histogram.len(), queued.sum_ns), (6, 18_000));
        assert!(all.series(MessageStage::Routed).histogram.is_empty());
        node.switch(WorkerId::new(0), false);
        node.switch(WorkerId::new(2), false);
        assert!(node.merged().is_none());
    }

    #[test]
    fn a_longer_duration_than_a_minute_counts_as_a_minute() {
        let mut figures = StageFigures::new();
        figures.enter(MessageStage::Written, 10 * STAGE_NS_MAX, 1);
        let written = figures.series(MessageStage::Written);
        assert_eq!((written.histogram.len(), written.sum_ns), (1, STAGE_NS_MAX));
    }
}
