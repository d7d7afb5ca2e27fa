//! Handling of the packets of connected clients.

use thrum_codec::QoS;
use thrum_codec::packet::{Auth, Packet};
use thrum_codec::{PacketId, ReasonCode, Version};
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::Action;

use super::Engine;
use super::holding::Requester;
use super::inquiries::InquirySubject;
use super::publishing::{Published, is_reserved};
use super::reach::Cleared;
use crate::access::Verdict;
use crate::ids::{ConnectionId, Slot};
use crate::node::metrics::Counter;
use crate::stages::acknowledged;
use crate::workers::WorkerSet;

/// The action that the shell has to take after a packet.
#[derive(Debug)]
pub enum Handled<'a> {
    /// No action is left.
    Nothing,
    /// A message was published: the shell has to check whether the receivers have capacity for the
    /// next one.
    Published,
    /// The client has sent DISCONNECT.
    Disconnected,
    /// Enhanced authentication continues, or a re-authentication begins.
    Authenticate(Auth<'a>),
}

impl Engine {
    /// Handles a packet of a client that [`Engine::clearance`] has admitted.
    ///
    /// # Errors
    /// The connection has to end because of a violation.
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
        let ended = ended_exchange(&packet);
        let before = self.core.durable.mark();
        let is_request = self.core.durable.journal.is_some() && depends_on_changes(&packet);
        self.core.prepare_call(slot);
        let client = &mut self.core.sessions[slot];
        let connection = client.connection;
        let out = self.core.outputs.buffer(connection);
        match client.session.handle_packet(packet, now, out)? {
            Action::None => {
                let answers = u64::from(is_answered);
                self.core.row().add(Counter::AnswersSent, answers);
                if let (Some(key), Some(packet_id)) = (connection, ended)
                    && self.core.stages.are_followed()
                {
                    acknowledged(&mut self.core, key, packet_id);
                }
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
        self.core.record_steps(slot);
        // The answers of a durable session also depend on its earlier changes: the answer to a
        // repeated packet is not sent before they are durable.
        let depends = is_request
            && (self.core.durable.mark() != before
                || self.core.sessions[slot].session.is_durable());
        if let Some(key) = connection.filter(|_| depends) {
            self.core.outputs.depend(key);
        }
        Ok(handled)
    }

    /// Checks whether a packet may be handled now; none for a PUBLISH that has to wait for room in
    /// a queue. `verdict` is the decision of the rules about it.
    #[inline]
    pub fn clearance(
        &mut self,
        connection: ConnectionId,
        slot: Slot,
        packet: &Packet<'_>,
        verdict: Verdict,
    ) -> Option<Cleared> {
        let requester = Requester {
            connection,
            slot,
            verdict,
        };
        let topics = &mut self.router.topics;
        self.held
            .clearance(&mut self.core, topics, requester, packet)
    }

    /// Sends queued and retained messages for which an acknowledgement may have made room.
    #[inline]
    fn after_acknowledgement(&mut self, slot: Slot) {
        self.core.collect(slot);
        let rare = self.core.sessions[slot].rare.as_deref();
        if rare.is_some_and(|rare| !rare.replays.is_empty()) {
            self.replay(slot);
        }
    }

    /// Continues to send the queue of a session whose output was congested, up to `bytes_max`.
    pub fn resume_queue(&mut self, slot: Slot, bytes_max: usize) {
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

    /// Continues the replays of a session, as far as the session accepts their messages.
    pub fn replay(&mut self, slot: Slot) {
        let topics = &self.router.topics;
        self.replays.replay(&mut self.core, topics, slot);
    }

    /// Whether a packet has to wait for the answers of other workers about their memory.
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
        let has_reason_code =
            publish.qos != QoS::AtMostOnce && session.link().version() == Version::V5;
        if !has_reason_code || session.inbound().is_repeated(publish) {
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
        let about = InquirySubject {
            connection,
            topic,
            qos: publish.qos,
            workers: WorkerSet::NONE,
        };
        self.router.has_to_inquire(&mut self.core, id, about)
    }
}

/// The error with which the connection of a publisher has to end, if any.
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

/// Whether the session itself answers the packet if it results in no action.
fn is_answered_at_once(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::PingReq | Packet::PubRec(_) | Packet::PubRel(_) => true,
        // The packet is repeated, and so is its PUBREC.
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        _ => false,
    }
}

/// The delivery that a packet of its receiver ends.
#[inline]
fn ended_exchange(packet: &Packet<'_>) -> Option<PacketId> {
    match packet {
        Packet::PubAck(ack) | Packet::PubComp(ack) => Some(ack.packet_id),
        Packet::PubRec(ack) if ack.reason.is_error() => Some(ack.packet_id),
        _ => None,
    }
}

/// Whether the answer to a packet confirms that changes are durable.
fn depends_on_changes(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        Packet::PubRec(_) | Packet::PubRel(_) | Packet::Subscribe(_) | Packet::Unsubscribe(_) => {
            true
        }
        _ => false,
    }
}
