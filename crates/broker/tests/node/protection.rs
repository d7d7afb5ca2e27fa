//! Rates, bans, flapping, failed logins and slow handshakes, as clients see them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Gatekeeper, Identity, Login, Reply};
use thrum_broker::config::{Config, Rate, Transport};
use thrum_broker::{Access, BanFile, Broker, NewBan};
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protection::{Ban, Subject};

use crate::peer::{Peer, connect_packet, start, start_with};

/// Waits until a figure of `$SYS` is above nothing.
pub(crate) fn assert_counted(watcher: &mut Peer, topic: &str) {
    let topic = format!("$SYS/broker/{topic}");
    watcher.subscribe(&topic, QoS::AtMostOnce);
    while watcher.message().payload == b"0" {}
}

fn with_figures(config: &mut Config) {
    config.sys.interval = Duration::from_millis(100);
}

fn rate(amount: u64, burst: u64) -> Rate {
    Rate::new(amount, Duration::from_secs(1), burst).expect("a sane rate")
}

pub(crate) fn the_listener(config: &mut Config) -> &mut thrum_broker::config::ListenerConfig {
    config
        .listeners
        .get_mut("mqtt")
        .expect("the test's listener")
}

/// Clients may claim any address with a PROXY header.
pub(crate) fn behind_a_proxy(config: &mut Config) {
    let listener = the_listener(config);
    listener.proxy_protocol = true;
    listener.proxy_from = vec!["127.0.0.0/8".parse().expect("a network")];
}

/// All that is published over a rate arrives, in order, and the pauses are counted.
fn all_arrives(limit: &str, change: impl FnOnce(&mut Config)) {
    let (broker, address) = start(2, |config| {
        with_figures(config);
        change(config);
    });
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("t", QoS::AtMostOnce);
    let mut publisher = Peer::connect(address, "p");
    for number in 0..200_u8 {
        publisher.publish("t", &[number; 100], QoS::AtMostOnce, false);
    }
    for number in 0..200_u8 {
        assert_eq!(subscriber.message().payload, [number; 100]);
    }
    subscriber.assert_silent();
    assert_counted(&mut Peer::connect(address, "watcher"), limit);
    broker.stop();
}

#[test]
fn a_client_over_its_rate_of_messages_waits_and_nothing_is_lost() {
    all_arrives("limits/client/messages", |config| {
        config.limits.client.messages = rate(200, 20);
    });
}

#[test]
fn a_client_over_its_rate_of_bytes_waits_and_nothing_is_lost() {
    all_arrives("limits/client/bytes", |config| {
        config.limits.client.bytes = rate(20_000, 2000);
    });
}

#[test]
fn an_address_over_its_rate_waits_and_nothing_is_lost() {
    all_arrives("limits/address/messages", |config| {
        config.limits.address.messages = rate(200, 20);
    });
}

#[test]
fn a_listener_over_its_rate_waits_and_nothing_is_lost() {
    all_arrives("limits/listener/messages", |config| {
        the_listener(config).messages = rate(200, 20);
    });
}

#[test]
fn packets_right_behind_a_connect_count_for_the_rate() {
    let (broker, address) = start(1, |config| {
        with_figures(config);
        config.limits.client.messages = rate(100, 1);
    });
    let mut eager = Peer::open(address, Version::V5);
    let mut bytes = Vec::new();
    let connect = thrum_codec::packet::Packet::Connect(connect_packet(Version::V5, "eager"));
    thrum_codec::encode(&connect, Version::V5, &mut bytes).expect("it fits");
    for _ in 0..10 {
        // QoS 0 to the topic "t", without properties and payload.
        bytes.extend_from_slice(&[0x30, 4, 0, 1, b't', 0]);
    }
    eager.send_bytes(&bytes);
    assert_counted(
        &mut Peer::connect(address, "watcher"),
        "limits/client/messages",
    );
    broker.stop();
}

#[test]
fn a_reload_applies_rates_to_connected_clients() {
    let mut used = None;
    let (mut broker, address) = start(1, |config| {
        with_figures(config);
        used = Some(config.clone());
    });
    let mut publisher = Peer::connect(address, "p");
    let mut config = used.expect("the configuration of the start");
    config.limits.client.messages = rate(1000, 1);
    broker.reload(&config).expect("nothing to bind");
    let mut watcher = Peer::connect(address, "watcher");
    watcher.subscribe("$SYS/broker/limits/client/messages", QoS::AtMostOnce);
    while watcher.message().payload == b"0" {
        for _ in 0..5 {
            publisher.publish("t", b"x", QoS::AtMostOnce, false);
        }
        assert_eq!(
            publisher.publish_acknowledged("t", b"x"),
            ReasonCode::NoMatchingSubscribers
        );
    }
    broker.stop();
}

#[test]
fn a_reload_that_lifts_a_rate_releases_the_clients_that_wait_for_it() {
    let mut kept = Config::default();
    let (mut broker, address) = start(2, |config| {
        let hour = Duration::from_hours(1);
        config.limits.client.messages = Rate::new(1, hour, 1).expect("a sane rate");
        kept = config.clone();
    });
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("t", QoS::AtMostOnce);
    let mut publisher = Peer::connect(address, "p");
    publisher.publish("t", b"1", QoS::AtMostOnce, false);
    assert_eq!(subscriber.message().payload, b"1");
    publisher.publish("t", b"2", QoS::AtMostOnce, false);
    subscriber.assert_silent();
    kept.limits.client.messages = Rate::NONE;
    broker.reload(&kept).expect("nothing to bind");
    assert_eq!(subscriber.message().payload, b"2");
    broker.stop();
}

#[test]
fn connections_over_the_rate_of_a_listener_wait_and_are_then_served() {
    let (broker, address) = start(2, |config| {
        with_figures(config);
        the_listener(config).connect_rate = rate(50, 5);
    });
    let peers: Vec<Peer> = (0..20)
        .map(|number| Peer::connect(address, &format!("c{number}")))
        .collect();
    assert_eq!(broker.clients_connected(), peers.len() as u64);
    assert_counted(
        &mut Peer::connect(address, "watcher"),
        "limits/listener/connect_rate",
    );
    broker.stop();
}

#[test]
fn connections_over_the_rate_of_an_address_are_closed() {
    let (broker, address) = start(2, |config| {
        behind_a_proxy(config);
        config.limits.address.connects =
            Rate::new(2, Duration::from_hours(1), 0).expect("a sane rate");
    });
    let mut kept = Vec::new();
    for name in ["1", "2"] {
        let mut peer = Peer::open_for(address, "198.51.100.1");
        let outcome = peer.handshake(&connect_packet(Version::V5, name));
        assert_eq!(outcome.0, ReasonCode::Success);
        kept.push(peer);
    }
    Peer::open_for(address, "198.51.100.1").assert_closed();
    let mut other = Peer::open_for(address, "198.51.100.2");
    let outcome = other.handshake(&connect_packet(Version::V5, "3"));
    assert_eq!(outcome.0, ReasonCode::Success);
    broker.stop();
}

#[test]
fn a_client_that_reconnects_continually_is_banned() {
    let (broker, address) = start(2, |config| {
        config.protection.flapping.enabled = true;
        config.protection.flapping.window = Duration::from_hours(1);
        config.protection.flapping.connects = 3;
    });
    for _ in 0..3 {
        Peer::connect(address, "restless").leave();
    }
    for _ in 0..2 {
        let mut peer = Peer::open(address, Version::V5);
        let outcome = peer.handshake(&connect_packet(Version::V5, "restless"));
        assert_eq!(outcome, (ReasonCode::Banned, false));
        peer.assert_closed();
    }
    Peer::connect(address, "calm").leave();
    broker.stop();
}

/// Knows one password, and a token of mallory's.
#[derive(Debug)]
struct PasswordGatekeeper;

/// Mallory has it, whatever name is sent with it.
const TOKEN: &[u8] = b"token of mallory";

impl Gatekeeper for PasswordGatekeeper {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        let is_right = |login: &Login| {
            let password = login.password.as_ref();
            password.is_some_and(|password| password.expose() == b"right")
        };
        let has_token = |login: &Login| {
            let password = login.password.as_ref();
            password.is_some_and(|password| password.expose() == TOKEN)
        };
        reply(if has_token(&login) {
            Answer::Admit(Box::new(Admission {
                identity: Identity {
                    username: Some("mallory".into()),
                    ..login.identity
                },
                ..Admission::default()
            }))
        } else if is_right(&login) {
            Answer::Admit(Box::new(Admission {
                identity: login.identity,
                ..Admission::default()
            }))
        } else {
            Answer::Deny(Denial {
                reason: ReasonCode::BadUserNameOrPassword,
                what: "bad user name or password",
                detail: "the test says so".into(),
            })
        });
    }
}

/// A broker with users, whose clients may claim any address with a PROXY header.
fn start_with_users(change: impl FnOnce(&mut Config)) -> (Broker, SocketAddr) {
    let access = Access {
        gatekeeper: Some(Arc::new(PasswordGatekeeper)),
        ..Access::default()
    };
    start_with(access, 2, |config| {
        behind_a_proxy(config);
        change(config);
    })
}

/// Reason of the answer to a login.
fn log_in(
    address: SocketAddr,
    source: &str,
    username: &str,
    password: &[u8],
) -> (Peer, ReasonCode) {
    log_in_over(Peer::open_for(address, source), username, password)
}

fn log_in_over(mut peer: Peer, username: &str, password: &[u8]) -> (Peer, ReasonCode) {
    let client_id = format!("of {username}");
    let mut connect = connect_packet(Version::V5, &client_id);
    connect.username = Some(username);
    connect.password = Some(password);
    let (reason, _) = peer.handshake(&connect);
    (peer, reason)
}

#[test]
fn after_failed_logins_an_address_has_to_wait_but_not_its_known_users() {
    let (broker, address) = start_with_users(three_failures);
    let (_known, reason) = log_in(address, "198.51.100.1", "known", b"right");
    assert_eq!(reason, ReasonCode::Success);
    for _ in 0..3 {
        let (_, reason) = log_in(address, "198.51.100.1", "guessed", b"wrong");
        assert_eq!(reason, ReasonCode::BadUserNameOrPassword);
    }
    let (_, reason) = log_in(address, "198.51.100.1", "guessed", b"right");
    assert_eq!(reason, ReasonCode::ConnectionRateExceeded);
    let (_again, reason) = log_in(address, "198.51.100.1", "known", b"right");
    assert_eq!(reason, ReasonCode::Success);
    let (_elsewhere, reason) = log_in(address, "198.51.100.2", "guessed", b"right");
    assert_eq!(reason, ReasonCode::Success);
    broker.stop();
}

fn three_failures(config: &mut Config) {
    config.protection.logins.failures = 3;
    config.protection.logins.window = Duration::from_hours(1);
    config.protection.logins.wait = Duration::from_hours(1);
}

#[test]
fn a_token_of_one_user_does_not_make_another_user_name_known() {
    let (broker, address) = start_with_users(three_failures);
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let (peer, reason) = log_in(address, "198.51.100.1", "alice", TOKEN);
        drop(peer);
        reasons.push(reason);
        for _ in 0..2 {
            let (_, reason) = log_in(address, "198.51.100.1", "alice", b"wrong");
            reasons.push(reason);
        }
    }
    let waits = ReasonCode::ConnectionRateExceeded;
    assert_eq!(reasons[6..], [waits; 3], "{reasons:?}");
    broker.stop();
}

#[test]
fn failed_logins_behind_a_proxy_that_names_no_client_are_counted() {
    let (broker, address) = start_with_users(three_failures);
    let unnamed = |password| {
        let mut peer = Peer::open(address, Version::V5);
        peer.send_bytes(b"PROXY UNKNOWN\r\n");
        log_in_over(peer, "alice", password).1
    };
    for _ in 0..3 {
        assert_eq!(unnamed(b"wrong"), ReasonCode::BadUserNameOrPassword);
    }
    assert_eq!(unnamed(b"right"), ReasonCode::ConnectionRateExceeded);
    let (_named, reason) = log_in(address, "127.0.0.1", "alice", b"right");
    assert_eq!(reason, ReasonCode::Success);
    broker.stop();
}

#[test]
fn connections_over_the_rate_of_a_user_are_refused() {
    let (broker, address) = start_with_users(|config| {
        config.limits.user.connects =
            Rate::new(1, Duration::from_hours(1), 0).expect("a sane rate");
    });
    let (_first, reason) = log_in(address, "198.51.100.1", "jo", b"right");
    assert_eq!(reason, ReasonCode::Success);
    let (_, reason) = log_in(address, "198.51.100.2", "jo", b"right");
    assert_eq!(reason, ReasonCode::ConnectionRateExceeded);
    let (_other, reason) = log_in(address, "198.51.100.2", "al", b"right");
    assert_eq!(reason, ReasonCode::Success);
    broker.stop();
}

/// A file of bans, removed at the end of the test.
struct Bans(PathBuf);

impl Bans {
    fn new(name: &str) -> Self {
        let folder = format!("thrum-bans-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("bans.jsonl")
    }

    fn add(&self, subject: Subject) {
        self.insert(subject, true);
    }

    /// Bans, and says whether that disconnects.
    fn insert(&self, subject: Subject, disconnects: bool) {
        let ban = Ban {
            subject,
            reason: "a test".into(),
            by: "".into(),
            since: 0,
            until: None,
            disconnects,
        };
        let file = BanFile::at(self.file());
        let added = file.edit(|list| {
            list.insert(ban);
            (true, ())
        });
        added.expect("the folder can be written");
    }
}

impl Drop for Bans {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it was made here");
    }
}

#[test]
fn a_ban_that_is_added_disconnects_the_client_and_keeps_it_out() {
    let bans = Bans::new("client");
    bans.add(Subject::ClientId("known before".into()));
    let (broker, address) = start(4, |config| config.protection.bans = bans.file());
    let mut refused = Peer::open(address, Version::V5);
    let outcome = refused.handshake(&connect_packet(Version::V5, "known before"));
    assert_eq!(outcome, (ReasonCode::Banned, false));
    let mut others: Vec<Peer> = (0..8)
        .map(|number| Peer::connect(address, &format!("other{number}")))
        .collect();
    let mut banned = Peer::connect(address, "banned");
    bans.add(Subject::ClientId("banned".into()));
    assert_eq!(banned.disconnect_reason(), ReasonCode::AdministrativeAction);
    banned.assert_closed();
    let mut back = Peer::open(address, Version::V5);
    let outcome = back.handshake(&connect_packet(Version::V5, "banned"));
    assert_eq!(outcome, (ReasonCode::Banned, false));
    for other in &mut others {
        assert_eq!(other.subscribe("t", QoS::AtMostOnce), ReasonCode::Success);
    }
    broker.stop();
}

#[test]
fn a_ban_may_keep_connected_clients_and_keeps_out_those_that_come() {
    let bans = Bans::new("kept");
    let (broker, address) = start_with_users(|config| config.protection.bans = bans.file());
    let (mut kept, _) = log_in(address, "198.51.100.1", "jo", b"right");
    let (mut banned, _) = log_in(address, "198.51.100.2", "al", b"right");
    bans.insert(Subject::Username("jo".into()), false);
    bans.insert(
        Subject::Network("198.51.100.1".parse().expect("a network")),
        false,
    );
    // All clients are compared with the list.
    bans.add(Subject::Username("al".into()));
    assert_eq!(banned.disconnect_reason(), ReasonCode::AdministrativeAction);
    assert_eq!(kept.subscribe("t", QoS::AtMostOnce), ReasonCode::Success);
    let (_, reason) = log_in(address, "198.51.100.3", "jo", b"right");
    assert_eq!(reason, ReasonCode::Banned);
    bans.add(Subject::Username("jo".into()));
    assert_eq!(kept.disconnect_reason(), ReasonCode::AdministrativeAction);
    broker.stop();
}

#[test]
fn bans_of_users_and_addresses_disconnect_all_their_clients() {
    let bans = Bans::new("user");
    let (broker, address) = start_with_users(|config| config.protection.bans = bans.file());
    let (mut by_name, _) = log_in(address, "198.51.100.1", "jo", b"right");
    let (mut by_address, _) = log_in(address, "198.51.100.2", "al", b"right");
    let (mut stays, _) = log_in(address, "198.51.100.3", "mo", b"right");
    bans.add(Subject::Username("jo".into()));
    assert_eq!(
        by_name.disconnect_reason(),
        ReasonCode::AdministrativeAction
    );
    let network = "198.51.100.2".parse().expect("an address");
    bans.add(Subject::Network(network));
    assert_eq!(
        by_address.disconnect_reason(),
        ReasonCode::AdministrativeAction
    );
    let (_, reason) = log_in(address, "198.51.100.4", "jo", b"right");
    assert_eq!(reason, ReasonCode::Banned);
    Peer::open_for(address, "198.51.100.2").assert_closed();
    assert_eq!(stays.subscribe("t", QoS::AtMostOnce), ReasonCode::Success);
    broker.stop();
}

#[test]
fn a_ban_of_the_interface_is_answered_when_its_clients_are_disconnected() {
    let bans = Bans::new("answered");
    let (broker, address) = start_with_users(|config| config.protection.bans = bans.file());
    let queries = broker.queries();
    let disconnected = || {
        let figures = queries.figures();
        let mut counters = figures.counters.into_iter();
        let counter = counters.find(|(name, _)| name == "protection/bans/disconnected");
        counter.expect("the counter").1
    };
    let network = "198.51.100.3".parse().expect("a network");
    let sources = [("1", "jo"), ("2", "al"), ("3", "mo")];
    let peers = sources
        .map(|(number, user)| log_in(address, &format!("198.51.100.{number}"), user, b"right").0);
    // Only client identifiers have an index: for others all clients are compared.
    for (subject, disconnects, expected) in [
        (Subject::Username("jo".into()), false, 0),
        (Subject::Username("jo".into()), true, 1),
        (Subject::ClientId("of al".into()), true, 2),
        (Subject::Network(network), true, 3),
    ] {
        let new = NewBan {
            subject,
            reason: "".into(),
            by: "test".into(),
            secs: None,
            disconnects,
        };
        queries.ban(new).expect("a ban");
        assert_eq!(disconnected(), expected);
    }
    for mut peer in peers {
        assert_eq!(peer.disconnect_reason(), ReasonCode::AdministrativeAction);
    }
    broker.stop();
}

#[test]
fn bans_that_cannot_be_read_stop_the_start() {
    let bans = Bans::new("broken");
    std::fs::write(bans.file(), "no ban\n").expect("the folder is there");
    let mut config = Config::default();
    config.listeners.clear();
    config.protection.bans = bans.file();
    let refused = Broker::start(config, Access::default()).expect_err("the start fails");
    assert!(refused.to_string().contains("bans.jsonl"), "{refused}");
}

#[test]
fn a_handshake_that_takes_too_long_is_closed_and_one_in_time_goes_on() {
    let (broker, address) = start(1, |config| {
        with_figures(config);
        config.limits.handshake_timeout = Duration::from_millis(300);
        let plain = the_listener(config).clone();
        the_listener(config).transport = Transport::WebSocket;
        config.listeners.insert("plain".to_owned(), plain);
    });
    let mut slow = Peer::open(address, Version::V5);
    slow.send_bytes(b"GET /mqtt HTTP/1.1\r\n");
    let plain = broker.addresses()[1]
        .socket_address()
        .expect("it listens on TCP");
    let mut watcher = Peer::connect(plain, "watcher");
    assert_counted(&mut watcher, "limits/handshake_timeout");
    slow.assert_closed();
    watcher.assert_silent();
    broker.stop();
}

#[test]
fn unfinished_handshakes_keep_new_ones_out_until_they_are_over() {
    let (broker, address) = start(1, |config| {
        with_figures(config);
        behind_a_proxy(config);
        config.limits.handshakes = 2;
        config.limits.handshake_timeout = Duration::from_millis(300);
    });
    let mut slow: Vec<Peer> = (0..2)
        .map(|_| {
            let mut peer = Peer::open(address, Version::V5);
            peer.send_bytes(b"PROXY ");
            peer
        })
        .collect();
    let mut next = Peer::open_for(address, "198.51.100.1");
    let outcome = next.handshake(&connect_packet(Version::V5, "next"));
    assert_eq!(outcome.0, ReasonCode::Success);
    for peer in &mut slow {
        peer.assert_closed();
    }
    assert_counted(&mut next, "protection/overload/handshakes");
    broker.stop();
}
