//! One worker thread: it owns its connections and sessions, so they need no locks.
//!
//! A turn handles the ready sockets, the mail of the other workers and the timers that are due,
//! each as far as its portion of the turn goes, then hands its own mail over and writes each
//! connection that has output once.

mod accept;
mod admission;
mod answers;
mod arrival;
mod authorize;
mod budget;
mod client_lines;
mod durable;
mod elsewhere;
mod enhanced;
mod guard;
mod handshake;
mod holding;
#[cfg(test)]
mod holding_tests;
mod input;
mod judging;
mod lifecycle;
mod listening;
mod local;
mod memory;
#[cfg(test)]
mod memory_tests;
mod metering;
mod noting;
mod outbox;
mod output;
mod overload;
#[cfg(test)]
mod queue_tests;
mod read_ahead;
mod reading;
mod reauthentication;
mod recheck;
mod records;
mod restore;
mod review;
mod review_queue;
mod rooms;
mod rounds;
mod session_limits;
mod shaking;
#[cfg(test)]
pub(crate) mod simulation;
mod sources;
#[cfg(test)]
mod tests;
mod trim;
#[cfg(test)]
mod turn_tests;
mod wills;
#[cfg(test)]
mod window_tests;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use thrum_codec::ReasonCode;
use thrum_protection::{Handshakes, Overload};
use thrum_protocol::Time;
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::{GroupId, Session};
use thrum_routing::shared::Cursor;
use thrum_routing::{FilterId, Index};

pub(crate) use admission::{Admitted, Awaited, Pending};
pub(crate) use answers::Answered;
pub(crate) use authorize::Decided;
pub(crate) use elsewhere::{Heard, Inquiry};
pub(crate) use local::{Client, Local, Replay, Written};

use crate::ids::{ConnectionId, Slot};
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::node::Node;
use crate::publish::Match;
use crate::replay::ReplayTurn;
use crate::route_cache::RouteCache;
use crate::settings::Settings;
use crate::subscribe::Subscriber;
use crate::sys_topics::SysTopics;
use crate::timer::{TimerWheel, lower_half};
use crate::workers::{WorkerId, WorkerSet};
use budget::Budget;
pub(crate) use budget::{FILTER_UNITS, ROUTE_UNITS};
use client_lines::ClientLines;
pub(crate) use durable::DurableTurn;
use elsewhere::Publishers;
use holding::HeldPublishers;
use listening::Listeners;
use outbox::Outbox;
use output::Unwritten;
use reading::Readers;
use recheck::Recheck;
use rooms::NearlyFullFilters;
pub(crate) use rooms::SubscriptionChange;
use rounds::{Errand, Rounds};
use sources::SourceReviews;

/// The eventfd that other threads wake the worker with.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners count down from here; connections ([`ConnectionId::token`]) stay in the lower half.
const FIRST_LISTENER: usize = usize::MAX - 1;
/// Sockets that one turn handles at most.
const EVENTS_PER_TURN: usize = 1024;
/// One read takes this much at most; a busy connection is read again in the next turn.
const READ_BYTES: usize = 64 * 1024;
/// While publishers wait for other threads, the worker looks this often whether they may go on.
const PAUSE_CHECK: Duration = Duration::from_millis(1);
/// How long a publisher is not read after each message while memory is over its limit, or turns
/// take too long.
const PRESSURE_CHECK: Duration = Duration::from_millis(50);
/// How often expired retained messages are removed and the memory is looked at.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Log lines about single clients that one worker writes in a second.
const CLIENT_LOGS_PER_SECOND: u32 = 50;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A session: keep alive, will delay, expiry.
    Session(TimedSession),
    /// A connection that has to say CONNECT.
    Connection(ConnectionId),
    /// A connection that ends and still has something to write, or to read.
    Drain(ConnectionId),
    /// A connection that has used up a rate may be read again.
    Pace(ConnectionId),
    /// A connection whose TLS, WebSocket and header of a proxy have to be done.
    Handshake(ConnectionId),
    /// Accept again after the connect rate was reached.
    Accept,
    /// Ask the gatekeeper about a client again.
    Refresh(TimedSession),
    /// Look after publishers that are held back.
    Held,
    /// Publish `$SYS`.
    Sys,
    /// Housekeeping.
    House,
    /// Give memory back.
    Trim,
}

/// A session that a timer waits for: its slot, and as much of its number as tells it from an
/// earlier one there. With all of the number each connection would have four bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedSession {
    slot: Slot,
    lower_half: u32,
}

impl TimedSession {
    pub(crate) fn new(slot: Slot, session: &Session) -> Self {
        Self {
            slot,
            lower_half: lower_half(session.id()),
        }
    }
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
    /// Nobody in that group has room, as one of the messages that a member left behind has shown.
    pub(crate) full_group: Option<GroupId>,
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
    outboxes: Vec<Outbox>,
    /// Mail that was taken and not handled yet.
    inbox: VecDeque<Mail>,
    /// Timers that are due and have not been handled yet.
    due: VecDeque<Target>,
    fired: Vec<Target>,
    budget: Budget,
    rounds: Rounds,
    unwritten: Unwritten,
    pub(super) durable: DurableTurn,
    /// Pieces of mail since the start.
    mail_handled: u64,
    /// Of those that count as waiting, the pieces that have been opened since.
    mail_opened: usize,
    /// Connections that stand behind a piece of mail, by its number.
    behind_mail: VecDeque<(u64, ConnectionId)>,
    /// Publishers that wait for room in a queue.
    held: HeldPublishers,
    /// Clients that publish while memory is low.
    publishers: Publishers,
    /// Filters with subscribers whose queues are nearly full.
    nearly_full: NearlyFullFilters,
    /// Client identifiers of the sessions that ended in this turn.
    ended: Vec<Box<str>>,
    read_buffer: Vec<u8>,
    /// MQTT out of the layers of the connection at hand.
    plain_buffer: Vec<u8>,
    /// Memory to encrypt into.
    wire_buffer: Vec<u8>,
    /// Connections that are in their TLS or WebSocket handshake.
    handshakes: Handshakes,
    /// Number of the list of bans that all workers know.
    bans_seen: u64,
    /// Sessions that are to be looked at, since rules have changed.
    recheck: Recheck,
    /// Rates of clients have changed since the sessions were last looked at.
    rates_changed: bool,
    reviews: SourceReviews,
    readers: Readers,
    /// The packet at hand has waited for the gatekeeper.
    has_waited: bool,
    /// Workers whose mailboxes are full with what the connection at hand published.
    full_targets: WorkerSet,
    /// Accepting goes on then, after a connect rate was used up.
    accept_at: Option<Time>,
    /// Under overload some newcomers are let in then.
    let_newcomers_in_from: Time,
    /// The listener that is looked at first when accepting goes on.
    first_listener: usize,
    /// A listener gave as many connections as one turn takes.
    accept_again: bool,
    next_serial: u32,
    random_state: u64,
    client_logs: (Time, u32),
    client_lines: ClientLines,
    pub(crate) sys: SysTopics,
    stopping: bool,
    crowd: trim::Crowd,
    pub(super) overload: Overload,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, node: Arc<Node>, settings: &Settings, poll: Poll) -> Self {
        let local = Local::new(id, Arc::clone(&node), settings.own_copy());
        let now = local.now;
        Self {
            index: Index::new(),
            routes: RouteCache::new(),
            cursors: HashMap::new(),
            full_group: None,
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
            outboxes: (0..node.workers()).map(|_| Outbox::default()).collect(),
            inbox: VecDeque::new(),
            due: VecDeque::new(),
            fired: Vec::new(),
            budget: Budget::default(),
            rounds: Rounds::default(),
            unwritten: Unwritten::default(),
            durable: DurableTurn::default(),
            mail_handled: 0,
            mail_opened: 0,
            behind_mail: VecDeque::new(),
            held: HeldPublishers::default(),
            publishers: Publishers::new(),
            nearly_full: NearlyFullFilters::new(),
            ended: Vec::new(),
            read_buffer: vec![0; READ_BYTES],
            plain_buffer: Vec::new(),
            wire_buffer: Vec::new(),
            handshakes: Handshakes::default(),
            bans_seen: 0,
            recheck: Recheck::default(),
            rates_changed: false,
            reviews: SourceReviews::default(),
            readers: Readers::default(),
            has_waited: false,
            full_targets: WorkerSet::NONE,
            accept_at: None,
            let_newcomers_in_from: Time::default(),
            first_listener: 0,
            accept_again: false,
            next_serial: 0,
            random_state: node.identity
                ^ (id.index() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            client_logs: (now, 0),
            client_lines: ClientLines::default(),
            sys: SysTopics::new(node.clock.started()),
            stopping: false,
            crowd: trim::Crowd::default(),
            overload: Overload::default(),
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
        while !self.stopping {
            let outcome = self.poll(&mut events);
            if has_polled(outcome) {
                self.turn(&events);
            }
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

    fn turn(&mut self, events: &Events) {
        self.take_in(events);
        self.hand_out();
        self.observe_load();
    }

    /// Handles every ready socket, the mail of the other workers and the timers that are due.
    fn take_in(&mut self, events: &Events) {
        self.local.now = self.node.clock.now();
        self.local.memory.level = self.node.memory.level();
        self.begin_budget();
        self.local.row().add(Counter::Turns, 1);
        self.release_safe();
        self.end_lanes();
        self.replay_waiting();
        self.recheck_some();
        self.go_on_with_sources();
        self.go_on_with_rounds();
        let listed = self.begin_reading();
        if self.accept_again {
            self.accept_deferred_now();
        }
        for event in events {
            match event.token() {
                WAKER => {}
                Token(token) if token > FIRST_LISTENER - self.listeners.count() => {
                    self.accept(FIRST_LISTENER - token);
                }
                _ => self.socket_ready(event),
            }
        }
        self.read_listed(listed);
        self.handle_mail();
        self.handle_timers();
        self.pass_room_news_on();
        if self.held.is_listed() {
            self.go_on_with_held();
        }
    }

    /// Mail in the order in which it came, as far as the portion goes.
    fn handle_mail(&mut self) {
        if self.inbox.is_empty() {
            if self.node.mailbox(self.local.id).is_empty() {
                return;
            }
            // Neither conversion copies anything.
            let mut taken = Vec::from(std::mem::take(&mut self.inbox));
            self.node.mailbox(self.local.id).take(&mut taken);
            self.inbox = VecDeque::from(taken);
        }
        if self.inbox.is_empty() || self.unwritten.is_long() {
            return;
        }
        self.begin_portion();
        let mut bytes = 0;
        while let Some(piece) = self.inbox.pop_front() {
            self.mail_opened += 1;
            bytes += piece.bytes_len();
            self.local.work += 1;
            self.open_mail(piece);
            self.local.end_unit();
            if self.is_portion_over() {
                break;
            }
        }
        let messages = std::mem::take(&mut self.mail_opened);
        self.node.mailbox(self.local.id).handled(messages, bytes);
        self.mail_handled += messages as u64;
        self.go_on_behind_mail();
        if !self.inbox.is_empty() {
            self.local.row().add(Counter::MailPutOff, 1);
        }
    }

    /// Timers that are due, as far as the portion goes.
    fn handle_timers(&mut self) {
        self.timers.advance(self.local.now, &mut self.fired);
        if !self.fired.is_empty() {
            self.due.extend(self.fired.drain(..));
        }
        if self.due.is_empty() {
            return;
        }
        self.begin_portion();
        while let Some(target) = self.due.pop_front() {
            self.local.work += 1;
            self.timer(target);
            self.local.end_unit();
            if self.is_portion_over() {
                break;
            }
        }
        if self.due.is_empty() {
            // A crowd of them left room behind.
            self.due.shrink_to(EVENTS_PER_TURN);
            self.fired.shrink_to(EVENTS_PER_TURN);
        } else {
            self.local.row().add(Counter::TimersPutOff, 1);
        }
    }

    /// Hands the mail over, writes the connections that have output, and lets go of the sessions
    /// that ended.
    fn hand_out(&mut self) {
        // What others are told must not be on the disk before what it rests on.
        if self.settle() {
            self.send_mail();
        }
        self.write_dirty();
        // A connection that could not be written may have left a will, or messages for others of
        // its group.
        if !self.is_unsettled() {
            self.send_mail();
            self.release_ended();
        }
        self.tell_settled();
    }

    fn wait(&self) -> Option<Duration> {
        if self.accept_again
            || self.readers.is_listed()
            || !self.inbox.is_empty()
            || !self.due.is_empty()
            || !self.rounds.are_done()
            || self.has_dirty()
            || self.replays.is_waiting()
            || self.is_rechecking()
            || self.reviews.are_due()
            || !self.local.room_news.is_empty()
            || self.held.is_listed()
        {
            return Some(Duration::ZERO);
        }
        let timer = self.timers.next_wait(self.local.now);
        let is_unsettled = self.is_unsettled();
        if is_unsettled && !self.is_stuck() {
            return Some(Duration::ZERO);
        }
        let waits = self.readers.waits_for_others() || is_unsettled;
        let check = waits.then_some(PAUSE_CHECK);
        let end = self.readers.overload_pause_end();
        let pause = end.map(|end| end.since(self.local.now));
        [timer, check, pause].into_iter().flatten().min()
    }

    fn open_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Publish(delivery) => self.publish_from_worker(delivery),
            Mail::Shared(delivery) => self.shared_from_worker(delivery),
            Mail::Room(shortage, room) => self.note_room(shortage, &room),
            Mail::Full(session) => self.found_full(session),
            Mail::Inquiry(inquiry) => self.answer_inquiry(&inquiry),
            Mail::Heard(connection) => self.go_on_informed(connection),
            Mail::Adopt(handover) => self.adopt(*handover),
            Mail::Arrived(arrived) => self.take_in_arrived(*arrived),
            Mail::Listen(changes) => self.listen(changes),
            Mail::Answered(answered) => self.take_answer(*answered),
            Mail::Decided(decided) => self.take_decision(&decided),
            Mail::Reload(settings) => self.reload(&settings),
            Mail::Settled(sender) => self.settles_for(sender),
            Mail::Banned(changes) => self.banned(&changes),
            Mail::StopWills => self.go_round(Errand::Wills),
            Mail::Stop => self.stop_after_rounds(),
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
        let is_partial = |settings: &Settings| settings.access.access.policy.filters_partial;
        let grants_otherwise = is_partial(&self.local.settings) != is_partial(settings);
        self.local.settings = settings.own_copy();
        self.local.set_memory_limit();
        self.access_changed(grants_otherwise);
    }

    /// Mail for another worker; it leaves at the end of the turn.
    pub(crate) fn send(&mut self, worker: WorkerId, mail: Mail) {
        if self.outboxes[worker.index()].push(mail, self.node.mailbox(worker)) {
            self.full_targets.insert(worker);
        }
    }

    fn send_mail(&mut self) {
        for (number, outbox) in self.outboxes.iter_mut().enumerate() {
            if outbox.empty_into(self.node.mailbox(WorkerId::new(number))) {
                self.local.row().add(Counter::MailboxFull, 1);
            }
        }
    }

    fn timer(&mut self, target: Target) {
        match target {
            Target::Session(timed) => self.session_timer(timed),
            Target::Connection(id) => self.connection_timer(id),
            Target::Drain(id) => self.drain_timer(id),
            Target::Pace(id) => self.pace_over(id),
            Target::Handshake(id) => self.handshake_timer(id),
            Target::Accept => self.accept_deferred_now(),
            Target::Refresh(timed) => self.refresh_due(timed),
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
            Target::Held => self.held_due(),
            Target::Trim => self.trim(),
            Target::House => {
                self.sweep_retained();
                self.watch_sources();
                self.watch_memory();
                self.watch_bans();
                self.sweep_protection();
                self.watch_storage();
                self.watch_clock();
                self.timers
                    .insert(self.local.now.plus(HOUSEKEEPING), Target::House);
            }
        }
    }

    /// The slot of a session that a timer waited for, if that is still there.
    fn slot_of_timed(&self, timed: TimedSession) -> Option<Slot> {
        let client = self.local.clients.get(timed.slot)?;
        (TimedSession::new(timed.slot, &client.session) == timed).then_some(timed.slot)
    }

    /// Whether a slot still holds the session of that number.
    pub(crate) fn is_session(&self, slot: Slot, id: u64) -> bool {
        self.local
            .clients
            .get(slot)
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

/// Whether the poll was not interrupted. A worker that hears no sockets would leave its clients
/// hanging, and those that publish to them: it ends the program.
fn has_polled(outcome: io::Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        Err(error) => panic!("epoll failed: {error}"),
    }
}
