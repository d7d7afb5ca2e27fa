//! One thread of the generator: its event loop, its clients, its share of the load.
//!
//! ```text
//!   wait --> read every ready socket once, handle all its packets --> send what is due --> one write per connection
//!                      |-> between two sockets: send what has come due meanwhile
//! ```

mod alarm;
mod control;
mod flush;
mod outbox;
mod peer;
mod publish;
mod ramp;
mod receive;
mod tally;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::event::Event;
use mio::{Events, Poll, Token};
use thrum_codec::ReasonCode;
use thrum_protocol::Time;
use thrum_protocol::client::ClientOptions;

pub use control::Progress;
pub(crate) use control::{Control, Timeline};
pub(crate) use peer::SubscriberState;
pub(crate) use ramp::ANSWER_NS_MAX;

use crate::clock;
use crate::ledger::{PairLedger, SharedLedger};
use crate::pacing::Ring;
use crate::plan::{Deal, Plan};
use crate::record::{Counts, Latencies, Series};
use alarm::Alarm;
use outbox::{Outbox, slot};
use peer::{Peer, PublisherState, Step};
use tally::Tally;

/// One buffer per thread takes what a socket has; bigger than a socket's own buffer is of no use.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Ready sockets taken from the kernel at once: a whole fan-out to 1 000 subscribers and more.
const EVENTS_MAX: usize = 4_096;

/// The longest sleep: bounds how late a thread sees the coordinator's word or a client's deadline.
const SLEEP_NS_MAX: u64 = 100_000_000;

/// A tenth of the clients is looked at for deadlines in each of these, so all within a second.
const SWEEP_NS: u64 = 100_000_000;

/// The number of the alarm among the event sources; clients have theirs from 0 on.
const ALARM: Token = Token(usize::MAX);

/// What a thread needs beyond the plan.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// Number of this thread.
    pub(crate) thread: u32,
    /// Number of threads.
    pub(crate) threads: u32,
    /// The broker.
    pub(crate) target: SocketAddr,
    /// Source addresses to take turns with; empty leaves it to the kernel.
    pub(crate) sources: Arc<[IpAddr]>,
}

/// What a thread measured.
#[derive(Debug)]
pub(crate) struct ThreadReport {
    pub(crate) latencies: Latencies,
    pub(crate) counts: Counts,
    pub(crate) series: Series,
    pub(crate) reasons: BTreeMap<String, u64>,
    /// Messages sent, by publisher of the plan.
    pub(crate) sent: Vec<(u32, u32)>,
    /// Subscribers that were ready, with what each of them expects.
    pub(crate) subscribers: Vec<SubscriberState>,
    pub(crate) pairs: Vec<PairLedger>,
    pub(crate) shared: Vec<SharedLedger>,
}

/// One thread's share of the run.
pub(crate) struct Swarm {
    plan: Arc<Plan>,
    control: Arc<Control>,
    wiring: Wiring,
    deal: Deal,
    options: Arc<ClientOptions>,
    poll: Poll,
    alarm: Alarm,
    peers: Vec<Peer>,
    publishers: Vec<PublisherState>,
    rings: Vec<Ring>,
    tally: Tally,
    timeline: Option<Timeline>,
    read_buffer: Vec<u8>,
    replies: Outbox,
    publications: Outbox,
    payload: Vec<u8>,
    epoch_ns: u64,
    time: Time,
    next_due_ns: u64,
    sweep: Sweep,
    ready: u64,
    failed: u64,
    /// Messages sent with QoS 1 or 2 and not acknowledged.
    awaiting: u64,
    /// Messages due that the broker does not take yet.
    held_back: u64,
    is_hold_over: bool,
}

/// Where the search for passed deadlines stands.
#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    next_ns: u64,
    position: usize,
}

impl Swarm {
    /// A thread without connections yet.
    ///
    /// # Errors
    /// The kernel gives no event queue or timer.
    pub(crate) fn new(plan: Arc<Plan>, control: Arc<Control>, wiring: Wiring) -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarm = Alarm::new(&poll, ALARM)?;
        let scenario = &plan.scenario;
        let options = ClientOptions {
            version: scenario.version,
            keep_alive: scenario.keep_alive,
            ..ClientOptions::default()
        };
        let payload = vec![b'.'; crate::ledger::as_index(scenario.payload_bytes().unwrap_or(0))];
        Ok(Self {
            deal: Deal::new(&plan, wiring.thread, wiring.threads),
            options: Arc::new(options),
            alarm,
            poll,
            peers: Vec::new(),
            publishers: Vec::new(),
            rings: Vec::new(),
            tally: Tally::new(Arc::clone(&plan)),
            timeline: None,
            read_buffer: vec![0; READ_BUFFER_BYTES],
            replies: Outbox::default(),
            publications: Outbox::default(),
            payload,
            epoch_ns: control.ramp_start_ns,
            time: Time::default(),
            next_due_ns: u64::MAX,
            sweep: Sweep::default(),
            ready: 0,
            failed: 0,
            awaiting: 0,
            held_back: 0,
            is_hold_over: false,
            plan,
            control,
            wiring,
        })
    }

    /// Runs until the coordinator says stop.
    ///
    /// # Errors
    /// The event queue or the timer fails.
    pub(crate) fn run(mut self) -> io::Result<ThreadReport> {
        let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let gauge = self.control.gauge(slot(self.wiring.thread));
        gauge
            .thread_id
            .store(u64::from(thread_id.unsigned_abs()), Ordering::Relaxed);
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.control.is_stopped() {
            let now_ns = clock::monotonic_ns();
            self.alarm.arm(self.wake_ns(now_ns))?;
            match self.poll.poll(&mut events, None) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.turn(&events);
        }
        self.disconnect_all();
        Ok(self.into_report())
    }

    /// Handles everything that is ready and everything that is due.
    fn turn(&mut self, events: &Events) {
        let now_ns = self.tick();
        self.see_timeline();
        self.send_due(now_ns);
        for event in events {
            if event.token() == ALARM {
                self.alarm.rang();
                continue;
            }
            self.handle_event(event);
            let now_ns = clock::monotonic_ns();
            if now_ns >= self.next_due_ns {
                self.tick();
                self.send_due(now_ns);
            }
        }
        let now_ns = self.tick();
        self.open_connections(now_ns);
        self.flush_replies();
        self.send_due(now_ns);
        self.flush_publications();
        self.sweep_deadlines(now_ns);
        self.flush_replies();
        self.report_progress();
    }

    /// Reads the clock for this part of the turn.
    fn tick(&mut self) -> u64 {
        let now_ns = clock::monotonic_ns();
        self.time = Time::from_millis(now_ns.saturating_sub(self.epoch_ns) / 1_000_000);
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
        self.next_due_ns
            .min(self.next_open_ns())
            .min(now_ns + SLEEP_NS_MAX)
    }

    /// Takes over the load's times once they are set, and an earlier end.
    fn see_timeline(&mut self) {
        let timeline = self.control.timeline();
        if timeline == self.timeline {
            return;
        }
        if let Some(timeline) = timeline {
            if self.timeline.is_none() {
                self.arrange_load();
            }
            for ring in &mut self.rings {
                ring.cut(timeline.hold_end_ns.saturating_sub(timeline.start_ns));
            }
        }
        self.timeline = timeline;
        self.tally.set_timeline(timeline);
        self.find_next_due();
    }

    /// Lets a share of the clients see the time: keep alive, and answers that do not come.
    fn sweep_deadlines(&mut self, now_ns: u64) {
        if now_ns < self.sweep.next_ns || self.peers.is_empty() {
            return;
        }
        self.sweep.next_ns = now_ns + SWEEP_NS;
        for _ in 0..=self.peers.len() / 10 {
            self.sweep.position = (self.sweep.position + 1) % self.peers.len();
            if let Ok(peer) = u32::try_from(self.sweep.position) {
                self.handle_deadline(peer, now_ns);
            }
        }
    }

    fn handle_deadline(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        match state.step {
            Step::Failed | Step::Lost => return,
            Step::Opening | Step::Connecting | Step::Subscribing => {
                if now_ns.saturating_sub(state.since_ns) > ANSWER_NS_MAX {
                    let reason = match state.step {
                        Step::Opening => "no TCP connection in time",
                        Step::Connecting => "no CONNACK in time",
                        _ => "no SUBACK in time",
                    };
                    self.lose(peer, reason.to_owned());
                    return;
                }
            }
            Step::Ready => {}
        }
        if state.client.next_deadline().is_none_or(|at| at > self.time) {
            return;
        }
        let start = self.replies.open();
        let outcome = state
            .client
            .handle_timeout(self.time, &mut self.replies.bytes);
        self.replies.close(peer, start);
        if let Err(violation) = outcome {
            self.lose(peer, violation.what.to_owned());
        }
    }

    /// Ends a client: a failure if it was not ready yet, a lost connection if it was.
    fn lose(&mut self, peer: u32, reason: String) {
        let state = &mut self.peers[slot(peer)];
        let was_ready = state.step == Step::Ready;
        if matches!(state.step, Step::Failed | Step::Lost) {
            return;
        }
        state.step = if was_ready { Step::Lost } else { Step::Failed };
        state.client.connection_lost();
        state.stream = None;
        state.stalled = None;
        if was_ready {
            self.tally.counts.connections_lost += 1;
        } else {
            self.failed += 1;
        }
        self.tally.note(reason);
    }

    fn report_progress(&mut self) {
        let counts = &self.tally.counts;
        let gauge = self.control.gauge(slot(self.wiring.thread));
        gauge.ready.store(self.ready, Ordering::Relaxed);
        gauge.failed.store(self.failed, Ordering::Relaxed);
        gauge.lost.store(counts.connections_lost, Ordering::Relaxed);
        gauge.sent.store(counts.sent, Ordering::Relaxed);
        gauge.received.store(counts.received, Ordering::Relaxed);
        gauge.expected.store(counts.expected, Ordering::Relaxed);
        gauge.distinct.store(counts.distinct, Ordering::Relaxed);
        gauge
            .pending
            .store(self.awaiting + self.held_back, Ordering::Relaxed);
    }

    fn disconnect_all(&mut self) {
        self.tick();
        for peer in 0..u32::try_from(self.peers.len()).unwrap_or(u32::MAX) {
            let state = &mut self.peers[slot(peer)];
            let start = self.replies.open();
            if state.step == Step::Ready {
                state
                    .client
                    .disconnect(ReasonCode::Success, None, &mut self.replies.bytes);
            }
            self.replies.close(peer, start);
        }
        self.flush_replies();
    }

    fn into_report(mut self) -> ThreadReport {
        let mut subscribers: Vec<Option<SubscriberState>> =
            std::mem::take(&mut self.tally.subscribers)
                .into_iter()
                .map(Some)
                .collect();
        let was_ready = self
            .peers
            .iter()
            .filter(|peer| matches!(peer.step, Step::Ready | Step::Lost));
        let ready = was_ready.filter_map(|peer| subscribers.get_mut(slot(peer.subscriber))?.take());
        let ready: Vec<_> = ready.collect();
        let sent = self
            .publishers
            .iter()
            .map(|publisher| (publisher.number, publisher.next));
        ThreadReport {
            sent: sent.collect(),
            latencies: self.tally.latencies,
            counts: self.tally.counts,
            series: self.tally.series,
            reasons: self.tally.reasons,
            subscribers: ready,
            pairs: self.tally.pairs,
            shared: self.tally.shared,
        }
    }
}
