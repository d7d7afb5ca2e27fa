//! Topic aliases towards the client.

use super::*;

fn with_aliases(maximum: u16) -> Connect<'static> {
    let mut connect = windowed(10);
    connect.properties.topic_alias_maximum = Some(maximum);
    connect
}

fn sent_on(peer: &mut Peer, topic: &str) -> String {
    let (_, mut lines) = peer.deliver_publication(&publication(topic, ""), &options(QOS0));
    lines.remove(0)
}

// [MQTT-3.1.2-26] [MQTT-3.3.2-8] [MQTT-3.3.2-11]
#[test]
fn long_topics_get_an_alias_up_to_the_clients_maximum() {
    let mut peer = Peer::new(&with_aliases(2));
    assert_eq!(
        sent_on(&mut peer, "a/long/topic"),
        "PUBLISH 0 alias=1 a/long/topic="
    );
    assert_eq!(sent_on(&mut peer, "a/long/topic"), "PUBLISH 0 alias=1 =");
    assert_eq!(sent_on(&mut peer, "abc"), "PUBLISH 0 abc=");
    assert_eq!(
        sent_on(&mut peer, "b/long/topic"),
        "PUBLISH 0 alias=2 b/long/topic="
    );
    assert_eq!(
        sent_on(&mut peer, "c/long/topic"),
        "PUBLISH 0 c/long/topic="
    );
    assert_eq!(sent_on(&mut peer, "b/long/topic"), "PUBLISH 0 alias=2 =");
    assert_eq!(sent_on(&mut peer, "a/long/topic"), "PUBLISH 0 alias=1 =");
}

// [MQTT-3.1.2-27]
#[test]
fn no_alias_is_used_if_either_side_has_a_maximum_of_0() {
    let limits = Limits {
        topic_alias_outbound_max: 0,
        ..Limits::default()
    };
    let (server_none, _) = Peer::with(limits, &with_aliases(10));
    for mut peer in [
        server_none,
        Peer::new(&with_aliases(0)),
        Peer::new(&persistent(Version::V5)),
    ] {
        assert_eq!(
            sent_on(&mut peer, "a/long/topic"),
            "PUBLISH 0 a/long/topic="
        );
    }
}

#[test]
fn the_server_uses_no_more_aliases_than_its_limit() {
    let limits = Limits {
        topic_alias_outbound_max: 1,
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &with_aliases(10));
    assert_eq!(
        sent_on(&mut peer, "a/long/topic"),
        "PUBLISH 0 alias=1 a/long/topic="
    );
    assert_eq!(
        sent_on(&mut peer, "b/long/topic"),
        "PUBLISH 0 b/long/topic="
    );
}

// [MQTT-3.3.2-7]
#[test]
fn aliases_towards_the_client_end_with_the_connection() {
    let mut peer = Peer::new(&with_aliases(2));
    sent_on(&mut peer, "a/long/topic");
    let first = publication("a/long/topic", "x");
    peer.deliver_publication(&first, &options(QOS1));
    peer.lose();
    // The redelivery sets it again, and later messages can use it.
    let lines = peer.reconnect(&with_aliases(2));
    assert_eq!(lines, ["PUBLISH 1 #1 dup alias=1 a/long/topic=x"]);
    assert_eq!(sent_on(&mut peer, "a/long/topic"), "PUBLISH 0 alias=1 =");
    peer.lose();
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 1 #1 dup a/long/topic=x"]);
}

#[test]
fn an_alias_that_was_not_sent_is_not_used() {
    let mut connect = with_aliases(2);
    connect.properties.maximum_packet_size = Some(30);
    let mut peer = Peer::new(&connect);
    let large = "x".repeat(30);
    let (delivered, _) =
        peer.deliver_publication(&publication("a/long/topic", &large), &options(QOS0));
    assert_eq!(delivered, Delivered::Dropped(DropReason::TooLarge));
    assert_eq!(
        sent_on(&mut peer, "a/long/topic"),
        "PUBLISH 0 alias=1 a/long/topic="
    );
}
