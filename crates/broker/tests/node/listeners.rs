//! Listeners that are added and removed while the broker runs.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use thrum_broker::config::{Bind, Config, ListenerConfig};
use thrum_broker::{Broker, StartError};
use thrum_codec::{QoS, ReasonCode};

use crate::peer::{Peer, start};

fn free_port() -> SocketAddr {
    let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    socket.local_addr().expect("it is bound")
}

fn listener(bind: impl Into<Bind>) -> ListenerConfig {
    ListenerConfig {
        bind: vec![bind.into()],
        ..ListenerConfig::default()
    }
}

/// A broker of two workers, its configuration, and where it listens.
fn started() -> (Broker, Config, SocketAddr) {
    let mut used = Config::default();
    let (broker, address) = start(2, |config| used = config.clone());
    (broker, used, address)
}

fn works(address: SocketAddr) {
    let mut peer = Peer::connect(address, "new_client");
    assert_eq!(peer.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
    peer.disconnect();
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test's own thread waits for the workers"
)]
fn a_listener_is_added_and_removed_and_its_clients_stay() {
    let (mut broker, mut config, first) = started();
    let second = free_port();
    config
        .listeners
        .insert("second".to_owned(), listener(second));
    broker.reload(&config).expect("the port is free");
    works(second);
    let mut stays = Peer::connect(second, "stays");
    config.listeners.remove("second");
    broker.reload(&config).expect("nothing to bind");
    assert_eq!(broker.addresses().len(), 1);
    assert_eq!(stays.subscribe("b", QoS::AtMostOnce), ReasonCode::Success);
    // The worker closes it in its next turn.
    let closed = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::net::TcpStream::connect(second).is_err()
    });
    assert!(closed, "the broker still listens on the removed address");
    works(first);
    broker.stop();
}

#[test]
fn a_reload_that_cannot_listen_changes_nothing() {
    let (mut broker, mut config, first) = started();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let taken = taken
        .local_addr()
        .map(|address| (taken, address))
        .expect("it is bound");
    config.listeners.remove("mqtt");
    config
        .listeners
        .insert("second".to_owned(), listener(taken.1));
    let refused = broker.reload(&config).expect_err("the port is taken");
    assert!(matches!(refused, StartError::Bind { .. }), "{refused}");
    assert!(refused.to_string().contains("second"), "{refused}");
    works(first);
    broker.stop();
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test's own thread waits for the workers"
)]
fn other_limits_of_a_listener_hold_from_the_reload_on() {
    let (mut broker, mut config, address) = started();
    let _first = Peer::connect(address, "first");
    config
        .listeners
        .get_mut("mqtt")
        .expect("the test's")
        .max_connections = 1;
    broker.reload(&config).expect("nothing to bind");
    std::thread::sleep(std::time::Duration::from_millis(50));
    Peer::open(address, thrum_codec::Version::V5).assert_closed();
    broker.stop();
}

#[test]
fn a_unix_socket_is_a_listener_like_any_other() {
    let folder = std::env::temp_dir().join(format!("thrum-listeners-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("mqtt.sock");
    let (broker, address) = start(2, |config| {
        let local = listener(Bind::Unix(path.clone()));
        config.listeners.insert("local".to_owned(), local);
        config.auth.anonymous = thrum_broker::config::Anonymous::Loopback;
    });
    let mut over_unix = Peer::over(UnixStream::connect(&path).expect("it listens"), "over unix");
    over_unix.subscribe("t", QoS::AtLeastOnce);
    let mut over_tcp = Peer::connect(address, "over tcp");
    assert_eq!(
        over_tcp.publish_acknowledged("t", b"x"),
        ReasonCode::Success
    );
    assert_eq!(over_unix.message().payload, b"x");
    broker.stop();
    assert!(!path.exists(), "the socket's file stays behind");
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn a_client_behind_a_mount_point_renews_its_last_subscription() {
    let (broker, address) = start(1, |config| {
        config.limits.client.subscriptions = 1;
        config.listeners.get_mut("mqtt").expect("one").mount_point = "tenant/".to_owned();
    });
    let mut peer = Peer::connect(address, "a");
    for _ in 0..2 {
        let answer = peer.subscribe("t", QoS::AtLeastOnce);
        assert_eq!(answer, ReasonCode::GrantedQoS1);
    }
    let answer = peer.subscribe("one/more", QoS::AtLeastOnce);
    assert_eq!(answer, ReasonCode::QuotaExceeded);
    broker.stop();
}

/// Whether nobody accepts at an address, once the workers have had a turn.
#[expect(
    clippy::disallowed_methods,
    reason = "the test's own thread waits for the workers"
)]
fn is_closed(address: SocketAddr) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::net::TcpStream::connect(address).is_err()
    })
}

fn stop(broker: &mut Broker, name: &str) {
    let closed = broker.stop_listener(name).expect("it is configured");
    let answered = closed.wait(std::time::Duration::from_secs(20));
    answered.expect("all workers answer");
}

#[test]
fn a_listener_that_the_operator_stops_stays_closed_until_it_is_started() {
    let (mut broker, mut config, first) = started();
    let second = free_port();
    config
        .listeners
        .insert("second".to_owned(), listener(second));
    broker.reload(&config).expect("the port is free");
    let mut stays = Peer::connect(second, "stays");
    stop(&mut broker, "second");
    assert!(broker.stop_listener("third").is_none());
    assert!(is_closed(second));
    assert_eq!(stays.subscribe("b", QoS::AtMostOnce), ReasonCode::Success);
    let state = |broker: &Broker| {
        let mut all = broker.queries().listeners().into_iter();
        all.find(|listener| listener.name == "second")
            .expect("it is configured")
    };
    let stopped = state(&broker);
    assert!(stopped.is_stopped && stopped.addresses.is_empty());
    assert_eq!((stopped.connections, stopped.config.bind.len()), (1, 1));
    // A reload does not open it.
    broker.reload(&config).expect("nothing to bind");
    assert!(is_closed(second));
    assert!(broker.start_listener("second").expect("the port is free"));
    works(second);
    works(first);
    let started = state(&broker);
    assert!(!started.is_stopped && started.addresses.len() == 1);
    broker.disconnect_listener("second");
    assert_eq!(stays.disconnect_reason(), ReasonCode::AdministrativeAction);
    stays.assert_closed();
    broker.stop();
}

#[test]
fn a_listener_that_cannot_be_started_stays_stopped() {
    let (mut broker, mut config, first) = started();
    let second = free_port();
    config
        .listeners
        .insert("second".to_owned(), listener(second));
    broker.reload(&config).expect("the port is free");
    stop(&mut broker, "second");
    assert!(is_closed(second));
    let taken = std::net::TcpListener::bind(second).expect("the port is free");
    let refused = broker
        .start_listener("second")
        .expect_err("the port is taken");
    assert!(refused.to_string().contains("second"), "{refused}");
    let listeners = broker.queries().listeners();
    assert!(
        listeners
            .iter()
            .any(|one| one.name == "second" && one.is_stopped)
    );
    drop(taken);
    broker
        .start_listener("second")
        .expect("the port is free again");
    works(second);
    works(first);
    // One that is no longer configured is forgotten, and opens when it is there again.
    stop(&mut broker, "second");
    let with_second = config.clone();
    config.listeners.remove("second");
    broker.reload(&config).expect("nothing to bind");
    broker.reload(&with_second).expect("the port is free");
    works(second);
    broker.stop();
}

#[test]
fn a_configuration_that_is_only_tried_leaves_no_socket_behind() {
    let (mut broker, mut config, _) = started();
    let path = std::env::temp_dir().join(format!("thrum-tried-{}", std::process::id()));
    let bind = Bind::Unix(path.clone());
    config.listeners.insert("local".to_owned(), listener(bind));
    drop(broker.prepare(&config).expect("the path is free"));
    assert!(!path.exists());
    broker.reload(&config).expect("the path is free");
    assert!(path.exists());
    // What is open already stays.
    drop(broker.prepare(&config).expect("nothing to bind"));
    assert!(path.exists());
    broker.stop();
}
