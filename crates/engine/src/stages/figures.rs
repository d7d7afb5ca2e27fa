//! Durations of the stages of stamped messages: one set of histograms for each worker.

use std::iter::zip;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::latencies::{Latencies, StageSeries, add};
use crate::workers::WorkerId;

/// Number of stages, with those that overlap.
const COUNT: usize = 16;
/// Number of counts of messages.
const COUNTS: usize = 4;

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
    /// Part of `Broker`: from the read of the bytes until the packet is examined: decrypted, split,
    /// and behind the packets before it.
    Read,
    /// Part of `Broker`: until the rules have decided, or the service that they ask.
    Authorize,
    /// Part of `Broker`: until the receivers are known.
    Route,
    /// Part of `Broker`: until the message stands in the output of its receiver: the way to another
    /// worker, earlier receivers, and a full window.
    Queue,
    /// Part of `Broker`: while the output waits for the disk.
    Sync,
    /// Part of `Broker`: the rest, until the system has taken the last byte.
    Write,
    /// Part of `Answered`: while the PUBACK or PUBREC waits for the disk.
    AnswerSync,
    /// Part of `Queued`: on the way to the worker of the receiver; no time on the same worker.
    Mail,
}

/// The stages of `$SYS/broker/stages`, and their names.
pub const MESSAGE_STAGES: [(&str, MessageStage); 8] = [
    ("waited", MessageStage::Waited),
    ("routed", MessageStage::Routed),
    ("queued", MessageStage::Queued),
    ("written", MessageStage::Written),
    ("broker", MessageStage::Broker),
    ("fanned_out", MessageStage::FannedOut),
    ("acknowledged", MessageStage::Acknowledged),
    ("answered", MessageStage::Answered),
];

/// The parts of [`MessageStage::Broker`], which they sum to, and their names.
pub const STAGE_PARTS: [(&str, MessageStage); 6] = [
    ("read", MessageStage::Read),
    ("authorize", MessageStage::Authorize),
    ("route", MessageStage::Route),
    ("queue", MessageStage::Queue),
    ("sync", MessageStage::Sync),
    ("write", MessageStage::Write),
];

/// What becomes of stamped messages.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Fate {
    Stamped,
    Unreceived,
    TableFull,
    Unfinished,
}

/// The durations of all stages, and the stamped messages that have none, at one moment.
#[derive(Clone, Debug, Default)]
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
    series: [StageSeries; COUNT],
}

impl StageFigures {
    /// Figures in which every duration has that count.
    #[cfg(any(test, feature = "testing"))]
    pub fn full(count: u32) -> Self {
        Self {
            series: std::array::from_fn(|_| StageSeries::full(count)),
            ..Self::default()
        }
    }

    /// What was entered since earlier figures of the same node.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let series = |stage: usize| self.series[stage].since(&earlier.series[stage]);
        Self {
            stamped: self.stamped.saturating_sub(earlier.stamped),
            unreceived: self.unreceived.saturating_sub(earlier.unreceived),
            table_full: self.table_full.saturating_sub(earlier.table_full),
            unfinished: self.unfinished.saturating_sub(earlier.unfinished),
            series: std::array::from_fn(series),
        }
    }

    /// The durations of a stage.
    pub fn series(&self, stage: MessageStage) -> &StageSeries {
        &self.series[stage as usize]
    }
}

/// The figures of one worker, which alone writes them.
#[derive(Debug, Default)]
pub(super) struct WorkerStages {
    is_on: AtomicBool,
    /// Counts up with each change.
    changes: AtomicU64,
    counts: [AtomicU64; COUNTS],
    series: [Latencies; COUNT],
}

impl WorkerStages {
    /// Enters the duration of a stage, for that many deliveries.
    pub(super) fn enter(&self, stage: MessageStage, ns: u64, deliveries: u32) {
        add(&self.changes, 1);
        self.series[stage as usize].enter(ns, deliveries);
    }

    pub(super) fn count(&self, fate: Fate, messages: u64) {
        add(&self.changes, 1);
        add(&self.counts[fate as usize], messages);
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

/// The figures of all workers of a node.
#[derive(Debug)]
pub struct NodeStages {
    /// Each worker writes its own; any thread reads them, without a lock.
    workers: Box<[CachePadded<WorkerStages>]>,
}

impl NodeStages {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Figures of that many workers, in which every duration from a microsecond to a second has
    /// occurred in each stage.
    #[cfg(any(test, feature = "testing"))]
    pub fn wide(workers: usize) -> Self {
        let node = Self::new(workers);
        for figures in &node.workers {
            figures.is_on.store(true, Ordering::Relaxed);
            for series in &figures.series {
                series.fill(1_000..=1_000_000_000, 1);
            }
        }
        node
    }

    /// Begins or ends the figures of a worker. They go on from where they ended.
    pub(super) fn switch(&self, worker: WorkerId, is_on: bool) {
        let figures = &self.workers[worker.index()];
        figures.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The figures of a worker, for that worker alone; none if it stamps no messages.
    pub(super) fn of(&self, worker: WorkerId) -> Option<&WorkerStages> {
        let figures = &*self.workers[worker.index()];
        figures.is_on().then_some(figures)
    }

    /// A number that differs after each change; none if no message is stamped. It costs far less
    /// than the figures.
    pub fn changes(&self) -> Option<u64> {
        let changes = |figures: &WorkerStages| figures.changes.load(Ordering::Relaxed);
        self.stamping().map(changes).reduce(u64::wrapping_add)
    }

    /// The figures of all workers together since the start; none if no message is stamped.
    pub fn merged(&self) -> Option<StageFigures> {
        let mut sum = None;
        for figures in self.stamping() {
            let sum = sum.get_or_insert_with(StageFigures::default);
            for (series, more) in zip(&mut sum.series, &figures.series) {
                more.add_to(series);
            }
            let counts = figures.counts.each_ref();
            let counts = counts.map(|count| count.load(Ordering::Relaxed));
            sum.stamped += counts[Fate::Stamped as usize];
            sum.unreceived += counts[Fate::Unreceived as usize];
            sum.table_full += counts[Fate::TableFull as usize];
            sum.unfinished += counts[Fate::Unfinished as usize];
        }
        sum
    }

    /// The durations of one stage on all workers since the start; none if no message is stamped.
    pub fn merged_series(&self, stage: MessageStage) -> Option<StageSeries> {
        let mut sum = None;
        for figures in self.stamping() {
            figures.series[stage as usize].add_to(sum.get_or_insert_with(StageSeries::default));
        }
        sum
    }

    /// The figures of the workers that stamp messages.
    fn stamping(&self) -> impl Iterator<Item = &WorkerStages> {
        let all = self.workers.iter().map(|figures| &**figures);
        all.filter(|figures| figures.is_on())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_own_place_and_name() {
        let all = MESSAGE_STAGES.iter().chain(&STAGE_PARTS);
        for (place, (_, stage)) in all.enumerate() {
            assert_eq!(*stage as usize, place);
        }
        assert_eq!(MessageStage::AnswerSync as usize, COUNT - 2);
        assert_eq!(MessageStage::Mail as usize, COUNT - 1);
    }

    #[test]
    fn the_difference_of_two_readings_is_what_happened_between_them() {
        let node = NodeStages::new(1);
        node.switch(WorkerId::new(0), true);
        let figures = node.of(WorkerId::new(0)).unwrap();
        figures.count(Fate::Stamped, 2);
        figures.enter(MessageStage::Broker, 1_000, 5);
        let before = node.merged().unwrap();
        figures.count(Fate::Stamped, 3);
        figures.count(Fate::Unfinished, 1);
        figures.enter(MessageStage::Broker, 1_000, 1);
        figures.enter(MessageStage::Broker, 1_000_000, 2);
        figures.enter(MessageStage::Sync, 7, 1);
        let between = node.merged().unwrap().since(&before);
        assert_eq!((between.stamped, between.unfinished), (3, 1));
        let whole = between.series(MessageStage::Broker);
        assert_eq!((whole.count(), whole.sum_ns), (3, 2_001_000));
        assert!(
            whole.quantile_ns(500) > 1_000,
            "the five before do not count"
        );
        assert_eq!(between.series(MessageStage::Sync).count(), 1);
        assert_eq!(between.series(MessageStage::Mail).count(), 0);
    }

    #[test]
    fn the_figures_of_all_workers_are_added_up() {
        let node = NodeStages::new(3);
        assert!(node.merged().is_none() && node.changes().is_none());
        for (number, ns) in [(0, 1_000), (2, 5_000)] {
            node.switch(WorkerId::new(number), true);
            let figures = node.of(WorkerId::new(number)).unwrap();
            figures.count(Fate::Stamped, 1);
            figures.enter(MessageStage::Queued, ns, 3);
        }
        assert!(node.of(WorkerId::new(1)).is_none(), "it stamps nothing");
        let all = node.merged().unwrap();
        assert_eq!((all.stamped, node.changes()), (2, Some(4)));
        let queued = all.series(MessageStage::Queued);
        assert_eq!((queued.count(), queued.sum_ns), (6, 18_000));
        assert_eq!(all.series(MessageStage::Routed).count(), 0);
        node.switch(WorkerId::new(0), false);
        node.switch(WorkerId::new(2), false);
        assert!(node.merged().is_none() && node.changes().is_none());
    }

    #[test]
    fn figures_go_on_when_stamping_is_turned_on_again() {
        let node = NodeStages::new(1);
        let worker = WorkerId::new(0);
        for _ in 0..2 {
            node.switch(worker, true);
            node.of(worker).unwrap().count(Fate::Unfinished, 1);
            node.switch(worker, false);
        }
        node.switch(worker, true);
        assert_eq!(node.merged().unwrap().unfinished, 2);
    }
}
