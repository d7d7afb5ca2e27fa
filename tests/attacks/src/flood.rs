//! A client that sends the same bytes without a pause and discards all input.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use thrum_conformance::{Wire, clock};

/// Least number of bytes that one write offers.
const WRITE_BYTES: usize = 64 * 1024;
/// A broker that does not read is tried again after this.
const WRITE_MAX: Duration = Duration::from_millis(100);

/// Sends the packet repeatedly for this time; returns how many bytes were taken.
///
/// # Panics
/// The operating system refuses what a socket can do.
pub fn flood(wire: Wire, packet: &[u8], duration: Duration) -> usize {
    let mut stream = wire.into_stream();
    stream
        .set_write_timeout(Some(WRITE_MAX))
        .expect("the time is not zero");
    stream.set_read_timeout(None).expect("none is a time");
    let answers = stream.try_clone().expect("a socket can be shared");
    thread::scope(|scope| {
        scope.spawn(move || discard(answers));
        let bytes = packet.repeat(WRITE_BYTES.div_ceil(packet.len()));
        let start = clock::now();
        let mut sent = 0;
        while start.elapsed() < duration {
            // Continues in the middle of a packet where the last write ended.
            match stream.write(&bytes[sent % bytes.len()..]) {
                Ok(len) => sent += len,
                Err(error) if is_late(&error) => {}
                Err(_) => break,
            }
        }
        // Ends the thread that reads.
        stream.shutdown(Shutdown::Both).unwrap_or_default();
        sent
    })
}

fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn discard(mut stream: TcpStream) {
    let mut buffer = vec![0; WRITE_BYTES];
    while stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
}
