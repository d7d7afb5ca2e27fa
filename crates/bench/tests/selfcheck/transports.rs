//! The same load over TLS and over WebSocket: servers that take these layers off, with a broker
//! behind them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use thrum_bench::run;
use thrum_codec::websocket::{Control, FrameReader, Opcode, Role, encode_frame};
use thrum_load::scenario::Network;
use thrum_quic::{Limits, QuicListener};

use crate::bench::{NoObserver, SECOND, assert_flawless, options_of, pairs, real_broker};

/// How often a thread with two sockets checks the other one.
const LOOK: std::time::Duration = std::time::Duration::from_millis(1);

/// Removes the layers above TCP from the bytes of a client and adds them to those of the broker.
trait Layer: Send {
    /// MQTT bytes received from the client; none at the end of the connection.
    fn read(&mut self) -> Option<Vec<u8>>;
    fn write(&mut self, plain: &[u8]) -> Option<()>;
}

/// Serves clients with a layer in front of a broker.
fn serve<L: Layer>(
    broker: SocketAddr,
    accept: impl Fn(TcpStream) -> Option<L> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accept = Arc::new(accept);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let accept = Arc::clone(&accept);
            std::thread::spawn(move || {
                let upstream = TcpStream::connect(broker).unwrap();
                // None is the end, by either side.
                accept(client).and_then(|mut layer| relay(&mut layer, &upstream));
                drop(upstream.shutdown(Shutdown::Both));
            });
        }
    });
    address
}

fn relay(layer: &mut impl Layer, mut upstream: &TcpStream) -> Option<()> {
    upstream.set_read_timeout(Some(LOOK)).unwrap();
    let mut buffer = [0; 16 * 1024];
    loop {
        upstream.write_all(&layer.read()?).ok()?;
        let read = read_some(&mut upstream, &mut buffer)?;
        layer.write(&buffer[..read])?;
    }
}

/// Bytes received within a short time; none at the end.
fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    match stream.read(buffer) {
        Ok(0) => None,
        Ok(read) => Some(read),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Some(0)
        }
        Err(_) => None,
    }
}

impl Layer for StreamOwned<ServerConnection, TcpStream> {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 16 * 1024];
        let read = read_some(self, &mut buffer)?;
        Some(buffer[..read].to_vec())
    }

    fn write(&mut self, plain: &[u8]) -> Option<()> {
        self.write_all(plain).ok()?;
        self.flush().ok()
    }
}

#[test]
fn a_tls_port_is_reported_with_the_remedy() {
    let (broker, address) = real_broker();
    let server = tls_server(address);
    let error = run(
        pairs(1, 10, SECOND),
        &options_of(&server.to_string()),
        &mut NoObserver,
    );
    broker.stop();
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains("speaks TLS on this port: use mqtts://"),
        "{message}"
    );
}

/// TLS with a certificate of its own.
fn tls() -> ServerConfig {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap()
}

fn tls_server(broker: SocketAddr) -> SocketAddr {
    let config = Arc::new(tls());
    serve(broker, move |mut client| {
        let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut client).ok()?;
        }
        client.set_read_timeout(Some(LOOK)).unwrap();
        Some(StreamOwned::new(connection, client))
    })
}

impl Layer for UnixStream {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 16 * 1024];
        let read = read_some(self, &mut buffer)?;
        Some(buffer[..read].to_vec())
    }

    fn write(&mut self, plain: &[u8]) -> Option<()> {
        self.write_all(plain).ok()
    }
}

/// A server over QUIC, for as long as it is kept.
fn quic_server(broker: SocketAddr) -> QuicListener {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = QuicListener::bind(
        &[any_port],
        &tls(),
        Limits::default(),
        move |mut client: UnixStream, _| {
            std::thread::spawn(move || {
                client.set_nonblocking(false).unwrap();
                client.set_read_timeout(Some(LOOK)).unwrap();
                let upstream = TcpStream::connect(broker).unwrap();
                relay(&mut client, &upstream);
                drop(upstream.shutdown(Shutdown::Both));
            });
        },
    );
    listener.unwrap()
}

/// A WebSocket connection after its upgrade.
struct WebSocket {
    client: TcpStream,
    reader: FrameReader,
}

impl Layer for WebSocket {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 16 * 1024];
        let read = read_some(&mut self.client, &mut buffer)?;
        let (mut input, mut plain) = (&buffer[..read], Vec::new());
        while let Some(control) = self.reader.read(&mut input, &mut plain).unwrap() {
            if matches!(control, Control::Close { .. }) {
                return None;
            }
        }
        Some(plain)
    }

    fn write(&mut self, plain: &[u8]) -> Option<()> {
        let mut frames = Vec::new();
        // Small frames, so that packets are spread over several of them.
        for part in plain.chunks(7) {
            encode_frame(Opcode::Binary, None, part, &mut frames);
        }
        self.client.write_all(&frames).ok()
    }
}

fn websocket_server(broker: SocketAddr) -> SocketAddr {
    serve(broker, |mut client| {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).ok()?;
            request.push(byte[0]);
        }
        let request = String::from_utf8(request).unwrap();
        assert!(request.starts_with("GET /mqtt HTTP/1.1\r\n"), "{request}");
        let mut fields = request.lines().filter_map(|line| line.split_once(": "));
        let (_, key) = fields
            .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
            .unwrap();
        let salted = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let digest = aws_lc_rs::digest::digest(
            &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY,
            salted.as_bytes(),
        );
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
            STANDARD.encode(digest)
        );
        client.write_all(answer.as_bytes()).ok()?;
        client.set_read_timeout(Some(LOOK)).unwrap();
        Some(WebSocket {
            client,
            reader: FrameReader::new(Role::Server, u64::from(u32::MAX)),
        })
    })
}

#[track_caller]
fn check(url: &str, transport: &str) {
    let mut options = options_of(url);
    options.targets[0].tls.insecure = matches!(transport, "tls" | "quic");
    let mut scenario = pairs(5, 50, SECOND);
    crate::bench::group(&mut scenario, "publishers")
        .publish
        .as_mut()
        .unwrap()
        .payload = thrum_load::scenario::PayloadSpec::Random(5_000);
    let outcome = run(scenario, &options, &mut NoObserver).unwrap();
    assert_flawless(&outcome);
    assert_eq!(
        (outcome.delivery.expected, outcome.counts.acknowledged),
        (250, 250)
    );
    assert_eq!((outcome.clients.ready, outcome.clients.failed), (10, 0));
    assert_eq!(outcome.result.scenario.transport, transport);
    // The bytes are those on the wire: payloads, and what the layers add.
    assert!(outcome.counts.bytes_out > 250 * 5_000);
    assert!(outcome.counts.bytes_in > 250 * 5_000);
}

#[test]
fn all_messages_arrive_over_tls() {
    let (broker, address) = real_broker();
    let tls = tls_server(address);
    check(&format!("mqtts://{tls}"), "tls");
    broker.stop();
}

#[test]
fn all_messages_arrive_over_websocket() {
    let (broker, address) = real_broker();
    let websocket = websocket_server(address);
    check(&format!("ws://{websocket}/mqtt"), "ws");
    broker.stop();
}

#[test]
fn all_messages_arrive_over_quic() {
    let (broker, address) = real_broker();
    let quic = quic_server(address);
    check(&format!("quic://{}", quic.addresses()[0]), "quic");
    // One more than clients: the check before the run, which sends no MQTT.
    let metrics = quic.metrics();
    assert_eq!((metrics.accepted, metrics.handshakes_failed), (10, 1));
    broker.stop();
}

#[test]
fn hundreds_of_clients_share_a_udp_socket() {
    let (broker, address) = real_broker();
    let quic = quic_server(address);
    let mut options = options_of(&format!("quic://{}", quic.addresses()[0]));
    options.targets[0].tls.insecure = true;
    let outcome = run(pairs(100, 100, SECOND), &options, &mut NoObserver).unwrap();
    assert_flawless(&outcome);
    assert_eq!((outcome.clients.ready, outcome.clients.failed), (200, 0));
    broker.stop();
}

#[test]
fn quic_errors_are_reported_before_the_run() {
    let (broker, address) = real_broker();
    let quic = quic_server(address);
    let url = format!("quic://{}", quic.addresses()[0]);
    let error = run(pairs(2, 10, SECOND), &options_of(&url), &mut NoObserver).unwrap_err();
    assert_eq!(error.exit_code(), 5);
    assert!(error.to_string().contains("certificate"), "{error}");

    let mut scenario = pairs(2, 10, SECOND);
    crate::bench::group(&mut scenario, "publishers")
        .client
        .network = Some(Network::default());
    let mut options = options_of(&url);
    options.targets[0].tls.insecure = true;
    let error = run(scenario, &options, &mut NoObserver).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("network"), "{error}");

    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("quic://{}", silent.local_addr().unwrap());
    let error = run(pairs(2, 10, SECOND), &options_of(&url), &mut NoObserver).unwrap_err();
    broker.stop();
    assert_eq!(error.exit_code(), 5);
    assert!(error.to_string().contains("UDP port"), "{error}");
}

#[test]
fn an_untrusted_certificate_is_the_reason_of_the_refusal() {
    let (broker, address) = real_broker();
    let tls = tls_server(address);
    let options = options_of(&format!("mqtts://{tls}"));
    let error = run(pairs(2, 10, SECOND), &options, &mut NoObserver).unwrap_err();
    broker.stop();
    assert_eq!(error.exit_code(), 5);
    assert!(error.to_string().contains("certificate"), "{error}");
}
