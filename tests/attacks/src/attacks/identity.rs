//! Attacks on client identities, and on revoked rights.

use std::time::Duration;

use thrum_conformance::packets::{Connect, Publish};
use thrum_conformance::{Event, Version, Wire};

use crate::outcome::Outcome;
use crate::victim::{Setup, Site, Victim};

/// No message arrives after this time.
const SILENCE: Duration = Duration::from_millis(500);
/// Longest wait for a CONNACK.
const CONNACK_MAX: Duration = Duration::from_secs(10);
const USERS: [(&str, &str); 2] = [("alice", "a-1234567"), ("bob", "b-1234567")];
/// Rules for users without rules in the store.
const RULES: &str =
    "allow all pubsub open/#\nallow all pubsub for-alice\nallow all pubsub probe/#\n";

/// Messages until none arrives any more.
fn messages(wire: &mut Wire) -> usize {
    let mut count = 0;
    while let Event::Packet(packet) = wire.next(SILENCE) {
        count += usize::from(packet.kind() == 3);
    }
    count
}

fn publish(victim: &Victim, topic: &str, count: u16) {
    let mut publisher = victim.client();
    for number in 0..count {
        let message = Publish::new(Version::V5, topic, 1, &number.to_be_bytes());
        publisher.deliver(&message);
    }
}

/// Messages for a disconnected client, and for one with a full window, are published before the
/// right to them ends.
pub fn revoked_rights(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[("THRUM_ACL__FILE", "{folder}rules")],
        files: &[("rules", RULES)],
        ..Setup::default()
    };
    let victim = Victim::start(site, &setup);
    let (mut away, _) = victim.resume("away");
    away.subscribe("open/#", 1);
    away.abandon();
    let one_at_a_time = Connect::new(Version::V5).client_id("full").persistent();
    let one_at_a_time = one_at_a_time.properties(&[0x21, 0, 1]);
    let (mut full, _) = Wire::connect(victim.address(), &one_at_a_time);
    full.subscribe("open/#", 1);
    publish(&victim, "open/a", 3);
    full.publish();
    let denied = "deny client:away pubsub open/#\ndeny client:full pubsub open/#";
    victim.put_rules_first(denied, RULES);
    full.closed(CONNACK_MAX);
    let received = messages(&mut victim.resume("away").0);
    // The one in flight may be sent again.
    let (mut full, _) = Wire::connect(victim.address(), &one_at_a_time);
    let more = messages(&mut full).saturating_sub(1);
    let wrong = (received + more > 0).then(|| {
        format!("{received} of 3 delivered to the disconnected client, {more} of 2 to the full one")
    });
    victim.end_with(wrong, "0 of 5 delivered".to_owned())
}

/// Bob has a password, and the client identifier of Alice's device.
pub fn flapping(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[
            ("THRUM_AUTH__USERS", "{folder}users.jsonl"),
            ("THRUM_ACL__FILE", "{folder}rules"),
            ("THRUM_PROTECTION__FLAPPING__ENABLED", "true"),
        ],
        files: &[("rules", RULES)],
        users: &USERS,
        ..Setup::default()
    };
    let victim = Victim::start(site, &setup);
    let connect = |(user, password)| connect_as(&victim, "device-7", (user, password));
    let (_device, code) = connect(USERS[0]);
    assert_eq!(code, 0, "Alice is admitted before the attack");
    for _ in 0..20 {
        connect(USERS[1]);
    }
    let (_, code) = connect(USERS[0]);
    let wrong = (code != 0).then(|| format!("the owner of the identifier gets {code:#04x}"));
    victim.end_with(wrong, "the owner of the identifier is admitted".to_owned())
}

/// Bob connects with the client identifier of Alice's device, where a message waits.
pub fn takeover(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[
            ("THRUM_AUTH__USERS", "{folder}users.jsonl"),
            ("THRUM_ACL__FILE", "{folder}rules"),
        ],
        files: &[("rules", RULES)],
        users: &USERS,
        ..Setup::default()
    };
    let victim = Victim::start(site, &setup);
    let (alice, password) = USERS[0];
    let owner = Connect::new(Version::V5).client_id("device-7").persistent();
    let owner = owner.credentials(alice, password);
    let (mut device, _) = Wire::connect(victim.address(), &owner);
    device.subscribe("for-alice", 1);
    device.abandon();
    publish(&victim, "for-alice", 1);
    let (_, code) = connect_as(&victim, "device-7", USERS[1]);
    let (mut device, connack) = Wire::connect(victim.address(), &owner);
    let is_kept = connack.session_present && messages(&mut device) == 1;
    let wrong = (!is_kept).then(|| format!("the other user gets {code:#04x}, the session is gone"));
    victim.end_with(
        wrong,
        format!("the other user gets {code:#04x}, the session stays"),
    )
}

fn connect_as(victim: &Victim, client_id: &str, (user, password): (&str, &str)) -> (Wire, u8) {
    let connect = Connect::new(Version::V5).client_id(client_id);
    let mut wire = Wire::open(victim.address(), Version::V5);
    wire.send(&connect.credentials(user, password).bytes());
    let code = connack(&mut wire).unwrap_or(0xFF);
    (wire, code)
}

/// The code of a CONNACK, if there is one.
pub(super) fn connack(wire: &mut Wire) -> Option<u8> {
    match wire.next(CONNACK_MAX) {
        Event::Packet(packet) => Some(packet.connack(Version::V5).code),
        Event::Closed | Event::Silence => None,
    }
}

/// A proxy on this machine does not name its client.
pub fn nameless_proxy(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[
            ("THRUM_LISTENERS__PROXY__BIND", "{proxy}"),
            ("THRUM_LISTENERS__PROXY__PROXY_PROTOCOL", "true"),
            ("THRUM_LISTENERS__PROXY__PROXY_FROM", "[\"127.0.0.0/8\"]"),
        ],
        is_closed: true,
        ..Setup::default()
    };
    let victim = Victim::start(site, &setup);
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0";
    let headers = [
        ("UNKNOWN", &b"PROXY UNKNOWN\r\n"[..]),
        ("LOCAL", &local[..]),
    ];
    let comes_in = |header: &[u8]| {
        let mut wire = Wire::open(victim.proxy, Version::V5);
        wire.send(&[header, &Connect::new(Version::V5).bytes()].concat());
        connack(&mut wire) == Some(0)
    };
    let let_in: Vec<_> = headers
        .iter()
        .filter(|(_, header)| comes_in(header))
        .collect();
    let let_in: Vec<_> = let_in.iter().map(|(name, _)| *name).collect();
    let wrong = (!let_in.is_empty())
        .then(|| format!("{} without credentials is admitted", let_in.join(" and ")));
    victim.end_with(wrong, "UNKNOWN and LOCAL need credentials".to_owned())
}
