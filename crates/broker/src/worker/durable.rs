//! The durable part of a turn: changes are handed in before mail and output leave, and what rests on them waits.

use std::collections::HashMap;
use std::sync::Arc;

use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::server::Handshake;
use thrum_protocol::{Message, Outgoing, Time, Violation};
use thrum_routing::FilterId;
use thrum_storage::{Change, Health, Ticket};

use super::Worker;
use crate::durable::{Answers, Journal, Origin, Restored, Turn, Turns};
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::node::WorkerId;

/// What a worker keeps about its turns; idle on a node without storage.
#[derive(Debug)]
pub(crate) struct DurableTurn {
    pub(super) turns: Turns,
    /// Workers that were sent something in this turn which must be safe before it is acknowledged.
    asks: u64,
    /// Those among them that got something which came from another worker.
    passed_on: u64,
    /// How often one was asked, to tell whether something that follows asks.
    ask_count: u64,
    /// Questions of other workers in this turn.
    pub(super) answers: Vec<(WorkerId, u64)>,
    /// Sessions of this turn that hold messages until another worker has them.
    parked: Vec<u64>,
    /// The session that the messages of an ending one are parked with, and its last place.
    parking: Option<(u64, u64)>,
    /// Messages found parked at the start.
    pub(super) found_parked: Vec<Restored>,
    /// Filters of durable sessions, with how many of them want each.
    pub(super) filters: HashMap<FilterId, u32>,
    /// The health that was last logged.
    health: Health,
}

impl DurableTurn {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            turns: Turns::new(workers),
            asks: 0,
            passed_on: 0,
            ask_count: 0,
            answers: Vec::new(),
            parked: Vec::new(),
            parking: None,
            found_parked: Vec::new(),
            filters: HashMap::new(),
            health: Health::Healthy,
        }
    }
}

impl DurableTurn {
    /// Grows with each question to another worker.
    pub(super) fn asked_so_far(&self) -> u64 {
        self.ask_count
    }
}

impl Worker {
    /// Hands in the changes of the turn and holds back the outputs that rest on them; false if the storage thread
    /// has no room, and then nothing that rests on them may leave.
    pub(super) fn settle(&mut self) -> bool {
        let Some(journal) = &mut self.local.journal else {
            return true;
        };
        let now = self.local.now;
        journal.set_now(now);
        let ticket = journal.submit();
        let durable = journal.durable();
        if let Some(ticket) = ticket {
            self.durable.turns.submitted(ticket);
        }
        let passed_on = std::mem::take(&mut self.durable.passed_on);
        let asked = self.ask();
        self.answer(ticket, &asked, passed_on);
        let is_safe = asked.is_empty()
            && self.durable.turns.is_empty()
            && ticket.is_some_and(|ticket| ticket <= durable);
        let turn = self.durable.turns.at_hand();
        let connections = self.hold_depending((!is_safe).then_some(turn));
        let parked = std::mem::take(&mut self.durable.parked);
        if is_safe {
            self.turn_is_safe(&parked);
        } else if !(asked.is_empty() && connections.is_empty() && parked.is_empty()) {
            self.durable.turns.push(Turn {
                ticket,
                asked,
                connections,
                parked,
                ..Turn::default()
            });
        }
        self.send_answers(durable);
        ticket.is_some()
    }

    /// Questions of this turn will be answered when what came with them is safe.
    fn answer(&mut self, ticket: Option<Ticket>, asked: &[(WorkerId, u64)], passed_on: u64) {
        let to = std::mem::take(&mut self.durable.answers);
        if to.is_empty() {
            return;
        }
        let concerns = |(worker, _): &&(WorkerId, u64)| passed_on & worker.bit() != 0;
        let asked = asked.iter().filter(concerns).copied().collect();
        self.durable
            .turns
            .push_answers(Answers { ticket, asked, to });
    }

    fn send_answers(&mut self, durable: Ticket) {
        let from = self.local.id;
        for (worker, number) in self.durable.turns.take_answers(durable) {
            self.outboxes[worker.index()].push(Mail::Confirmed { from, number });
        }
    }

    /// A question to each worker that has to confirm something of this turn.
    fn ask(&mut self) -> Vec<(WorkerId, u64)> {
        let mut rest = std::mem::take(&mut self.durable.asks);
        let mut asked = Vec::new();
        while rest != 0 {
            let worker = WorkerId::new(u16::try_from(rest.trailing_zeros()).unwrap_or(0));
            rest &= rest - 1;
            let number = self.durable.turns.ask(worker);
            let from = self.local.id;
            self.outboxes[worker.index()].push(Mail::Confirm { from, number });
            asked.push((worker, number));
        }
        asked
    }

    /// The connections whose output rests on this turn; it is held if the turn waits.
    fn hold_depending(&mut self, turn: Option<u64>) -> Vec<(u32, u32)> {
        let mut held = Vec::new();
        let mut depending = std::mem::take(&mut self.local.depending);
        for key in depending.drain(..) {
            let Some(connection) = self.local.connections.get_mut(key as usize) else {
                continue;
            };
            if !std::mem::take(&mut connection.depends) {
                continue;
            }
            if let Some(turn) = turn {
                connection.hold(turn);
                held.push((key, connection.serial));
                self.limit_held(key);
            }
            self.local.mark_dirty(key);
        }
        self.local.depending = depending;
        held
    }

    /// A client whose output waits for the disk gets no more of it than one that is slow.
    fn limit_held(&mut self, key: u32) {
        let connection = &self.local.connections[key as usize];
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
            for (key, serial) in turn.connections {
                self.local.release(key, serial, turn.number);
            }
            self.turn_is_safe(&turn.parked);
        }
        self.send_answers(durable);
    }

    fn turn_is_safe(&mut self, parked: &[u64]) {
        for &session in parked {
            self.forget_session(session);
        }
        self.local.end_unit();
    }

    /// Handles something that came from another worker; whom it is passed on to is asked before the other is answered.
    pub(crate) fn passing_on(&mut self, handle: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.durable.asks);
        handle(self);
        self.durable.passed_on |= self.durable.asks;
        self.durable.asks |= before;
    }

    /// Changes wait for the end of a turn.
    pub(super) fn is_unsettled(&self) -> bool {
        let journal = self.local.journal.as_deref();
        journal.is_some_and(Journal::has_changes)
            || !self.local.depending.is_empty()
            || !self.durable.answers.is_empty()
    }

    /// The storage thread has no room: nothing more is read from those who publish.
    pub(super) fn is_stuck(&self) -> bool {
        let journal = self.local.journal.as_deref();
        journal.is_some_and(Journal::is_stuck)
    }

    /// Grows with each change and with each question to another worker.
    #[inline]
    pub(super) fn durable_mark(&self) -> u64 {
        self.local.mark() + self.durable.ask_count
    }

    /// The workers get a message in this turn that they write down; its body must be there before.
    pub(crate) fn entrust(&mut self, workers: u64, message: &Message) {
        if let Some(journal) = &mut self.local.journal {
            journal.body(message);
            self.durable.asks |= workers;
            self.durable.ask_count += 1;
        }
    }

    /// A message that another worker has not written down gets a copy that can be: two workers never write the same one.
    pub(crate) fn own_copy(&self, message: &Arc<Message>) -> Arc<Message> {
        let is_written = message.stored_id() != 0 || message.publication().qos == QoS::AtMostOnce;
        if self.local.journal.is_none() || is_written {
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
    pub(super) fn begin_durable(&mut self, slot: u32, handshake: &Handshake) -> bool {
        let session = &mut self.local.clients[slot as usize].session;
        let was_durable = session.is_durable();
        let is_durable = self.local.journal.is_some() && handshake.session_expiry() > 0;
        if was_durable != is_durable {
            session.set_durable(is_durable);
            self.subscriptions_become(slot, is_durable);
        }
        was_durable
    }

    /// The session has its connection: what CONNACK says must be safe.
    pub(super) fn write_connected(&mut self, slot: u32, was_durable: bool) {
        let client = &self.local.clients[slot as usize];
        let (id, connection) = (client.session.id(), client.connection);
        let Some(journal) = &mut self.local.journal else {
            return;
        };
        if client.session.is_durable() {
            journal.session(&client.session, None);
            journal.will(&client.session);
        } else if was_durable {
            journal.push(&Change::SessionRemoved { session: id });
        } else if !journal.has_changes() {
            return;
        }
        self.local.depend(connection);
    }

    /// A durable session's record, when its connection has gone.
    pub(super) fn write_session(&mut self, slot: u32, away_since: Option<Time>) {
        let session = &self.local.clients[slot as usize].session;
        if session.is_durable()
            && let Some(journal) = &mut self.local.journal
        {
            journal.session(session, away_since);
        }
    }

    /// A session is over, with all that was its own.
    pub(super) fn forget_session(&mut self, session: u64) {
        self.durable.parking = None;
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

    /// The place that a message leaves which another worker gets. Those of an ending session are parked meanwhile.
    pub(crate) fn leaving(
        &mut self,
        from: Option<Origin>,
        outgoing: &mut Outgoing<'_>,
        group: u32,
    ) -> Option<Origin> {
        let from = from?;
        if !from.ends {
            return Some(from);
        }
        let journal = self.local.journal.as_mut()?;
        let node = &self.node;
        let parking = &mut self.durable.parking;
        let (session, last) = parking.get_or_insert_with(|| (node.next_session_id(), 0));
        *last += 1;
        let place = Origin {
            session: *session,
            seq: *last,
            ends: false,
        };
        if place.seq == 1 {
            journal.parking(place.session);
            self.durable.parked.push(place.session);
        }
        let group = node.interest.group_text(group).unwrap_or_default();
        journal.parked(place, outgoing.message(), &group);
        Some(place)
    }

    /// A will was published that another worker has to write down: until it has, a session without a client has it, so that
    /// a crash does not lose it.
    pub(super) fn park_will(&mut self, will: &Message) {
        if let Some(journal) = &mut self.local.journal {
            let session = self.node.next_session_id();
            journal.parking(session);
            let place = Origin {
                session,
                seq: 1,
                ends: false,
            };
            journal.parked(place, will, "");
            self.durable.parked.push(session);
        }
    }

    /// Messages found parked at the start are gone once all of them have a place.
    pub(super) fn parked_given_out(&mut self, session: u64) {
        self.durable.parked.push(session);
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
