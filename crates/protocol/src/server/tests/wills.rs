//! When a will is published, and when it is not.

use thrum_codec::packet::Will;
use thrum_codec::properties::{UserProperties, WillProperties};

use super::*;

fn will(delay: u32) -> Will<'static> {
    let will_delay = (delay > 0).then_some(delay);
    Will {
        topic: "wills/client",
        payload: b"gone",
        qos: QOS1,
        retain: true,
        properties: WillProperties {
            will_delay,
            ..WillProperties::default()
        },
    }
}

/// A connected client with a will; an expiry of 0 makes its session clean.
fn peer(delay: u32, expiry: u32) -> Peer {
    Peer::new(&with_will(delay, expiry))
}

fn with_will(delay: u32, expiry: u32) -> Connect<'static> {
    let mut connect = Connect {
        will: Some(will(delay)),
        ..persistent(Version::V5)
    };
    connect.properties.session_expiry = Some(expiry);
    connect
}

fn check(message: Option<Message>) {
    let message = message.expect("a will");
    let publication = message.publication();
    assert_eq!(
        (publication.topic, publication.payload),
        ("wills/client", &b"gone"[..])
    );
    assert_eq!((publication.qos, publication.retain), (QOS1, true));
    assert_eq!(publication.publisher, 9);
}

// [MQTT-3.1.2-7] [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT3-3.1.2-8] [MQTT3-3.1.2-10]
#[test]
fn a_lost_connection_publishes_the_will_once() {
    for version in VERSIONS {
        for connect in [connect(version), persistent(version)] {
            let mut peer = Peer::new(&Connect {
                will: Some(will(0)),
                ..connect
            });
            check(peer.lose().will);
            assert!(peer.lose().will.is_none());
            assert!(peer.take_will().is_none());
        }
    }
}

// [MQTT3-3.1.2-12]
#[test]
fn without_a_will_none_is_published() {
    for version in VERSIONS {
        assert!(Peer::new(&connect(version)).lose().will.is_none());
    }
}

// [MQTT-3.1.2-10] [MQTT-3.14.4-3] [MQTT3-3.1.2-10] [MQTT3-3.14.4-3]
#[test]
fn a_normal_disconnect_deletes_the_will() {
    for version in VERSIONS {
        let mut peer = Peer::new(&Connect {
            will: Some(will(0)),
            ..connect(version)
        });
        peer.send(&client_disconnect(ReasonCode::Success)).unwrap();
        assert!(peer.lose().will.is_none());
        assert!(peer.take_will().is_none());
    }
    let mut delayed = peer(10, 100);
    delayed
        .send(&client_disconnect(ReasonCode::Success))
        .unwrap();
    delayed.lose();
    delayed.advance_millis(10_000);
    assert!(matches!(
        delayed.session.handle_timeout(delayed.now),
        Timeout::Pending
    ));
}

#[test]
fn any_other_disconnect_publishes_it() {
    for reason in [ReasonCode::DisconnectWithWill, ReasonCode::UnspecifiedError] {
        let mut peer = peer(0, 0);
        peer.send(&client_disconnect(reason)).unwrap();
        check(peer.lose().will);
    }
}

// [MQTT-3.1.2-8]
#[test]
fn a_connection_ended_by_the_server_publishes_the_will() {
    let reasons = [
        ReasonCode::ProtocolError,
        ReasonCode::KeepAliveTimeout,
        ReasonCode::SessionTakenOver,
    ];
    for reason in reasons {
        let mut peer = peer(0, 100);
        peer.disconnect(reason, None);
        check(peer.lose().will);
    }
    let mut peer = peer(0, 100);
    peer.disconnect(ReasonCode::Success, None);
    assert!(
        peer.lose().will.is_none(),
        "the server deleted it with 0x00"
    );
}

// [MQTT-3.1.2-8]
#[test]
fn a_delayed_will_is_published_after_its_delay() {
    let mut peer = peer(10, 100);
    assert!(peer.lose().will.is_none());
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(10)));
    peer.advance_millis(9999);
    assert!(matches!(
        peer.session.handle_timeout(peer.now),
        Timeout::Pending
    ));
    peer.advance_millis(1);
    let Timeout::Will(message) = peer.session.handle_timeout(peer.now) else {
        panic!("the will is due");
    };
    check(Some(message));
    assert!(matches!(
        peer.session.handle_timeout(peer.now),
        Timeout::Pending
    ));
    // The remaining deadline is the session expiry.
    let rest = peer.session.next_deadline().unwrap();
    assert_eq!(rest, peer.now.plus_secs(90));
    assert!(matches!(
        peer.session.handle_timeout(rest),
        Timeout::Expired(None)
    ));
}

// [MQTT-3.1.2-8]
#[test]
fn the_end_of_the_session_does_not_wait_for_the_delay() {
    let mut clean = peer(10, 0);
    let end = clean.lose();
    assert!(end.session_ended);
    check(end.will);
    for delay in [100, 500] {
        let mut short = peer(delay, 100);
        assert!(short.lose().will.is_none());
        assert_eq!(
            short.session.next_deadline(),
            Some(short.now.plus_secs(100))
        );
        short.advance_millis(100_000);
        let Timeout::Expired(message) = short.session.handle_timeout(short.now) else {
            panic!("the session is over");
        };
        check(message);
    }
}

#[test]
fn a_disconnect_that_ends_the_session_publishes_its_will_at_once() {
    let mut peer = peer(10, 100);
    let properties = DisconnectProperties {
        session_expiry: Some(0),
        ..DisconnectProperties::default()
    };
    let reason = ReasonCode::DisconnectWithWill;
    peer.send(&Packet::Disconnect(Disconnect { reason, properties }))
        .unwrap();
    let end = peer.lose();
    assert!(end.session_ended);
    check(end.will);
}

// [MQTT-3.1.3-9] [MQTT-3.1.2-8]
#[test]
fn a_reconnect_within_the_delay_cancels_the_will() {
    let mut peer = peer(10, 100);
    peer.lose();
    peer.advance_millis(9999);
    peer.reconnect(&persistent(Version::V5));
    peer.advance_millis(1);
    assert!(matches!(
        peer.session.handle_timeout(peer.now),
        Timeout::Pending
    ));
    assert!(peer.lose().will.is_none(), "the new connection has no will");
    assert!(peer.take_will().is_none());
}

#[test]
fn a_new_connection_has_its_own_will() {
    let mut peer = peer(10, 100);
    peer.lose();
    peer.reconnect(&with_will(0, 100));
    check(peer.lose().will);
}

// [MQTT-3.1.2-8]
#[test]
fn a_pending_will_can_be_taken() {
    let mut connected = peer(10, 100);
    check(connected.take_will());
    assert!(connected.lose().will.is_none());
    let mut away = peer(10, 100);
    away.lose();
    check(away.take_will());
    away.advance_millis(10_000);
    assert!(matches!(
        away.session.handle_timeout(away.now),
        Timeout::Pending
    ));
}

#[test]
fn the_expiry_of_a_will_counts_from_its_publication() {
    let mut message = will(10);
    message.properties.message_expiry = Some(60);
    let mut connect = with_will(0, 100);
    connect.will = Some(message);
    let mut peer = Peer::new(&connect);
    peer.lose();
    peer.advance_millis(10_000);
    let Timeout::Will(message) = peer.session.handle_timeout(peer.now) else {
        panic!("the will is due");
    };
    assert_eq!(
        message.publication().expires_at,
        Some(peer.now.plus_secs(60))
    );
    let mut peer = Peer::new(&connect);
    let later = peer.now.plus_secs(5);
    let message = peer.session.take_will_at(later).unwrap();
    assert_eq!(message.publication().expires_at, Some(later.plus_secs(60)));
}

// [MQTT-3.1.3-10] [MQTT-3.1.2-14] [MQTT-3.1.2-15] [MQTT3-3.1.2-16] [MQTT3-3.1.2-17]
#[test]
fn a_will_is_published_unchanged() {
    let user = UserProperties::Listed(&[("b", "2"), ("a", "1"), ("b", "1")]);
    let properties = WillProperties {
        will_delay: None,
        payload_format_indicator: Some(true),
        message_expiry: None,
        content_type: Some("text/plain"),
        response_topic: Some("answers"),
        correlation_data: Some(b"\x01"),
        user,
    };
    for (qos, retain) in [(QOS0, false), (QOS2, true)] {
        let given = Will {
            topic: "w",
            payload: b"x",
            qos,
            retain,
            properties,
        };
        let mut peer = Peer::new(&Connect {
            will: Some(given),
            ..connect(Version::V5)
        });
        let message = peer.lose().will.unwrap();
        let publication = message.publication();
        let expected = PublishProperties {
            payload_format_indicator: Some(true),
            content_type: Some("text/plain"),
            response_topic: Some("answers"),
            correlation_data: Some(b"\x01"),
            user,
            ..PublishProperties::default()
        };
        assert_eq!(publication.properties, expected);
        assert_eq!((publication.qos, publication.retain), (qos, retain));
        assert_eq!(publication.expires_at, None);
    }
}
