//! QUIC listeners that change while the broker runs, and the reasons that their clients receive.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use thrum_broker::config::{Bind, Config, ListenerConfig, Rate, TlsConfig, Transport};
use thrum_broker::{Broker, Listening};
use thrum_codec::{QoS, ReasonCode};
use thrum_quic::{DialError, DialOptions, Dialing, QuicDialer};

use crate::peer::{Peer, start};

/// The name in the certificate.
const NAME: &str = "localhost";

/// A broker with the QUIC listener `quic`, whose clients trust it.
struct Room {
    broker: Option<Broker>,
    config: Config,
    dialer: QuicDialer,
    folder: PathBuf,
}

impl Room {
    /// `name` is the test's own.
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("thrum-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        let write = |file: &str, label: &str, der: &[u8]| {
            let text = STANDARD.encode(der);
            let text = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
            std::fs::write(folder.join(file), text).expect("a file");
        };
        write("cert.pem", "CERTIFICATE", cert.der());
        write("key.pem", "PRIVATE KEY", &signing_key.serialize_der());
        let quic = ListenerConfig {
            bind: vec![any_port()],
            transport: Transport::Quic,
            tls: TlsConfig {
                cert: folder.join("cert.pem"),
                key: folder.join("key.pem"),
                ..TlsConfig::default()
            },
            ..ListenerConfig::default()
        };
        let mut config = Config::default();
        let (broker, _) = start(2, |used| {
            used.listeners.insert("quic".to_owned(), quic);
            used.sys.interval = Duration::from_millis(50);
            config = used.clone();
        });
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("our own");
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider's own")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            broker: Some(broker),
            config,
            dialer: QuicDialer::new(&tls, DialOptions::default()).expect("a thread"),
            folder,
        }
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().expect("it runs until the end")
    }

    fn listener(&mut self) -> &mut ListenerConfig {
        self.config.listeners.get_mut("quic").expect("ours")
    }

    fn reload(&mut self) {
        let broker = self.broker.as_mut().expect("it runs until the end");
        broker.reload(&self.config).expect("nothing is in the way");
    }

    /// Where that listener is.
    fn addresses(&self, name: &str) -> Vec<SocketAddr> {
        let addresses = self.broker().addresses();
        let of_it = addresses.iter().filter(|place| place.listener == name);
        of_it.filter_map(Listening::socket_address).collect()
    }

    fn dial(&self, address: SocketAddr) -> (UnixStream, Dialing) {
        let dialled = self.dialer.dial(&[address], NAME);
        let (socket, dialing) = dialled.expect("a socket pair");
        socket.set_nonblocking(false).expect("a socket option");
        (socket, dialing)
    }

    fn connect(&self, address: SocketAddr, client_id: &str) -> Peer {
        Peer::over(self.dial(address).0, client_id)
    }

    /// The error of a refused connection.
    fn refusal(&self, address: SocketAddr) -> Option<DialError> {
        let (mut socket, dialing) = self.dial(address);
        // It may have been refused already.
        socket.write_all(b"!").ok();
        socket.read_to_end(&mut Vec::new()).ok();
        dialing.failure().cloned()
    }

    /// A client that is not over QUIC.
    fn outside(&self) -> Peer {
        Peer::connect(self.addresses("mqtt")[0], "outside")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.stop();
        }
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn any_port() -> Bind {
    SocketAddr::from(([127, 0, 0, 1], 0)).into()
}

#[test]
fn connections_beyond_the_limit_of_a_listener_are_refused_and_counted_and_a_reload_changes_it() {
    let mut room = Room::new("quic-limit");
    let address = room.addresses("quic")[0];
    let mut first = room.connect(address, "first");
    room.listener().max_connections = 1;
    room.reload();
    assert_eq!(room.refusal(address), Some(DialError::Refused));
    let mut outside = room.outside();
    outside.subscribe("$SYS/broker/connections/over_limit", QoS::AtMostOnce);
    while outside.message().payload == b"0" {}

    room.listener().max_connections = 2;
    room.reload();
    let mut second = room.connect(address, "second");
    assert_eq!(room.refusal(address), Some(DialError::Refused));
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
    }
}

#[test]
fn connections_over_a_connect_rate_wait_and_are_counted() {
    let mut room = Room::new("quic-rate");
    let address = room.addresses("quic")[0];
    let counters = ["limits/listener/connect_rate", "limits/connect_rate"];
    for (number, counter) in counters.into_iter().enumerate() {
        let slow = Rate::new(10, Duration::from_secs(1), 1).expect("a sane rate");
        room.listener().connect_rate = if number == 0 { slow } else { Rate::NONE };
        room.config.limits.connect_rate = if number == 0 { 0 } else { 2 };
        room.reload();
        let clients: Vec<Peer> = (0..6)
            .map(|client| room.connect(address, &format!("{number} {client}")))
            .collect();
        assert_eq!(room.broker().clients_connected(), clients.len() as u64);
        drop(clients);
        while room.broker().clients_connected() > 0 {
            pause();
        }
        room.config.limits.connect_rate = 0;
        room.listener().connect_rate = Rate::NONE;
        room.reload();
        let mut outside = room.outside();
        outside.subscribe(&format!("$SYS/broker/{counter}"), QoS::AtMostOnce);
        while outside.message().payload == b"0" {}
    }
}

#[test]
fn clients_of_a_removed_listener_receive_the_reason_and_its_port_is_free() {
    let mut room = Room::new("quic-removed");
    let address = room.addresses("quic")[0];
    let mut watcher = room.outside();
    watcher.subscribe("will", QoS::AtMostOnce);
    let mut client = room.connect(address, "client");
    let removed = room.config.listeners.remove("quic").expect("ours");
    room.reload();
    assert_eq!(client.disconnect_reason(), ReasonCode::AdministrativeAction);
    client.assert_closed();
    drop(client);
    let another = ListenerConfig {
        bind: vec![address.into()],
        ..removed
    };
    room.config.listeners.insert("another".to_owned(), another);
    let freed = (0..500).any(|_| {
        pause();
        let broker = room.broker.as_mut().expect("it runs until the end");
        broker.reload(&room.config).is_ok()
    });
    assert!(freed, "the port of the removed listener stays taken");
    assert_eq!(room.addresses("another"), [address]);
    room.connect(address, "back");
}

#[test]
fn an_address_moves_to_another_listener_in_one_reload_and_its_clients_stay() {
    let mut room = Room::new("quic-moves");
    let address = room.addresses("quic")[0];
    let mut client = room.connect(address, "client");
    let listener = room.config.listeners.remove("quic").expect("ours");
    room.config.listeners.insert("renamed".to_owned(), listener);
    room.reload();
    assert_eq!(room.addresses("renamed"), [address]);
    assert_eq!(client.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
    room.connect(address, "new_client");
}

#[test]
fn of_two_addresses_one_is_removed_and_the_clients_of_the_other_stay() {
    let mut room = Room::new("quic-addresses");
    let kept = room.addresses("quic")[0];
    let mut stays = room.connect(kept, "stays");
    let second = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = second.local_addr().expect("it is bound");
    drop(second);
    room.listener().bind.push(address.into());
    room.reload();
    let mut goes = room.connect(address, "goes");
    room.listener().bind.pop();
    room.reload();
    assert_eq!(goes.disconnect_reason(), ReasonCode::AdministrativeAction);
    assert_eq!(room.addresses("quic"), [kept]);
    assert_eq!(stays.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own thread waits for the broker"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
