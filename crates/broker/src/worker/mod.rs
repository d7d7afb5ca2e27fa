//! One worker thread: it owns its connections and sessions, so they need no locks.
//!
//! A turn handles every ready socket, the mail of the other workers and the timers that are due,
//! then hands its own mail over and writes each connection that has output once.

mod accept;
mod admission;
mod answers;
mod arrival;
mod authorize;
mod durable;
mod enhanced;
mod guard;
mod handshake;
mod input;
mod judging;
mod lifecycle;
mod listening;
mod local;
mod metering;
mod noting;
mod output;
mod overload;
mod reauthentication;
mod recheck;
mod records;
mod restore;
mod shaking;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod trim;
mod wills;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use thrum_access::{Certificate, Exchange};
use thrum_codec::ReasonCode;
use thrum_protocol::Time;
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::Cursor;
use thrum_routing::{FilterId, Index};

pub(crate) use admission::Admitted;
pub(crate) use answers::Answered;
pub(crate) use authorize::Decided;
pub(crate) use local::{Client, Local, Replay};

use crate::control::settled;
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::node::{Node, WorkerId};
use crate::protection::{Handshakes, MemoryGauge, Overload};
use crate::publish::Match;
use crate::replay::ReplayTurn;
use crate::route_cache::RouteCache;
use crate::settings::Settings;
use crate::subscribe::Subscriber;
use crate::sys_topics::SysTopics;
use crate::timer::TimerWheel;
use admission::Pending;
pub(crate) use durable::DurableTurn;
use listening::Listeners;

/// The eventfd that other threads wake the worker with.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners count down from here; connections count up from 0.
const FIRST_LISTENER: usize = usize::MAX - 1;
/// Sockets that one turn handles at most.
const EVENTS_PER_TURN: usize = 1024;
/// One read takes this much at most; a busy connection is read again in the next turn.
const READ_BYTES: usize = 64 * 1024;
/// While publishers are held back, the worker looks this often whether they may go on.
const PAUSE_CHECK: Duration = Duration::from_millis(1);
/// How often a publisher is read while memory is over its limit, or turns take too long.
const PRESSURE_CHECK: Duration = Duration::from_millis(50);
/// How often expired retained messages are removed and the memory is looked at.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Log lines about single clients that one worker writes in a second.
const CLIENT_LOGS_PER_SECOND: u32 = 50;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A session: keep alive, will delay, expiry.
    Session { slot: u32, id: u64 },
    /// A connection that has to say CONNECT, or that is drained before it is closed.
    Connection { key: u32, serial: u32 },
    /// A connection that has used up a rate may be read again.
    Pace { key: u32, serial: u32 },
    /// A connection whose TLS, WebSocket and header of a proxy have to be done.
    Handshake { key: u32, serial: u32 },
    /// Accept again after the connect rate was reached.
    Accept,
    /// Ask the gatekeeper about a client again.
    Refresh { slot: u32, id: u64 },
    /// Publish `$SYS`.
    Sys,
    /// Housekeeping.
    House,
    /// Give memory back.
    Trim,
}

/// A thread of the data plane.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one loop"
)]
pub(crate) struct Worker {
    pub(crate) local: Local,
    pub(crate) node: Arc<Node>,
    pub(crate) index: Index<Subscriber>,
    pub(crate) routes: RouteCache,
    pub(crate) cursors: HashMap<GroupId, Cursor<u64>>,
    pub(crate) frames: FrameCache,
    pub(crate) filter_scratch: Vec<FilterId>,
    pub(crate) match_scratch: Vec<Match>,
    pub(crate) identifier_scratch: Vec<u32>,
    pub(crate) code_scratch: Vec<ReasonCode>,
    pub(crate) text_scratch: String,
    pub(crate) replays: ReplayTurn,
    pub(super) timers: TimerWheel<Target>,
    poll: Poll,
    listeners: Listeners,
    outboxes: Vec<Vec<Mail>>,
    pub(super) durable: DurableTurn,
    /// Client identifiers of the sessions that ended in this turn.
    ended: Vec<Box<str>>,
    read_buffer: Vec<u8>,
    /// MQTT out of the layers of the connection at hand.
    plain_buffer: Vec<u8>,
    /// Bytes that the last read of a connection with layers brought out of them.
    plain_read: usize,
    /// Memory to encrypt into.
    wire_buffer: Vec<u8>,
    /// Connections that wait for the gatekeeper before they are in.
    admissions: HashMap<u32, Pending>,
    /// Certificates that were verified before the connection came here, by connection.
    certificates: HashMap<u32, Arc<Certificate>>,
    /// Connections that are in their TLS or WebSocket handshake.
    handshakes: Handshakes,
    /// Enhanced authentication of sessions that prove themselves again, by slot.
    exchanges: HashMap<u32, (u64, Exchange)>,
    /// Number of the list of bans that all workers know.
    bans_seen: u64,
    /// The next session to look at, since rules have changed.
    recheck: Option<usize>,
    /// Rates of clients have changed since the sessions were last looked at.
    rates_changed: bool,
    /// Connections whose last read filled the buffer.
    again: Vec<u32>,
    /// Connections that are not read for now.
    paused: Vec<u32>,
    /// Connections that may be read again, since their output has drained.
    unmuted: Vec<u32>,
    /// The packet at hand has waited for the gatekeeper.
    has_waited: bool,
    /// The connection at hand published into a full mailbox, or memory is short.
    hold_back: bool,
    /// Accepting goes on then, after a connect rate was used up.
    accept_at: Option<Time>,
    /// A listener gave as many connections as one turn takes.
    accept_again: bool,
    /// Connections that the connect rate has left, in thousandths.
    connects_saved: u64,
    connects_since: Option<Time>,
    next_serial: u32,
    random_state: u64,
    client_logs: (Time, u32),
    pub(crate) sys: SysTopics,
    stopping: bool,
    crowd: trim::Crowd,
    pub(super) overload: Overload,
    memory: MemoryGauge,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, node: Arc<Node>, settings: &Settings, poll: Poll) -> Self {
        let local = Local::new(id, Arc::clone(&node), settings.own_copy());
        let now = local.now;
        Self {
            index: Index::new(),
            routes: RouteCache::new(),
            cursors: HashMap::new(),
            frames: FrameCache::default(),
            filter_scratch: Vec::new(),
            match_scratch: Vec::new(),
            identifier_scratch: Vec::new(),
            code_scratch: Vec::new(),
            text_scratch: String::new(),
            replays: ReplayTurn::default(),
            timers: TimerWheel::new(now),
            poll,
            listeners: Listeners::default(),
            outboxes: (0..node.workers()).map(|_| Vec::new()).collect(),
            durable: DurableTurn::default(),
            ended: Vec::new(),
            read_buffer: vec![0; READ_BYTES],
            plain_buffer: Vec::new(),
            plain_read: 0,
            wire_buffer: Vec::new(),
            admissions: HashMap::new(),
            certificates: HashMap::new(),
            handshakes: Handshakes::default(),
            exchanges: HashMap::new(),
            bans_seen: 0,
            recheck: None,
            rates_changed: false,
            again: Vec::new(),
            paused: Vec::new(),
            unmuted: Vec::new(),
            has_waited: false,
            hold_back: false,
            accept_at: None,
            accept_again: false,
            connects_saved: 0,
            connects_since: None,
            next_serial: 0,
            random_state: node.identity
                ^ (id.index() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            client_logs: (now, 0),
            sys: SysTopics::new(node.clock.started()),
            stopping: false,
            crowd: trim::Crowd::default(),
            overload: Overload::default(),
            memory: MemoryGauge::default(),
            local,
            node,
        }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) {
        if self.local.id.index() == 0 {
            self.timers
                .insert(self.local.now.plus(HOUSEKEEPING), Target::House);
            self.timers.insert(self.local.now, Target::Sys);
        }
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut mail = Vec::new();
        let mut fired = Vec::new();
        while !self.stopping {
            match self.poll(&mut events) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::error!(%error, "epoll failed; the worker ends");
                    return;
                }
            }
            self.turn(&events, &mut mail, &mut fired);
        }
    }

    /// Sleeps until there is something to do; with busy polling it looks for a while before.
    fn poll(&mut self, events: &mut Events) -> io::Result<()> {
        let timeout = self.wait();
        let busy = self.local.settings.busy_poll;
        let busy = timeout.map_or(busy, |timeout| timeout.min(busy));
        if busy.is_zero() {
            return self.poll.poll(events, timeout);
        }
        let end = self.node.clock.elapsed() + busy;
        while self.node.clock.elapsed() < end {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
        }
        self.poll.poll(events, self.wait())
    }

    fn turn(&mut self, events: &Events, mail: &mut Vec<Mail>, fired: &mut Vec<Target>) {
        self.take_in(events, mail, fired);
        self.hand_out();
        self.observe_load();
    }

    /// Handles every ready socket, the mail of the other workers and the timers that are due.
    fn take_in(&mut self, events: &Events, mail: &mut Vec<Mail>, fired: &mut Vec<Target>) {
        self.local.now = self.node.clock.now();
        self.local.row().add(Counter::Turns, 1);
        self.release_safe();
        self.end_lanes();
        self.replay_waiting();
        self.recheck_some();
        self.read_again();
        if self.accept_again {
            self.accept_deferred_now();
        }
        for event in events {
            match event.token() {
                WAKER => {}
                Token(token) if token > FIRST_LISTENER - self.listeners.count() => {
                    self.accept(FIRST_LISTENER - token);
                }
                Token(token) => self.socket_ready(token, event),
            }
        }
        self.node.mailbox(self.local.id).take(mail);
        for piece in mail.drain(..) {
            self.open_mail(piece);
            self.local.end_unit();
        }
        self.timers.advance(self.local.now, fired);
        for target in fired.drain(..) {
            self.timer(target);
            self.local.end_unit();
        }
    }

    /// Hands the mail over, writes the connections that have output, and lets go of the sessions that ended.
    fn hand_out(&mut self) {
        // What others are told must not be on the disk before what it rests on.
        if self.settle() {
            self.send_mail();
        }
        self.write_dirty();
        // A connection that could not be written may have left a will, or messages for others of its group.
        if !self.is_unsettled() {
            self.send_mail();
            self.release_ended();
        }
    }

    fn wait(&self) -> Option<Duration> {
        if self.accept_again
            || !self.again.is_empty()
            || !self.unmuted.is_empty()
            || self.has_dirty()
            || self.replays.is_waiting()
            || self.is_rechecking()
        {
            return Some(Duration::ZERO);
        }
        let timer = self.timers.next_wait(self.local.now);
        let is_unsettled = self.is_unsettled();
        if is_unsettled && !self.is_stuck() {
            return Some(Duration::ZERO);
        }
        if self.paused.is_empty() && !is_unsettled {
            return timer;
        }
        let pause = if self.overload.slows_publishers() {
            PRESSURE_CHECK
        } else {
            PAUSE_CHECK
        };
        Some(timer.map_or(pause, |timer| timer.min(pause)))
    }

    fn open_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Publish(message, origin) => self.publish_from_worker(&message, origin),
            Mail::Shared(delivery) => self.shared_from_worker(&delivery),
            Mail::Adopt(handover) => self.adopt(*handover),
            Mail::Arrived(arrived) => self.take_in_arrived(*arrived),
            Mail::Listen(changes) => self.listen(changes),
            Mail::Answered(answered) => self.take_answer(*answered),
            Mail::Decided(decided) => self.take_decision(&decided),
            Mail::Reload(settings) => self.reload(&settings),
            Mail::Settled(sender) => settled(self.local.id, &sender),
            Mail::Banned(changes) => self.banned(&changes),
            Mail::StopWills => self.publish_all_wills(),
            Mail::Stop => self.stop(),
        }
    }

    fn reload(&mut self, settings: &Settings) {
        let (old, new) = (&self.local.settings.protection, &settings.protection);
        let rates = [
            (old.client, new.client),
            (old.user, new.user),
            (old.address, new.address),
        ];
        self.rates_changed |= rates.iter().any(|(old, new)| old != new);
        self.local.settings = settings.own_copy();
        self.access_changed();
    }

    /// Mail for another worker; it leaves at the end of the turn.
    pub(crate) fn send(&mut self, worker: usize, mail: Mail) {
        let target = WorkerId::new(u16::try_from(worker).unwrap_or(u16::MAX));
        if self.node.mailbox(target).is_full() {
            self.hold_back = true;
        }
        self.outboxes[worker].push(mail);
    }

    fn send_mail(&mut self) {
        for (worker, batch) in self.outboxes.iter_mut().enumerate() {
            if batch.is_empty() {
                continue;
            }
            let target = WorkerId::new(u16::try_from(worker).unwrap_or(u16::MAX));
            let mailbox = self.node.mailbox(target);
            mailbox.push_all(batch);
            if mailbox.is_full() {
                self.local.row().add(Counter::MailboxFull, 1);
            }
        }
    }

    fn timer(&mut self, target: Target) {
        match target {
            Target::Session { slot, id } => self.session_timer(slot, id),
            Target::Connection { key, serial } => self.connection_timer(key, serial),
            Target::Pace { key, serial } => self.pace_over(key, serial),
            Target::Handshake { key, serial } => self.handshake_timer(key, serial),
            Target::Accept => self.accept_deferred_now(),
            Target::Refresh { slot, id } => self.refresh_due(slot, id),
            Target::Sys => {
                let interval = self.local.settings.sys_interval;
                if !interval.is_zero() {
                    self.publish_sys();
                }
                // Turned off it is still looked at, as a reload may turn it on.
                let next = if interval.is_zero() {
                    HOUSEKEEPING
                } else {
                    interval
                };
                self.timers.insert(self.local.now.plus(next), Target::Sys);
            }
            Target::Trim => self.trim(),
            Target::House => {
                self.sweep_retained();
                self.watch_memory();
                self.watch_bans();
                self.sweep_protection();
                self.watch_storage();
                self.timers
                    .insert(self.local.now.plus(HOUSEKEEPING), Target::House);
            }
        }
    }

    /// Whether a slot still holds the session of that number.
    pub(crate) fn is_session(&self, slot: u32, id: u64) -> bool {
        self.local
            .clients
            .get(slot as usize)
            .is_some_and(|client| client.session.id() == id)
    }

    /// A number nobody can guess from outside is not needed here, only an even spread.
    pub(crate) fn random(&mut self) -> u64 {
        // SplitMix64.
        self.random_state = self.random_state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random_state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Whether one more line about a single client may be logged in this second.
    pub(crate) fn may_log(&mut self) -> bool {
        let (since, count) = &mut self.client_logs;
        if self.local.now.since(*since) >= Duration::from_secs(1) {
            *since = self.local.now;
            *count = 0;
        }
        *count += 1;
        *count <= CLIENT_LOGS_PER_SECOND
    }
}
