//! The seconds of a thread: where one ends, and how it reaches the collector.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use thrum_figures::SECOND_NS;

use super::control::Timeline;
use crate::record::Slice;

/// Sends the seconds of a thread, and takes the emptied slices back.
#[derive(Debug)]
pub(crate) struct SliceSender {
    pub(crate) slices: SyncSender<Box<Slice>>,
    pub(crate) recycled: Receiver<Box<Slice>>,
}

/// Hands over the seconds of a thread that must not wait.
///
/// When the collector stalls, a second is filled further instead, but not with what belongs to
/// another stage: the collector takes the figures of the hold from the seconds that begin in it.
#[derive(Debug)]
pub(super) struct Handover {
    sender: SliceSender,
    /// Seconds that could not be handed over before the next stage began: at most one of what is
    /// before the hold and one of the hold.
    waiting: VecDeque<Box<Slice>>,
}

impl Handover {
    pub(super) const fn new(sender: SliceSender) -> Self {
        Self {
            sender,
            waiting: VecDeque::new(),
        }
    }

    /// A second to fill.
    pub(super) fn recycled(&self) -> Box<Slice> {
        self.sender.recycled.try_recv().unwrap_or_default()
    }

    /// Hands over a second whose time ended, and before it those that wait. Returns it if it is to
    /// be filled further with what begins at `next_ns`.
    pub(super) fn give(
        &mut self,
        full: Box<Slice>,
        timeline: Option<Timeline>,
        next_ns: u64,
    ) -> Option<Box<Slice>> {
        let full = self.not_taken(full)?;
        let stage = stage_of(timeline, full.start_ns);
        if stage == stage_of(timeline, next_ns) {
            return Some(full);
        }
        match self.waiting.back_mut() {
            // Only when the times of the load have changed.
            Some(last) if stage_of(timeline, last.start_ns) == stage => {
                last.merge(&full);
                last.delays.merge(&full.delays);
            }
            _ => self.waiting.push_back(full),
        }
        None
    }

    /// Hands over the last second, and waits for the collector.
    pub(super) fn give_rest(&mut self, rest: Box<Slice>) {
        for slice in self.waiting.drain(..).chain([rest]) {
            // If the receiver is gone, the run has failed and needs no figures.
            self.sender.slices.send(slice).ok();
        }
    }

    /// The second, if the collector does not take it now.
    fn not_taken(&mut self, full: Box<Slice>) -> Option<Box<Slice>> {
        while let Some(first) = self.waiting.pop_front() {
            if let Err(first) = self.offer(first) {
                self.waiting.push_front(first);
                return Some(full);
            }
        }
        self.offer(full).err()
    }

    fn offer(&self, slice: Box<Slice>) -> Result<(), Box<Slice>> {
        self.sender.slices.try_send(slice).map_err(|error| {
            let (TrySendError::Full(slice) | TrySendError::Disconnected(slice)) = error;
            slice
        })
    }

    /// Another collector.
    #[cfg(test)]
    pub(super) fn send_to(&mut self, slices: SyncSender<Box<Slice>>) {
        self.sender.slices = slices;
    }
}

/// What the figures of a second are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    BeforeHold,
    Hold,
    AfterHold,
}

/// The stage of a second that begins at a time.
fn stage_of(timeline: Option<Timeline>, start_ns: u64) -> Stage {
    match timeline {
        Some(timeline) if start_ns >= timeline.hold_end_ns => Stage::AfterHold,
        Some(timeline) if start_ns >= timeline.hold_start_ns => Stage::Hold,
        _ => Stage::BeforeHold,
    }
}

/// Beginning and end of the page that a time is on: seconds since the first connection until the
/// load starts, then seconds counted from the start of the hold, cut where a stage begins. All
/// threads find the same.
pub(crate) fn page(ramp_start_ns: u64, timeline: Option<Timeline>, now_ns: u64) -> (u64, u64) {
    let second_of = |origin_ns: u64| {
        if now_ns >= origin_ns {
            let start_ns = now_ns - (now_ns - origin_ns) % SECOND_NS;
            (start_ns, start_ns + SECOND_NS)
        } else {
            let end_ns = origin_ns - (origin_ns - now_ns - 1) / SECOND_NS * SECOND_NS;
            (end_ns.saturating_sub(SECOND_NS), end_ns)
        }
    };
    let Some(timeline) = timeline else {
        return second_of(ramp_start_ns);
    };
    let (start_ns, end_ns) = if now_ns < timeline.start_ns {
        second_of(ramp_start_ns)
    } else {
        second_of(timeline.hold_start_ns)
    };
    let stages = [
        timeline.start_ns,
        timeline.hold_start_ns,
        timeline.hold_end_ns,
    ];
    let begun = stages
        .into_iter()
        .filter(|stage| *stage <= now_ns)
        .max()
        .unwrap_or(0);
    let to_begin = stages
        .into_iter()
        .filter(|stage| *stage > now_ns)
        .min()
        .unwrap_or(u64::MAX);
    (start_ns.max(begun), end_ns.min(to_begin))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    const START: u64 = 1_000_000_000_000;

    #[test]
    fn pages_are_seconds_cut_where_stages_begin() {
        let timeline = Timeline {
            start_ns: START + 300_000_000,
            hold_start_ns: START + 2_800_000_000,
            hold_end_ns: START + 5_000_000_000,
        };
        let mut pages = vec![page(START, None, START + 1)];
        let mut at_ns = START;
        while at_ns < START + 6 * SECOND_NS {
            let (start_ns, end_ns) = page(START, Some(timeline), at_ns);
            assert!(
                start_ns <= at_ns && at_ns < end_ns,
                "{at_ns} is not in {start_ns}..{end_ns}"
            );
            assert_eq!(page(START, Some(timeline), end_ns - 1), (start_ns, end_ns));
            pages.push((start_ns, end_ns));
            at_ns = end_ns;
        }
        let ends: Vec<u64> = pages
            .iter()
            .map(|(_, end_ns)| (end_ns - START) / 1_000_000)
            .collect();
        assert_eq!(
            ends,
            [
                1_000, 300, 800, 1_800, 2_800, 3_800, 4_800, 5_000, 5_800, 6_800
            ]
        );
    }

    /// The seconds that a full channel of this size gives in the end: start and messages sent, one
    /// in each tenth of a second.
    fn seconds_of_a_stall(size: usize, stall: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        let ((slices, taken), (_, recycled)) = (sync_channel(size), sync_channel(1));
        let mut handover = Handover::new(SliceSender { slices, recycled });
        let timeline = Some(Timeline {
            start_ns: START,
            hold_start_ns: START + SECOND_NS,
            hold_end_ns: START + 3 * SECOND_NS,
        });
        let ramp_start_ns = START - SECOND_NS;
        let mut slice = Box::new(Slice {
            start_ns: ramp_start_ns,
            ..Slice::default()
        });
        let mut seconds = Vec::new();
        let mut take = |slice: Box<Slice>| seconds.push((slice.start_ns, slice.counts.sent));
        for tenth in 0..60 {
            let now_ns = ramp_start_ns + tenth * SECOND_NS / 10;
            let (start_ns, _) = page(ramp_start_ns, timeline, now_ns);
            if start_ns != slice.start_ns {
                let mut next = handover.recycled();
                next.restart(start_ns);
                let full = std::mem::replace(&mut slice, next);
                slice = handover.give(full, timeline, start_ns).unwrap_or(slice);
            }
            slice.counts.sent += 1;
            assert!(handover.waiting.len() <= 2);
            if !stall.contains(&tenth) {
                taken.try_iter().for_each(&mut take);
            }
        }
        std::thread::scope(|scope| {
            scope.spawn(move || handover.give_rest(slice));
            taken.iter().for_each(&mut take);
        });
        seconds
    }

    #[test]
    fn a_stall_of_the_collector_loses_nothing_and_mixes_no_stages() {
        assert_eq!(seconds_of_a_stall(2, 0..0).len(), 6);
        for (size, stall) in [(1, 0..60), (1, 5..45), (2, 15..25), (1, 12..60), (4, 0..60)] {
            let seconds = seconds_of_a_stall(size, stall.clone());
            let (hold, drain) = (START + SECOND_NS, START + 3 * SECOND_NS);
            let sums = [0..hold, hold..drain, drain..u64::MAX].map(|stage| {
                let of_stage = seconds
                    .iter()
                    .filter(|(start_ns, _)| stage.contains(start_ns));
                of_stage.map(|(_, sent)| sent).sum::<u64>()
            });
            assert_eq!(sums, [20, 20, 20], "{size} {stall:?}: {seconds:?}");
            assert!(seconds.is_sorted(), "{seconds:?}");
        }
    }
}
