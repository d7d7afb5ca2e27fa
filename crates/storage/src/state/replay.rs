//! Replays the records, oldest first, to the state.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::bodies::{Bodies, Found};
use super::collected::{Collected, Known, Own, Seen, Step, Subscribed, count};
use super::index::Index;
use super::print::{Print, record_len};
use super::recovered::{Orphans, Recovered, RecoveredMessage, RecoveredRetained};
use crate::record::{
    Change, ClockNote, LogMillis, MessageId, Queued, Retained, Session, SessionId,
};

#[derive(Debug)]
struct Topic {
    change: u64,
    message: Option<MessageId>,
    source: Option<Arc<[u8]>>,
    len: u64,
}

impl Topic {
    fn removed(change: u64, payload: &[u8]) -> Self {
        Self {
            change,
            message: None,
            source: None,
            len: record_len(payload),
        }
    }
}

/// The state while its records are read.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    index: Index,
    sessions: HashMap<SessionId, Collected>,
    messages: Bodies,
    topics: HashMap<Box<str>, Topic>,
    /// Sources of retained messages, each once, because a client publishes many.
    sources: HashSet<Arc<[u8]>>,
    session_id_max: SessionId,
    message_id_max: MessageId,
    retained_change_max: u64,
    clock: Option<(ClockNote, Print)>,
    latest: LogMillis,
    reclaimed: Option<(u64, Print)>,
}

impl Replay {
    /// Applies the next record.
    pub(crate) fn apply(&mut self, change: &Change<'_>, payload: &[u8]) {
        match *change {
            Change::Session(session) => self.session(&session, payload),
            Change::SessionRemoved { session } => {
                self.session_id_max = self.session_id_max.max(session);
                self.sessions.remove(&session);
            }
            Change::Subscription(subscription) => {
                let subscribed = Subscribed {
                    options: subscription.options,
                    identifier: subscription.identifier,
                    owed: subscription.owed.map(Into::into),
                    print: self.index.print(payload),
                };
                let list = &mut self.collected(subscription.session).subscriptions;
                list.insert(subscription.filter.into(), subscribed);
            }
            Change::SubscriptionRemoved { session, filter } => {
                self.collected(session).subscriptions.remove(filter);
            }
            Change::Message(message) => {
                self.message_id_max = self.message_id_max.max(message.id);
                // A session that published a message may have ended, but its number must not be
                // reused.
                self.session_id_max = self.session_id_max.max(message.publisher);
                if message.publisher != 0 {
                    // Imported messages may have arbitrary times.
                    self.latest = self.latest.max(message.published_at);
                }
                self.messages.add(&message, record_len(payload));
            }
            Change::Queued(queued) => self.queued(&queued),
            Change::Inflight(inflight) => self.collected(inflight.session).see(Seen {
                seq: inflight.seq,
                step: Step::Sent(inflight.awaiting),
                queued: None,
                packet_id: Some(inflight.packet_id),
            }),
            Change::DeliveryRemoved { session, seq } => self.collected(session).see(Seen {
                seq,
                step: Step::Over,
                queued: None,
                packet_id: None,
            }),
            Change::Received { session, packet_id } => {
                let received = &mut self.collected(session).received;
                if let Err(place) = received.binary_search(&packet_id.as_u16()) {
                    received.insert(place, packet_id.as_u16());
                }
            }
            Change::ReceivedRemoved { session, packet_id } => {
                let received = &mut self.collected(session).received;
                if let Ok(place) = received.binary_search(&packet_id.as_u16()) {
                    received.remove(place);
                }
            }
            Change::Will(will) => {
                let print = self.index.print(payload);
                self.collected(will.session).will = Some(((&will).into(), print));
            }
            Change::WillRemoved { session } => self.collected(session).will = None,
            Change::Retained(retained) => self.retained(&retained, payload),
            Change::RetainedRemoved { change, topic } => {
                self.retain(topic, Topic::removed(change, payload));
            }
            Change::Reclaimed { segment } => self.note_reclaimed(segment, payload),
            Change::Clock(note) => self.note_clock(note, payload),
        }
    }

    fn note_reclaimed(&mut self, segment: u64, payload: &[u8]) {
        self.reclaimed = Some((segment, self.index.print(payload)));
    }

    fn note_clock(&mut self, note: ClockNote, payload: &[u8]) {
        if self.clock.is_none_or(|(last, _)| last.at <= note.at) {
            self.clock = Some((note, self.index.print(payload)));
        }
    }

    /// Finishes after all records.
    pub(crate) fn finish(mut self) -> (Index, Recovered) {
        let messages = std::mem::take(&mut self.messages).found();
        let mut references = vec![0; messages.len()];
        let mut orphans = Orphans::default();
        let mut sessions: Vec<_> = std::mem::take(&mut self.sessions).into_iter().collect();
        sessions.sort_unstable_by_key(|(id, _)| *id);
        let mut recovered_sessions = Vec::with_capacity(sessions.len());
        for (id, collected) in sessions {
            let finished = collected.finish(id, &messages, &mut references, &self.index);
            let Some((entry, session, lost)) = finished else {
                orphans.sessions += 1;
                continue;
            };
            orphans.deliveries += lost;
            self.index.restore_session(id, entry);
            recovered_sessions.push(session);
        }
        let mut retained = self.finish_topics(&messages, &mut references, &mut orphans);
        let (messages, places) = self.finish_messages(messages, &references);
        if let Some((_, print)) = self.reclaimed {
            self.index.restore_reclaimed(print);
        }
        if let Some((_, print)) = self.clock {
            self.index.restore_clock(print);
        }
        let new_place = |place: usize| places.get(place).copied().unwrap_or(0);
        for delivery in recovered_sessions
            .iter_mut()
            .flat_map(|one| &mut one.deliveries)
        {
            delivery.message = delivery.message.map(new_place);
        }
        for one in &mut retained {
            one.message = new_place(one.message);
        }
        let recovered = Recovered {
            sessions: recovered_sessions,
            messages,
            retained,
            session_id_max: self.session_id_max,
            message_id_max: self.message_id_max,
            retained_change_max: self.retained_change_max,
            clock: self.clock.map(|(note, _)| note),
            latest: self.latest,
            reclaimed: self.reclaimed.map(|(segment, _)| segment),
            orphans,
        };
        (self.index, recovered)
    }

    fn session(&mut self, session: &Session<'_>, payload: &[u8]) {
        self.latest = self.latest.max(session.away_since.unwrap_or(0));
        let own = Own {
            client_id: session.client_id.into(),
            version: session.version,
            expiry_secs: session.expiry_secs,
            away_since: session.away_since,
            packet_id_hint: session.packet_id_hint,
            owner: session.owner.boxed(),
            print: self.index.print(payload),
        };
        self.collected(session.id).own = Some(own);
    }

    fn queued(&mut self, queued: &Queued<'_>) {
        self.message_id_max = self.message_id_max.max(queued.message);
        let identifiers: Box<[u32]> = queued.identifiers.iter().collect();
        let is_plain = identifiers.is_empty() && queued.group.is_empty();
        let extras = (!is_plain).then(|| Box::new((identifiers, queued.group.into())));
        self.collected(queued.session).see(Seen {
            seq: queued.seq,
            step: Step::Queued,
            queued: Some(Known {
                message: queued.message,
                qos: queued.qos,
                retain: queued.retain,
                extras,
            }),
            packet_id: None,
        });
    }

    fn retained(&mut self, retained: &Retained<'_>, payload: &[u8]) {
        self.message_id_max = self.message_id_max.max(retained.message);
        let after = Topic {
            change: retained.change,
            message: Some(retained.message),
            source: retained.source.map(|source| self.source(source)),
            len: record_len(payload),
        };
        self.retain(retained.topic, after);
    }

    fn source(&mut self, bytes: &[u8]) -> Arc<[u8]> {
        let source = self.sources.get_or_insert_with(bytes, |bytes| bytes.into());
        Arc::clone(source)
    }

    fn retain(&mut self, topic: &str, after: Topic) {
        self.retained_change_max = self.retained_change_max.max(after.change);
        match self.topics.get_mut(topic) {
            Some(topic) if topic.change > after.change => {}
            Some(topic) => *topic = after,
            None => {
                self.topics.insert(topic.into(), after);
            }
        }
    }

    fn collected(&mut self, session: SessionId) -> &mut Collected {
        self.session_id_max = self.session_id_max.max(session);
        self.sessions.entry(session).or_default()
    }

    fn finish_topics(
        &mut self,
        messages: &Found,
        references: &mut [u32],
        orphans: &mut Orphans,
    ) -> Vec<RecoveredRetained> {
        let mut topics: Vec<_> = std::mem::take(&mut self.topics).into_iter().collect();
        topics.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut retained = Vec::with_capacity(topics.len());
        for (
            topic,
            Topic {
                change,
                message,
                source,
                len,
            },
        ) in topics
        {
            let place = message.and_then(|message| messages.place(message));
            let kept = message.filter(|_| place.is_some());
            orphans.retained += u64::from(message.is_some() && place.is_none());
            self.index.restore_topic(&topic, change, kept, len);
            if let Some(place) = place {
                count(references, place);
                retained.push(RecoveredRetained {
                    topic,
                    message: place,
                    source,
                });
            }
        }
        retained
    }

    /// The referenced messages, and the new position of each message.
    fn finish_messages(
        &mut self,
        messages: Found,
        references: &[u32],
    ) -> (Vec<RecoveredMessage>, Vec<usize>) {
        let kept = references.iter().filter(|&&count| count > 0).count();
        self.index.expect_messages(kept);
        let mut places = Vec::with_capacity(references.len());
        let mut references = references.iter();
        let mut messages = messages.into_list();
        let mut next = 0;
        messages.retain(|message| {
            places.push(next);
            let references = references.next().copied().unwrap_or(0);
            if references == 0 {
                return false;
            }
            next += 1;
            self.index.restore_message(message, references);
            true
        });
        (messages, places)
    }
}
