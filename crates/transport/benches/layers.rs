//! Cost of the layers of an accepted connection: messages of 1 KiB in and out, and a handshake.

use std::hint::black_box;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use thrum_transport::{
    Acceptor, Connector, Endpoint, Layers, ServerLayers, ServerTlsOptions, TlsOptions,
    WebSocketOptions,
};

const PAYLOAD: [u8; 1024] = [7; 1024];

/// Messages that come with one read.
const BATCH: usize = 32;

/// Rounds of a handshake.
const ROUNDS: usize = 6;

const SCHEMES: [&str; 3] = ["mqtts", "ws", "wss"];

/// Both ends of one scheme.
struct Ends {
    acceptor: Acceptor,
    connector: Connector,
}

fn pem_file(label: &str, der: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{label}.pem"));
    let text = STANDARD.encode(der);
    let pem = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
    std::fs::write(&path, pem).expect("the folder of cargo is there");
    path
}

fn ends(scheme: &str) -> Ends {
    let key = rcgen::KeyPair::generate().expect("a key can be made");
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("it is a name");
    let certificate = params.self_signed(&key).expect("it can be signed");
    let tls = ServerTlsOptions::new(
        pem_file("CERTIFICATE", certificate.der()),
        pem_file("PRIVATE KEY", key.serialized_der()),
    );
    let (has_tls, has_websocket) = (scheme != "ws", scheme != "mqtts");
    let websocket = WebSocketOptions::default();
    let acceptor = Acceptor::new(has_tls.then_some(&tls), has_websocket.then_some(&websocket));
    let endpoint = Endpoint::parse(&format!("{scheme}://localhost")).expect("it is an endpoint");
    let options = TlsOptions {
        insecure: has_tls,
        ..TlsOptions::default()
    };
    Ends {
        acceptor: acceptor.expect("the files are good"),
        connector: Connector::new(&endpoint, &options).expect("the options are good"),
    }
}

fn connect(ends: &Ends) -> (Layers, ServerLayers) {
    let mut client = ends.connector.layers().expect("there are layers");
    let mut server = ends.acceptor.layers().expect("there are layers");
    let (mut plain, mut to_server, mut to_client) = (Vec::new(), Vec::new(), Vec::new());
    client
        .start(&mut to_server)
        .expect("there are random numbers");
    for _ in 0..ROUNDS {
        let heard = server.receive(&mut to_server, &mut plain, &mut to_client);
        heard.expect("the client is good");
        to_server.clear();
        let heard = client.receive(&mut to_client, &mut plain, &mut to_server);
        heard.expect("the server is good");
        to_client.clear();
    }
    assert!(client.is_open() && server.is_open());
    (client, server)
}

/// What a message of 1 KiB costs that leaves, in one piece and in two.
fn send(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("send-1KiB");
    group.throughput(Throughput::Bytes(PAYLOAD.len() as u64));
    for scheme in SCHEMES {
        let (_client, mut server) = connect(&ends(scheme));
        let mut out = Vec::with_capacity(4096);
        let mut send = |pieces: [&[u8]; 2]| {
            out.clear();
            server.send(pieces, &mut out).expect("it is open");
        };
        let (header, payload) = PAYLOAD.split_at(30);
        for (count, pieces) in [(1, [PAYLOAD.as_slice(), b""]), (2, [header, payload])] {
            group.bench_function(format!("{scheme}/{count}"), |bencher| {
                bencher.iter(|| send(black_box(pieces)));
            });
        }
    }
    group.finish();
}

/// What messages of 1 KiB cost that come with one read, each in its own frame or record.
fn receive(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("receive-{BATCH}x1KiB"));
    group.throughput(Throughput::Bytes((PAYLOAD.len() * BATCH) as u64));
    for scheme in SCHEMES {
        let (mut client, mut server) = connect(&ends(scheme));
        let (mut plain, mut out) = (Vec::with_capacity(65_536), Vec::new());
        let mut written = || {
            let mut wire = Vec::with_capacity(65_536);
            for _ in 0..BATCH {
                client.send(&PAYLOAD, &mut wire).expect("it is open");
            }
            wire
        };
        let mut read = |mut wire: Vec<u8>| {
            plain.clear();
            let heard = server.receive(&mut wire, &mut plain, &mut out);
            heard.expect("the client is good");
            wire
        };
        // Written and read in the same order, as records must be.
        group.bench_function(scheme, |bencher| {
            bencher.iter_batched(&mut written, &mut read, BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// What a connection costs until MQTT may flow: both ends.
fn handshake(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake-of-both-ends");
    for scheme in SCHEMES {
        let ends = ends(scheme);
        group.bench_function(scheme, |bencher| bencher.iter(|| connect(&ends)));
    }
    group.finish();
}

criterion_group!(benches, send, receive, handshake);
criterion_main!(benches);
