//! What all parts of the engine work on: the sessions of the worker, what they have to say, and
//! what of that must survive a crash.

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
use super::outbox::Outboxes;
use super::outputs::Outputs;
use super::rooms::Rooms;
use super::sessions::Sessions;
use super::timers::{Target, TimedSession};
use super::turn::Turn;
use crate::host::{Host, Surroundings};
use crate::ids::{ConnectionId, Slot};
use crate::node::NodeState;
use crate::node::memory::WorkerMemory;
use crate::node::metrics::Row;
use crate::settings::EngineSettings;
use crate::timer::TimerWheel;
use crate::workers::WorkerId;

/// Log lines about single clients that one worker writes in a second.
const CLIENT_LOGS_PER_SECOND: u32 = 50;

/// See above.
#[derive(Debug)]
pub struct Core {
    /// The worker.
    pub id: WorkerId,
    /// What it shares with the engines of other workers.
    pub node: Arc<NodeState>,
    pub(crate) host: Arc<dyn Host>,
    /// The settings in force.
    pub settings: Arc<EngineSettings>,
    /// Now, and what the turn may still do.
    pub turn: Turn,
    /// The sessions of the worker.
    pub sessions: Sessions,
    /// What is to be sent to their clients.
    pub outputs: Outputs,
    /// What must survive a crash.
    pub durable: Durable,
    /// What other workers are to be told of the queues of sessions.
    pub rooms: Rooms,
    /// How short memory is.
    pub memory: WorkerMemory,
    /// Mail for the other workers.
    pub outboxes: Outboxes,
    /// Events that were not published yet.
    pub events: Events,
    /// The timers of the worker.
    pub timers: TimerWheel<Target>,
    /// Lent to the message at hand.
    pub frames: FrameCache,
    random_state: u64,
    /// Lines about single clients: in the second that began then, so many.
    lines: (Time, u32),
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
        Self {
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
            timers: TimerWheel::new(now),
            frames: FrameCache::default(),
            random_state: node.identity
                ^ (id.index() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            lines: (now, 0),
            node: Arc::clone(node),
            host,
        }
    }

    /// This worker's counters.
    #[inline]
    pub fn row(&self) -> &Row {
        self.node.metrics.row(self.id.index())
    }

    /// Lets a session of a client do something that it may write about, and does what has to follow
    /// that: its changes are written down, what it sent and dropped is counted, others see its
    /// queue, and its output leaves at the end of the turn.
    pub fn with<R>(&mut self, slot: Slot, act: impl FnOnce(&mut Session, &mut Output) -> R) -> R {
        self.lend(slot);
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        let result = act(&mut client.session, self.outputs.buffer(connection));
        self.collect(slot);
        if let Some(key) = connection {
            self.outputs.wrote(key);
        }
        result
    }

    /// Lines about single clients that were wanted in this second.
    #[cfg(any(test, feature = "testing"))]
    pub const fn lines_mut(&mut self) -> &mut u32 {
        &mut self.lines.1
    }

    /// The last that a session says to its connection: it waits for nothing. What the session did
    /// is written down when the connection is lost.
    pub fn say_last(&mut self, slot: Slot, act: impl FnOnce(&mut Session, &mut Output)) {
        let client = &mut self.sessions[slot];
        let out = self.outputs.buffer(client.connection);
        act(&mut client.session, out);
    }

    /// Hands in the changes of the turn and holds back the outputs that rest on them; false if the
    /// storage thread has no room, and then nothing that rests on them may leave.
    pub fn settle(&mut self) -> bool {
        let Some(journal) = &mut self.durable.journal else {
            return true;
        };
        journal.set_now(self.turn.now);
        // What is acknowledged must not be taken for expired because the clock was set meanwhile.
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
        let turn = (!is_safe).then_some(turns.at_hand());
        let connections = self.outputs.settle(turn);
        for connection in &connections {
            self.limit_held(*connection);
        }
        if !connections.is_empty() {
            self.durable.turns.push(ticket, connections);
        }
        if ticket.is_some() && !std::mem::replace(&mut self.durable.taken_over, true) {
            self.node.taken_over.fetch_add(1, Ordering::AcqRel);
        }
        ticket.is_some()
    }

    /// A client whose output waits for the disk gets no more of it than one that is slow.
    fn limit_held(&mut self, connection: ConnectionId) {
        let is_over = self.outputs[connection.key].waiting() > self.settings.output_bytes;
        let session = self.outputs.session(connection);
        if let Some(slot) = session.filter(|_| is_over) {
            self.congest(connection.key, slot);
        }
    }

    /// Changes wait for the end of a turn.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        self.durable.has_changes()
            || self.outputs.are_depending()
            || self.durable.found.is_waiting()
    }

    /// The will of a client was taken.
    pub fn will_taken(&mut self, slot: Slot) {
        self.note(slot);
        let client = &mut self.sessions[slot];
        let rare = client.rare.as_deref_mut();
        if rare.is_some_and(|rare| std::mem::take(&mut rare.is_kept_for_will)) {
            let session = client.session.id();
            self.durable.forget_session(session);
        }
    }

    /// Arms a timer if the session's next deadline is before what is armed.
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

    /// The session is looked at again then.
    pub fn arm_at(&mut self, slot: Slot, then: Time) {
        let client = &mut self.sessions[slot];
        client.armed = then;
        let timed = TimedSession::new(slot, &client.session);
        self.timers.insert(then, Target::Session(timed));
    }

    /// A message that is published so is kept on the disk by those who keep messages.
    #[inline]
    pub(crate) fn is_kept(&self, published: QoS) -> bool {
        self.settings.delivered_qos(published, QoS::ExactlyOnce) != QoS::AtMostOnce
    }

    /// A message that another worker has not written down gets a copy that can be.
    pub fn own_copy(&self, message: &Arc<Message>) -> Arc<Message> {
        let qos = self.settings.delivered_qos(message.qos(), QoS::ExactlyOnce);
        self.durable.own_copy(message, qos)
    }

    /// A number nobody can guess from outside is not needed here, only an even spread.
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
        let (since, count) = &mut self.lines;
        if self.turn.now.since(*since) >= Duration::from_secs(1) {
            *since = self.turn.now;
            *count = 0;
        }
        *count += 1;
        *count <= CLIENT_LOGS_PER_SECOND
    }
}
