//! One worker thread: it owns its connections and sessions, so they need no locks.
//!
//! A turn handles the ready sockets, the mail of the other workers and the timers that are due,
//! each as far as its portion of the turn goes, then delivers its own mail and writes each
//! connection that has output once.

#[cfg(test)]
mod holding_tests;
mod memory;
#[cfg(test)]
mod memory_tests;
mod overload;
#[cfg(test)]
mod query_tests;
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

use crate::control::TaskQueue;
use crate::edge::{Accepting, Edge};
use crate::listener::Change;
use crate::mailbox::{Arrived, Mail};
use crate::node::Node;
use crate::read_gate::PauseReason;
use crate::settings::Settings;
use crate::stage_topic::StageTopic;
use crate::sys_topics::SysTopics;
use crate::traffic::Traffic;
use memory::watch_memory;
use overload::observe_load;
use rounds::{RoundTask, Rounds};
use thrum_engine::Engine;
use thrum_engine::core::release_safe;
use thrum_engine::durable::{Journal, Part};
use thrum_engine::events::publish_events;
use thrum_engine::host::{Host, Surroundings};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::observation::observation_is_due;
use thrum_engine::settings::EngineSettings;
use thrum_engine::stages;
use thrum_engine::timeline::trim_timelines;
use thrum_engine::timers::Target;
use thrum_engine::workers::WorkerId;

/// The eventfd with which other threads wake the worker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners count down from here; connections ([`ConnectionId::token`]) stay in the lower half.
pub(crate) const FIRST_LISTENER: usize = usize::MAX - 1;
/// Sockets that one turn handles at most.
pub(crate) const EVENTS_PER_TURN: usize = 1024;
/// Interval of checks whether paused publishers may continue, as other threads do not signal free
/// room.
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
    /// The version of the list of bans that all workers have.
    bans_seen: u64,
    /// The first listeners have arrived: all sessions of the node are restored.
    has_begun: bool,
    pub(crate) sys: SysTopics,
    stage_topic: StageTopic,
    stopping: bool,
    client_peak: trim::ClientPeak,
    query_tasks: TaskQueue,
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
            stage_topic: StageTopic::default(),
            stopping: false,
            client_peak: trim::ClientPeak::default(),
            query_tasks: TaskQueue::default(),
            node,
        }
    }

    /// Does the work that must wait until all sessions are restored, before clients connect.
    fn begin(&mut self) {
        self.traffic.engine.end_lanes();
        for timed in self.traffic.engine.overdue_sessions() {
            self.traffic.session_timer(timed);
            self.traffic.engine.core.durable.end_unit();
        }
    }

    /// Takes over the recovered state of this worker.
    pub(crate) fn restored(mut self, part: Option<(Journal, Part)>) -> Self {
        if let Some((journal, part)) = part {
            self.node.clock.update_wall_clock();
            self.traffic.engine.restore(journal, part);
        }
        self
    }

    /// Runs until the mail to stop arrives.
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

    /// Sleeps until there is work; polls without sleeping for the configured time before.
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
        self.handle_inputs(events);
        self.send_outputs();
        self.run_queries();
        self.client_peak.watch(&mut self.traffic);
        observe_load(&mut self.traffic);
    }

    /// Handles every ready socket, the mail of the other workers and the timers that are due.
    fn handle_inputs(&mut self, events: &Events) {
        let elapsed = self.node.clock.elapsed();
        let core = &mut self.traffic.engine.core;
        core.turn.begin(self.node.clock.at(elapsed));
        core.stages.note_wake_up(elapsed);
        self.traffic.engine.core.memory.level = self.node.state.memory.level();
        self.traffic.engine.core.row().add(Counter::Turns, 1);
        release_safe(&mut self.traffic.engine.core);
        self.traffic.engine.end_lanes();
        self.traffic.engine.replay_waiting();
        self.traffic.recheck_some();
        let traffic = &mut self.traffic;
        traffic.reviews.advance(&traffic.edge, &mut traffic.engine);
        self.continue_rounds();
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
        publish_events(&mut self.traffic.engine);
        self.traffic.engine.send_room_notices();
        if self.traffic.engine.held.are_listed() {
            self.resume_held();
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
        self.traffic.resume_behind_mail();
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
    fn send_outputs(&mut self) {
        // Messages to other workers must not reach the disk before the changes that they depend on.
        if self.settle() {
            self.send_mail();
        }
        self.traffic.edge.write_dirty(&mut self.traffic.engine);
        // A connection that failed during its write may have left a will, or messages for other
        // members of its group.
        if !self.traffic.engine.core.is_unsettled() {
            self.send_mail();
            self.traffic.engine.release_ended();
        }
        self.notify_settled();
    }

    /// Runs a portion of the queries. Clients go first: what this turn read for them is written
    /// before.
    fn run_queries(&mut self) {
        if self.query_tasks.is_empty() {
            return;
        }
        self.query_tasks.advance(&mut self.traffic);
        // A query can have ended sessions.
        self.send_outputs();
    }

    /// Submits the changes of the turn, together with the present time of the wall clock.
    fn settle(&mut self) -> bool {
        let core = &mut self.traffic.engine.core;
        if core.durable.has_changes() {
            self.node.clock.update_wall_clock();
        }
        core.settle()
    }

    fn send_mail(&mut self) {
        let core = &mut self.traffic.engine.core;
        self.traffic.shell_mail.deliver(core, &self.node);
    }

    /// Resumes publishers with held messages, up to the portion of the turn.
    fn resume_held(&mut self) {
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
                .release_held();
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
            || self.query_tasks.are_due()
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
                if let Some(connection) = self.traffic.engine.take_mail(mail) {
                    self.traffic.edge.resume(connection, PauseReason::Mail);
                }
            }
            Mail::Adopt(handover) => self.traffic.adopt(*handover),
            Mail::Arrived(arrived) => self.open_arrived(*arrived),
            Mail::Listen(changes) => self.listen(changes),
            Mail::Answered(answered) => self.traffic.take_answer(*answered),
            Mail::Decided(decided) => self.traffic.take_decision(&decided),
            Mail::Reload(settings) => self.reload(&settings),
            Mail::Settled(sender) => self.settles_for(sender),
            Mail::Banned(changes) => self.banned(&changes),
            Mail::Query(task) => self.query_tasks.push(task),
            Mail::StopWills => self.begin_round(RoundTask::Wills),
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
        stages::stamp_every(&mut self.traffic.engine.core, settings.engine.stamp_every);
        trim_timelines(&mut self.traffic.engine.core);
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
                .end_pace(id),
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
                // At the start, it does not wait for the first second to pass.
                self.publish_stages();
                // A turned off interval is checked too, as a reload may turn it on.
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
            Target::Stages => stages::sweep_is_due(&mut self.traffic.engine.core),
            Target::Observation => observation_is_due(&mut self.traffic.engine.core),
            Target::Timelines => trim_timelines(&mut self.traffic.engine.core),
            Target::Trim => self.client_peak.trim(&mut self.traffic),
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
                self.node.clock.update_wall_clock();
                core.durable.watch_clock(&core.node.wall, core.turn.now);
                self.publish_stages();
                self.traffic.engine.core.timers.insert(
                    self.traffic.engine.core.turn.now.plus(HOUSEKEEPING),
                    Target::Housekeeping,
                );
            }
        }
    }

    /// Publishes the stages of stamped messages, unless the `$SYS` topics are turned off.
    fn publish_stages(&mut self) {
        let is_wanted = !self.traffic.edge.settings.sys_interval.is_zero();
        self.stage_topic
            .publish(&mut self.traffic.engine, is_wanted);
    }

    /// Accepts connections of a readable listener.
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

    /// Accepts connections of all listeners: a pause has ended, or some connections wait.
    fn accept_all(&mut self) {
        for place in self.accepting.resume() {
            self.accept(place);
        }
    }

    /// Closes a listener, after the connections in its backlog are accepted.
    fn close_listener(&mut self, number: u32) {
        if let Some(place) = self.accepting.listeners.find(number) {
            self.accept(place);
            self.accepting.close(&self.traffic.edge, place);
        }
    }

    /// Opens a connection that was accepted outside the workers.
    fn open_arrived(&mut self, arrived: Arrived) {
        let gate = arrived.gate;
        let traffic = &mut self.traffic;
        let opened = traffic.edge.open(&mut traffic.engine, arrived);
        traffic.edge.gates.get(gate).release();
        if let Some(key) = opened {
            traffic.edge.list_reader(key);
        }
    }

    /// Carries out changes of the listening sockets.
    fn listen(&mut self, changes: Vec<Change>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin();
        }
        for change in changes {
            match change {
                Change::Open(number, listener) => {
                    self.accepting.watch(&self.traffic.edge, number, listener);
                }
                Change::SetGate(number, gate) => self.accepting.listeners.regate(number, gate),
                Change::Close(number) => self.close_listener(number),
                Change::Disconnect(gates) => self.begin_round(RoundTask::RemovedGates(gates)),
                Change::Forget(gates) => {
                    self.rounds.forget_gates(&gates);
                    self.traffic.edge.gates.forget(&gates);
                }
            }
        }
        let here = self.traffic.engine.core.id;
        self.node.gates.count_carried_out(here);
    }

    /// Sends new bans to all workers. One worker checks for all, so that the others may sleep.
    fn watch_bans(&mut self) {
        let Some(changes) = self.node.protection.bans().changes(&mut self.bans_seen) else {
            return;
        };
        for worker in WorkerId::all(self.node.workers()) {
            if worker != self.traffic.engine.core.id {
                let outboxes = &mut self.traffic.engine.core.outboxes;
                let mail = Mail::Banned(changes.clone());
                self.traffic.shell_mail.send(outboxes, worker, mail);
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
            self.begin_round(RoundTask::Bans);
            return;
        };
        for key in keys {
            self.disconnect_banned(key);
            self.traffic.engine.core.durable.end_unit();
        }
    }

    /// Connections of the banned client identifiers; `None` if there are too many, or if a user or
    /// a network is banned, for which no index exists.
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

    /// Removes expired bans and unused accounts of rates.
    fn sweep_protection(&mut self) {
        let ahead = self.node.clock.update_wall_clock();
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

    /// Second step of a stop: sends every client a DISCONNECT and ends its connection, after the
    /// output that this turn has produced before.
    fn stop(&mut self) {
        self.accepting.listeners.clear();
        self.send_outputs();
        let keys: Vec<ConnectionKey> = self.traffic.edge.connections.keys().collect();
        for key in keys {
            self.traffic
                .edge
                .disconnect_at_stop(&mut self.traffic.engine, key);
        }
        // The events of these disconnections reach the sinks and the sessions of absent clients.
        while self.traffic.engine.core.events.are_waiting() {
            publish_events(&mut self.traffic.engine);
        }
        let core = &mut self.traffic.engine.core;
        if core.id == WorkerId::new(0) {
            self.node.clock.update_wall_clock();
            core.durable.note_end(&core.node.wall, core.turn.now);
        }
        if self.settle() {
            self.send_mail();
        }
        self.stopping = true;
    }
}

/// Whether the poll was not interrupted. Any other error ends the program: a worker without socket
/// events would stop serving its clients and their publishers.
fn has_polled(outcome: io::Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        Err(error) => panic!("epoll failed: {error}"),
    }
}
