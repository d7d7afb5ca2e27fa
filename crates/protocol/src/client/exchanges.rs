//! What is under way between a client and its server: absent while there is nothing, so that an
//! idle client is small.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use thrum_codec::packet::Ack;
use thrum_codec::{PacketId, QoS, ReasonCode};

use super::aliases::Aliases;
use super::machine::protocol_error;
use super::server_limits::ServerLimits;
use crate::Violation;

/// The DUP flag in the first byte of a PUBLISH.
const DUP: u8 = 0b1000;
/// The RETAIN flag in the first byte of a PUBLISH.
const RETAIN: u8 = 0b0001;

/// A message sent with QoS 1 or 2 and neither acknowledged nor received (PUBREC) yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) packet_id: PacketId,
    pub(super) qos: QoS,
    /// The packet to send again, without topic alias; kept only for sessions that can be resumed.
    pub(super) frame: Option<Box<[u8]>>,
}

/// A SUBSCRIBE or UNSUBSCRIBE without its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    packet_id: PacketId,
    kind: RequestKind,
    filters: usize,
}

/// Which answer a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Subscribe,
    Unsubscribe,
}

/// Exchanges that are not finished; bounded by the windows of both sides and by the packet
/// identifiers.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// In the order they were sent first.
    publishes: VecDeque<Flight>,
    /// How many at the end of `publishes` are still to be sent again on this connection.
    unsent: usize,
    /// PUBREL sent, PUBCOMP awaited; in the order of the PUBRECs.
    releases: VecDeque<PacketId>,
    /// QoS 2 messages of the server between PUBREC and PUBREL, ascending.
    received: VecDeque<PacketId>,
    requests: Vec<Request>,
    inbound_aliases: Aliases,
    outbound_aliases: Aliases,
}

/// What a PUBREC leads to.
pub(super) enum PubRecAnswer {
    /// PUBREL with this reason.
    Release(ReasonCode),
    /// The exchange is over.
    Over,
}

impl Exchanges {
    /// Every packet identifier that this client has in use.
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = PacketId> + Clone {
        let publishes = self.publishes.iter().map(|flight| flight.packet_id);
        let requests = self.requests.iter().map(|request| request.packet_id);
        publishes
            .chain(self.releases.iter().copied())
            .chain(requests)
    }

    /// Messages that count against the server's receive maximum.
    pub(super) fn inflight(&self) -> usize {
        self.publishes.len() - self.unsent + self.releases.len()
    }

    /// Messages not yet acknowledged, sent on this connection or not.
    pub(super) fn unacknowledged(&self) -> usize {
        self.publishes.len() + self.releases.len()
    }

    /// Forgets what ends with the connection.
    pub(super) fn end_connection(&mut self) {
        // [MQTT-3.3.2-7]
        self.inbound_aliases.clear();
        self.outbound_aliases.clear();
        self.requests = Vec::new();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unacknowledged() == 0
            && self.received.is_empty()
            && self.requests.is_empty()
            && self.inbound_aliases.is_empty()
            && self.outbound_aliases.is_empty()
    }

    /// Drops the session state.
    pub(super) fn discard_session(&mut self) {
        self.publishes.clear();
        self.releases.clear();
        self.received.clear();
        self.unsent = 0;
    }

    /// A message was sent for the first time.
    pub(super) fn push(&mut self, flight: Flight) {
        self.publishes.push_back(flight);
    }

    /// Ends the exchange of a PUBACK.
    pub(super) fn puback(&mut self, packet_id: PacketId) -> Result<(), Violation> {
        let at = self.sent_at(packet_id, QoS::AtLeastOnce)?;
        // [MQTT-4.4.0-2]
        if at.and_then(|at| self.publishes.remove(at)).is_none() {
            return Err(protocol_error("PUBACK for no PUBLISH"));
        }
        Ok(())
    }

    /// Lets go of the message of a PUBREC.
    pub(super) fn pubrec(&mut self, ack: &Ack<'_>) -> Result<PubRecAnswer, Violation> {
        let packet_id = ack.packet_id;
        let at = self.sent_at(packet_id, QoS::ExactlyOnce)?;
        let known = at.and_then(|at| self.publishes.remove(at)).is_some();
        if known && ack.reason.is_error() {
            // [MQTT-4.4.0-2]
            return Ok(PubRecAnswer::Over);
        }
        let reason = if known {
            // From here on only PUBREL is sent again. [MQTT-4.3.3-5] [MQTT-4.3.3-6]
            self.releases.push_back(packet_id);
            ReasonCode::Success
        } else if ack.reason.is_error() {
            return Err(protocol_error("failed PUBREC for no PUBLISH"));
        } else if self.releases.contains(&packet_id) {
            ReasonCode::Success
        } else {
            // [MQTT-3.6.2-1]
            ReasonCode::PacketIdentifierNotFound
        };
        Ok(PubRecAnswer::Release(reason))
    }

    /// Ends the exchange of a PUBCOMP; true if there was one.
    pub(super) fn pubcomp(&mut self, packet_id: PacketId) -> Result<bool, Violation> {
        let at = self.releases.iter().position(|id| *id == packet_id);
        if at.and_then(|at| self.releases.remove(at)).is_some() {
            return Ok(true);
        }
        let mut publishes = self.publishes.iter();
        if publishes.any(|flight| flight.packet_id == packet_id) {
            return Err(protocol_error("PUBCOMP before PUBREC"));
        }
        Ok(false)
    }

    /// The session goes on with a server of these limits: every message that it takes is to be sent
    /// again.
    pub(super) fn resume(&mut self, server: &ServerLimits) {
        self.publishes.retain(|flight| flight.is_allowed(server));
        self.unsent = self.publishes.len();
    }

    /// Messages that await PUBCOMP, in the order of the PUBRECs.
    pub(super) fn releases(&self) -> impl Iterator<Item = PacketId> {
        self.releases.iter().copied()
    }

    /// Writes messages of the resumed session again while fewer than `window` are under way; true
    /// if there were any to write.
    pub(super) fn send_again(&mut self, window: usize, out: &mut Vec<u8>) -> bool {
        if self.unsent == 0 {
            return false;
        }
        while self.unsent != 0 && self.inflight() < window {
            // In the order they were sent first. [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
            let at = self.publishes.len() - self.unsent;
            self.unsent -= 1;
            if let Some([first, rest @ ..]) = self.publishes[at].frame.as_deref() {
                // [MQTT-3.3.1-1] [MQTT3-3.3.1-1] [MQTT3-2.3.1-3]
                out.push(first | DUP);
                out.extend_from_slice(rest);
            }
        }
        true
    }

    /// The topic that an alias towards the server stands for.
    pub(super) fn outbound_topic(&self, alias: NonZeroU16) -> Option<&str> {
        self.outbound_aliases.topic(alias).map(|topic| &**topic)
    }

    /// An alias was sent with its topic.
    pub(super) fn set_outbound_alias(&mut self, alias: NonZeroU16, topic: &str) {
        self.outbound_aliases.set(alias, topic);
    }

    /// Looks up or learns an alias of the server; the topic if the packet has only the alias.
    pub(super) fn resolve_alias(
        &mut self,
        alias: NonZeroU16,
        topic: &str,
    ) -> Result<Option<Rc<str>>, Violation> {
        if topic.is_empty() {
            let topic = self.inbound_aliases.topic(alias).cloned();
            return topic
                .map(Some)
                .ok_or(protocol_error("topic alias without a topic"));
        }
        self.inbound_aliases.set(alias, topic);
        Ok(None)
    }

    /// Notes a message with QoS 2; false if it came before and its PUBREL has not.
    pub(super) fn note_received(
        &mut self,
        packet_id: PacketId,
        window: usize,
    ) -> Result<bool, Violation> {
        match self.received.binary_search(&packet_id) {
            Ok(_) => Ok(false),
            Err(_) if self.received.len() >= window => Err(Violation::new(
                ReasonCode::ReceiveMaximumExceeded,
                "more unacknowledged messages than the receive maximum",
            )),
            Err(at) => {
                self.received.insert(at, packet_id);
                Ok(true)
            }
        }
    }

    /// Ends the exchange of a PUBREL; true if there was one.
    pub(super) fn pubrel(&mut self, packet_id: PacketId) -> bool {
        let found = self.received.binary_search(&packet_id);
        // [MQTT-4.3.3-12]
        found.is_ok_and(|at| self.received.remove(at).is_some())
    }

    /// A SUBSCRIBE or UNSUBSCRIBE was sent.
    pub(super) fn expect_answer(&mut self, packet_id: PacketId, kind: RequestKind, filters: usize) {
        self.requests.push(Request {
            packet_id,
            kind,
            filters,
        });
    }

    /// How many filters the answered request has.
    pub(super) fn take_request(
        &mut self,
        packet_id: PacketId,
        kind: RequestKind,
    ) -> Result<usize, Violation> {
        let answered = |request: &Request| request.packet_id == packet_id && request.kind == kind;
        let Some(at) = self.requests.iter().position(answered) else {
            return Err(protocol_error("SUBACK or UNSUBACK for no request"));
        };
        Ok(self.requests.remove(at).filters)
    }

    /// Where the message with this identifier stands, if it was sent on this connection.
    fn sent_at(&self, packet_id: PacketId, qos: QoS) -> Result<Option<usize>, Violation> {
        let sent = self.publishes.len() - self.unsent;
        let at = self
            .publishes
            .iter()
            .take(sent)
            .position(|flight| flight.packet_id == packet_id);
        match at.and_then(|at| self.publishes.get(at)) {
            Some(flight) if flight.qos != qos => Err(protocol_error(
                "acknowledgement of another quality of service",
            )),
            Some(_) | None => Ok(at),
        }
    }
}

impl Flight {
    /// The server of the new connection still takes this message.
    fn is_allowed(&self, server: &ServerLimits) -> bool {
        self.frame.as_deref().is_some_and(|frame| {
            let retained = frame.first().is_some_and(|first| first & RETAIN != 0);
            self.qos <= server.maximum_qos
                && server.fits(frame.len())
                && (server.retain_available || !retained)
        })
    }
}
