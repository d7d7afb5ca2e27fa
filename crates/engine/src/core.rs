//! State that all parts of the engine share: the sessions of the worker, their output, and their
//! changes for the storage.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::Session;
use thrum_protocol::{Message, Output, Time};
use thrum_storage::Change;

use super::durability::Durable;
use super::ending::TIMER_MAX;
use super::events::Events;
use super::observation::Observation;
use super::outbox::Outboxes;
use super::outputs::Outputs;
use super::rooms::Rooms;
use super::sessions::Sessions;
use super::stages::{self, Stages, stamp_every};
use super::timers::{Target, TimedSession};
use super::turn::Turn;
use super::undelivered::Undelivered;
use crate::host::{Host, Surroundings};
use crate::ids::{ConnectionId, Slot};
use crate::node::NodeState;
use crate::node::memory::WorkerMemory;
use crate::node::metrics::Row;
use crate::settings::EngineSettings;
use crate::timeline::Timelines;
use crate::timer::TimerWheel;
use crate::workers::WorkerId;

/// Greatest number of log lines about single clients that one worker writes in a second.
const CLIENT_LOGS_PER_SECOND: u32 = 50;

/// State that all parts of the engine share.
#[derive(Debug)]
pub struct Core {
    /// The number of the worker.
    pub id: WorkerId,
    /// The state that the engines of all workers share.
    pub node: Arc<NodeState>,
    pub(crate) host: Arc<dyn Host>,
    /// The settings in force.
    pub settings: Arc<EngineSettings>,
    /// The time of the current turn and the work that is left to it.
    pub turn: Turn,
    /// The sessions of the worker.
    pub sessions: Sessions,
    /// Output for the clients of the worker.
    pub outputs: Outputs,
    /// Changes for the storage.
    pub durable: Durable,
    /// Changes of queue capacity that other workers are notified of at the end of the turn.
    pub rooms: Rooms,
    /// The memory level as this worker knows it, and the growth of its sessions.
    pub memory: WorkerMemory,
    /// Mail for the other workers.
    pub outboxes: Outboxes,
    /// Events that are not published yet.
    pub events: Events,
    /// The dropped and refused messages, by reason, client and topic.
    pub undelivered: Undelivered,
    /// The timers of the worker.
    pub timers: TimerWheel<Target>,
    /// The last events of the clients.
    pub timelines: Timelines,
    /// Encoded frames of the message that is routed now.
    pub frames: FrameCache,
    /// The stamped messages.
    pub stages: Stages,
    /// What is counted by topic.
    pub observation: Observation,
    random_state: u64,
    /// Start of the current second, and the number of log lines about single clients since then.
    log_lines: (Time, u32),
}

impl Core {
    pub(crate) fn new(
        id: WorkerId,
        node: &Arc<NodeState>,
        settings: Arc<EngineSettings>,
        surroundings: Surroundings,
    ) -> Self {
        let Surroundings { host, now } = surroundings;
        let mut memory = WorkerMemory::default();
        memory.set_limit(settings.memory_bytes, node.workers());
        let turn = Turn::new(now, Arc::clone(&host));
        let every = settings.stamp_every;
        let mut core = Self {
            id,
            settings,
            turn,
            sessions: Sessions::default(),
            outputs: Outputs::default(),
            durable: Durable::default(),
            rooms: Rooms::new(id, Arc::clone(node)),
            memory,
            outboxes: Outboxes::new(Arc::clone(node)),
            events: Events::default(),
            undelivered: Undelivered::default(),
            timers: TimerWheel::new(now),
            timelines: Timelines::default(),
            frames: FrameCache::default(),
            random_state: node.identity
                ^ (id.index() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            log_lines: (now, 0),
            node: Arc::clone(node),
            host,
            stages: Stages::default(),
            observation: Observation::default(),
        };
        stamp_every(&mut core, every);
        core.observation.set_metrics(node.topic_metrics.current());
        core
    }

    /// The counters of this worker.
    #[inline]
    pub fn row(&self) -> &Row {
        self.node.metrics.row(self.id.index())
    }

    /// Calls a session with its output buffer, then records the changes of the session, counts sent
    /// and dropped messages, publishes the capacity of its queue and lists its connection to be
    /// written at the end of the turn.
    pub fn with<R>(&mut self, slot: Slot, act: impl FnOnce(&mut Session, &mut Output) -> R) -> R {
        self.prepare_call(slot);
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        let result = act(&mut client.session, self.outputs.buffer(connection));
        self.collect(slot);
        if let Some(key) = connection {
            self.outputs.wrote(key);
        }
        result
    }

    /// Number of log lines about single clients that were requested in the current second.
    #[cfg(any(test, feature = "testing"))]
    pub const fn log_lines_mut(&mut self) -> &mut u32 {
        &mut self.log_lines.1
    }

    /// Writes the last packet of a session to its connection, which waits for no change of the
    /// storage. The changes of the session are recorded when the connection is lost.
    pub fn write_last_packet(&mut self, slot: Slot, act: impl FnOnce(&mut Session, &mut Output)) {
        let client = &mut self.sessions[slot];
        let out = self.outputs.buffer(client.connection);
        act(&mut client.session, out);
    }

    /// Submits the changes of the turn and holds the outputs that depend on them; false if the
    /// storage thread has no room, and then nothing that depends on the changes may be sent.
    pub fn settle(&mut self) -> bool {
        let Some(journal) = &mut self.durable.journal else {
            return true;
        };
        journal.set_now(self.turn.now);
        // The clock is recorded first, so that a restart after a change of the clock does not treat
        // acknowledged messages as expired.
        if journal.has_changes()
            && let Some(note) = self.node.wall.note_if_due(self.turn.now)
        {
            journal.push(&Change::Clock(note));
        }
        let ticket = journal.submit();
        let durable = journal.durable();
        let turns = &mut self.durable.turns;
        if let Some(ticket) = ticket {
            turns.submitted(ticket);
        }
        let is_safe = turns.is_empty() && ticket.is_some_and(|ticket| ticket <= durable);
        let turn = (!is_safe).then_some(turns.current());
        let connections = self.outputs.settle(turn);
        for connection in &connections {
            self.limit_held(*connection);
            if self.outputs[connection.key].is_followed {
                stages::held(self, *connection);
            }
        }
        if !connections.is_empty() {
            self.durable.turns.push(ticket, connections);
        }
        if ticket.is_some() && !std::mem::replace(&mut self.durable.taken_over, true) {
            self.node.taken_over.fetch_add(1, Ordering::AcqRel);
        }
        ticket.is_some()
    }

    /// Applies the output limit to a connection whose output waits for the storage.
    fn limit_held(&mut self, connection: ConnectionId) {
        let is_over = self.outputs[connection.key].waiting() > self.settings.output_bytes;
        let session = self.outputs.session(connection);
        if let Some(slot) = session.filter(|_| is_over) {
            self.congest(connection.key, slot);
        }
    }

    /// Whether changes, held output or recovered messages wait for the end of a turn.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        self.durable.has_changes()
            || self.outputs.are_depending()
            || self.durable.recovered.is_waiting()
    }

    /// Records that the will of a client was taken from its session.
    pub fn will_taken(&mut self, slot: Slot) {
        self.record_steps(slot);
        let client = &mut self.sessions[slot];
        let rare = client.rare.as_deref_mut();
        if rare.is_some_and(|rare| std::mem::take(&mut rare.is_kept_for_will)) {
            let session = client.session.id();
            self.durable.forget_session(session);
        }
    }

    /// Arms a timer if the next deadline of the session is before the armed one.
    pub fn arm(&mut self, slot: Slot) {
        let soon = self.turn.now.plus(TIMER_MAX);
        let client = &mut self.sessions[slot];
        if let Some(deadline) = client.session.next_deadline()
            && deadline.min(soon) < client.armed
        {
            client.armed = deadline.min(soon);
            let timed = TimedSession::new(slot, &client.session);
            self.timers.insert(client.armed, Target::Session(timed));
        }
    }

    /// Arms a timer of the session for that time.
    pub fn arm_at(&mut self, slot: Slot, then: Time) {
        let client = &mut self.sessions[slot];
        client.armed = then;
        let timed = TimedSession::new(slot, &client.session);
        self.timers.insert(then, Target::Session(timed));
    }

    /// Whether durable sessions store a message that is published with this quality of service.
    #[inline]
    pub(crate) fn is_kept(&self, published: QoS) -> bool {
        self.settings.delivered_qos(published, QoS::ExactlyOnce) != QoS::AtMostOnce
    }

    /// Returns a message that this worker may store: a copy if another worker owns the message and
    /// has not stored it.
    pub fn own_copy(&self, message: &Arc<Message>) -> Arc<Message> {
        let qos = self.settings.delivered_qos(message.qos(), QoS::ExactlyOnce);
        self.durable.own_copy(message, qos)
    }

    /// Returns a pseudo-random number, which is evenly distributed but predictable.
    pub const fn random(&mut self) -> u64 {
        // SplitMix64.
        self.random_state = self.random_state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random_state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Whether one more line about a single client may be logged in this second.
    pub fn may_log(&mut self) -> bool {
        let (since, count) = &mut self.log_lines;
        if self.turn.now.since(*since) >= Duration::from_secs(1) {
            *since = self.turn.now;
            *count = 0;
        }
        *count += 1;
        *count <= CLIENT_LOGS_PER_SECOND
    }
}

/// Releases the outputs whose changes are durable.
pub fn release_safe(core: &mut Core) {
    let Some(journal) = &mut core.durable.journal else {
        return;
    };
    journal.set_now(core.turn.now);
    let durable = journal.durable();
    while let Some(turn) = core.durable.turns.pop_safe(durable) {
        for connection in turn.connections {
            release(core, connection, turn.number);
        }
    }
}

fn release(core: &mut Core, connection: ConnectionId, turn: u64) {
    if core.outputs.release(connection, turn) {
        stages::released(core, connection);
    }
}
