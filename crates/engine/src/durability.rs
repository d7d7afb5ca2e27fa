//! The durable part of a turn: changes are handed in before mail and output leave, and what rests
//! on them waits.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::topic::TopicFilter;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::server::{GroupId, Handshake, Session};
use thrum_protocol::{Message, Outgoing, Time, Violation};
use thrum_storage::{Change, Health, Retained, Subscription};

use super::client::Client;
use super::outputs::Outputs;
use super::restore::Found;
use super::subscriber::Terms;
use crate::durable::{Journal, Origin, PassedTo, Turns};
use crate::interest::Interest;
use crate::node::WallClock;
use crate::node::metrics::{Counter, Row};
use crate::retained::{RetainedSource, RetainedStore};
use crate::settings::EngineSettings;
use crate::sinks::{Sink, SinkPlace};
use crate::workers::WorkerId;

/// How often the storage thread looks whether its folder was moved or removed: what is acknowledged
/// meanwhile, the next start would not find.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What a worker writes down and waits for; idle on a node without storage.
#[derive(Debug, Default)]
pub struct Durable {
    /// None on a node without storage.
    pub journal: Option<Box<Journal>>,
    pub(super) turns: Turns,
    /// What this worker found at the start is with the storage thread.
    pub(super) taken_over: bool,
    /// What was on its way between workers at the start.
    pub(super) found: Found,
    /// The message at hand was on its way to those sessions before a crash: no others get it.
    pub(super) only: Option<PassedTo>,
    /// The health that was last logged.
    health: Health,
    /// When the storage thread was last told to look at its folder.
    looked: Time,
}

impl Durable {
    /// Changes written so far, to tell whether something that follows writes one.
    #[inline]
    pub fn mark(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.mark())
    }

    /// What happened up to now belongs together.
    #[inline]
    pub fn end_unit(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.end_unit();
        }
    }

    /// There are changes that were not handed in.
    #[inline]
    pub fn has_changes(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::has_changes)
    }

    /// The storage thread has no room: nothing more is read from those who publish.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::is_stuck)
    }

    /// No room is left for more state.
    #[inline]
    pub fn is_disk_full(&self) -> bool {
        let journal = self.journal.as_deref();
        journal.is_some_and(|journal| journal.health() == Health::Full)
    }

    /// A place for a message that another worker gets for its durable sessions.
    pub fn place_to(&mut self, worker: WorkerId, message: &Message) -> Option<Origin> {
        let journal = self.journal.as_mut()?;
        Some(journal.place_to(worker, message))
    }

    /// A place for a message that a sink gets.
    pub(super) fn place_for_sink(
        &mut self,
        sink: &Sink,
        message: &Message,
        new_lane: impl Fn() -> u64,
    ) -> Option<SinkPlace> {
        let journal = self.journal.as_mut()?;
        Some(journal.place_for_sink(sink, message, new_lane))
    }

    /// A message of a shared group has left its place.
    pub fn moved(&mut self, from: Option<Origin>) {
        if let (Some(journal), Some(from)) = (&mut self.journal, from) {
            journal.moved(from);
        }
    }

    /// The place that a message of a shared group leaves when another worker's member gets it. What
    /// has none, or one that ends with its session, gets one if it must survive a crash.
    pub fn leaving(
        &mut self,
        from: Option<Origin>,
        outgoing: &mut Outgoing<'_>,
        group: GroupId,
        interest: &Interest,
    ) -> Option<Origin> {
        let needs_place = from.is_none_or(|from| from.ends);
        if !needs_place {
            return from;
        }
        let journal = self.journal.as_mut()?;
        Some(journal.place_shared(outgoing.message(), group, interest))
    }

    /// A session is over, with all that was its own.
    pub fn forget_session(&mut self, session: u64) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Change::SessionRemoved { session });
        }
    }

    /// Lets go of what is safe by now.
    pub fn release_safe(&mut self, now: Time, outputs: &mut Outputs) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        journal.set_now(now);
        let durable = journal.durable();
        while let Some(turn) = self.turns.pop_safe(durable) {
            for connection in turn.connections {
                outputs.release(connection, turn.number);
            }
        }
    }

    /// A message that another worker has not written down gets a copy that can be: two workers
    /// never write the same one. `qos` is the highest one that it is delivered with.
    pub fn own_copy(&self, message: &Arc<Message>, qos: QoS) -> Arc<Message> {
        let is_written = message.stored_id() != 0;
        if self.journal.is_none() || is_written || qos == QoS::AtMostOnce {
            return Arc::clone(message);
        }
        Arc::new(message.copy_unstored())
    }

    /// Whether a client may have a session that survives a crash.
    pub fn may_keep(
        &self,
        handshake: &Handshake,
        exists: bool,
        row: &Row,
    ) -> Result<(), Violation> {
        let Some(journal) = self.journal.as_deref() else {
            return Ok(());
        };
        if handshake.session_expiry() == 0 {
            return Ok(());
        }
        match journal.health() {
            Health::Healthy => Ok(()),
            Health::Full if exists => Ok(()),
            Health::Full => {
                row.add(Counter::StorageRefused, 1);
                let what = "the broker's disk is full: it cannot keep a new session";
                Err(Violation::new(ReasonCode::QuotaExceeded, what))
            }
            Health::Failing => {
                row.add(Counter::StorageRefused, 1);
                let what = "the broker cannot write to its disk";
                Err(Violation::new(ReasonCode::ServerUnavailable, what))
            }
        }
    }

    /// The session has its connection: what CONNACK says must be safe, if that is true.
    pub fn write_connected(
        &mut self,
        client: &mut Client,
        was_durable: bool,
        settings: &EngineSettings,
        row: &Row,
    ) -> bool {
        let Some(journal) = &mut self.journal else {
            return false;
        };
        if client.session.is_durable() {
            journal.session(&client.session, client.owner(), None);
            journal.will(&client.session);
        } else if was_durable {
            let session = client.session.id();
            journal.push(&Change::SessionRemoved { session });
        }
        if settings.keeps_all_wills && !client.session.is_durable() {
            self.keep_will(client, row);
        }
        self.has_changes()
    }

    /// A session that ends with its connection is written down if it has a will, which must be
    /// published also when the node ends first. [MQTT-3.1.2-8] [MQTT3-3.1.2-8]
    fn keep_will(&mut self, client: &mut Client, row: &Row) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        if client.session.will().is_none() {
            return;
        }
        if journal.health() != Health::Healthy {
            // Such a client needs the disk for nothing else, so it comes in without.
            row.add(Counter::StorageRefused, 1);
            return;
        }
        journal.session(&client.session, client.owner(), None);
        journal.will(&client.session);
        client.rare_mut().is_kept_for_will = true;
    }

    /// A durable session's record, when its connection has gone.
    pub fn write_session(&mut self, client: &Client, away_since: Option<Time>) {
        if client.session.is_durable()
            && let Some(journal) = &mut self.journal
        {
            journal.session(&client.session, client.owner(), away_since);
        }
    }

    /// A durable session has a subscription, or has it with other terms.
    pub(super) fn write_subscription(
        &mut self,
        session: &Session,
        filter: TopicFilter<'_>,
        terms: Terms,
    ) {
        if session.is_durable()
            && let Some(journal) = &mut self.journal
        {
            journal.push(&Change::Subscription(Subscription {
                session: session.id(),
                filter: filter.as_str(),
                options: terms.options,
                identifier: terms.identifier,
                owed: None,
            }));
        }
    }

    /// A durable session gave a subscription up.
    pub(super) fn write_unsubscribed(&mut self, session: &Session, filter: TopicFilter<'_>) {
        if session.is_durable()
            && let Some(journal) = &mut self.journal
        {
            journal.push(&Change::SubscriptionRemoved {
                session: session.id(),
                filter: filter.as_str(),
            });
        }
    }

    /// Writes down that the wall clock was set, also when nothing else happens.
    pub fn watch_clock(&mut self, clock: &WallClock, now: Time) {
        if let Some(journal) = &mut self.journal
            && let Some(note) = clock.note_if_due(now)
        {
            journal.push(&Change::Clock(note));
        }
    }

    /// Writes down the time at which the node ends: the next start goes on from there, whatever its
    /// clock shows.
    pub fn note_end(&mut self, clock: &WallClock, now: Time) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Change::Clock(clock.note(now)));
        }
    }

    /// The storage thread looks whether its folder was moved or removed.
    pub fn watch_folder(&mut self, now: Time) {
        if let Some(journal) = self.journal.as_deref()
            && now.since(self.looked) >= LOOK_INTERVAL
        {
            self.looked = now;
            journal.look();
        }
    }

    /// Removes expired retained messages, from the disk too.
    pub fn sweep_retained(&mut self, store: &RetainedStore, now: Time) {
        let mut removed = Vec::new();
        store.sweep(now, &mut removed);
        if let Some(journal) = &mut self.journal {
            for (change, message) in &removed {
                let topic = message.topic();
                journal.push(&Change::RetainedRemoved {
                    change: *change,
                    topic,
                });
            }
        }
    }

    /// Makes a message its topic's retained one; false if the limits leave no room.
    pub(super) fn retain_message(
        &mut self,
        store: &RetainedStore,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) -> bool {
        let stored = store.store(message, source.cloned());
        let topic = message.topic();
        if let (Some(journal), Some(change)) = (self.retained_journal(topic), stored.change) {
            if message.payload().is_empty() {
                journal.push(&Change::RetainedRemoved { change, topic });
            } else {
                let message = journal.body(message);
                journal.push(&Change::Retained(Retained {
                    change,
                    topic,
                    message,
                    source: source.map(|source| &**source.bytes()),
                }));
            }
        }
        stored.kept
    }

    /// A topic has no retained message any more.
    pub(super) fn forget_retained(&mut self, store: &RetainedStore, topic: &str) {
        let change = store.remove(topic);
        if let (Some(journal), Some(change)) = (self.retained_journal(topic), change) {
            journal.push(&Change::RetainedRemoved { change, topic });
        }
    }

    /// Where changes of what is retained for a topic are written, on a node with storage.
    fn retained_journal(&mut self, topic: &str) -> Option<&mut Journal> {
        // What the node says about itself is said anew after a start.
        let journal = self.journal.as_deref_mut();
        journal.filter(|_| !topic.starts_with("$SYS/"))
    }

    /// Says when the disk begins to refuse, and when it stops.
    pub fn watch_storage(&mut self) {
        let Some(journal) = self.journal.as_deref() else {
            return;
        };
        let health = journal.health();
        if health == self.health {
            return;
        }
        self.health = health;
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
