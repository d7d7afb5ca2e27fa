//! Messages of shared subscriptions that go to another member.

use super::*;

fn deliver(peer: &mut Peer, qos: QoS, group: Option<GroupId>, payload: &str) -> Delivered {
    let options = DeliveryOptions {
        group,
        is_acknowledged: false,
        ..options(qos)
    };
    peer.deliver_publication(&publication("t", payload), &options)
        .0
}

fn taken(peer: &mut Peer, group: Option<GroupId>) -> Vec<(GroupId, String)> {
    taken_of(peer, group.as_ref().map(std::slice::from_ref))
}

fn taken_of(peer: &mut Peer, groups: Option<&[GroupId]>) -> Vec<(GroupId, String)> {
    peer.session
        .outbound_mut()
        .take_shared(groups)
        .iter()
        .map(|taken| {
            let payload = taken.message.payload().to_vec();
            (taken.group, String::from_utf8(payload).unwrap())
        })
        .collect()
}

fn expected(list: &[(GroupId, &str)]) -> Vec<(GroupId, String)> {
    list.iter()
        .map(|(group, payload)| (*group, (*payload).to_string()))
        .collect()
}

fn busy(connect: &Connect<'_>) -> Peer {
    let mut peer = Peer::new(connect);
    for (qos, group, payload) in [
        (QOS1, Some(1), "a"),
        (QOS1, None, "b"),
        (QOS2, Some(1), "c"),
        (QOS1, Some(2), "d"),
        (QOS2, Some(2), "e"),
    ] {
        assert_eq!(deliver(&mut peer, qos, group, payload), Delivered::Sent);
    }
    for (qos, group, payload) in [
        (QOS1, Some(1), "f"),
        (QOS1, None, "g"),
        (QOS2, Some(2), "h"),
        (QOS1, Some(1), "i"),
    ] {
        assert_eq!(deliver(&mut peer, qos, group, payload), Delivered::Queued);
    }
    peer
}

fn clean_windowed() -> Connect<'static> {
    let mut connect = windowed(5);
    connect.properties.session_expiry = None;
    connect
}

// [MQTT-4.8.2-5]
#[test]
fn the_end_of_a_session_returns_all_but_sent_qos2_messages() {
    for connect in [windowed(5), clean_windowed()] {
        let mut peer = busy(&connect);
        peer.lose();
        let all = [(1, "a"), (2, "d"), (1, "f"), (2, "h"), (1, "i")];
        assert_eq!(taken(&mut peer, None), expected(&all));
        assert!(taken(&mut peer, None).is_empty());
    }
}

#[test]
fn an_acknowledged_message_is_not_returned() {
    let mut peer = busy(&clean_windowed());
    peer.send(&puback(1)).unwrap();
    peer.send(&pubrec(3)).unwrap();
    let all = [(2, "d"), (1, "f"), (2, "h"), (1, "i")];
    assert_eq!(taken(&mut peer, None), expected(&all));
}

// [MQTT-3.10.4-3] [MQTT3-3.10.4-3] [MQTT-4.8.2-4]
#[test]
fn leaving_a_group_returns_queued_messages_and_completes_sent_ones() {
    let mut peer = busy(&windowed(5));
    assert_eq!(taken(&mut peer, Some(1)), expected(&[(1, "f"), (1, "i")]));
    assert_eq!(peer.session.outbound().backlog(), (2, queue_bytes(2, 4), 5));
    peer.lose();
    let lines = peer.reconnect(&windowed(5));
    let all = [
        "PUBLISH 1 #1 dup t=a",
        "PUBLISH 1 #2 dup t=b",
        "PUBLISH 2 #3 dup t=c",
        "PUBLISH 1 #4 dup t=d",
        "PUBLISH 2 #5 dup t=e",
    ];
    assert_eq!(lines, all);
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 1 #6 t=g"]);
    assert_eq!(peer.send(&puback(2)).unwrap(), ["PUBLISH 2 #7 t=h"]);
}

// [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
#[test]
fn leaving_several_groups_returns_queued_messages_in_order() {
    let mut peer = busy(&windowed(5));
    let left = taken_of(&mut peer, Some(&[1, 2, 77]));
    assert_eq!(left, expected(&[(1, "f"), (2, "h"), (1, "i")]));
    assert_eq!(peer.session.outbound().backlog().0, 1, "g, of no group");
}

#[test]
fn a_group_without_messages_returns_nothing() {
    let mut peer = busy(&windowed(5));
    assert!(taken(&mut peer, Some(77)).is_empty());
    assert!(
        Peer::new(&windowed(5))
            .session
            .outbound_mut()
            .take_shared(None)
            .is_empty()
    );
    assert_eq!(peer.session.outbound().backlog(), (4, queue_bytes(4, 8), 5));
}
