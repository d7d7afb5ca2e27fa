//! Arbitrary units of changes, like those of a node.

use thrum_codec::packet::{RetainHandling, SubscriptionOptions};
use thrum_codec::{PacketId, QoS, Version};
use thrum_storage::disk::sim::SimStorage;
use thrum_storage::{
    Awaiting, Batch, Change, ClockNote, Identifiers, Inflight, Message, Owner, Queued, Recovered,
    Retained, Session, Subscription, Will,
};

use crate::model::Model;

const FILTERS: [&str; 4] = ["a/+", "#", "$share/g/a/b", "\u{fc}ber/stra\u{df}e"];
const TOPICS: [&str; 3] = ["a/b", "a", "\u{fc}ber/stra\u{df}e"];

/// The next numbers of the node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    session: u64,
    message: u64,
    change: u64,
    seq: u64,
}

/// Generates changes and applies them to the model.
pub(crate) struct Script<'a> {
    pub(crate) random: &'a SimStorage,
    pub(crate) model: Model,
    pub(crate) numbers: Numbers,
    /// Number of deliveries above which the script prefers removals.
    pub(crate) deliveries_max: usize,
    batch: Batch,
}

impl<'a> Script<'a> {
    pub(crate) fn new(random: &'a SimStorage) -> Self {
        Self {
            random,
            model: Model::default(),
            numbers: Numbers::default(),
            deliveries_max: 60,
            batch: Batch::default(),
        }
    }

    /// Continues with the recovered state, and with the numbers as a node would.
    pub(crate) fn resume(&mut self, model: Model, recovered: &Recovered) {
        self.model = model;
        // A node that starts does not know the removed objects.
        self.model
            .retained
            .retain(|_, (_, message)| message.is_some());
        let seq = recovered.sessions.iter().map(|session| session.seq_max);
        self.numbers = Numbers {
            session: recovered.session_id_max,
            message: recovered.message_id_max,
            change: recovered.retained_change_max,
            seq: seq.max().unwrap_or(0),
        };
    }

    /// The next unit, already applied to the model.
    pub(crate) fn unit(&mut self) -> Batch {
        let deliveries: usize = self
            .model
            .sessions
            .values()
            .map(|one| one.deliveries.len())
            .sum();
        let kind = match self.below(15) {
            4..=6 if deliveries > self.deliveries_max => 8,
            kind => kind,
        };
        match kind {
            0 => self.connect(),
            1 => self.update_session(),
            2 => self.subscribe(),
            3 => self.unsubscribe(),
            4..=6 => self.publish(),
            7 => self.step(),
            8..=10 => self.remove_delivery(),
            11 => self.receive(),
            12 => self.will(),
            13 => self.clock(),
            _ if self.below(4) == 0 => self.end_session(),
            _ => self.clear_retained(),
        }
        self.batch.end_unit();
        std::mem::take(&mut self.batch)
    }

    fn clock(&mut self) {
        let before = self.model.clock;
        let at = before.map_or(0, |before| before.at) + self.below(5000);
        let wall = self.below(1 << 41);
        self.push(&Change::Clock(ClockNote::next(before, at, wall)));
    }

    fn push(&mut self, change: &Change<'_>) {
        self.model.apply(change);
        self.batch.push(change);
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.random(limit)
    }

    fn any_session(&self) -> Option<u64> {
        let count = self.model.sessions.len() as u64;
        let place = usize::try_from(self.below(count)).unwrap();
        self.model.sessions.keys().nth(place).copied()
    }

    fn any_delivery(&self) -> Option<(u64, u64)> {
        let session = self.any_session()?;
        let deliveries = &self.model.sessions[&session].deliveries;
        let place = usize::try_from(self.below(deliveries.len() as u64)).unwrap();
        deliveries.keys().nth(place).map(|seq| (session, *seq))
    }

    fn qos(&self) -> QoS {
        if self.below(2) == 0 {
            QoS::AtLeastOnce
        } else {
            QoS::ExactlyOnce
        }
    }

    fn payload(&self) -> Vec<u8> {
        let len = match self.below(40) {
            0 => 6000,
            1..=9 => self.below(400),
            _ => self.below(40),
        };
        (0..len)
            .map(|_| u8::try_from(self.below(256)).unwrap())
            .collect()
    }

    fn connect(&mut self) {
        if self.model.sessions.len() > 6 {
            return self.update_session();
        }
        self.numbers.session += 1;
        let client_id = format!("client-{}", self.numbers.session);
        self.push(&Change::Session(Session {
            id: self.numbers.session,
            client_id: &client_id,
            version: Version::V5,
            expiry_secs: 3600,
            away_since: None,
            packet_id_hint: 0,
            owner: Owner::Unknown,
        }));
    }

    fn update_session(&mut self) {
        let Some(id) = self.any_session() else { return };
        let client_id = format!("client-{id}");
        let away = self.below(3);
        let user = format!("user-{}", self.below(2));
        self.push(&Change::Session(Session {
            id,
            client_id: &client_id,
            version: if away == 0 {
                Version::V311
            } else {
                Version::V5
            },
            expiry_secs: 3600,
            away_since: (away == 1).then_some(1_700_000_000_000),
            packet_id_hint: u16::try_from(self.below(3)).unwrap(),
            owner: match self.below(3) {
                0 => Owner::Unknown,
                1 => Owner::Anonymous,
                _ => Owner::User(&user),
            },
        }));
    }

    fn subscribe(&mut self) {
        let Some(session) = self.any_session() else {
            return;
        };
        let filter = FILTERS[usize::try_from(self.below(4)).unwrap()];
        let options = SubscriptionOptions {
            qos: self.qos(),
            no_local: self.below(2) == 0,
            retain_as_published: false,
            retain_handling: RetainHandling::SendIfNew,
        };
        self.push(&Change::Subscription(Subscription {
            session,
            filter,
            options,
            identifier: u32::try_from(self.below(2)).unwrap(),
            owed: [None, Some(&b""[..]), Some(b"a place")][usize::try_from(self.below(3)).unwrap()],
        }));
    }

    fn unsubscribe(&mut self) {
        let Some(session) = self.any_session() else {
            return;
        };
        let filter = FILTERS[usize::try_from(self.below(4)).unwrap()];
        self.push(&Change::SubscriptionRemoved { session, filter });
    }

    fn publish(&mut self) {
        self.numbers.message += 1;
        let (message, payload, qos) = (self.numbers.message, self.payload(), self.qos());
        let topic = TOPICS[usize::try_from(self.below(3)).unwrap()];
        let retain = self.below(4) == 0;
        self.push(&Change::Message(Message {
            id: message,
            publisher: 0,
            published_at: 1_700_000_000_000 + message,
            expires_at: (self.below(2) == 0).then_some(message),
            qos,
            retain,
            topic,
            properties: &payload[..payload.len() / 4],
            payload: &payload,
        }));
        let sessions: Vec<u64> = self.model.sessions.keys().copied().collect();
        for session in sessions {
            if self.below(2) == 0 {
                continue;
            }
            self.numbers.seq += 1;
            self.push(&Change::Queued(Queued {
                session,
                seq: self.numbers.seq,
                message,
                qos,
                retain: false,
                identifiers: Identifiers::Listed(if self.below(3) == 0 { &[3, 9] } else { &[] }),
                group: if self.below(5) == 0 { FILTERS[2] } else { "" },
            }));
        }
        if retain {
            self.numbers.change += 1;
            let change = self.numbers.change;
            self.push(&Change::Retained(Retained {
                change,
                topic,
                message,
                source: [None, Some(&b""[..]), Some(b"a client")]
                    [usize::try_from(self.below(3)).unwrap()],
            }));
        }
    }

    fn step(&mut self) {
        let Some((session, seq)) = self.any_delivery() else {
            return;
        };
        let delivery = &self.model.sessions[&session].deliveries[&seq];
        let (packet_id, awaiting) = match delivery.inflight {
            None if delivery.qos == 1 => (seq % 65_535 + 1, Awaiting::PubAck),
            None => (seq % 65_535 + 1, Awaiting::PubRec),
            Some((id, Awaiting::PubRec)) => (u64::from(id), Awaiting::PubComp),
            Some(_) => return self.remove_delivery(),
        };
        self.push(&Change::Inflight(Inflight {
            session,
            seq,
            packet_id: PacketId::new(u16::try_from(packet_id).unwrap()).unwrap(),
            awaiting,
        }));
    }

    fn remove_delivery(&mut self) {
        let Some((session, seq)) = self.any_delivery() else {
            return;
        };
        self.push(&Change::DeliveryRemoved { session, seq });
    }

    fn receive(&mut self) {
        let Some(session) = self.any_session() else {
            return;
        };
        let packet_id = PacketId::new(u16::try_from(self.below(5) + 1).unwrap()).unwrap();
        if self.model.sessions[&session]
            .received
            .contains(&packet_id.as_u16())
        {
            self.push(&Change::ReceivedRemoved { session, packet_id });
        } else {
            self.push(&Change::Received { session, packet_id });
        }
    }

    fn will(&mut self) {
        let Some(session) = self.any_session() else {
            return;
        };
        if self.below(2) == 0 {
            return self.push(&Change::WillRemoved { session });
        }
        let payload = self.payload();
        self.push(&Change::Will(Will {
            session,
            delay_secs: 5,
            message_expiry_secs: None,
            qos: self.qos(),
            retain: true,
            topic: "will",
            properties: &[],
            payload: &payload,
        }));
    }

    fn end_session(&mut self) {
        let Some(session) = self.any_session() else {
            return;
        };
        self.push(&Change::SessionRemoved { session });
    }

    fn clear_retained(&mut self) {
        self.numbers.change += 1;
        let topic = TOPICS[usize::try_from(self.below(3)).unwrap()];
        let change = self.numbers.change;
        self.push(&Change::RetainedRemoved { change, topic });
    }
}
