//! One worker thread: it owns its connections and sessions, so they need no locks.
//!
//! A turn handles the ready sockets, the mail of the other workers and the timers that are due,
//! each as far as its portion of the turn goes, then hands its own mail over and writes each
//! connection that has output once.

#[cfg(test)]
mod holding_tests;
mod memory;
#[cfg(test)]
mod memory_tests;
mod overload;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod queue_tests;
mod rounds;
#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
mod trim;
#[cfg(test)]
mod turn_tests;
#[cfg(test)]
mod window_tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use thrum_protection::{BanChanges, Subject};

use crate::control::Questions;
use crate::edge::{Accepting, Edge};
use crate::listener::Change;
use crate::mailbox::{Arrived, Mail};
use crate::node::Node;
use crate::read_gate::PauseReason;
use crate::settings::Settings;
use crate::sys_topics::SysTopics;
use crate::traffic::Traffic;
use memory::watch_memory;
use overload::observe_load;
use rounds::{Errand, Rounds};
use thrum_engine::Engine;
use thrum_engine::durable::{Journal, Part};
use thrum_engine::events::publish_events;
use thrum_engine::host::{Host, Surroundings};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::settings::EngineSettings;
use thrum_engine::timers::Target;
use thrum_engine::workers::WorkerId;

/// The eventfd with which other threads wake the worker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners count down from here; connections ([`ConnectionId::token`]) stay in the lower half.
pub(crate) const FIRST_LISTENER: usize = usize::MAX - 1;
/// Sockets that one turn handles at most.
pub(crate) const EVENTS_PER_TURN: usize = 1024;
/// Interval at which the worker checks whether publishers that wait for other threads may continue.
const PAUSE_CHECK: Duration = Duration::from_millis(1);
/// Interval at which expired retained messages are removed and the memory is checked.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Banned client identifiers whose connections are looked up; for more of them all connections are
/// checked.
const BANS_AT_ONCE: usize = 256;

/// A thread of the data plane.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) node: Arc<Node>,
    pub(crate) traffic: Traffic,
    accepting: Accepting,
    /// Timers that are due and have not been handled yet.
    due: VecDeque<Target>,
    fired: Vec<Target>,
    rounds: Rounds,
    /// Version of the list of bans that all workers know.
    bans_seen: u64,
    /// The first listeners have arrived: restored sessions are complete.
    has_begun: bool,
    pub(crate) sys: SysTopics,
    stopping: bool,
    crowd: trim::Crowd,
    questions: Questions,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, node: Arc<Node>, settings: &Settings, poll: Poll) -> Self {
        let edge = Edge::new(Arc::clone(&node), settings.shell.clone(), poll);
        let host = Arc::clone(&node) as Arc<dyn Host>;
        let surroundings = Surroundings {
            host,
            now: node.clock.now(),
        };
        let own = Arc::new(settings.engine.own_copy());
        let engine = Engine::new(id, &node.state, own, surroundings);
        Self {
            traffic: Traffic::new(edge, engine),
            accepting: Accepting::default(),
            due: VecDeque::new(),
            fired: Vec::new(),
            rounds: Rounds::default(),
            bans_seen: 0,
            has_begun: false,
            sys: SysTopics::new(node.clock.started()),
            stopping: false,
            crowd: trim::Crowd::default(),
            questions: Questions::default(),
            node,
        }
    }

    /// The node has its sessions: does the work that waited for them before clients connect.
    fn begin(&mut self) {
        self.traffic.engine.end_lanes();
        for timed in self.traffic.engine.overdue_sessions() {
            self.traffic.session_timer(timed);
            self.traffic.engine.core.durable.end_unit();
        }
    }

    /// Takes over what was found at the start.
    pub(crate) fn restored(mut self, part: Option<(Journal, Part)>) -> Self {
        if let Some((journal, part)) = part {
            self.node.clock.look_at_wall();
            self.traffic.engine.restore(journal, part);
        }
        self
    }

    /// Runs until a message stops it.
    pub(crate) fn run(mut self) {
        if self.traffic.engine.core.id.index() == 0 {
            self.traffic.engine.core.timers.insert(
                self.traffic.engine.core.turn.now.plus(HOUSEKEEPING),
                Target::Housekeeping,
            );
            self.traffic
                .engine
                .core
                .timers
                .insert(self.traffic.engine.core.turn.now, Target::Sys);
        }
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        while !self.stopping {
            let outcome = self.poll(&mut events);
            if has_polled(outcome) {
                self.turn(&events);
            }
        }
    }

    /// Sleeps until there is work; with busy polling it polls for a while before.
    fn poll(&mut self, events: &mut Events) -> io::Result<()> {
        let timeout = self.wait();
        let busy = self.traffic.edge.settings.busy_poll;
        let busy = timeout.map_or(busy, |timeout| timeout.min(busy));
        if busy.is_zero() {
            return self.traffic.edge.poll.poll(events, timeout);
        }
        let end = self.node.clock.elapsed() + busy;
        while self.node.clock.elapsed() < end {
            self.traffic.edge.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
        }
        self.traffic.edge.poll.poll(events, self.wait())
    }

    fn turn(&mut self, events: &Events) {
        self.take_in(events);
        self.hand_out();
        self.crowd.watch(&mut self.traffic);
        observe_load(&mut self.traffic);
    }

    /// Handles every ready socket, the mail of the other workers and the timers that are due.
    fn take_in(&mut self, events: &Events) {
        self.traffic.engine.core.turn.begin(self.node.clock.now());
        self.traffic.engine.core.memory.level = self.node.state.memory.level();
        self.traffic.engine.core.row().add(Counter::Turns, 1);
        let core = &mut self.traffic.engine.core;
        core.durable.release_safe(core.turn.now, &mut core.outputs);
        self.traffic.engine.end_lanes();
        self.traffic.engine.replay_waiting();
        self.traffic.recheck_some();
        let traffic = &mut self.traffic;
        traffic.reviews.go_on(&traffic.edge, &mut traffic.engine);
        self.go_on_with_rounds();
        let listed = self.traffic.begin_reading();
        if self.accepting.is_again() {
            self.accept_all();
        }
        for event in events {
            match event.token() {
                WAKER => {}
                Token(token) if token > FIRST_LISTENER - self.accepting.listeners.count() => {
                    self.accept(FIRST_LISTENER - token);
                }
                _ => self.traffic.socket_ready(event),
            }
        }
        self.traffic.read_listed(listed);
        self.handle_mail();
        self.handle_timers();
        if !self.questions.are_none() {
            self.questions.go_on(&mut self.traffic);
        }
        publish_events(&mut self.traffic.engine);
        self.traffic.engine.send_room_notices();
        if self.traffic.engine.held.are_listed() {
            self.go_on_with_held();
        }
    }

    /// Handles mail in the order of its arrival, up to the portion.
    fn handle_mail(&mut self) {
        let here = self.traffic.engine.core.id;
        let mailbox = self.node.mailbox(here);
        self.traffic.inbox.fill(mailbox);
        if self.traffic.inbox.is_empty() || self.traffic.edge.unwritten.is_long() {
            return;
        }
        self.traffic.engine.core.turn.begin_portion();
        let mut bytes = 0;
        while let Some(piece) = self.traffic.inbox.open_next() {
            bytes += piece.bytes_len();
            self.traffic.engine.core.turn.work += 1;
            self.open_mail(piece);
            self.traffic.engine.core.durable.end_unit();
            if self.traffic.engine.core.turn.is_portion_over() {
                break;
            }
        }
        let messages = self.traffic.inbox.end_portion();
        self.node.mailbox(here).handled(messages, bytes);
        self.traffic.go_on_behind_mail();
        if !self.traffic.inbox.is_empty() {
            let row = self.traffic.engine.core.row();
            row.add(Counter::MailPutOff, 1);
        }
    }

    /// Handles due timers, up to the portion.
    fn handle_timers(&mut self) {
        let core = &mut self.traffic.engine.core;
        core.timers.advance(core.turn.now, &mut self.fired);
        if !self.fired.is_empty() {
            self.due.extend(self.fired.drain(..));
        }
        if self.due.is_empty() {
            return;
        }
        self.traffic.engine.core.turn.begin_portion();
        while let Some(target) = self.due.pop_front() {
            self.traffic.engine.core.turn.work += 1;
            self.timer(target);
            self.traffic.engine.core.durable.end_unit();
            if self.traffic.engine.core.turn.is_portion_over() {
                break;
            }
        }
        if self.due.is_empty() {
            // Returns the room of a large number of timers.
            self.due.shrink_to(EVENTS_PER_TURN);
            self.fired.shrink_to(EVENTS_PER_TURN);
        } else {
            self.traffic.engine.core.row().add(Counter::TimersPutOff, 1);
        }
    }

    /// Sends the mail, writes the connections that have output, and drops the sessions that ended.
    fn hand_out(&mut self) {
        // What others are told must not be on the disk before what it rests on.
        if self.settle() {
            self.hand_mail_over();
        }
        self.traffic.edge.write_dirty(&mut self.traffic.engine);
        // A connection that could not be written may have left a will, or messages for others of
        // its group.
        if !self.traffic.engine.core.is_unsettled() {
            self.hand_mail_over();
            self.traffic.engine.release_ended();
        }
        self.tell_settled();
    }

    /// Hands in the changes of the turn, and with them what the wall clock shows now.
    fn settle(&mut self) -> bool {
        let core = &mut self.traffic.engine.core;
        if core.durable.has_changes() {
            self.node.clock.look_at_wall();
        }
        core.settle()
    }

    fn hand_mail_over(&mut self) {
        let core = &mut self.traffic.engine.core;
        self.traffic.own_mail.hand_over(core, &self.node);
    }

    /// Publishers that were held back go on, as far as their portion of the turn goes.
    fn go_on_with_held(&mut self) {
        self.traffic
            .engine
            .held
            .begin_resuming(&mut self.traffic.engine.core);
        while let Some(connection) = self
            .traffic
            .engine
            .held
            .next_resumed(&mut self.traffic.engine.core)
        {
            self.traffic.edge.connections[connection.key]
                .reading
                .let_go();
            self.traffic.read(connection.key);
            if !self
                .traffic
                .engine
                .held
                .may_resume(&self.traffic.engine.core)
            {
                break;
            }
        }
    }

    fn wait(&self) -> Option<Duration> {
        if self.accepting.is_again()
            || self.traffic.edge.readers.is_listed()
            || !self.traffic.inbox.is_empty()
            || !self.due.is_empty()
            || !self.rounds.are_done()
            || self.traffic.edge.has_dirty(&self.traffic.engine)
            || self.traffic.engine.replays.is_waiting()
            || self.traffic.recheck.is_under_way()
            || self.traffic.reviews.are_due()
            || !self.traffic.engine.core.rooms.is_quiet()
            || self.traffic.engine.held.are_listed()
            || self.traffic.engine.core.events.are_waiting()
        {
            return Some(Duration::ZERO);
        }
        let timer = self
            .traffic
            .engine
            .core
            .timers
            .next_wait(self.traffic.engine.core.turn.now);
        let is_unsettled = self.traffic.engine.core.is_unsettled();
        if is_unsettled && !self.traffic.engine.core.durable.is_stuck() {
            return Some(Duration::ZERO);
        }
        let waits = self.traffic.edge.readers.waits_for_others() || is_unsettled;
        let check = waits.then_some(PAUSE_CHECK);
        let end = self.traffic.edge.readers.overload_pause_end();
        let pause = end.map(|end| end.since(self.traffic.engine.core.turn.now));
        [timer, check, pause].into_iter().flatten().min()
    }

    fn open_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Engine(mail) => {
                if let Some(heard) = self.traffic.engine.take_mail(mail) {
                    self.traffic.edge.resume(heard, PauseReason::Mail);
                }
            }
            Mail::Adopt(handover) => self.traffic.adopt(*handover),
            Mail::Arrived(arrived) => self.take_in_arrived(*arrived),
            Mail::Listen(changes) => self.listen(changes),
            Mail::Answered(answered) => self.traffic.take_answer(*answered),
            Mail::Decided(decided) => self.traffic.take_decision(&decided),
            Mail::Reload(settings) => self.reload(&settings),
            Mail::Settled(sender) => self.settles_for(sender),
            Mail::Banned(changes) => self.banned(&changes),
            Mail::Asked(task) => self.questions.push(task),
            Mail::StopWills => self.go_round(Errand::Wills),
            Mail::Stop => self.stop_after_rounds(),
        }
    }

    fn reload(&mut self, settings: &Settings) {
        let (old, new) = (
            &self.traffic.edge.settings.protection,
            &settings.shell.protection,
        );
        let rates = [
            (old.client, new.client),
            (old.user, new.user),
            (old.address, new.address),
        ];
        self.traffic.recheck.rates_changed |= rates.iter().any(|(old, new)| old != new);
        let is_partial = |settings: &EngineSettings| settings.access.access.policy.filters_partial;
        let grants_otherwise =
            is_partial(&self.traffic.engine.core.settings) != is_partial(&settings.engine);
        self.traffic.edge.set_settings(settings.shell.clone());
        self.traffic.engine.core.settings = Arc::new(settings.engine.own_copy());
        self.traffic.engine.core.set_memory_limit();
        self.traffic.rechecking().access_changed(grants_otherwise);
    }

    fn timer(&mut self, target: Target) {
        match target {
            Target::Session(timed) => self.traffic.session_timer(timed),
            Target::Connection(id) => self.traffic.connection_timer(id),
            Target::Drain(id) => self.traffic.edge.drain_timer(&mut self.traffic.engine, id),
            Target::Pace(id) => self
                .traffic
                .edge
                .meters(&mut self.traffic.engine)
                .pace_over(id),
            Target::Handshake(id) => self
                .traffic
                .edge
                .handshake_timer(&mut self.traffic.engine, id),
            Target::Accept => self.accept_all(),
            Target::Refresh(timed) => self.traffic.reauthentication().refresh_due(timed),
            Target::Sys => {
                let interval = self.traffic.edge.settings.sys_interval;
                if !interval.is_zero() {
                    self.sys.publish(&mut self.traffic.engine);
                }
                // Turned off it is still looked at, as a reload may turn it on.
                let next = if interval.is_zero() {
                    HOUSEKEEPING
                } else {
                    interval
                };
                self.traffic
                    .engine
                    .core
                    .timers
                    .insert(self.traffic.engine.core.turn.now.plus(next), Target::Sys);
            }
            Target::Held => self
                .traffic
                .engine
                .held
                .are_due(&mut self.traffic.engine.core),
            Target::Trim => self.crowd.trim(&mut self.traffic),
            Target::Housekeeping => {
                let core = &mut self.traffic.engine.core;
                core.durable
                    .sweep_retained(&core.node.retained, core.turn.now);
                self.traffic.reviews.watch(&self.traffic.engine);
                watch_memory(&mut self.traffic.engine.core);
                self.watch_bans();
                self.sweep_protection();
                let core = &mut self.traffic.engine.core;
                core.durable.watch_storage();
                core.durable.watch_folder(core.turn.now);
                self.node.clock.look_at_wall();
                core.durable.watch_clock(&core.node.wall, core.turn.now);
                self.traffic.engine.core.timers.insert(
                    self.traffic.engine.core.turn.now.plus(HOUSEKEEPING),
                    Target::Housekeeping,
                );
            }
        }
    }

    /// A listener is readable.
    fn accept(&mut self, place: usize) {
        let traffic = &mut self.traffic;
        let batch = self
            .accepting
            .begin(&mut traffic.edge, &mut traffic.engine, place);
        let Some(mut batch) = batch else { return };
        while let Some(arrived) =
            self.accepting
                .next(&mut traffic.edge, &mut traffic.engine, &mut batch)
        {
            traffic.open_and_read(arrived);
        }
    }

    /// A pause is over, or some connections wait: every listener is tried.
    fn accept_all(&mut self) {
        for place in self.accepting.go_on() {
            self.accept(place);
        }
    }

    /// Accepts the connections in the backlog first.
    fn close_listener(&mut self, number: u32) {
        if let Some(place) = self.accepting.listeners.find(number) {
            self.accept(place);
            self.accepting.close(&self.traffic.edge, place);
        }
    }

    /// A connection that was accepted outside the workers.
    fn take_in_arrived(&mut self, arrived: Arrived) {
        let gate = arrived.gate;
        let traffic = &mut self.traffic;
        let opened = traffic.edge.open(&mut traffic.engine, arrived);
        traffic.edge.gates.get(gate).release();
        if let Some(key) = opened {
            traffic.edge.list_reader(key);
        }
    }

    /// Other sockets to accept from.
    fn listen(&mut self, changes: Vec<Change>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin();
        }
        for change in changes {
            match change {
                Change::Open(number, listener) => {
                    self.accepting.watch(&self.traffic.edge, number, listener);
                }
                Change::Regate(number, gate) => self.accepting.listeners.regate(number, gate),
                Change::Close(number) => self.close_listener(number),
                Change::Part(gates) => self.go_round(Errand::Part(gates)),
                Change::Forget(gates) => {
                    self.rounds.forget_gates(&gates);
                    self.traffic.edge.gates.forget(&gates);
                }
            }
        }
        let here = self.traffic.engine.core.id;
        self.node.gates.count_carried_out(here);
    }

    /// Tells all workers of new bans. One worker looks for all, so that the others may sleep.
    fn watch_bans(&mut self) {
        let Some(changes) = self.node.protection.bans().changes(&mut self.bans_seen) else {
            return;
        };
        for worker in WorkerId::all(self.node.workers()) {
            if worker != self.traffic.engine.core.id {
                let outboxes = &mut self.traffic.engine.core.outboxes;
                let mail = Mail::Banned(changes.clone());
                self.traffic.own_mail.send(outboxes, worker, mail);
            }
        }
        self.banned(&changes);
    }

    /// Disconnects connected clients that are banned.
    fn banned(&mut self, changes: &BanChanges) {
        let keys = match changes {
            BanChanges::Added(subjects) => self.keys_of(subjects),
            BanChanges::Unknown => None,
        };
        let Some(keys) = keys else {
            self.go_round(Errand::Bans);
            return;
        };
        for key in keys {
            self.disconnect_banned(key);
            self.traffic.engine.core.durable.end_unit();
        }
    }

    /// Connections of client identifiers; none if there are many, or a user or a network is among
    /// them, for which no index exists.
    fn keys_of(&self, subjects: &[Subject]) -> Option<Vec<ConnectionKey>> {
        if subjects.len() > BANS_AT_ONCE {
            return None;
        }
        let mut keys = Vec::new();
        for subject in subjects {
            let Subject::ClientId(client_id) = subject else {
                return None;
            };
            let slot = self.traffic.engine.core.sessions.find(client_id);
            let key = slot.and_then(|slot| self.traffic.engine.core.sessions[slot].connection);
            keys.extend(key);
        }
        Some(keys)
    }

    /// Forgets what is over.
    fn sweep_protection(&mut self) {
        let ahead = self.node.clock.look_at_wall();
        self.node.protection.bans().set_wall_ahead(ahead);
        let (settings, now) = (
            &self.traffic.edge.settings.protection,
            self.traffic.engine.core.turn.now,
        );
        let forgotten = self.node.protection.sweep(settings, now);
        self.traffic
            .engine
            .core
            .row()
            .add(Counter::RateAccountsForgotten, forgotten);
    }

    /// Second step: every client is told and disconnected. Output that the same turn produced
    /// before leaves first.
    fn stop(&mut self) {
        self.accepting.listeners.clear();
        self.hand_out();
        let keys: Vec<ConnectionKey> = self.traffic.edge.connections.keys().collect();
        for key in keys {
            self.traffic.edge.dismiss(&mut self.traffic.engine, key);
        }
        // What they say reaches sinks and the sessions of clients that are away.
        while self.traffic.engine.core.events.are_waiting() {
            publish_events(&mut self.traffic.engine);
        }
        let core = &mut self.traffic.engine.core;
        if core.id == WorkerId::new(0) {
            self.node.clock.look_at_wall();
            core.durable.note_end(&core.node.wall, core.turn.now);
        }
        if self.settle() {
            self.hand_mail_over();
        }
        self.stopping = true;
    }
}

/// Whether the poll was not interrupted. A worker without socket events would hang its clients, and
/// their publishers: it ends the program.
fn has_polled(outcome: io::Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        Err(error) => panic!("epoll failed: {error}"),
    }
}
