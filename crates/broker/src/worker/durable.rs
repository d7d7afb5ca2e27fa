//! The durable part of a turn: changes are handed in before mail and output leave, and what rests
//! on them waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::server::{GroupId, Handshake};
use thrum_protocol::{Message, Outgoing, Time, Violation};
use thrum_routing::FilterId;
use thrum_storage::{Change, Health};

use super::Worker;
use super::restore::Found;
use crate::config::Wills;
use crate::durable::{Journal, Origin, Turns};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::workers::WorkerId;

/// How often the storage thread looks whether its folder was moved or removed: what is acknowledged
/// meanwhile, the next start would not find.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What a worker keeps about its turns; idle on a node without storage.
#[derive(Debug, Default)]
pub(crate) struct DurableTurn {
    turns: Turns,
    /// What this worker found at the start is with the storage thread.
    taken_over: bool,
    /// What was on its way between workers at the start.
    pub(super) found: Found,
    /// Filters of durable sessions, with how many of them want each.
    pub(super) filters: HashMap<FilterId, u32>,
    /// The health that was last logged.
    health: Health,
    /// When the storage thread was last told to look at its folder.
    looked: Time,
}

impl Worker {
    /// Hands in the changes of the turn and holds back the outputs that rest on them; false if the
    /// storage thread has no room, and then nothing that rests on them may leave.
    pub(super) fn settle(&mut self) -> bool {
        let Some(journal) = &mut self.local.journal else {
            return true;
        };
        journal.set_now(self.local.now);
        // What is acknowledged must not be taken for expired because the clock was set meanwhile.
        if journal.has_changes()
            && let Some(note) = self.node.clock.note_if_due(self.local.now)
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
        let connections = self.hold_depending(turn);
        if !connections.is_empty() {
            self.durable.turns.push(ticket, connections);
        }
        if ticket.is_some() && !std::mem::replace(&mut self.durable.taken_over, true) {
            self.node.taken_over.fetch_add(1, Ordering::AcqRel);
        }
        ticket.is_some()
    }

    /// The connections whose output rests on this turn; it is held if the turn waits.
    fn hold_depending(&mut self, turn: Option<u64>) -> Vec<ConnectionId> {
        let mut held = Vec::new();
        let mut depending = std::mem::take(&mut self.local.depending);
        for key in depending.drain(..) {
            let Some(connection) = self.local.connections.get_mut(key) else {
                continue;
            };
            if !std::mem::take(&mut connection.depends) {
                continue;
            }
            if let Some(turn) = turn {
                connection.hold(turn);
                held.push(connection.id(key));
                self.limit_held(key);
            }
            self.local.mark_dirty(key);
        }
        self.local.depending = depending;
        held
    }

    /// A client whose output waits for the disk gets no more of it than one that is slow.
    fn limit_held(&mut self, key: ConnectionKey) {
        let connection = &self.local.connections[key];
        if connection.waiting() > self.local.settings.output_bytes
            && let Some(slot) = connection.session()
        {
            self.local.congest(key, slot);
        }
    }

    /// Lets go of what is safe by now.
    pub(super) fn release_safe(&mut self) {
        let Some(journal) = &mut self.local.journal else {
            return;
        };
        journal.set_now(self.local.now);
        let durable = journal.durable();
        while let Some(turn) = self.durable.turns.pop_safe(durable) {
            for connection in turn.connections {
                self.local.release(connection, turn.number);
            }
        }
    }

    /// Changes wait for the end of a turn.
    pub(super) fn is_unsettled(&self) -> bool {
        let journal = self.local.journal.as_deref();
        journal.is_some_and(Journal::has_changes)
            || !self.local.depending.is_empty()
            || self.durable.found.is_waiting()
    }

    /// The storage thread has no room: nothing more is read from those who publish.
    pub(super) fn is_stuck(&self) -> bool {
        let journal = self.local.journal.as_deref();
        journal.is_some_and(Journal::is_stuck)
    }

    /// A place for a message that another worker gets for its durable sessions.
    pub(crate) fn place_to(&mut self, worker: WorkerId, message: &Message) -> Option<Origin> {
        let journal = self.local.journal.as_mut()?;
        Some(journal.place_to(worker, message))
    }

    /// A message that another worker has not written down gets a copy that can be: two workers
    /// never write the same one.
    pub(crate) fn own_copy(&self, message: &Arc<Message>) -> Arc<Message> {
        let qos = self.local.delivered_qos(message.qos(), QoS::ExactlyOnce);
        let is_written = message.stored_id() != 0;
        if self.local.journal.is_none() || is_written || qos == QoS::AtMostOnce {
            return Arc::clone(message);
        }
        Arc::new(message.copy_unstored())
    }

    /// Whether a client may have a session that survives a crash.
    pub(super) fn may_keep(&self, handshake: &Handshake, exists: bool) -> Result<(), Violation> {
        let Some(journal) = self.local.journal.as_deref() else {
            return Ok(());
        };
        if handshake.session_expiry() == 0 {
            return Ok(());
        }
        match journal.health() {
            Health::Healthy => Ok(()),
            Health::Full if exists => Ok(()),
            Health::Full => {
                self.local.row().add(Counter::StorageRefused, 1);
                let what = "the broker's disk is full: it cannot keep a new session";
                Err(Violation::new(ReasonCode::QuotaExceeded, what))
            }
            Health::Failing => {
                self.local.row().add(Counter::StorageRefused, 1);
                let what = "the broker cannot write to its disk";
                Err(Violation::new(ReasonCode::ServerUnavailable, what))
            }
        }
    }

    /// No room is left for more state.
    pub(crate) fn is_disk_full(&self) -> bool {
        let journal = self.local.journal.as_deref();
        journal.is_some_and(|journal| journal.health() == Health::Full)
    }

    /// A connection is about to use the session; whether it was durable up to now.
    pub(super) fn begin_durable(&mut self, slot: Slot, handshake: &Handshake) -> bool {
        let session = &mut self.local.clients[slot].session;
        let was_durable = session.is_durable();
        let is_durable = self.local.journal.is_some() && handshake.session_expiry() > 0;
        if was_durable != is_durable {
            session.set_durable(is_durable);
            self.subscriptions_become(slot, is_durable);
        }
        was_durable
    }

    /// The session has its connection: what CONNACK says must be safe.
    pub(super) fn write_connected(&mut self, slot: Slot, was_durable: bool) {
        let client = &self.local.clients[slot];
        let (id, connection) = (client.session.id(), client.connection);
        let Some(journal) = &mut self.local.journal else {
            return;
        };
        if client.session.is_durable() {
            journal.session(&client.session, client.owner(), None);
            journal.will(&client.session);
        } else if was_durable {
            journal.push(&Change::SessionRemoved { session: id });
        }
        self.keep_will(slot);
        let journal = self.local.journal.as_deref();
        if let Some(key) = connection
            && journal.is_some_and(Journal::has_changes)
        {
            self.local.depend(key);
        }
    }

    /// A session that ends with its connection is written down if it has a will, which must be
    /// published also when the node ends first. [MQTT-3.1.2-8] [MQTT3-3.1.2-8]
    fn keep_will(&mut self, slot: Slot) {
        let client = &mut self.local.clients[slot];
        let Some(journal) = &mut self.local.journal else {
            return;
        };
        let is_wanted = self.local.settings.wills == Wills::All && !client.session.is_durable();
        if !is_wanted || client.session.will().is_none() {
            return;
        }
        if journal.health() != Health::Healthy {
            // Such a client needs the disk for nothing else, so it comes in without.
            self.local.row().add(Counter::StorageRefused, 1);
            return;
        }
        journal.session(&client.session, client.owner(), None);
        journal.will(&client.session);
        client.rare_mut().is_kept_for_will = true;
    }

    /// The will of a client was taken.
    pub(super) fn will_taken(&mut self, slot: Slot) {
        self.local.note(slot);
        let client = &mut self.local.clients[slot];
        let rare = client.rare.as_deref_mut();
        if rare.is_some_and(|rare| std::mem::take(&mut rare.is_kept_for_will)) {
            let session = client.session.id();
            self.forget_session(session);
        }
    }

    /// A durable session's record, when its connection has gone.
    pub(super) fn write_session(&mut self, slot: Slot, away_since: Option<Time>) {
        let client = &self.local.clients[slot];
        if client.session.is_durable()
            && let Some(journal) = &mut self.local.journal
        {
            journal.session(&client.session, client.owner(), away_since);
        }
    }

    /// A session is over, with all that was its own.
    pub(super) fn forget_session(&mut self, session: u64) {
        if let Some(journal) = &mut self.local.journal {
            journal.push(&Change::SessionRemoved { session });
        }
    }

    /// A message of a shared group has left its place.
    pub(crate) fn moved(&mut self, from: Option<Origin>) {
        if let (Some(journal), Some(from)) = (&mut self.local.journal, from) {
            journal.moved(from);
        }
    }

    /// The place that a message of a shared group leaves when another worker's member gets it. What
    /// has none, or one that ends with its session, gets one if it must survive a crash.
    pub(crate) fn leaving(
        &mut self,
        from: Option<Origin>,
        is_kept: bool,
        outgoing: &mut Outgoing<'_>,
        group: GroupId,
    ) -> Option<Origin> {
        let needs_place = from.map_or(is_kept, |from| from.ends);
        if !needs_place {
            return from;
        }
        let group = self.node.interest.group_text(group).unwrap_or_default();
        let journal = self.local.journal.as_mut()?;
        Some(journal.place_shared(outgoing.message(), &group))
    }

    /// Writes down that the wall clock was set, also when nothing else happens. One worker does it
    /// for all.
    pub(super) fn watch_clock(&mut self) {
        if self.local.id == WorkerId::new(0)
            && let Some(journal) = &mut self.local.journal
            && let Some(note) = self.node.clock.note_if_due(self.local.now)
        {
            journal.push(&Change::Clock(note));
        }
    }

    /// Writes down the time at which the node ends: the next start goes on from there, whatever its
    /// clock shows.
    pub(super) fn note_end(&mut self) {
        if self.local.id == WorkerId::new(0)
            && let Some(journal) = &mut self.local.journal
        {
            let note = self.node.clock.note(self.local.now);
            journal.push(&Change::Clock(note));
        }
    }

    /// Removes expired retained messages, from the disk too.
    pub(super) fn sweep_retained(&mut self) {
        let mut removed = Vec::new();
        self.node.retained.sweep(self.local.now, &mut removed);
        if let Some(journal) = &mut self.local.journal {
            for (change, message) in &removed {
                let topic = message.topic();
                journal.push(&Change::RetainedRemoved {
                    change: *change,
                    topic,
                });
            }
        }
    }

    /// Says when the disk begins to refuse, and when it stops.
    pub(super) fn watch_storage(&mut self) {
        let Some(journal) = self.local.journal.as_deref() else {
            return;
        };
        if self.local.id == WorkerId::new(0)
            && self.local.now.since(self.durable.looked) >= LOOK_INTERVAL
        {
            self.durable.looked = self.local.now;
            journal.look();
        }
        let health = journal.health();
        if health == self.durable.health {
            return;
        }
        self.durable.health = health;
        let failure = journal.failure().unwrap_or_default();
        match health {
            Health::Healthy => tracing::info!("storage works again: acknowledgements go on"),
            Health::Full => tracing::error!(
                "storage is full (storage.max_disk, or the disk): new durable sessions, messages for them and retained \
                 messages are refused (0x97) until space is free; take messages, purge sessions or add space"
            ),
            Health::Failing => tracing::error!(
                failure,
                "storage cannot write: nothing durable is acknowledged until it can; it is tried again several times a second"
            ),
        }
    }
}

/// Whether the answer says that something is safe.
pub(super) fn rests_on_changes(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        Packet::PubRec(_) | Packet::PubRel(_) | Packet::Subscribe(_) | Packet::Unsubscribe(_) => {
            true
        }
        _ => false,
    }
}
