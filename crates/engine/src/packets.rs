//! What a packet of a connected client leads to.

use thrum_codec::QoS;
use thrum_codec::packet::{Auth, Packet};
use thrum_codec::{ReasonCode, Version};
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::Action;

use super::Engine;
use super::elsewhere::Inquired;
use super::holding::Asker;
use super::publishing::{Published, is_reserved};
use super::reach::Cleared;
use crate::access::Verdict;
use crate::ids::{ConnectionId, Slot};
use crate::node::metrics::Counter;
use crate::workers::WorkerSet;

/// What is left to do after a packet.
#[derive(Debug)]
pub enum Handled<'a> {
    Nothing,
    /// A message was published: is there somewhere to go with the next one?
    Published,
    /// The client said goodbye.
    Disconnected,
    /// Enhanced authentication goes on, or begins anew.
    Authenticate(Auth<'a>),
}

impl Engine {
    /// # Errors
    /// Why the connection has to end.
    #[expect(
        clippy::large_types_passed_by_value,
        reason = "inlined into its callers"
    )]
    #[expect(
        clippy::inline_always,
        reason = "the packet, of several hundred bytes, would be copied for a call"
    )]
    #[inline(always)]
    pub fn packet<'a>(
        &mut self,
        slot: Slot,
        packet: Packet<'a>,
        cleared: Cleared,
    ) -> Result<Handled<'a>, Violation> {
        let now = self.core.turn.now;
        let mut handled = Handled::Nothing;
        let is_answered = is_answered_at_once(&packet);
        let before = self.core.durable.mark();
        let is_request = self.core.durable.journal.is_some() && rests_on_changes(&packet);
        self.core.lend(slot);
        let client = &mut self.core.sessions[slot];
        let connection = client.connection;
        let out = self.core.outputs.buffer(connection);
        match client.session.handle_packet(packet, now, out)? {
            Action::None => {
                let answers = u64::from(is_answered);
                self.core.row().add(Counter::AnswersSent, answers);
                self.after_acknowledgement(slot);
            }
            Action::Publish { publish, alias } => {
                let published =
                    self.publishing()
                        .publish_from(slot, &publish, alias.as_ref(), cleared);
                refusal(published)?;
                handled = Handled::Published;
            }
            Action::Subscribe(subscribe) => self.subscribing().subscribe_from(slot, &subscribe),
            Action::Unsubscribe(unsubscribe) => {
                self.subscribing().unsubscribe_from(slot, &unsubscribe)?;
            }
            Action::Disconnected => return Ok(Handled::Disconnected),
            Action::Authenticate(auth) => handled = Handled::Authenticate(auth),
        }
        self.core.note(slot);
        // A durable session's answers also wait for what it did before: a repeated packet is
        // answered no sooner.
        let rests = is_request
            && (self.core.durable.mark() != before
                || self.core.sessions[slot].session.is_durable());
        if let Some(key) = connection.filter(|_| rests) {
            self.core.outputs.depend(key);
        }
        Ok(handled)
    }

    /// Whether a packet may be handled now; none for a PUBLISH that waits from here on, for room in
    /// a queue. `verdict` is what the rules say of it.
    #[inline]
    pub fn clearance(
        &mut self,
        connection: ConnectionId,
        slot: Slot,
        packet: &Packet<'_>,
        verdict: Verdict,
    ) -> Option<Cleared> {
        let asker = Asker {
            connection,
            slot,
            verdict,
        };
        let topics = &mut self.router.topics;
        self.held.clearance(&mut self.core, topics, asker, packet)
    }

    /// An acknowledgement may have made room for queued or retained messages.
    #[inline]
    fn after_acknowledgement(&mut self, slot: Slot) {
        self.core.collect(slot);
        let rare = self.core.sessions[slot].rare.as_deref();
        if rare.is_some_and(|rare| !rare.replays.is_empty()) {
            self.replay(slot);
        }
    }

    /// A session whose output was over its limit goes on with its queue, up to so many bytes.
    pub fn go_on(&mut self, slot: Slot, bytes_max: usize) {
        let now = self.core.turn.now;
        let more = self.core.with(slot, |session, out| {
            session.link_mut().set_congested(false);
            let more = session.pump(now, bytes_max, out);
            if more {
                session.link_mut().set_congested(true);
            }
            more
        });
        if let Some(key) = self.core.sessions[slot].connection.filter(|_| more) {
            self.core.outputs[key].is_congested = true;
        }
        self.replay(slot);
    }

    /// Goes on with the retained messages of new subscriptions, as far as the session takes them.
    pub fn replay(&mut self, slot: Slot) {
        let topics = &self.router.topics;
        self.replays.replay(&mut self.core, topics, slot);
    }

    /// Whether other workers have to be asked before a packet is handled: it waits for their
    /// answers.
    #[inline]
    pub fn has_to_inquire(
        &mut self,
        connection: ConnectionId,
        slot: Slot,
        packet: &Packet<'_>,
    ) -> bool {
        self.core.memory.level >= MemoryLevel::Short
            && self.core.node.workers() > 1
            && self.inquires(connection, slot, packet)
    }

    #[cold]
    fn inquires(&mut self, connection: ConnectionId, slot: Slot, packet: &Packet<'_>) -> bool {
        let Packet::Publish(publish) = packet else {
            return false;
        };
        let session = &self.core.sessions[slot].session;
        let can_be_told = publish.qos != QoS::AtMostOnce && session.link().version() == Version::V5;
        if !can_be_told || session.inbound().is_repeated(publish) {
            return false;
        }
        let id = session.id();
        let seen = session.inbound().topic_of(publish);
        let Some(seen) = seen.filter(|seen| !is_reserved(seen)) else {
            return false;
        };
        let seen = seen.to_owned();
        let mount = session.link().mount_point().cloned();
        let mut text = String::new();
        let topic = match &mount {
            None => Some(seen.as_str()),
            Some(mount) => mount.mounted_topic(&seen, &mut text),
        };
        let Some(topic) = topic else { return false };
        let about = Inquired {
            connection,
            topic,
            qos: publish.qos,
            workers: WorkerSet::NONE,
        };
        self.router.has_to_inquire(&mut self.core, id, about)
    }
}

/// Why the connection of a client that published has to end.
fn refusal(published: Published) -> Result<(), Violation> {
    match published {
        Published::Answered => Ok(()),
        // [MQTT3-4.8.0-2]
        Published::DiskFull => Err(Violation::new(
            ReasonCode::QuotaExceeded,
            "the broker's disk is full: the message cannot be kept",
        )),
        Published::SinkFull => Err(Violation::new(
            ReasonCode::QuotaExceeded,
            "a sink of the broker is full: the message cannot be kept",
        )),
        Published::Denied => Err(Violation::new(
            ReasonCode::NotAuthorized,
            "not authorized to publish to this topic",
        )),
    }
}

/// Whether the session answers the packet itself, if it asks nothing of the node.
fn is_answered_at_once(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::PingReq | Packet::PubRec(_) | Packet::PubRel(_) => true,
        // Known already: the PUBREC of an earlier time is repeated.
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        _ => false,
    }
}

/// Whether the answer says that something is safe.
fn rests_on_changes(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        Packet::PubRec(_) | Packet::PubRel(_) | Packet::Subscribe(_) | Packet::Unsubscribe(_) => {
            true
        }
        _ => false,
    }
}
