//! The threads of this process.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use thrum_figures::{SECOND_NS, as_index, ratio};
use thrum_load::pacing::Warp;
use thrum_load::plan::{Machines, Plan};
use thrum_load::thread_report::ThreadReport;
use thrum_report::result::{Generator, ThreadLoad};

use super::{GeneratorReport, LoadGenerator};
use crate::clock;
use crate::monitor::{Moment, ThreadTime, thread_time};
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{Control, Progress, SliceSender, Swarm, TargetSetup, ThreadSetup, Timeline};

/// Seconds of a thread that wait for the coordinator: it takes them fifty times a second.
const SLICES_WAITING_MAX: usize = 4;

/// Which of all threads run here, and what they connect to.
#[derive(Clone)]
pub(crate) struct GeneratorSetup {
    /// Number of the first thread of this process among all.
    pub(crate) first_thread: u32,
    /// Threads of this process.
    pub(crate) threads: u32,
    /// Threads of all processes, by machine.
    pub(crate) machines: Machines,
    /// Addresses and transports of the brokers.
    pub(crate) targets: Arc<[TargetSetup]>,
    /// Which of them each group connects to.
    pub(crate) target_of_group: Arc<[usize]>,
    /// The coordinator's clock minus this machine's.
    pub(crate) clock_offset_ns: i64,
    /// When the first connection is opened.
    pub(crate) ramp_start_ns: u64,
}

/// The threads of this process and their clients.
pub(crate) struct LocalGenerator {
    control: Arc<Control>,
    threads: Vec<JoinHandle<io::Result<ThreadReport>>>,
    targets: Arc<[TargetSetup]>,
    slice_receivers: Vec<SliceReceiver>,
    before: Vec<(u64, ThreadTime)>,
    hold_began_ns: u64,
    /// Begin of the current second of the hold, and the busiest second of each thread.
    second: Second,
    loads: Vec<ThreadLoad>,
}

/// The busy time of threads, second by second.
#[derive(Default)]
struct Second {
    /// None outside the hold.
    began_ns: Option<u64>,
    before: Vec<(u64, ThreadTime)>,
    busy_max: BTreeMap<u64, f64>,
}

impl Second {
    fn begin(now_ns: u64, times: &[(u64, ThreadTime)]) -> Self {
        Self {
            began_ns: Some(now_ns),
            before: times.to_vec(),
            busy_max: BTreeMap::new(),
        }
    }

    /// Whether a second is over.
    fn is_over(&self, now_ns: u64) -> bool {
        self.began_ns
            .is_some_and(|began_ns| now_ns.saturating_sub(began_ns) >= SECOND_NS)
    }

    /// Ends the last second, which counts if it is long enough to tell a burst from a load, or the
    /// only one.
    fn end(&mut self, now_ns: u64, times: &[(u64, ThreadTime)]) {
        let lasted_ns = self
            .began_ns
            .map_or(0, |began_ns| now_ns.saturating_sub(began_ns));
        if lasted_ns >= SECOND_NS / 2 || self.busy_max.is_empty() {
            self.turn(now_ns, times.to_vec());
        }
    }

    /// Enters a second that is over.
    fn turn(&mut self, now_ns: u64, times: Vec<(u64, ThreadTime)>) {
        let Some(began_ns) = self.began_ns.replace(now_ns) else {
            return;
        };
        for (thread, before, after) in pairs(&self.before, &times) {
            let ran_ns = after.run_ns.saturating_sub(before.run_ns);
            let busy = ratio(ran_ns, now_ns.saturating_sub(began_ns));
            let most = self.busy_max.entry(thread).or_default();
            *most = most.max(busy);
        }
        self.before = times;
    }
}

/// The times of the threads that are in both.
fn pairs<'a>(
    before: &'a [(u64, ThreadTime)],
    after: &'a [(u64, ThreadTime)],
) -> impl Iterator<Item = (u64, &'a ThreadTime, &'a ThreadTime)> {
    after.iter().filter_map(|(thread, after)| {
        let (_, before) = before.iter().find(|(before, _)| before == thread)?;
        Some((*thread, before, after))
    })
}

/// The coordinator's end of a [`SliceSender`].
struct SliceReceiver {
    slices: Receiver<Box<Slice>>,
    recycled: SyncSender<Box<Slice>>,
}

impl LocalGenerator {
    /// Starts the threads; they open their connections at once.
    ///
    /// # Errors
    /// The kernel gives no thread.
    pub(crate) fn start(plan: &Arc<Plan>, setup: &GeneratorSetup) -> io::Result<Self> {
        let control = Arc::new(Control::new(as_index(setup.threads), setup.ramp_start_ns));
        let mut generator = Self {
            control: Arc::clone(&control),
            threads: Vec::new(),
            targets: Arc::clone(&setup.targets),
            slice_receivers: Vec::new(),
            before: Vec::new(),
            hold_began_ns: 0,
            second: Second::default(),
            loads: Vec::new(),
        };
        for number in 0..setup.threads {
            let (slices_in, slices) = sync_channel(SLICES_WAITING_MAX);
            let (recycled, recycled_out) = sync_channel(SLICES_WAITING_MAX);
            generator
                .slice_receivers
                .push(SliceReceiver { slices, recycled });
            let thread_setup = ThreadSetup {
                thread: setup.first_thread + number,
                gauge: as_index(number),
                machines: setup.machines.clone(),
                targets: Arc::clone(&setup.targets),
                target_of_group: Arc::clone(&setup.target_of_group),
                clock_offset_ns: setup.clock_offset_ns,
            };
            let slice_sender = SliceSender {
                slices: slices_in,
                recycled: recycled_out,
            };
            let (plan, control) = (Arc::clone(plan), Arc::clone(&control));
            let builder = thread::Builder::new().name(format!("bench-{number}"));
            // Clients must not move between threads, so each thread creates its own.
            generator.threads.push(
                builder
                    .spawn(move || Swarm::new(plan, control, thread_setup, slice_sender)?.run())?,
            );
        }
        Ok(generator)
    }

    fn thread_times(&self) -> Vec<(u64, ThreadTime)> {
        let carriers = self
            .targets
            .iter()
            .filter_map(|target| target.quic.as_ref());
        let carriers = carriers.flat_map(|quic| quic.dialer.thread_ids());
        let threads = self.control.thread_ids().into_iter();
        threads
            // The threads of QUIC can be the limit as well.
            .chain(carriers.map(u64::from))
            .filter_map(|thread| Some((thread, thread_time(thread)?)))
            .collect()
    }

    /// Measures how busy the threads were.
    fn end_hold(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.hold_began_ns);
        let after = self.thread_times();
        let mut second = std::mem::take(&mut self.second);
        second.end(now_ns, &after);
        let loads = pairs(&self.before, &after).map(|(thread, before, after)| ThreadLoad {
            busy: ratio(after.run_ns.saturating_sub(before.run_ns), span_ns),
            busy_max: second.busy_max.get(&thread).copied().unwrap_or(0.0),
            waited_for_core: ratio(after.wait_ns.saturating_sub(before.wait_ns), span_ns),
        });
        self.loads = loads.collect();
    }
}

impl LoadGenerator for LocalGenerator {
    fn progress(&self) -> Progress {
        self.control.progress()
    }

    fn order(&mut self, timeline: Timeline, warp: &Warp) {
        self.control.order(timeline, warp.clone());
    }

    fn mark(&mut self, moment: Moment) {
        let now_ns = clock::monotonic_ns();
        match moment {
            Moment::HoldStart => {
                self.before = self.thread_times();
                self.hold_began_ns = now_ns;
                self.second = Second::begin(now_ns, &self.before);
            }
            Moment::HoldEnd => self.end_hold(now_ns),
            Moment::Start | Moment::Connected | Moment::IdleEnd | Moment::Second | Moment::End => {}
        }
    }

    fn take_slices(&mut self, take: &mut dyn FnMut(&Slice)) {
        let now_ns = clock::monotonic_ns();
        if self.second.is_over(now_ns) {
            self.second.turn(now_ns, self.thread_times());
        }
        for receiver in &self.slice_receivers {
            while let Ok(slice) = receiver.slices.try_recv() {
                take(&slice);
                // A surplus slice is freed.
                receiver.recycled.try_send(slice).ok();
            }
        }
    }
    fn check(&mut self) -> Result<(), RunError> {
        if !self.control.is_stopped() && self.threads.iter().any(JoinHandle::is_finished) {
            return Err(RunError::ThreadDied);
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.control.stop();
    }

    fn finish(
        mut self: Box<Self>,
        take: &mut dyn FnMut(&Slice),
    ) -> Result<GeneratorReport, RunError> {
        self.control.stop();
        // A thread hands over its last second before it ends, and waits for room.
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            self.take_slices(take);
            clock::rest(std::time::Duration::from_millis(1));
        }
        self.take_slices(take);
        let mut threads = Vec::with_capacity(self.threads.len());
        for thread in std::mem::take(&mut self.threads) {
            threads.push(thread.join().map_err(|_| RunError::ThreadDied)??);
        }
        Ok(GeneratorReport {
            threads,
            generator: Generator {
                threads: self.loads,
                usage: None,
            },
            agent: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of thread 7, which was this many milliseconds on a core.
    fn ran(ms: u64) -> Vec<(u64, ThreadTime)> {
        let time = ThreadTime {
            run_ns: ms * 1_000_000,
            wait_ns: 0,
        };
        vec![(7, time)]
    }

    fn busiest(seconds: &[(u64, u64)], end: (u64, u64)) -> f64 {
        let mut second = Second::begin(0, &ran(0));
        for (at_ms, ran_ms) in seconds {
            second.turn(at_ms * 1_000_000, ran(*ran_ms));
        }
        second.end(end.0 * 1_000_000, &ran(end.1));
        second.busy_max[&7]
    }

    #[test]
    fn the_only_second_and_the_last_one_count_too() {
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(near(busiest(&[], (300, 297)), 0.99));
        assert!(near(busiest(&[(1_000, 500)], (1_600, 1_094)), 0.99));
        // A burst at the end is no second.
        assert!(near(busiest(&[(1_000, 500)], (1_400, 896)), 0.5));
    }
}
