//! `thrum pub` and `thrum sub` over QUIC, in front of a broker that knows none.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thrum_quic::{Limits, Peer, QuicListener};

/// The exit code of `-W`, in a program that is not expected to reach it.
const LIMIT: &str = "20";

/// A broker that is reached over QUIC.
struct Fixture {
    broker: Child,
    listener: QuicListener,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is fine.
        self.broker.kill().ok();
        self.broker.wait().ok();
    }
}

impl Fixture {
    fn new() -> Self {
        let mut command = thrum(&["serve", "--dev", "--listen", "127.0.0.1:0"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut broker = command.spawn().unwrap();
        let printed = BufReader::new(broker.stdout.take().unwrap());
        let mut places = printed.lines().map_while(Result::ok).filter_map(|line| {
            let (_, place) = line.split_once("mqtt://")?;
            Some(place.split(' ').next()?.to_owned())
        });
        let address: SocketAddr = places.next().unwrap().parse().unwrap();
        // Its other output must not block it.
        thread::spawn(move || places.count());
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let carry =
            move |client: UnixStream, _: Peer| carry(client, TcpStream::connect(address).unwrap());
        let limits = Limits::default();
        let listener = QuicListener::bind(&[any_port], &tls(), limits, carry).unwrap();
        Self { broker, listener }
    }

    fn url(&self, topic: &str) -> String {
        // By a name that has two addresses, of which one is listened on.
        let port = self.listener.addresses()[0].port();
        format!("quic://localhost:{port}/{topic}")
    }
}

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

/// Carries bytes both ways until both have ended.
fn carry(client: UnixStream, broker: TcpStream) {
    client.set_nonblocking(false).unwrap();
    let (to_client, to_broker) = (client.try_clone().unwrap(), broker.try_clone().unwrap());
    thread::spawn(move || copy(client, &to_broker, || to_broker.shutdown(Shutdown::Write)));
    thread::spawn(move || copy(broker, &to_client, || to_client.shutdown(Shutdown::Both)));
}

fn copy(mut from: impl Read, mut to: impl Write, end: impl Fn() -> std::io::Result<()>) {
    // Either end may be gone, which ends the other.
    std::io::copy(&mut from, &mut to).ok();
    end().ok();
}

fn thrum(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("RUST_LOG");
    command
}

fn run(args: &[&str]) -> Output {
    thrum(args).output().unwrap()
}

#[test]
fn a_message_goes_from_one_program_to_the_other() {
    let fixture = Fixture::new();
    let url = fixture.url("house/door");
    let publish = [
        "pub",
        "--insecure",
        "-L",
        &url,
        "-q",
        "1",
        "-m",
        "open",
        "-r",
    ];
    let published = run(&publish);
    let said = String::from_utf8_lossy(&published.stderr);
    assert_eq!(published.status.code(), Some(0), "{said}");
    let received = run(&["sub", "--insecure", "-L", &url, "-C", "1", "-W", LIMIT]);
    assert_eq!(String::from_utf8_lossy(&received.stdout), "open\n");
    assert_eq!(received.status.code(), Some(0));
}

#[test]
fn a_server_with_an_untrusted_certificate_is_refused_with_the_reason() {
    let fixture = Fixture::new();
    let refused = run(&["pub", "-L", &fixture.url("t"), "-m", "x"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains("certificate"), "{said}");
}
