//! `thrum pub --scram` against a server that plays the broker's part with the protocol's own
//! handshake.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::process::{Command, Output as Finished, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::pbkdf2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thrum_codec::{Packet, ReasonCode, Version, decode, frame};
use thrum_protocol::server::{
    Action, AuthenticationStep, ConnAckParts, Handshake, Session, refuse_connect,
};
use thrum_protocol::{Limits, Output, Time, Violation};

const PASSWORD: &str = "pen cil";
const SALT: &[u8] = b"salt of the user";
const ITERATIONS: u32 = 4096;
/// Longest silence of the client; one that is longer fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker for one connection.
struct Broker {
    limits: Arc<Limits>,
    /// Its credential of the user; an impostor has another one.
    password: &'static str,
    /// Admits every client.
    is_impostor: bool,
    handshake: Option<Handshake>,
    session: Option<Session>,
    /// First messages of both, as the proof covers them.
    messages: String,
    out: Output,
    /// Payloads of the received messages.
    published: Vec<Vec<u8>>,
}

impl Broker {
    fn new(password: &'static str, is_impostor: bool) -> Self {
        Self {
            limits: Arc::default(),
            password,
            is_impostor,
            handshake: None,
            session: None,
            messages: String::new(),
            out: Output::new(),
            published: Vec::new(),
        }
    }

    /// Serves one client until it closes; returns what it published and every byte that it sent.
    fn serve(mut self, listener: &TcpListener) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut heard, mut used) = (Vec::new(), 0);
        let mut chunk = [0; 4096];
        loop {
            let len = stream.read(&mut chunk).unwrap();
            if len == 0 {
                return (self.published, heard);
            }
            heard.extend_from_slice(&chunk[..len]);
            if !self.handle_all(&heard, &mut used, &mut stream) {
                return (self.published, heard);
            }
        }
    }

    /// False if the connection is to be closed.
    fn handle_all(&mut self, heard: &[u8], used: &mut usize, stream: &mut TcpStream) -> bool {
        while let Some(frame) = frame::split(&heard[*used..], u32::MAX).unwrap() {
            *used += frame.len;
            let is_welcome = self.handle(&decode(frame, Version::V5).unwrap());
            self.flush(stream);
            if !is_welcome {
                return false;
            }
        }
        true
    }

    fn flush(&mut self, stream: &mut TcpStream) {
        stream.write_all(&self.out.to_vec()).unwrap();
        self.out.clear();
    }

    /// False if the connection is to be closed.
    fn handle(&mut self, packet: &Packet<'_>) -> bool {
        if let Some(session) = &mut self.session {
            let action = session.handle_packet(*packet, Time::default(), &mut self.out);
            if let Action::Publish { publish, .. } = action.unwrap() {
                self.published.push(publish.payload.to_vec());
            }
            return true;
        }
        let Packet::Connect(connect) = packet else {
            return self.step(packet);
        };
        assert_eq!((connect.username, connect.password), (None, None));
        let handshake = Handshake::new(connect, "assigned", &self.limits).unwrap();
        if handshake.authentication_method() != Some("SCRAM-SHA-256") {
            let violation = Violation::new(ReasonCode::BadAuthenticationMethod, "");
            refuse_connect(connect, &violation, &mut self.out);
            return false;
        }
        let first = connect.properties.authentication_data.unwrap();
        let first = str::from_utf8(first).unwrap();
        let bare = first.strip_prefix("n,,").unwrap();
        let (name, nonce) = bare.split_once(",r=").unwrap();
        assert_eq!(name, "n=user");
        let salt = STANDARD.encode(SALT);
        let challenge = format!("r={nonce}server,s={salt},i={ITERATIONS}");
        self.messages = format!("{bare},{challenge}");
        let handshake = self.handshake.insert(handshake);
        handshake
            .challenge(challenge.as_bytes(), &mut self.out)
            .unwrap();
        true
    }

    fn step(&mut self, packet: &Packet<'_>) -> bool {
        let mut handshake = self.handshake.take().unwrap();
        let Ok(AuthenticationStep::Data(proof)) = handshake.authentication_step(packet) else {
            return false;
        };
        let (last, proof) = str::from_utf8(proof).unwrap().rsplit_once(",p=").unwrap();
        let covered = format!("{},{last}", self.messages);
        let salted = salted(self.password);
        let client_key = keyed(&salted, b"Client Key");
        let stored_key = digest(&SHA256, &client_key);
        let signature = keyed(stored_key.as_ref(), covered.as_bytes());
        let pairs = client_key.iter().zip(signature);
        let expected: Vec<u8> = pairs.map(|(key, with)| key ^ with).collect();
        if STANDARD.decode(proof).unwrap() != expected && !self.is_impostor {
            let violation = Violation::new(ReasonCode::NotAuthorized, "wrong proof");
            handshake.refuse(&violation, &mut self.out);
            return false;
        }
        let signature = keyed(&keyed(&salted, b"Server Key"), covered.as_bytes());
        let signature = format!("v={}", STANDARD.encode(signature));
        let welcome = ConnAckParts {
            authentication_data: Some(signature.as_bytes()),
            ..ConnAckParts::default()
        };
        let session = Session::new(1, &handshake, &self.limits);
        self.session
            .insert(session)
            .connect(handshake, welcome, Time::default(), &mut self.out);
        true
    }
}

fn salted(password: &str) -> [u8; 32] {
    let mut salted = [0; 32];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        NonZeroU32::new(ITERATIONS).unwrap(),
        SALT,
        password.as_bytes(),
        &mut salted,
    );
    salted
}

fn keyed(key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(HMAC_SHA256, key);
    hmac::sign(&key, message).as_ref().to_vec()
}

/// Publishes with the right password to a broker that knows this one.
fn publish(password: &'static str, is_impostor: bool) -> (Finished, Vec<Vec<u8>>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let serve = move || Broker::new(password, is_impostor).serve(&listener);
    let serving: JoinHandle<_> = std::thread::spawn(serve);
    let finished = Command::new(env!("CARGO_BIN_EXE_thrum"))
        .args(["pub", "-h", "127.0.0.1", "-p", &port])
        .args(["--scram", "-u", "user", "-t", "t", "-m", "hello"])
        .env("THRUM_PASSWORD", PASSWORD)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (published, heard) = serving.join().unwrap();
    (finished, published, heard)
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes
        .windows(part.len())
        .any(|window| window == part.as_bytes())
}

#[test]
fn both_sides_prove_the_password_without_sending_it() {
    let (finished, published, heard) = publish(PASSWORD, false);
    let words = String::from_utf8_lossy(&finished.stderr);
    assert_eq!(finished.status.code(), Some(0), "{words}");
    assert_eq!(published, [b"hello"]);
    assert!(!contains(&heard, PASSWORD));
}

#[test]
fn a_wrong_password_is_refused_by_the_broker() {
    let (finished, published, _) = publish("another", false);
    assert_eq!(finished.status.code(), Some(4));
    let words = String::from_utf8_lossy(&finished.stderr);
    assert!(words.contains("wrong proof"), "{words}");
    assert!(published.is_empty());
}

#[test]
fn a_broker_that_does_not_know_the_password_gets_nothing() {
    let (finished, published, _) = publish("another", true);
    assert_eq!(finished.status.code(), Some(4));
    let words = String::from_utf8_lossy(&finished.stderr);
    assert!(words.contains("impostor"), "{words}");
    assert!(published.is_empty());
}
