//! The memory of connections and messages in a server.

use crate::counting::{allocations, live_bytes};
use crate::duplex::{Duplex, opened};

const WHOLE: usize = usize::MAX;

/// Bytes of the server's end after a message each way, and that many of the client's bytes more.
fn idle_bytes(scheme: &str, payload: &[u8]) -> i64 {
    let mut duplex = opened(scheme, WHOLE);
    duplex.client_sends(payload);
    duplex.server_sends(&[payload]);
    freed(duplex)
}

/// Bytes of the server's end alone: shared memory is excluded.
fn freed(duplex: Duplex) -> i64 {
    let _shared = duplex.acceptor;
    let before = live_bytes();
    drop(duplex.server);
    before - live_bytes()
}

/// Half of a record or frame has arrived.
fn waiting_bytes(scheme: &str) -> i64 {
    let mut duplex = opened(scheme, WHOLE);
    let mut wire = Vec::new();
    duplex.client.send(&[7; 1000], &mut wire).unwrap();
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let half = &mut wire[..500];
    duplex.server.receive(half, &mut plain, &mut out).unwrap();
    freed(duplex)
}

#[test]
fn an_idle_connection_holds_no_buffers() {
    // Of TLS nearly all is the library's; its keys take 1.4 KiB more, which this count does not
    // include.
    for (scheme, bytes_max) in [("mqtts", 3_000), ("ws", 200), ("wss", 3_200)] {
        let idle = idle_bytes(scheme, b"x");
        assert!(idle <= bytes_max, "{scheme}: {idle} bytes");
        assert_eq!(idle_bytes(scheme, &vec![7; 100_000]), idle, "{scheme}");
    }
    assert!(waiting_bytes("mqtts") < idle_bytes("mqtts", b"x") + 1_100);
    assert_eq!(waiting_bytes("ws"), idle_bytes("ws", b"x"));
}

/// Allocations of the server for a message in and one out, each of 1 KiB in two pieces.
fn message_allocations(duplex: &mut Duplex) -> (u64, u64) {
    let (payload, mut wire) = ([7; 1024], Vec::with_capacity(4096));
    let (mut plain, mut out) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
    duplex.client.send(&payload, &mut wire).unwrap();
    let start = allocations();
    duplex
        .server
        .receive(&mut wire, &mut plain, &mut out)
        .unwrap();
    let received = allocations() - start;
    assert_eq!(plain, payload);
    let (front, back) = payload.split_at(100);
    let start = allocations();
    duplex.server.send([front, back], &mut out).unwrap();
    (received, allocations() - start)
}

#[test]
fn steady_traffic_allocates_little() {
    // The library hands over each record in memory of its own, and encrypts in such.
    for (scheme, expected) in [("mqtts", (1, 1)), ("ws", (0, 0)), ("wss", (1, 1))] {
        let mut duplex = opened(scheme, WHOLE);
        message_allocations(&mut duplex);
        assert_eq!(message_allocations(&mut duplex), expected, "{scheme}");
    }
}
