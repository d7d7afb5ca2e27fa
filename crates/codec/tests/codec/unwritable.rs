//! Packets that cannot be written, and leave the output unchanged.

use core::num::NonZeroU16;

use thrum_codec::packet::{
    Auth, ConnAck, Connect, Publish, ReasonCodes, SubAck, Subscribe, SubscriptionRequests,
    TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{
    AckProperties, AuthProperties, ConnAckProperties, ConnectProperties, PublishProperties,
    SubscribeProperties, SubscriptionIdentifiers, UserProperties,
};
use thrum_codec::testing::with_packet;
use thrum_codec::{
    EncodeError, FIELD_BYTES_MAX, Packet, PacketId, QoS, ReasonCode, VARIABLE_MAX, Version, encode,
    encoded_len,
};

const EVERY: &[Version] = &[Version::V31, Version::V311, Version::V5];
const THREE: &[Version] = &[Version::V31, Version::V311];
const FIVE: &[Version] = &[Version::V5];

#[track_caller]
#[expect(
    clippy::large_types_passed_by_value,
    reason = "the samples are made in place"
)]
fn check(versions: &[Version], packet: Packet<'_>, error: EncodeError) {
    for &version in versions {
        let mut out = b"before".to_vec();
        assert_eq!(
            encode(&packet, version, &mut out),
            Err(error),
            "{version:?}"
        );
        assert_eq!(out, b"before", "{version:?}");
        assert_eq!(encoded_len(&packet, version), Err(error), "{version:?}");
    }
}

fn publish<'a>(topic: &'a str, payload: &'a [u8]) -> Publish<'a> {
    Publish {
        dup: false,
        qos: QoS::AtMostOnce,
        retain: false,
        topic,
        packet_id: None,
        properties: PublishProperties::default(),
        payload,
    }
}

const fn connect(version: Version, properties: ConnectProperties<'_>) -> Connect<'_> {
    Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 0,
        client_id: "",
        will: None,
        username: None,
        password: None,
        properties,
    }
}

/// [MQTT-4.7.3-3] [MQTT3-4.7.3-3]
#[test]
fn fields_over_the_limit() {
    let longest = "a".repeat(FIELD_BYTES_MAX);
    let longer = "a".repeat(FIELD_BYTES_MAX + 1);
    let error = EncodeError::FieldTooLong;
    check(EVERY, Packet::Publish(publish(&longer, b"")), error);
    assert!(encoded_len(&Packet::Publish(publish(&longest, b"")), Version::V5).is_ok());
    for &version in EVERY {
        let bare = connect(version, ConnectProperties::default());
        let samples = [
            Connect {
                client_id: &longer,
                ..bare
            },
            Connect {
                username: Some(&longer),
                ..bare
            },
            Connect {
                username: Some(""),
                password: Some(longer.as_bytes()),
                ..bare
            },
        ];
        for sample in samples {
            check(EVERY, Packet::Connect(sample), error);
        }
        let fits = Packet::Connect(Connect {
            client_id: &longest,
            ..bare
        });
        assert!(encoded_len(&fits, version).is_ok());
    }
    let pairs = [("", longer.as_str())];
    let user = UserProperties::Listed(&pairs);
    let properties = PublishProperties {
        user,
        ..PublishProperties::default()
    };
    check(
        FIVE,
        Packet::Publish(Publish {
            properties,
            ..publish("t", b"")
        }),
        error,
    );
    // 3.x omits the property.
    let packet = Packet::Publish(Publish {
        properties,
        ..publish("t", b"")
    });
    assert_eq!(encoded_len(&packet, Version::V311), Ok(5));
}

#[test]
fn packets_over_the_limit() {
    let longest = "a".repeat(FIELD_BYTES_MAX);
    let pairs = vec![("", longest.as_str()); 4097];
    let user = UserProperties::Listed(&pairs);
    let properties = PublishProperties {
        user,
        ..PublishProperties::default()
    };
    let packet = Packet::Publish(Publish {
        properties,
        ..publish("t", b"")
    });
    check(FIVE, packet, EncodeError::PacketTooLong);
    let packet_id = PacketId::new(1).unwrap();
    let properties = AckProperties {
        reason_string: None,
        user,
    };
    let codes = ReasonCodes::Listed(&[ReasonCode::Success]);
    let packet = Packet::SubAck(SubAck {
        packet_id,
        properties,
        codes,
    });
    check(FIVE, packet, EncodeError::PacketTooLong);
    // 16 MiB and a little more: only the wire format limits the packet.
    let just_fits = UserProperties::Listed(&pairs[..256]);
    let properties = PublishProperties {
        user: just_fits,
        ..PublishProperties::default()
    };
    let packet = Packet::Publish(Publish {
        properties,
        ..publish("t", b"")
    });
    assert!(encoded_len(&packet, Version::V5).is_ok());
}

/// [MQTT3-3.1.2-22]
#[test]
fn packets_that_3_x_cannot_express() {
    let error = EncodeError::NotInVersion;
    let properties = AuthProperties {
        authentication_method: Some("m"),
        ..Default::default()
    };
    check(
        THREE,
        Packet::Auth(Auth {
            reason: ReasonCode::Success,
            properties,
        }),
        error,
    );
    let topic_alias = NonZeroU16::new(1);
    let properties = PublishProperties {
        topic_alias,
        ..PublishProperties::default()
    };
    check(
        THREE,
        Packet::Publish(Publish {
            properties,
            ..publish("", b"")
        }),
        error,
    );
    for &version in THREE {
        let bare = connect(version, ConnectProperties::default());
        check(
            EVERY,
            Packet::Connect(Connect {
                password: Some(b"p"),
                ..bare
            }),
            error,
        );
    }
}

/// [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT-3.8.3-2] [MQTT-3.10.3-2] [MQTT-4.7.3-1]
/// [MQTT3-2.3.1-1] [MQTT3-3.8.3-3] [MQTT3-3.10.3-2]
#[test]
fn packets_without_a_required_part() {
    let error = EncodeError::Incomplete;
    for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
        check(
            EVERY,
            Packet::Publish(Publish {
                qos,
                ..publish("t", b"")
            }),
            error,
        );
    }
    check(FIVE, Packet::Publish(publish("", b"")), error);
    let packet_id = PacketId::new(1).unwrap();
    let requests = SubscriptionRequests::Listed(&[]);
    let properties = SubscribeProperties::default();
    check(
        EVERY,
        Packet::Subscribe(Subscribe {
            packet_id,
            properties,
            requests,
        }),
        error,
    );
    let (user, filters) = (UserProperties::default(), TopicFilters::Listed(&[]));
    check(
        EVERY,
        Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user,
            filters,
        }),
        error,
    );
    let codes = ReasonCodes::Listed(&[]);
    let answer = SubAck {
        packet_id,
        properties: AckProperties::default(),
        codes,
    };
    check(EVERY, Packet::SubAck(answer), error);
    check(FIVE, Packet::UnsubAck(answer), error);
    let properties = AuthProperties::default();
    let reason = ReasonCode::ContinueAuthentication;
    check(FIVE, Packet::Auth(Auth { reason, properties }), error);
}

#[test]
fn values_out_of_range() {
    let error = EncodeError::OutOfRange;
    for identifier in [0, VARIABLE_MAX + 1, u32::MAX] {
        let identifiers = [1, identifier];
        let subscription_identifiers = SubscriptionIdentifiers::Listed(&identifiers);
        let properties = PublishProperties {
            subscription_identifiers,
            ..PublishProperties::default()
        };
        check(
            FIVE,
            Packet::Publish(Publish {
                properties,
                ..publish("t", b"")
            }),
            error,
        );
    }
    let properties = ConnectProperties {
        maximum_packet_size: Some(0),
        ..ConnectProperties::default()
    };
    check(
        EVERY,
        Packet::Connect(connect(Version::V5, properties)),
        error,
    );
    let properties = ConnAckProperties {
        maximum_packet_size: Some(0),
        ..ConnAckProperties::default()
    };
    let reason = ReasonCode::Success;
    check(
        FIVE,
        Packet::ConnAck(ConnAck {
            session_present: false,
            reason,
            properties,
        }),
        error,
    );
}

/// The round trips depend on this: generated packets are of every kind, with and without lists.
#[test]
fn generated_packets_are_of_every_kind() {
    let mut kinds = std::collections::BTreeSet::new();
    for kind in 0..15 {
        for filler in 0..=u8::MAX {
            let mut choices = vec![filler; 200];
            choices[0] = kind;
            with_packet(&choices, Version::V5, |packet| {
                let text = format!("{packet:?}");
                let kind = text.split('(').next().expect("a name").to_owned();
                kinds.insert((kind, text.contains("Listed([(")));
            });
        }
    }
    // PINGREQ and PINGRESP have no properties.
    assert_eq!(kinds.len(), 28, "{kinds:?}");
}
