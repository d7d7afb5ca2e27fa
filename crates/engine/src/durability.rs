//! The durable part of a turn: changes are submitted before mail and output are sent, and output
//! that depends on them waits.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::topic::TopicFilter;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::server::{GroupId, Handshake, Session};
use thrum_protocol::{Message, Outgoing, Time, Violation};
use thrum_storage::{Change, Health, Retained, Subscription};

use super::client::Client;
use super::restore::RecoveredTransfers;
use super::subscriber::Terms;
use crate::durable::{Journal, Origin, PassedTo, Turns};
use crate::interest::Interest;
use crate::node::WallClock;
use crate::node::metrics::{Counter, Row};
use crate::retained::{RetainedSource, RetainedStore};
use crate::settings::EngineSettings;
use crate::sinks::{Sink, SinkPlace};
use crate::workers::WorkerId;

/// Interval in which the storage thread checks whether its directory was moved or removed: the next
/// start would not find messages that are acknowledged after that.
const DIRECTORY_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The changes that a worker submits to the storage, and the turns that wait for them; unused on a
/// node without storage.
#[derive(Debug, Default)]
pub struct Durable {
    /// Changes of the current turn; none on a node without storage.
    pub journal: Option<Box<Journal>>,
    pub(super) turns: Turns,
    /// The state that this worker restored at the start has been submitted to the storage thread.
    pub(super) taken_over: bool,
    /// Messages that were in transit between workers when the node ended.
    pub(super) recovered: RecoveredTransfers,
    /// The receivers of the recovered message that is delivered now; none for other messages.
    pub(super) receivers: Option<PassedTo>,
    /// The health of the storage that was last logged.
    health: Health,
    /// Time of the last check of the storage directory.
    directory_checked: Time,
}

impl Durable {
    /// Number of changes recorded so far, to detect whether a following call records one.
    #[inline]
    pub fn mark(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.mark())
    }

    /// Ends a unit: the storage restores all changes since the previous unit or none.
    #[inline]
    pub fn end_unit(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.end_unit();
        }
    }

    /// Whether there are changes that are not submitted.
    #[inline]
    pub fn has_changes(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::has_changes)
    }

    /// Whether the storage thread has no room, so that publishers are not read.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::is_stuck)
    }

    /// Whether the storage is full and accepts no additional state.
    #[inline]
    pub fn is_disk_full(&self) -> bool {
        let journal = self.journal.as_deref();
        journal.is_some_and(|journal| journal.health() == Health::Full)
    }

    /// Stores a message that is sent to another worker for its durable sessions, and returns its
    /// place.
    pub fn place_to(&mut self, worker: WorkerId, message: &Message) -> Option<Origin> {
        let journal = self.journal.as_mut()?;
        Some(journal.place_to(worker, message))
    }

    /// Stores a message for a sink, and returns its place.
    pub(super) fn place_for_sink(
        &mut self,
        sink: &Sink,
        message: &Message,
        new_lane: impl Fn() -> u64,
    ) -> Option<SinkPlace> {
        let journal = self.journal.as_mut()?;
        Some(journal.place_for_sink(sink, message, new_lane))
    }

    /// Removes a message from its place.
    pub fn moved(&mut self, from: Option<Origin>) {
        if let (Some(journal), Some(from)) = (&mut self.journal, from) {
            journal.moved(from);
        }
    }

    /// Returns the place of a message of a shared group that is sent to a member on another worker.
    /// A message without a place, or with one that ends with its session, receives a place if the
    /// node has storage.
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

    /// Removes a session and all of its state from the storage.
    pub fn forget_session(&mut self, session: u64) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Change::SessionRemoved { session });
        }
    }

    /// Returns a message that this worker may store: a copy if the message is not stored, as two
    /// workers never store the same message. `qos` is the highest quality of service of its
    /// deliveries.
    pub fn own_copy(&self, message: &Arc<Message>, qos: QoS) -> Arc<Message> {
        let is_written = message.stored_id() != 0;
        if self.journal.is_none() || is_written || qos == QoS::AtMostOnce {
            return Arc::clone(message);
        }
        Arc::new(message.copy_unstored())
    }

    /// Checks whether the storage accepts the session of a client.
    ///
    /// # Errors
    /// The session is durable, and the storage is full or cannot be written.
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

    /// Records a session that has received its connection; true if the CONNACK depends on changes.
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

    /// Records a session that ends with its connection if it has a will, which must be published
    /// also when the node ends first. [MQTT-3.1.2-8] [MQTT3-3.1.2-8]
    fn keep_will(&mut self, client: &mut Client, row: &Row) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        if client.session.will().is_none() {
            return;
        }
        if journal.health() != Health::Healthy {
            // Such a client needs the storage for nothing else, so it is admitted without.
            row.add(Counter::StorageRefused, 1);
            return;
        }
        journal.session(&client.session, client.owner(), None);
        journal.will(&client.session);
        client.rare_mut().is_kept_for_will = true;
    }

    /// Records a durable session whose connection has ended.
    pub fn write_session(&mut self, client: &Client, away_since: Option<Time>) {
        if client.session.is_durable()
            && let Some(journal) = &mut self.journal
        {
            journal.session(&client.session, client.owner(), away_since);
        }
    }

    /// Records a new or changed subscription of a durable session.
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

    /// Records the end of a subscription of a durable session.
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

    /// Records a change of the wall clock, also if there are no other changes.
    pub fn watch_clock(&mut self, clock: &WallClock, now: Time) {
        if let Some(journal) = &mut self.journal
            && let Some(note) = clock.note_if_due(now)
        {
            journal.push(&Change::Clock(note));
        }
    }

    /// Records the time at which the node ends: the next start continues from that time, whatever
    /// its clock shows.
    pub fn note_end(&mut self, clock: &WallClock, now: Time) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Change::Clock(clock.note(now)));
        }
    }

    /// Has the storage thread check whether its directory was moved or removed.
    pub fn watch_folder(&mut self, now: Time) {
        if let Some(journal) = self.journal.as_deref()
            && now.since(self.directory_checked) >= DIRECTORY_CHECK_INTERVAL
        {
            self.directory_checked = now;
            journal.check_directory();
        }
    }

    /// Removes expired retained messages from the store and from the storage.
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

    /// Stores a message as the retained message of its topic; false if the limits leave no room.
    /// `now` is the time of publication.
    pub fn retain_message(
        &mut self,
        store: &RetainedStore,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
        now: Time,
    ) -> bool {
        let stored = store.store(message, source.cloned(), now);
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

    /// Removes the retained message of a topic; false if there was none.
    pub fn forget_retained(&mut self, store: &RetainedStore, topic: &str) -> bool {
        let change = store.remove(topic);
        if let (Some(journal), Some(change)) = (self.retained_journal(topic), change) {
            journal.push(&Change::RetainedRemoved { change, topic });
        }
        change.is_some()
    }

    /// The journal for the retained message of a topic; none without storage and for `$SYS` topics.
    fn retained_journal(&mut self, topic: &str) -> Option<&mut Journal> {
        // The node publishes its `$SYS` topics again after a start.
        let journal = self.journal.as_deref_mut();
        journal.filter(|_| !topic.starts_with("$SYS/"))
    }

    /// Logs changes of the health of the storage.
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
