//! The threads of this process.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use thrum_report::result::{Generator, ThreadLoad};

use super::{Crew, CrewReport};
use crate::clock;
use crate::ledger::as_index;
use crate::monitor::{Moment, ThreadTime, thread_time};
use crate::pacing::Warp;
use crate::plan::{Machines, Plan};
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{
    Control, Outlet, Progress, Swarm, TargetWiring, ThreadReport, Timeline, Wiring,
};
use crate::units::ratio;

/// Seconds of a thread that wait for the coordinator: it takes them fifty times a second.
const SLICES_WAITING_MAX: usize = 4;

/// Which of all threads run here, and what they connect to.
#[derive(Clone)]
pub(crate) struct Posts {
    /// Number of the first thread of this process among all.
    pub(crate) first_thread: u32,
    /// Threads of this process.
    pub(crate) threads: u32,
    /// Threads of all processes, by machine.
    pub(crate) machines: Machines,
    /// How to reach the brokers.
    pub(crate) targets: Arc<[TargetWiring]>,
    /// Which of them each group connects to.
    pub(crate) target_of_group: Arc<[usize]>,
    /// The coordinator's clock minus this machine's.
    pub(crate) clock_offset_ns: i64,
    /// When the first connection is opened.
    pub(crate) ramp_start_ns: u64,
}

/// The threads of this process and their clients.
pub(crate) struct LocalCrew {
    control: Arc<Control>,
    threads: Vec<JoinHandle<io::Result<ThreadReport>>>,
    targets: Arc<[TargetWiring]>,
    inlets: Vec<Inlet>,
    before: Vec<(u64, ThreadTime)>,
    hold_began_ns: u64,
    loads: Vec<ThreadLoad>,
}

/// The coordinator's end of an outlet.
struct Inlet {
    slices: Receiver<Box<Slice>>,
    spares: SyncSender<Box<Slice>>,
}

impl LocalCrew {
    /// Starts the threads; they open their connections at once.
    ///
    /// # Errors
    /// The kernel gives no thread.
    pub(crate) fn start(plan: &Arc<Plan>, posts: &Posts) -> io::Result<Self> {
        let control = Arc::new(Control::new(as_index(posts.threads), posts.ramp_start_ns));
        let mut crew = Self {
            control: Arc::clone(&control),
            threads: Vec::new(),
            targets: Arc::clone(&posts.targets),
            inlets: Vec::new(),
            before: Vec::new(),
            hold_began_ns: 0,
            loads: Vec::new(),
        };
        for number in 0..posts.threads {
            let (slices_in, slices) = sync_channel(SLICES_WAITING_MAX);
            let (spares, spares_out) = sync_channel(SLICES_WAITING_MAX);
            crew.inlets.push(Inlet { slices, spares });
            let wiring = Wiring {
                thread: posts.first_thread + number,
                gauge: as_index(number),
                machines: posts.machines.clone(),
                targets: Arc::clone(&posts.targets),
                target_of_group: Arc::clone(&posts.target_of_group),
                clock_offset_ns: posts.clock_offset_ns,
            };
            let outlet = Outlet {
                slices: slices_in,
                spares: spares_out,
            };
            let (plan, control) = (Arc::clone(plan), Arc::clone(&control));
            let builder = thread::Builder::new().name(format!("bench-{number}"));
            // The clients are not to be moved between threads, so each thread makes its own.
            crew.threads
                .push(builder.spawn(move || Swarm::new(plan, control, wiring, outlet)?.run())?);
        }
        Ok(crew)
    }

    fn thread_times(&self) -> Vec<(u64, ThreadTime)> {
        let carriers = self
            .targets
            .iter()
            .filter_map(|target| target.quic.as_ref());
        let carriers = carriers.flat_map(|quic| quic.dialer.thread_ids());
        let threads = self.control.thread_ids().into_iter();
        threads
            // Those that carry QUIC can be the limit as well.
            .chain(carriers.map(u64::from))
            .filter_map(|thread| Some((thread, thread_time(thread)?)))
            .collect()
    }

    /// How busy the threads were.
    fn end_hold(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.hold_began_ns);
        let after = self.thread_times();
        let pairs = after.iter().filter_map(|(thread, after)| {
            let (_, before) = self.before.iter().find(|(before, _)| before == thread)?;
            Some((before, after))
        });
        let loads = pairs.map(|(before, after)| ThreadLoad {
            busy: ratio(after.run_ns.saturating_sub(before.run_ns), span_ns),
            waited_for_core: ratio(after.wait_ns.saturating_sub(before.wait_ns), span_ns),
        });
        self.loads = loads.collect();
    }
}

impl Crew for LocalCrew {
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
            }
            Moment::HoldEnd => self.end_hold(now_ns),
            Moment::Start | Moment::Connected | Moment::IdleEnd | Moment::Second | Moment::End => {}
        }
    }

    fn take_slices(&mut self, take: &mut dyn FnMut(&Slice)) {
        for inlet in &self.inlets {
            while let Ok(slice) = inlet.slices.try_recv() {
                take(&slice);
                // A spare too many is given back to the allocator.
                inlet.spares.try_send(slice).ok();
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

    fn finish(mut self: Box<Self>, take: &mut dyn FnMut(&Slice)) -> Result<CrewReport, RunError> {
        self.control.stop();
        // A thread hands over its last second before it ends and waits for room.
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            self.take_slices(take);
            clock::rest(std::time::Duration::from_millis(1));
        }
        self.take_slices(take);
        let mut threads = Vec::with_capacity(self.threads.len());
        for thread in std::mem::take(&mut self.threads) {
            threads.push(thread.join().map_err(|_| RunError::ThreadDied)??);
        }
        Ok(CrewReport {
            threads,
            generator: Generator {
                threads: self.loads,
                usage: None,
            },
            agent: None,
        })
    }
}
