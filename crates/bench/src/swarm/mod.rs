//! One thread of the generator: its event loop, its clients, its share of the load.
//!
//! ```text
//!   wait --> read every ready socket once, handle all its packets
//!                      |-> between two sockets: send what has come due meanwhile
//!        --> send what is due --> one write per connection
//! ```

pub(crate) mod alarm;
mod answers;
mod carriers;
mod control;
mod deadlines;
mod faults;
mod flush;
mod layered;
mod outbox;
mod pages;
mod peer;
mod publish;
mod ramp;
mod receive;
mod report;
mod run_queue;
mod samples;
mod session;
mod setup;
mod socket;
mod sources;
mod tally;
#[cfg(test)]
mod tally_tests;
mod times;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::event::Event;
use mio::{Events, Poll, Token};
use thrum_load::pacing::Ring;
use thrum_load::payload::Filler;
use thrum_load::plan::{Plan, Share};
use thrum_load::thread_report::ThreadReport;
use thrum_protocol::Time;

pub use control::Progress;
pub(crate) use control::{Control, Timeline};
pub(crate) use pages::{SliceSender, page};
pub(crate) use ramp::ANSWER_NS_MAX;
pub(crate) use setup::{QuicSetup, TargetSetup, ThreadSetup};

use crate::clock;
use alarm::Alarm;
use carriers::Carriers;
use deadlines::Sweep;
use faults::FaultStep;
use outbox::Outgoing;
use peer::{Peer, PublisherState};
use run_queue::{Rest, RunQueue, Waits};
use setup::GroupSettings;
use sources::Sources;
use tally::Tally;

/// One buffer per thread takes what a socket has; bigger than a socket's own buffer is of no use.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Ready sockets taken from the kernel at once: a whole fan-out to 1 000 subscribers and more.
const EVENTS_MAX: usize = 4_096;

/// The longest sleep: bounds how late a thread sees an order or a client's deadline.
const SLEEP_NS_MAX: u64 = 100_000_000;

/// The number of the alarm among the event sources; clients have theirs from 0 on.
const ALARM: Token = Token(usize::MAX);

/// Something to do at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// A client reconnects.
    Reconnect(u32),
    /// A slow reader reads again.
    Read(u32),
}

/// One thread's share of the run.
pub(crate) struct Swarm {
    plan: Arc<Plan>,
    control: Arc<Control>,
    setup: ThreadSetup,
    groups: Vec<GroupSettings>,
    share: Share,
    sources: Sources,
    poll: Poll,
    alarm: Alarm,
    peers: Vec<Peer>,
    publishers: Vec<PublisherState>,
    rings: Vec<Ring>,
    timers: BinaryHeap<Reverse<(u64, Wake)>>,
    /// Latest first.
    faults: Vec<FaultStep>,
    tally: Tally,
    timeline: Option<Timeline>,
    read_buffer: Vec<u8>,
    plain: Vec<u8>,
    wire: Vec<u8>,
    out: Outgoing,
    payload: Vec<u8>,
    filler: Filler,
    epoch_ns: u64,
    time: Time,
    /// The clock at the latest read of a socket: exact enough to detect due messages.
    read_ns: u64,
    /// Messages that are read now may have waited since.
    unread_since_ns: u64,
    next_due_ns: u64,
    /// When the closed loops start, or may start again after a pause; never if they run.
    kick_ns: u64,
    sweep: Sweep,
    ready: u64,
    up: u64,
    failed: u64,
    /// Messages sent with QoS 1 or 2 and not acknowledged.
    awaiting: u64,
    /// Messages due that the broker does not take yet.
    held_back: u64,
    is_hold_over: bool,
    /// A client has reconnected: its retransmissions go out before its next message.
    came_back: bool,
}

impl Swarm {
    /// A thread without connections yet.
    ///
    /// # Errors
    /// The kernel gives no event queue or timer.
    pub(crate) fn new(
        plan: Arc<Plan>,
        control: Arc<Control>,
        setup: ThreadSetup,
        slice_sender: SliceSender,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarm = Alarm::new(&poll, ALARM)?;
        Ok(Self {
            share: Share::across(&plan, setup.thread, &setup.machines),
            groups: setup::group_settings(&plan, &setup),
            faults: faults::fault_steps(&plan),
            sources: Sources::new(&setup),
            alarm,
            poll,
            peers: Vec::new(),
            publishers: Vec::new(),
            rings: Vec::new(),
            timers: BinaryHeap::new(),
            tally: Tally::new(
                Arc::clone(&plan),
                setup.thread,
                control.ramp_start_ns,
                slice_sender,
            ),
            timeline: None,
            read_buffer: vec![0; READ_BUFFER_BYTES],
            plain: Vec::new(),
            wire: Vec::new(),
            out: Outgoing::default(),
            payload: Vec::new(),
            filler: Filler::new(u64::from(setup.thread)),
            epoch_ns: control.ramp_start_ns,
            time: Time::default(),
            read_ns: 0,
            unread_since_ns: 0,
            next_due_ns: u64::MAX,
            kick_ns: u64::MAX,
            sweep: Sweep::default(),
            ready: 0,
            up: 0,
            failed: 0,
            awaiting: 0,
            held_back: 0,
            is_hold_over: false,
            came_back: false,
            plan,
            control,
            setup,
        })
    }

    /// Runs until the coordinator orders the stop.
    ///
    /// # Errors
    /// The event queue or the timer fails.
    pub(crate) fn run(mut self) -> io::Result<ThreadReport> {
        let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let gauge = self.control.gauge(self.setup.gauge);
        gauge
            .thread_id
            .store(u64::from(thread_id.unsigned_abs()), Ordering::Relaxed);
        self.tally.carriers = Carriers::new(self.setup.carriers());
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut run_queue = RunQueue::of_this_thread();
        let mut waits = Waits::new(self.now_ns());
        let mut was_full = false;
        let mut turn_seen_ns = self.now_ns();
        while !self.control.is_stopped() {
            let began_ns = self.now_ns();
            let alarm_ns = self.wake_ns(began_ns);
            self.alarm.arm(self.setup.local_ns(alarm_ns))?;
            match self.poll.poll(&mut events, None) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    waits.interrupt();
                    continue;
                }
                Err(error) => return Err(error),
            }
            let woke_ns = self.now_ns();
            self.tally.carriers.look(woke_ns);
            let waited_ns = Rest::is_long(began_ns, woke_ns)
                .then(|| run_queue.wait_since_last_call())
                .flatten();
            let unread_since_ns = waits.begin_turn(Rest {
                began_ns,
                turn_seen_ns,
                alarm_ns: alarm_ns.max(began_ns),
                woke_ns,
                waited_ns,
            });
            // Of more sockets than the kernel gave at once, the rest has waited as long.
            self.unread_since_ns = if was_full {
                self.unread_since_ns.min(unread_since_ns)
            } else {
                unread_since_ns
            };
            was_full = events.iter().count() >= EVENTS_MAX;
            turn_seen_ns = self.turn(&events);
        }
        self.disconnect_all();
        Ok(self.into_report())
    }

    /// Handles everything that is ready and everything that is due; returns its last look at the
    /// clock.
    fn turn(&mut self, events: &Events) -> u64 {
        let now_ns = self.tick();
        self.see_timeline();
        self.send_due(now_ns);
        for event in events {
            if event.token() == ALARM {
                self.alarm.rang();
                continue;
            }
            self.handle_event(event);
            if self.read_ns >= self.next_due_ns {
                let now_ns = self.tick();
                self.send_due(now_ns);
            }
        }
        let now_ns = self.tick();
        self.suffer(now_ns);
        self.open_connections(now_ns);
        self.wake_clients(now_ns);
        self.flush_replies();
        self.send_due(now_ns);
        self.flush_publications();
        self.sweep_deadlines(now_ns);
        self.flush_replies();
        self.report_progress();
        now_ns
    }

    /// The coordinator's clock.
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_add_signed(self.setup.clock_offset_ns)
    }

    /// Reads the clock for this part of the turn.
    fn tick(&mut self) -> u64 {
        let now_ns = self.now_ns();
        self.time = Time::from_millis(now_ns.saturating_sub(self.epoch_ns) / 1_000_000);
        self.tally.turn_the_page(now_ns);
        now_ns
    }

    fn handle_event(&mut self, event: &Event) {
        let Ok(peer) = u32::try_from(event.token().0) else {
            return;
        };
        if event.is_writable() {
            self.handle_writable(peer);
        }
        if event.is_readable() || event.is_read_closed() {
            self.handle_readable(peer, event.is_read_closed());
        }
    }

    /// When to wake up if no socket is ready before.
    fn wake_ns(&self, now_ns: u64) -> u64 {
        let timer_ns = self
            .timers
            .peek()
            .map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        self.next_due_ns
            .min(self.kick_ns)
            .min(self.next_open_ns())
            .min(self.next_fault_ns())
            .min(timer_ns)
            .min(self.sweep.next_ns(self.peers.len()))
            .min(now_ns + SLEEP_NS_MAX)
    }

    /// Does what timers were set for.
    fn wake_clients(&mut self, now_ns: u64) {
        while let Some(Reverse((at_ns, wake))) = self.timers.peek().copied() {
            if at_ns > now_ns {
                return;
            }
            self.timers.pop();
            match wake {
                Wake::Reconnect(peer) => self.reopen(peer, at_ns),
                Wake::Read(peer) => self.handle_readable(peer, true),
            }
        }
    }

    /// Takes over the load's times once they are set, and every change of them.
    fn see_timeline(&mut self) {
        if !self.control.has_changed(self.tally.generation()) {
            return;
        }
        let (timeline, warp, generation) = self.control.timeline();
        self.tally.set_timeline(timeline, warp, generation);
        if let Some(timeline) = timeline {
            if self.timeline.is_none() {
                self.arrange_load(timeline);
            }
            let end_ns = self.tally.warp().virtual_span_ns(timeline.load_ns());
            for ring in &mut self.rings {
                ring.end_at(end_ns);
            }
            self.is_hold_over = false;
            self.kick_ns = timeline.start_ns;
        }
        self.timeline = timeline;
        self.find_next_due();
    }

    fn report_progress(&mut self) {
        let counts = &self.tally.counts;
        let gauge = self.control.gauge(self.setup.gauge);
        gauge.ready.store(self.ready, Ordering::Relaxed);
        gauge.up.store(self.up, Ordering::Relaxed);
        gauge.failed.store(self.failed, Ordering::Relaxed);
        gauge.lost.store(counts.connections_lost, Ordering::Relaxed);
        gauge.sent.store(counts.sent, Ordering::Relaxed);
        gauge.received.store(counts.received, Ordering::Relaxed);
        gauge.expected.store(counts.expected, Ordering::Relaxed);
        gauge.distinct.store(counts.distinct, Ordering::Relaxed);
        gauge.duplicated.store(counts.duplicated, Ordering::Relaxed);
        gauge
            .pending
            .store(self.awaiting + self.held_back, Ordering::Relaxed);
    }
}
