//! SUBSCRIBE, UNSUBSCRIBE and their acknowledgements.

use thrum_codec::packet::{ReasonCodes, SubAck, SubscriptionOptions, SubscriptionRequest};
use thrum_codec::properties::{SubscribeProperties, UserProperties};

use super::*;
use crate::client::SubscribeError;

fn request(filter: &str) -> SubscriptionRequest<'_> {
    let filter = TopicFilter::parse(filter).unwrap();
    SubscriptionRequest {
        filter,
        options: SubscriptionOptions::default(),
    }
}

fn answer(packet_id: u16, codes: &[ReasonCode]) -> SubAck<'_> {
    let codes = ReasonCodes::Listed(codes);
    SubAck {
        packet_id: id(packet_id),
        properties: AckProperties::default(),
        codes,
    }
}

impl Peer {
    fn subscribe(&mut self, requests: &[SubscriptionRequest<'_>]) -> Result<u16, SubscribeError> {
        let properties = SubscribeProperties::default();
        let id = self
            .client
            .subscribe(properties, requests, self.now, &mut self.out)?;
        Ok(id.as_u16())
    }

    fn unsubscribe(&mut self, filters: &[TopicFilter<'_>]) -> Result<u16, SubscribeError> {
        let user = UserProperties::default();
        let id = self
            .client
            .unsubscribe(user, filters, self.now, &mut self.out)?;
        Ok(id.as_u16())
    }
}

// [MQTT-2.2.1-3] [MQTT3-2.3.1-1] [MQTT3-2.3.1-2]
#[test]
fn requests_and_messages_share_the_packet_identifiers() {
    let mut peer = Peer::connected(clean(Version::V5));
    assert_eq!(peer.publish(QoS::AtLeastOnce, "t"), Ok(1));
    assert_eq!(peer.subscribe(&[request("a/#"), request("b")]), Ok(2));
    assert_eq!(peer.unsubscribe(&[TopicFilter::parse("c").unwrap()]), Ok(3));
    assert_eq!(peer.sent()[1..], ["SUBSCRIBE #2 a/# b", "UNSUBSCRIBE #3 c"]);
    let granted = [ReasonCode::Success, ReasonCode::NotAuthorized];
    assert_eq!(
        peer.receive(Packet::SubAck(answer(2, &granted))).unwrap(),
        "subscribed #2"
    );
    let done = [ReasonCode::NoSubscriptionExisted];
    assert_eq!(
        peer.receive(Packet::UnsubAck(answer(3, &done))).unwrap(),
        "unsubscribed #3"
    );
}

// [MQTT-3.8.3-2] [MQTT-3.10.3-2] [MQTT3-3.8.3-3] [MQTT3-3.10.3-2]
#[test]
fn an_empty_request_is_not_sent() {
    let mut peer = Peer::connected(clean(Version::V5));
    assert_eq!(peer.subscribe(&[]), Err(SubscribeError::NoFilter));
    assert_eq!(peer.unsubscribe(&[]), Err(SubscribeError::NoFilter));
    assert!(peer.out.is_empty());
}

// [MQTT-3.8.3-4]
#[test]
fn a_shared_subscription_with_no_local_is_not_sent() {
    let mut peer = Peer::connected(clean(Version::V5));
    let mut shared = request("$share/group/t");
    shared.options.no_local = true;
    assert_eq!(
        peer.subscribe(&[shared]),
        Err(SubscribeError::SharedNoLocal)
    );
    shared.options.no_local = false;
    assert_eq!(peer.subscribe(&[shared]), Ok(1));
}

#[test]
fn requests_that_the_server_does_not_support_are_not_sent() {
    let mut peer = Peer::new(clean(Version::V5));
    let properties = ConnAckProperties {
        wildcard_subscription_available: Some(false),
        shared_subscription_available: Some(false),
        subscription_identifiers_available: Some(false),
        ..ConnAckProperties::default()
    };
    peer.reconnect(&accept_with(false, properties));
    assert_eq!(
        peer.subscribe(&[request("a/+")]),
        Err(SubscribeError::WildcardNotSupported)
    );
    assert_eq!(
        peer.subscribe(&[request("$share/g/a")]),
        Err(SubscribeError::SharedNotSupported)
    );
    let numbered = SubscribeProperties {
        subscription_identifier: Some(1),
        ..SubscribeProperties::default()
    };
    let result = peer
        .client
        .subscribe(numbered, &[request("a")], peer.now, &mut peer.out);
    assert_eq!(result, Err(SubscribeError::IdentifiersNotSupported));
    assert_eq!(peer.subscribe(&[request("a")]), Ok(1));
}

#[test]
fn a_request_over_the_servers_packet_size_is_not_sent() {
    let mut peer = Peer::new(clean(Version::V5));
    let properties = ConnAckProperties {
        maximum_packet_size: Some(12),
        ..ConnAckProperties::default()
    };
    peer.reconnect(&accept_with(false, properties));
    assert_eq!(
        peer.subscribe(&[request("a/long/filter")]),
        Err(SubscribeError::TooLarge)
    );
    assert!(peer.out.is_empty());
}

#[test]
fn an_acknowledgement_that_does_not_match_its_request_is_a_violation() {
    let check = |packet: Packet<'_>| {
        let mut peer = Peer::connected(clean(Version::V5));
        peer.subscribe(&[request("a")]).unwrap();
        assert_eq!(
            peer.receive(packet).unwrap_err().reason,
            ReasonCode::ProtocolError
        );
    };
    let one = [ReasonCode::Success];
    check(Packet::SubAck(answer(2, &one)));
    check(Packet::UnsubAck(answer(1, &one)));
    check(Packet::SubAck(answer(
        1,
        &[ReasonCode::Success, ReasonCode::Success],
    )));
    let mut peer = Peer::connected(clean(Version::V311));
    peer.unsubscribe(&[TopicFilter::parse("c").unwrap()])
        .unwrap();
    assert_eq!(
        peer.receive(Packet::UnsubAck(answer(1, &[]))).unwrap(),
        "unsubscribed #1"
    );
}

#[test]
fn unanswered_requests_end_with_the_connection() {
    let mut peer = Peer::connected(persistent(Version::V5));
    peer.subscribe(&[request("a")]).unwrap();
    peer.reconnect(&accept(true));
    assert!(peer.sent().is_empty());
    assert!(
        peer.receive(Packet::SubAck(answer(1, &[ReasonCode::Success])))
            .is_err()
    );
}
