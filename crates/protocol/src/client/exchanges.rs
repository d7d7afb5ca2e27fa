//! Exchanges in progress between a client and its server; allocated only while there are any, so
//! that an idle client is small.

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

/// A message sent with QoS 1 or 2 that has no PUBACK or PUBREC yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) packet_id: PacketId,
    pub(super) qos: QoS,
    /// The packet to retransmit, without topic alias; kept only for sessions that can be resumed.
    pub(super) frame: Option<Box<[u8]>>,
}

/// A SUBSCRIBE or UNSUBSCRIBE that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    packet_id: PacketId,
    kind: RequestKind,
    filters: usize,
}

/// The acknowledgement that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Subscribe,
    Unsubscribe,
}

/// Unfinished exchanges; limited by the receive maximum of both sides and by the packet
/// identifiers.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// Messages in the order of their first transmission.
    publishes: VecDeque<Flight>,
    /// Number of messages at the end of `publishes` that are still to be retransmitted on this
    /// connection.
    unsent: usize,
    /// Messages whose PUBREL was sent and whose PUBCOMP is expected, in the order of their PUBRECs.
    releases: VecDeque<PacketId>,
    /// QoS 2 messages of the server between PUBREC and PUBREL, in ascending order.
    received: VecDeque<PacketId>,
    requests: Vec<Request>,
    inbound_aliases: Aliases,
    outbound_aliases: Aliases,
}

/// The action that a PUBREC requires.
pub(super) enum PubRecAnswer {
    /// Send a PUBREL with this reason code.
    Release(ReasonCode),
    /// The exchange is complete.
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

    /// Number of messages that count against the server's receive maximum.
    pub(super) fn inflight(&self) -> usize {
        self.publishes.len() - self.unsent + self.releases.len()
    }

    /// Number of unacknowledged messages, whether sent on this connection or not.
    pub(super) fn unacknowledged(&self) -> usize {
        self.publishes.len() + self.releases.len()
    }

    /// Discards the state that ends with the connection.
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

    /// Discards the session state.
    pub(super) fn discard_session(&mut self) {
        self.publishes.clear();
        self.releases.clear();
        self.received.clear();
        self.unsent = 0;
    }

    /// Adds a message that was sent for the first time.
    pub(super) fn push(&mut self, flight: Flight) {
        self.publishes.push_back(flight);
    }

    /// Completes the exchange of a PUBACK.
    pub(super) fn puback(&mut self, packet_id: PacketId) -> Result<(), Violation> {
        let at = self.sent_at(packet_id, QoS::AtLeastOnce)?;
        // [MQTT-4.4.0-2]
        if at.and_then(|at| self.publishes.remove(at)).is_none() {
            return Err(protocol_error("PUBACK for no PUBLISH"));
        }
        Ok(())
    }

    /// Releases the message of a PUBREC.
    pub(super) fn pubrec(&mut self, ack: &Ack<'_>) -> Result<PubRecAnswer, Violation> {
        let packet_id = ack.packet_id;
        let at = self.sent_at(packet_id, QoS::ExactlyOnce)?;
        let known = at.and_then(|at| self.publishes.remove(at)).is_some();
        if known && ack.reason.is_error() {
            // [MQTT-4.4.0-2]
            return Ok(PubRecAnswer::Over);
        }
        let reason = if known {
            // From here on only PUBREL is retransmitted. [MQTT-4.3.3-5] [MQTT-4.3.3-6]
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

    /// Completes the exchange of a PUBCOMP; returns whether there was one.
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

    /// Resumes the session with a server of these limits: every message that the server allows is
    /// to be retransmitted.
    pub(super) fn resume(&mut self, server: &ServerLimits) {
        self.publishes.retain(|flight| flight.is_allowed(server));
        self.unsent = self.publishes.len();
    }

    /// Messages that expect a PUBCOMP, in the order of their PUBRECs.
    pub(super) fn releases(&self) -> impl Iterator<Item = PacketId> {
        self.releases.iter().copied()
    }

    /// Retransmits messages of the resumed session while fewer than `window` are in flight; returns
    /// whether there were any to write.
    pub(super) fn retransmit(&mut self, window: usize, out: &mut Vec<u8>) -> bool {
        if self.unsent == 0 {
            return false;
        }
        while self.unsent != 0 && self.inflight() < window {
            // In the order of the first transmission. [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
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

    /// The topic that the client assigned to an alias.
    pub(super) fn outbound_topic(&self, alias: NonZeroU16) -> Option<&str> {
        self.outbound_aliases.topic(alias).map(|topic| &**topic)
    }

    /// Records an alias that was sent with its topic.
    pub(super) fn set_outbound_alias(&mut self, alias: NonZeroU16, topic: &str) {
        self.outbound_aliases.set(alias, topic);
    }

    /// Looks up or stores an alias of the server; returns the topic if the packet has only the
    /// alias.
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

    /// Records a message with QoS 2; returns `false` if it was received before and not yet
    /// released.
    pub(super) fn record_received(
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

    /// Completes the exchange of a PUBREL; returns whether there was one.
    pub(super) fn pubrel(&mut self, packet_id: PacketId) -> bool {
        let found = self.received.binary_search(&packet_id);
        // [MQTT-4.3.3-12]
        found.is_ok_and(|at| self.received.remove(at).is_some())
    }

    /// Records that a SUBSCRIBE or UNSUBSCRIBE was sent.
    pub(super) fn expect_answer(&mut self, packet_id: PacketId, kind: RequestKind, filters: usize) {
        self.requests.push(Request {
            packet_id,
            kind,
            filters,
        });
    }

    /// Removes the answered request and returns its number of filters.
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

    /// Position of the message with this identifier, if it was sent on this connection.
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
    /// Whether the server of the new connection still allows this message.
    fn is_allowed(&self, server: &ServerLimits) -> bool {
        self.frame.as_deref().is_some_and(|frame| {
            let retained = frame.first().is_some_and(|first| first & RETAIN != 0);
            self.qos <= server.maximum_qos
                && server.fits(frame.len())
                && (server.retain_available || !retained)
        })
    }
}
