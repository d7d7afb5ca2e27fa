//! A simple model of the state: maps to which the changes are applied.

use std::collections::{BTreeMap, BTreeSet};

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS};
use thrum_storage::{Awaiting, Change, ClockNote, Content, Owner, Recovered};

/// The fields of a message.
pub(crate) type Text = (u64, u64, Option<u64>, u8, bool, String, Vec<u8>, Vec<u8>);

/// The fields of a will.
pub(crate) type WillText = (u32, Option<u32>, u8, bool, String, Vec<u8>, Vec<u8>);

/// Client identifier, level, expiry, disconnection time, hint, owner.
type Own = (String, String, u32, Option<u64>, u16, Owner<Box<str>>);

/// Message number and source of a retained message.
type Kept = (u64, Option<Vec<u8>>);

/// The options, the identifier, and the position in the retained messages to be sent.
type Wanted = (u8, bool, bool, u8, u32, Option<Vec<u8>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelSession {
    pub(crate) own: Option<Own>,
    pub(crate) subscriptions: BTreeMap<String, Wanted>,
    pub(crate) deliveries: BTreeMap<u64, ModelDelivery>,
    pub(crate) received: BTreeSet<u16>,
    pub(crate) will: Option<WillText>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelDelivery {
    pub(crate) message: Option<u64>,
    pub(crate) inflight: Option<(u16, Awaiting)>,
    pub(crate) qos: u8,
    pub(crate) retain: bool,
    pub(crate) identifiers: Vec<u32>,
    pub(crate) group: String,
}

/// The state that must survive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) sessions: BTreeMap<u64, ModelSession>,
    pub(crate) messages: BTreeMap<u64, Text>,
    /// Topic to change number and message.
    pub(crate) retained: BTreeMap<String, (u64, Option<Kept>)>,
    pub(crate) clock: Option<ClockNote>,
}

impl Model {
    #[expect(clippy::too_many_lines, reason = "one arm for each change")]
    pub(crate) fn apply(&mut self, change: &Change<'_>) {
        match *change {
            Change::Session(s) => {
                let own = (
                    s.client_id.to_owned(),
                    format!("{:?}", s.version),
                    s.expiry_secs,
                    s.away_since,
                    s.packet_id_hint,
                    s.owner.boxed(),
                );
                self.session(s.id).own = Some(own);
            }
            Change::SessionRemoved { session } => {
                self.sessions.remove(&session);
            }
            Change::Subscription(s) => {
                let wanted = wanted(s.options, s.identifier, s.owed);
                self.session(s.session)
                    .subscriptions
                    .insert(s.filter.to_owned(), wanted);
            }
            Change::SubscriptionRemoved { session, filter } => {
                self.session(session).subscriptions.remove(filter);
            }
            Change::Message(m) => {
                let text = (
                    m.publisher,
                    m.published_at,
                    m.expires_at,
                    m.qos as u8,
                    m.retain,
                    m.topic.to_owned(),
                    m.properties.to_vec(),
                    m.payload.to_vec(),
                );
                self.messages.insert(m.id, text);
            }
            Change::Queued(q) => {
                let delivery = ModelDelivery {
                    message: Some(q.message),
                    inflight: None,
                    qos: q.qos as u8,
                    retain: q.retain,
                    identifiers: q.identifiers.iter().collect(),
                    group: q.group.to_owned(),
                };
                self.session(q.session).deliveries.insert(q.seq, delivery);
            }
            Change::Inflight(i) => {
                let delivery = self.session(i.session).deliveries.get_mut(&i.seq);
                match (delivery, i.awaiting) {
                    (None, _) => {}
                    (Some(delivery), Awaiting::PubComp) => *delivery = released(i.packet_id),
                    (Some(delivery), awaiting) => {
                        delivery.inflight = Some((i.packet_id.as_u16(), awaiting));
                    }
                }
            }
            Change::DeliveryRemoved { session, seq } => {
                self.session(session).deliveries.remove(&seq);
            }
            Change::Received { session, packet_id } => {
                self.session(session).received.insert(packet_id.as_u16());
            }
            Change::ReceivedRemoved { session, packet_id } => {
                self.session(session).received.remove(&packet_id.as_u16());
            }
            Change::Will(w) => {
                self.session(w.session).will = Some((
                    w.delay_secs,
                    w.message_expiry_secs,
                    w.qos as u8,
                    w.retain,
                    w.topic.to_owned(),
                    w.properties.to_vec(),
                    w.payload.to_vec(),
                ));
            }
            Change::WillRemoved { session } => self.session(session).will = None,
            Change::Retained(r) => {
                let kept = (r.message, r.source.map(<[u8]>::to_vec));
                self.retain(r.topic, r.change, Some(kept));
            }
            Change::RetainedRemoved { change, topic } => self.retain(topic, change, None),
            Change::Clock(note) => self.clock = Some(note),
            Change::Reclaimed { .. } => unreachable!("only the store writes that"),
        }
    }

    /// The state without unreferenced messages.
    pub(crate) fn settled(&self) -> Self {
        let mut settled = self.clone();
        settled.retained.retain(|_, (_, message)| message.is_some());
        for retained in settled.retained.values_mut() {
            retained.0 = 0;
        }
        let referred: BTreeSet<u64> = settled.references().collect();
        settled.messages.retain(|id, _| referred.contains(id));
        settled
    }

    pub(crate) fn references(&self) -> impl Iterator<Item = u64> {
        let sessions = self.sessions.values();
        let deliveries = sessions.flat_map(|session| session.deliveries.values());
        let retained = self.retained.values().filter_map(|(_, kept)| kept.as_ref());
        let retained = retained.map(|(message, _)| *message);
        deliveries
            .filter_map(|delivery| delivery.message)
            .chain(retained)
    }

    /// The differences between two states, in short form.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        for (has, lacks, name) in [(self, other, "found"), (other, self, "missing")] {
            let sessions = has.sessions.iter();
            let sessions = sessions.filter(|(id, session)| lacks.sessions.get(id) != Some(session));
            lines.extend(sessions.map(|(id, session)| format!("{name} session {id}: {session:?}")));
            let messages = has.messages.keys();
            let messages = messages.filter(|id| !lacks.messages.contains_key(id));
            lines.extend(messages.map(|id| format!("{name} message {id}")));
            let topics = has.retained.iter();
            let topics = topics.filter(|(topic, kept)| lacks.retained.get(*topic) != Some(kept));
            lines.extend(topics.map(|(topic, kept)| format!("{name} retained {topic}: {kept:?}")));
        }
        lines.join("\n")
    }

    fn session(&mut self, id: u64) -> &mut ModelSession {
        self.sessions.entry(id).or_default()
    }

    fn retain(&mut self, topic: &str, change: u64, message: Option<Kept>) {
        let kept = self.retained.entry(topic.to_owned()).or_default();
        if kept.0 < change {
            *kept = (change, message);
        }
    }
}

impl From<&Recovered> for Model {
    fn from(recovered: &Recovered) -> Self {
        let mut model = Self {
            clock: recovered.clock,
            ..Self::default()
        };
        for message in &recovered.messages {
            let text = (
                message.publisher,
                message.published_at,
                message.expires_at,
                message.qos as u8,
                message.retain,
                message.content.topic().to_owned(),
                message.content.properties().to_vec(),
                message.content.payload().to_vec(),
            );
            assert!(model.messages.insert(message.id, text).is_none());
        }
        let id = |place: usize| recovered.messages[place].id;
        for one in &recovered.retained {
            let topic = recovered.messages[one.message].content.topic();
            assert_eq!(topic, &*one.topic);
            let source = one.source.as_deref().map(<[u8]>::to_vec);
            let retained = (0, Some((id(one.message), source)));
            model.retained.insert(one.topic.to_string(), retained);
        }
        for session in &recovered.sessions {
            let kept = model.session(session.id);
            kept.own = Some((
                session.client_id.to_string(),
                format!("{:?}", session.version),
                session.expiry_secs,
                session.away_since,
                session.packet_id_hint,
                session.owner.as_deref().boxed(),
            ));
            for one in &session.subscriptions {
                let wanted = wanted(one.options, one.identifier, one.owed.as_deref());
                kept.subscriptions.insert(one.filter.to_string(), wanted);
            }
            for one in &session.deliveries {
                let delivery = ModelDelivery {
                    message: one.message.map(id),
                    inflight: one.inflight.map(|(id, awaiting)| (id.as_u16(), awaiting)),
                    qos: one.qos as u8,
                    retain: one.retain,
                    identifiers: one.identifiers.to_vec(),
                    group: one.group.as_deref().unwrap_or_default().to_owned(),
                };
                assert!(kept.deliveries.insert(one.seq, delivery).is_none());
                assert!(one.seq <= session.seq_max);
            }
            kept.received = session.received.iter().map(|id| id.as_u16()).collect();
            kept.will = session.will.as_ref().map(|will| {
                let Content { .. } = &will.content;
                (
                    will.delay_secs,
                    will.message_expiry_secs,
                    will.qos as u8,
                    will.retain,
                    will.content.topic().to_owned(),
                    will.content.properties().to_vec(),
                    will.content.payload().to_vec(),
                )
            });
        }
        model
    }
}

fn wanted(options: SubscriptionOptions, identifier: u32, owed: Option<&[u8]>) -> Wanted {
    (
        options.qos as u8,
        options.no_local,
        options.retain_as_published,
        options.retain_handling as u8,
        identifier,
        owed.map(<[u8]>::to_vec),
    )
}

/// A delivery that only expects a PUBCOMP: its other fields are unknown.
fn released(packet_id: PacketId) -> ModelDelivery {
    ModelDelivery {
        message: None,
        inflight: Some((packet_id.as_u16(), Awaiting::PubComp)),
        qos: QoS::ExactlyOnce as u8,
        retain: false,
        identifiers: Vec::new(),
        group: String::new(),
    }
}
