//! One message for many: frames encoded once, and no memory for those that need none.

use super::*;

#[test]
fn the_size_limit_holds_for_copies_of_a_cached_frame_too() {
    let mut frames = FrameCache::default();
    let payload = "0123456789".repeat(5);
    let mut outgoing = Outgoing::new(publication("t", &payload), &mut frames);
    for (bytes_max, expected) in [(99, true), (56, true), (55, false), (99, true)] {
        let mut connect = persistent(Version::V5);
        connect.properties.maximum_packet_size = Some(bytes_max);
        let mut session = Peer::new(&connect).session;
        let mut out = Vec::new();
        let delivered = session.deliver(&mut outgoing, options(QOS0), Time::default(), &mut out);
        assert_eq!(delivered == Delivered::Sent, expected);
        assert_eq!(out.len(), if expected { 56 } else { 0 });
    }
}

#[test]
fn every_receiver_of_a_fan_out_gets_its_own_copy() {
    let mut frames = FrameCache::default();
    let mut outgoing = Outgoing::new(publication("some/topic", "payload"), &mut frames);
    let forms = [
        (QOS0, false, "PUBLISH 0 some/topic=payload"),
        (QOS1, false, "PUBLISH 1 #ID some/topic=payload"),
        (QOS1, true, "PUBLISH 1 #ID retain some/topic=payload"),
        (QOS2, false, "PUBLISH 2 #ID some/topic=payload"),
    ];
    for sent_before in 0..4 {
        for (version, (qos, retain, expected)) in VERSIONS
            .into_iter()
            .flat_map(|version| forms.map(|form| (version, form)))
        {
            let mut peer = Peer::new(&connect(version));
            for _ in 0..sent_before {
                peer.sent(QOS1, "");
            }
            let options = DeliveryOptions {
                retain,
                ..options(qos)
            };
            let mut out = b"before".to_vec();
            peer.session
                .deliver(&mut outgoing, options, peer.now, &mut out);
            let packet_id = (sent_before + 1).to_string();
            assert_eq!(
                lines(&out[6..], version),
                [expected.replace("ID", &packet_id)]
            );
        }
    }
}

#[test]
fn a_frame_cache_forgets_the_publication_before() {
    let mut frames = FrameCache::default();
    for (topic, payload) in [("t", "first"), ("t", "second"), ("u", "third")] {
        let mut outgoing = Outgoing::new(publication(topic, payload), &mut frames);
        for _ in 0..3 {
            let mut session = Peer::new(&connect(Version::V311)).session;
            let mut out = Vec::new();
            session.deliver(&mut outgoing, options(QOS0), Time::default(), &mut out);
            assert_eq!(
                lines(&out, Version::V311),
                [format!("PUBLISH 0 {topic}={payload}")]
            );
        }
    }
}

#[test]
fn only_a_session_that_may_need_it_again_keeps_the_message() {
    let message = Arc::new(Message::new(&publication("t", "x")));
    let count = |connect: &Connect<'_>, options: DeliveryOptions<'_>| {
        let mut frames = FrameCache::default();
        let mut session = Peer::new(connect).session;
        let mut out = Vec::new();
        let mut outgoing = Outgoing::from_message(&message, &mut frames);
        session.deliver(&mut outgoing, options, Time::default(), &mut out);
        drop(outgoing);
        Arc::strong_count(&message) - 1
    };
    let shared = DeliveryOptions {
        group: Some(3),
        ..options(QOS1)
    };
    for version in VERSIONS {
        assert_eq!(count(&connect(version), options(QOS1)), 0);
        assert_eq!(count(&connect(version), options(QOS2)), 0);
        assert_eq!(count(&connect(version), shared), 1);
        assert_eq!(count(&persistent(version), options(QOS1)), 1);
        assert_eq!(count(&persistent(version), options(QOS2)), 1);
        assert_eq!(count(&persistent(version), options(QOS0)), 0);
    }
}

// [MQTT-4.3.3-6]
#[test]
fn a_qos2_message_is_let_go_once_the_client_has_it() {
    let message = Arc::new(Message::new(&publication("t", "x")));
    let mut peer = Peer::new(&persistent(Version::V5));
    let mut outgoing = Outgoing::from_message(&message, &mut peer.frames);
    peer.session
        .deliver(&mut outgoing, options(QOS2), peer.now, &mut Vec::new());
    drop(outgoing);
    assert_eq!(Arc::strong_count(&message), 2);
    peer.send(&pubrec(1)).unwrap();
    assert_eq!(Arc::strong_count(&message), 1);
}
