//! Bytes of a TLS client, modified on the way: the server reads the data that the client wrote, or
//! nothing.
//!
//! An input with an even first byte is the client's stream itself. Otherwise a client performs a
//! handshake and sends messages, and the input determines the modifications of its bytes: each step
//! is an operation, a position and a byte. The second bit of the first byte adds a WebSocket inside
//! the TLS. Keys and random numbers of the handshake are new in every process; no assertion depends
//! on them.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thrum_transport::{
    Acceptor, Connector, Endpoint, LayerError, Layers, ServerLayers, ServerTlsOptions, TlsOptions,
    WebSocketOptions,
};

use crate::{Sight, sight};

/// Number of messages that the client sends after the handshake.
const MESSAGES: usize = 4;

/// Number of bytes of one step: operation, position (two), byte.
const STEP_BYTES: usize = 4;

/// Limit of the server's reply to invalid bytes: an alert, and its part of a handshake.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Passes the input to a server.
///
/// # Panics
/// If it accepts bytes as MQTT that the client did not send in this order, or continues after a
/// fault.
pub fn target(input: &[u8]) -> Sight {
    match input.split_first() {
        None => 0,
        Some((choice, stream)) if choice % 2 == 0 => hear_raw(stream),
        Some((choice, steps)) => hear_changed(if choice & 2 == 0 { &MQTTS } else { &WSS }, steps),
    }
}

/// The server's behaviour for bytes that no client produced.
fn hear_raw(stream: &[u8]) -> Sight {
    let hear = |piece_bytes: usize| {
        let mut server = accept(&MQTTS);
        let (mut plain, mut wire) = (Vec::new(), Vec::new());
        let mut bytes = stream.to_vec();
        let mut pieces = bytes.chunks_mut(piece_bytes);
        let fault = pieces.find_map(|piece| server.receive(piece, &mut plain, &mut wire).err());
        assert!(plain.is_empty(), "MQTT without a handshake");
        assert!(wire.len() <= ANSWER_BYTES_MAX);
        fault.map(|fault| fault.to_string())
    };
    let whole = hear(usize::MAX);
    assert_eq!(hear(1), whole);
    sight(&whole)
}

fn hear_changed(ends: &Ends, steps: &[u8]) -> Sight {
    let (mut client, mut server) = (connect(ends), accept(ends));
    let (mut wire, mut sent) = (Vec::new(), Vec::new());
    let (mut plain, mut answers, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
    client.start(&mut wire).expect("there are random numbers");
    let is_alone = steps.is_empty();
    let mut steps = steps.chunks_exact(STEP_BYTES);
    let mut fault = None;
    for round in 0..MESSAGES + 3 {
        if let Some(step) = steps.next() {
            change(&mut wire, step);
        }
        fault = server.receive(&mut wire, &mut plain, &mut answers).err();
        assert!(
            sent.starts_with(&plain),
            "bytes that the client did not send"
        );
        wire.clear();
        if fault.is_some()
            || client
                .receive(&mut answers, &mut ignored, &mut wire)
                .is_err()
        {
            break;
        }
        answers.clear();
        let message = vec![u8::try_from(round).expect("a few rounds"); 100 << round];
        if client.send(&message, &mut wire).is_ok() {
            sent.extend(message);
        }
    }
    assert!(
        !is_alone || (fault.is_none() && !plain.is_empty()),
        "the stream was not modified"
    );
    if fault.is_some() {
        let (before, mut more) = (plain.len(), vec![0x17; 100]);
        let again = server.receive(&mut more, &mut plain, &mut answers);
        assert_eq!((again, plain.len()), (Err(LayerError::NotOpen), before));
    }
    sight(&(fault.map(|fault| fault.to_string()), plain.len()))
}

/// Applies one modification.
fn change(wire: &mut Vec<u8>, step: &[u8]) {
    let [what, high, low, byte] = *step else {
        return;
    };
    if wire.is_empty() {
        return;
    }
    let at = usize::from(u16::from_be_bytes([high, low])) % wire.len();
    match what % 6 {
        0 => {}
        1 => wire[at] ^= byte,
        2 => wire.insert(at, byte),
        3 => wire.truncate(at),
        4 => wire.extend_from_within(at..),
        _ => drop(wire.drain(..at)),
    }
}

/// The first bytes of a client.
///
/// # Panics
/// If the system has no random numbers.
pub fn hello() -> Vec<u8> {
    let mut wire = Vec::new();
    let started = connect(&MQTTS).start(&mut wire);
    started.expect("there are random numbers");
    wire
}

/// The two ends of the connections of one scheme, created on first use.
type Ends = LazyLock<(Connector, Acceptor)>;

static MQTTS: Ends = LazyLock::new(|| make("mqtts"));
static WSS: Ends = LazyLock::new(|| make("wss"));

fn connect(ends: &Ends) -> Layers {
    ends.0.layers().expect("TLS is a layer")
}

fn accept(ends: &Ends) -> ServerLayers {
    ends.1.layers().expect("TLS is a layer")
}

fn make(scheme: &str) -> (Connector, Acceptor) {
    let key = rcgen::KeyPair::generate().expect("a key can be made");
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]);
    let params = params.expect("it is a name");
    let certificate = params.self_signed(&key).expect("it can be signed");
    let folder = std::env::temp_dir();
    let path = |end| folder.join(format!("thrum-fuzz-{}-{scheme}.{end}", std::process::id()));
    let tls = ServerTlsOptions::new(path("crt"), path("key"));
    let files = [&tls.files.cert_file, &tls.files.key_file];
    let contents = [
        ("CERTIFICATE", certificate.der().as_ref()),
        ("PRIVATE KEY", key.serialized_der()),
    ];
    for (file, (label, der)) in files.into_iter().zip(contents) {
        let text = STANDARD.encode(der);
        let pem = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        std::fs::write(file, pem).expect("a file can be written");
    }
    let websocket = (scheme == "wss").then(WebSocketOptions::default);
    let acceptor = Acceptor::new(Some(&tls), websocket.as_ref()).expect("the files are good");
    for file in files {
        std::fs::remove_file(file).expect("it was written");
    }
    let endpoint = Endpoint::parse(&format!("{scheme}://localhost")).expect("it is an endpoint");
    let options = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    let connector = Connector::new(&endpoint, &options).expect("the options are good");
    (connector, acceptor)
}
