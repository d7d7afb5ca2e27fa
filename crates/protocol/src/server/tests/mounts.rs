//! Clients with a mount point: received topics have no prefix.

use thrum_codec::packet::Will;
use thrum_codec::properties::WillProperties;

use super::*;
use crate::MountPoint;

const MOUNT: &str = "tenant/one/";

fn mounted_handshake(connect: &Connect<'_>, mount: &str, limits: &Limits) -> Handshake {
    let mut handshake = Handshake::new(connect, "assigned-1", limits).unwrap();
    handshake.mount(MountPoint::parse(mount).unwrap()).unwrap();
    handshake
}

/// A session whose connection has the mount point.
fn mounted(connect: &Connect<'_>, mount: &str) -> Peer {
    let mut peer = Peer::new(connect);
    peer.lose();
    let limits = Arc::clone(&peer.session.limits);
    let handshake = mounted_handshake(connect, mount, &limits);
    peer.session = Session::new(9, &handshake, &limits);
    connect_again(&mut peer, handshake);
    peer
}

/// Returns the lines after CONNACK.
fn connect_again(peer: &mut Peer, handshake: Handshake) -> Vec<String> {
    let mut out = Output::new();
    let version = handshake.version();
    let parts = ConnAckParts::default();
    peer.session.connect(handshake, parts, peer.now, &mut out);
    lines(&out.to_vec(), version)[1..].to_vec()
}

fn remount(peer: &mut Peer, connect: &Connect<'_>, mount: &str) -> Vec<String> {
    let handshake = mounted_handshake(connect, mount, &peer.session.limits);
    connect_again(peer, handshake)
}

fn sent_on(peer: &mut Peer, topic: &str, qos: QoS) -> (Delivered, Vec<String>) {
    peer.deliver_publication(&publication(topic, "x"), &options(qos))
}

#[test]
fn a_client_behind_a_mount_point_sees_topics_without_it() {
    for version in VERSIONS {
        let mut peer = mounted(&persistent(version), MOUNT);
        let mount = peer.session.link().mount_point().map(MountPoint::as_str);
        assert_eq!(mount, Some(MOUNT));
        for (qos, expected) in [
            (QOS0, "PUBLISH 0 a/b=x"),
            (QOS1, "PUBLISH 1 #1 a/b=x"),
            (QOS2, "PUBLISH 2 #2 a/b=x"),
        ] {
            assert_eq!(
                sent_on(&mut peer, "tenant/one/a/b", qos),
                (Delivered::Sent, [expected.to_string()].to_vec())
            );
        }
    }
}

#[test]
fn a_topic_outside_of_the_mount_point_is_not_sent() {
    let mut peer = mounted(&persistent(Version::V5), MOUNT);
    for topic in [
        "tenant/two/a",
        "tenant/one",
        "tenant/one/",
        "a",
        "tenant/one1/a",
    ] {
        for qos in [QOS0, QOS1, QOS2] {
            let dropped = Delivered::Dropped(DropReason::OutsideMount);
            assert_eq!(sent_on(&mut peer, topic, qos), (dropped, [].to_vec()));
        }
    }
    // No packet identifier was allocated, and no exchange started.
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 0));
}

#[test]
fn queued_and_retransmitted_messages_have_no_prefix_either() {
    let mut peer = mounted(&windowed(1), MOUNT);
    peer.session.journal_mut().set_on(true);
    let (_, first) = sent_on(&mut peer, "tenant/one/a", QOS1);
    assert_eq!(first, ["PUBLISH 1 #1 a=x"]);
    for topic in ["tenant/one/b", "tenant/one/c"] {
        assert_eq!(sent_on(&mut peer, topic, QOS1).0, Delivered::Queued);
    }
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 1 #2 b=x"]);
    peer.lose();
    assert_eq!(peer.session.link().mount_point(), None);
    let again = remount(&mut peer, &windowed(1), MOUNT);
    assert_eq!(again, ["PUBLISH 1 #2 dup b=x"]);
    assert_eq!(peer.send(&puback(2)).unwrap(), ["PUBLISH 1 #3 c=x"]);
    // The steps contain whole topics.
    let steps = peer.session.journal_mut().take_steps().unwrap();
    let topics = steps.iter().filter_map(|step| match step {
        Step::Queued { message, .. } => Some(message.topic().to_string()),
        _ => None,
    });
    assert!(topics.eq(["tenant/one/a", "tenant/one/b", "tenant/one/c"]));
}

#[test]
fn messages_queued_under_another_mount_point_are_dropped() {
    let mut peer = mounted(&windowed(1), MOUNT);
    for topic in ["tenant/one/a", "tenant/one/b", "tenant/one/c"] {
        sent_on(&mut peer, topic, QOS1);
    }
    peer.lose();
    assert!(remount(&mut peer, &windowed(1), "tenant/two/").is_empty());
    assert_eq!(peer.dropped(), [(DropReason::OutsideMount, 3)]);
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 0));
    // Without a mount point the client sees whole topics.
    sent_on(&mut peer, "tenant/two/a", QOS1);
    peer.lose();
    assert_eq!(
        peer.reconnect(&windowed(1)),
        ["PUBLISH 1 #4 dup tenant/two/a=x"]
    );
}

// [MQTT-3.3.2-8]
#[test]
fn an_alias_is_set_to_the_topic_that_the_client_sees() {
    let mut connect = windowed(10);
    connect.properties.topic_alias_maximum = Some(2);
    let mut peer = mounted(&connect, MOUNT);
    let mut lines = |topic: &str, qos| sent_on(&mut peer, topic, qos).1.remove(0);
    assert_eq!(
        lines("tenant/one/long/topic", QOS0),
        "PUBLISH 0 alias=1 long/topic=x"
    );
    assert_eq!(
        lines("tenant/one/long/topic", QOS1),
        "PUBLISH 1 #1 alias=1 =x"
    );
    assert_eq!(lines("tenant/one/abc", QOS0), "PUBLISH 0 abc=x");
    // The retransmission has the topic, because the alias of the last connection is no longer set.
    peer.lose();
    assert_eq!(
        remount(&mut peer, &connect, MOUNT),
        ["PUBLISH 1 #1 dup alias=1 long/topic=x"]
    );
}

/// Delivers one message to sessions with different mount points and without one.
fn check_mounts(version: Version, qos: QoS, payload: &str) {
    let mut frames = FrameCache::default();
    let mut outgoing = Outgoing::new(publication("a/b/c", payload), &mut frames);
    let connect = persistent(version);
    for _ in 0..3 {
        let cases = [
            (Peer::new(&connect), Some("a/b/c")),
            (mounted(&connect, "a/"), Some("b/c")),
            (mounted(&connect, "a/b/"), Some("c")),
            (mounted(&connect, "b/"), None),
        ];
        for (mut peer, expected) in cases {
            let mut out = Output::new();
            let (session, options) = (&mut peer.session, options(qos));
            let delivered = session.deliver(&mut outgoing, options, peer.now, &mut out);
            assert_eq!(delivered == Delivered::Sent, expected.is_some());
            let id = if qos == QOS1 { " #1" } else { "" };
            let line = |topic| format!("PUBLISH {}{id} {topic}={payload}", qos.as_u8());
            let expected: Vec<_> = expected.into_iter().map(line).collect();
            assert_eq!(lines(&out.to_vec(), version), expected);
        }
    }
}

#[test]
fn one_message_reaches_clients_of_different_mount_points_with_their_topics() {
    let large = "0123456789abcdef".repeat(1024);
    for version in VERSIONS {
        for (qos, payload) in [(QOS0, "x"), (QOS1, "x"), (QOS0, &large), (QOS1, &large)] {
            check_mounts(version, qos, payload);
        }
    }
}

#[test]
fn the_size_limit_applies_to_the_packet_without_prefix() {
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(40);
    let topic = format!("{MOUNT}t");
    let payload = "x".repeat(34);
    let mut frames = FrameCache::default();
    let longer = "x".repeat(35);
    for (payload, expected) in [
        (&payload, Delivered::Sent),
        (&longer, Delivered::Dropped(DropReason::TooLarge)),
    ] {
        let mut outgoing = Outgoing::new(publication(&topic, payload), &mut frames);
        for _ in 0..3 {
            let mut peer = mounted(&connect, MOUNT);
            let mut out = Output::new();
            let delivered = peer
                .session
                .deliver(&mut outgoing, options(QOS0), peer.now, &mut out);
            assert_eq!(delivered, expected);
        }
    }
}

#[test]
fn a_will_is_published_with_the_prefix() {
    let will = Will {
        topic: "gone",
        payload: b"\xffbye",
        qos: QOS1,
        retain: true,
        properties: WillProperties {
            content_type: Some("text"),
            message_expiry: Some(60),
            ..WillProperties::default()
        },
    };
    let connect = Connect {
        will: Some(will),
        ..connect(Version::V5)
    };
    let mut peer = mounted(&connect, MOUNT);
    let message = peer.lose().will.unwrap();
    assert_eq!(message.topic(), "tenant/one/gone");
    assert_eq!(message.payload(), b"\xffbye");
    assert_eq!((message.qos(), message.retain()), (QOS1, true));
    assert_eq!(message.expires_at(), Some(peer.now.plus_secs(60)));
    let properties = message.publication().properties;
    assert_eq!(properties.content_type, Some("text"));
}

#[test]
fn a_will_too_long_for_its_mount_point_is_refused() {
    let limits = Limits {
        topic_bytes_max: u16::MAX,
        ..Limits::default()
    };
    let topic = "x".repeat(65_535 - 5);
    let will = Will {
        topic: &topic,
        payload: b"",
        qos: QOS0,
        retain: false,
        properties: WillProperties::default(),
    };
    let connect = Connect {
        will: Some(will),
        ..connect(Version::V5)
    };
    for (mount, expected) in [
        ("1234/", None),
        ("12345/", Some(ReasonCode::TopicNameInvalid)),
    ] {
        let mut handshake = Handshake::new(&connect, "", &limits).unwrap();
        let result = handshake.mount(MountPoint::parse(mount).unwrap());
        assert_eq!(result.err().map(|violation| violation.reason), expected);
    }
}

#[test]
fn the_limits_of_topics_apply_without_the_prefix() {
    let limits = Limits {
        topic_bytes_max: 4,
        topic_levels_max: 2,
        ..Limits::default()
    };
    let connect = persistent(Version::V5);
    let handshake = mounted_handshake(&connect, "a/very/long/mount/point/", &limits);
    let limits = Arc::new(limits);
    let mut session = Session::new(9, &handshake, &limits);
    let mut out = Output::new();
    let now = Time::default();
    session.connect(handshake, ConnAckParts::default(), now, &mut out);
    let mut take = |topic| {
        let packet = Packet::Publish(publish(QOS0, 0, topic, ""));
        session.handle_packet(packet, now, &mut out).is_ok()
    };
    assert!(take("a/bc"));
    assert!(!take("a/bcd") && !take("/b/c"));
}
