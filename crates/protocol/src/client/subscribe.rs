//! SUBSCRIBE and UNSUBSCRIBE, and their answers.

use alloc::vec::Vec;

use thrum_codec::packet::{
    Packet, SubAck, Subscribe, SubscriptionRequest, SubscriptionRequests, TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{SubscribeProperties, UserProperties};
use thrum_codec::{PacketId, TopicFilter, Version};

use super::exchanges::{Request, RequestKind};
use super::machine::{Phase, SendError, protocol_error};
use super::{Client, Event, SubscribeError};
use crate::{Time, Violation};

/// Topic filters that a client puts into one SUBSCRIBE or UNSUBSCRIBE: servers limit what a packet
/// may ask for, and as many as this every one of them takes.
pub const FILTERS_PER_PACKET: usize = 100;

impl Client {
    /// Writes a SUBSCRIBE; [`Event::Subscribed`] answers it with one code per request.
    ///
    /// # Errors
    /// Nothing was written: the server does not allow one of the requests.
    pub fn subscribe(
        &mut self,
        properties: SubscribeProperties<'_>,
        requests: &[SubscriptionRequest<'_>],
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SubscribeError> {
        self.check_subscribe(&properties, requests)?;
        let packet_id = self.next_packet_id().ok_or(SubscribeError::NoPacketId)?;
        let requests_listed = SubscriptionRequests::Listed(requests);
        let subscribe = Subscribe {
            packet_id,
            properties,
            requests: requests_listed,
        };
        self.write(&Packet::Subscribe(subscribe), now, out)?;
        self.expect_answer(packet_id, RequestKind::Subscribe, requests.len());
        Ok(packet_id)
    }

    /// Writes an UNSUBSCRIBE; [`Event::Unsubscribed`] answers it with one code per filter (none in
    /// 3.x).
    ///
    /// # Errors
    /// Nothing was written: no connection or no filter.
    pub fn unsubscribe(
        &mut self,
        user: UserProperties<'_>,
        filters: &[TopicFilter<'_>],
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SubscribeError> {
        if self.phase != Phase::Connected {
            return Err(SubscribeError::NotConnected);
        }
        // [MQTT-3.10.3-2] [MQTT3-3.10.3-2]
        if filters.is_empty() {
            return Err(SubscribeError::NoFilter);
        }
        let packet_id = self.next_packet_id().ok_or(SubscribeError::NoPacketId)?;
        let unsubscribe = Unsubscribe {
            packet_id,
            user,
            filters: TopicFilters::Listed(filters),
        };
        self.write(&Packet::Unsubscribe(unsubscribe), now, out)?;
        self.expect_answer(packet_id, RequestKind::Unsubscribe, filters.len());
        Ok(packet_id)
    }

    pub(super) fn handle_suback<'p>(&mut self, ack: SubAck<'p>) -> Result<Event<'p>, Violation> {
        let filters = self.take_request(ack.packet_id, RequestKind::Subscribe)?;
        if ack.codes.len() != filters {
            return Err(protocol_error("SUBACK without one reason code per filter"));
        }
        Ok(Event::Subscribed(ack))
    }

    pub(super) fn handle_unsuback<'p>(&mut self, ack: SubAck<'p>) -> Result<Event<'p>, Violation> {
        let filters = self.take_request(ack.packet_id, RequestKind::Unsubscribe)?;
        if self.options.version == Version::V5 && ack.codes.len() != filters {
            return Err(protocol_error(
                "UNSUBACK without one reason code per filter",
            ));
        }
        Ok(Event::Unsubscribed(ack))
    }

    fn check_subscribe(
        &self,
        properties: &SubscribeProperties<'_>,
        requests: &[SubscriptionRequest<'_>],
    ) -> Result<(), SubscribeError> {
        if self.phase != Phase::Connected {
            return Err(SubscribeError::NotConnected);
        }
        // [MQTT-3.8.3-2] [MQTT3-3.8.3-3]
        if requests.is_empty() {
            return Err(SubscribeError::NoFilter);
        }
        if properties.subscription_identifier.is_some() && !self.server.identifiers_available {
            return Err(SubscribeError::IdentifiersNotSupported);
        }
        for request in requests {
            let shared = request.filter.shared().is_some();
            // [MQTT-3.8.3-4]
            if shared && request.options.no_local {
                return Err(SubscribeError::SharedNoLocal);
            }
            if shared && !self.server.shared_available {
                return Err(SubscribeError::SharedNotSupported);
            }
            if request.filter.has_wildcard() && !self.server.wildcard_available {
                return Err(SubscribeError::WildcardNotSupported);
            }
        }
        Ok(())
    }

    fn expect_answer(&mut self, packet_id: PacketId, kind: RequestKind, filters: usize) {
        let requests = &mut self.exchanges.get_or_insert_default().requests;
        requests.push(Request {
            packet_id,
            kind,
            filters,
        });
    }

    /// How many filters the answered request has.
    fn take_request(&mut self, packet_id: PacketId, kind: RequestKind) -> Result<usize, Violation> {
        let requests = &mut self.exchanges.get_or_insert_default().requests;
        let answered = |request: &Request| request.packet_id == packet_id && request.kind == kind;
        let Some(at) = requests.iter().position(answered) else {
            return Err(protocol_error("SUBACK or UNSUBACK for no request"));
        };
        let filters = requests.remove(at).filters;
        self.release_exchanges();
        Ok(filters)
    }
}

impl From<SendError> for SubscribeError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLarge => Self::TooLarge,
            SendError::Encode(error) => Self::Encode(error),
        }
    }
}
