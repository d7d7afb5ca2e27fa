//! Output of a turn, connection by connection, so that each is written to once.

use std::sync::Arc;

use thrum_figures::as_index;

use super::message::Form;
use super::shared_socket::SharedSocket;
use super::totals::Totals;

/// Output of all connections that is gathered before it is written: more would leave the
/// processor's caches.
const GATHERED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Buffers that are kept for the next turn: one for each connection of a large fan-out.
const POOL_MAX: usize = 4_096;

/// A buffer above this size is not kept.
const POOLED_BYTES_MAX: usize = 64 * 1024;

/// The output of one thread, to its own connections and to those of others.
#[derive(Debug)]
pub(super) struct Outputs {
    by_client: Vec<Output>,
    /// Connections that have output.
    waiting: Vec<u32>,
    gathered_bytes: usize,
    pool: Vec<Vec<u8>>,
    ids: PacketIds,
}

#[derive(Debug, Default)]
struct Output {
    socket: Option<Arc<SharedSocket>>,
    /// Without memory between turns.
    bytes: Vec<u8>,
    /// Number of the thread's packet identifiers in use so far.
    ids_given: u16,
}

/// The packet identifiers of this thread: no two threads give a connection the same one.
#[derive(Clone, Copy, Debug)]
struct PacketIds {
    first: u16,
    count: u16,
}

impl Outputs {
    /// The outputs of thread `thread`, counted from 0, of `threads`.
    pub(super) fn new(thread: u16, threads: u16) -> Self {
        Self {
            by_client: Vec::new(),
            waiting: Vec::new(),
            gathered_bytes: 0,
            pool: Vec::new(),
            ids: PacketIds::of(thread, threads),
        }
    }

    /// Opens the output of a connection.
    pub(super) fn open(&mut self, client: u32, socket: &Arc<SharedSocket>) {
        let at = as_index(client);
        if at >= self.by_client.len() {
            self.by_client.resize_with(at + 1, Output::default);
        }
        self.by_client[at].socket = Some(Arc::clone(socket));
    }

    /// Drops the output of an ended connection.
    pub(super) fn close(&mut self, client: u32) {
        if let Some(output) = self.by_client.get_mut(as_index(client)) {
            *output = Output::default();
        }
    }

    /// The buffer for the answers to a connection, to be appended to.
    #[inline]
    pub(super) fn answers(&mut self, client: u32) -> &mut Vec<u8> {
        let output = &mut self.by_client[as_index(client)];
        if output.bytes.is_empty() {
            output.begin(client, &mut self.waiting, &mut self.pool);
        }
        &mut output.bytes
    }

    /// Gives a message to a connection; false if too much waits for it already.
    #[inline]
    pub(super) fn relay(&mut self, client: u32, form: Form<'_>, totals: &mut Totals) -> bool {
        let output = &mut self.by_client[as_index(client)];
        if output.bytes.is_empty() {
            if output.socket.as_ref().is_none_or(|socket| socket.is_full()) {
                return false;
            }
            output.begin(client, &mut self.waiting, &mut self.pool);
        }
        let packet_id = self.ids.first + output.ids_given;
        output.ids_given = if output.ids_given + 1 < self.ids.count {
            output.ids_given + 1
        } else {
            0
        };
        let before = output.bytes.len();
        form.append(packet_id, &mut output.bytes);
        self.gathered_bytes += output.bytes.len() - before;
        if self.gathered_bytes > GATHERED_BYTES_MAX {
            self.flush(totals);
        }
        true
    }

    /// Writes everything, once for each connection.
    pub(super) fn flush(&mut self, totals: &mut Totals) {
        let mut waiting = std::mem::take(&mut self.waiting);
        // Another thread may be writing to the same connections: locked connections come last.
        waiting.retain(|client| !self.write(*client, SharedSocket::try_send, totals));
        for client in waiting.drain(..) {
            self.write(client, |socket, bytes| Some(socket.send(bytes)), totals);
        }
        self.waiting = waiting;
        self.gathered_bytes = 0;
    }

    /// Writes to one connection; false if it was not possible.
    #[inline]
    fn write(
        &mut self,
        client: u32,
        send: impl Fn(&SharedSocket, &[u8]) -> Option<u64>,
        totals: &mut Totals,
    ) -> bool {
        let output = &mut self.by_client[as_index(client)];
        let bytes = &mut output.bytes;
        if let Some(socket) = output.socket.as_ref().filter(|_| !bytes.is_empty()) {
            let Some(writes) = send(socket, bytes) else {
                return false;
            };
            totals.writes += writes;
        }
        let mut bytes = std::mem::take(bytes);
        if (1..=POOLED_BYTES_MAX).contains(&bytes.capacity()) && self.pool.len() < POOL_MAX {
            bytes.clear();
            self.pool.push(bytes);
        }
        true
    }
}

impl Output {
    #[inline]
    fn begin(&mut self, client: u32, waiting: &mut Vec<u32>, pool: &mut Vec<Vec<u8>>) {
        waiting.push(client);
        if self.bytes.capacity() == 0 {
            self.bytes = pool.pop().unwrap_or_default();
        }
    }
}

impl PacketIds {
    const fn of(thread: u16, threads: u16) -> Self {
        let count = u16::MAX / threads;
        Self {
            first: 1 + thread * count,
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use thrum_codec::packet::Publish;
    use thrum_codec::properties::PublishProperties;
    use thrum_codec::{PacketId, QoS, Version, encode_publish, frame};

    use super::super::message::{Forms, Message};
    use super::super::route::Target;
    use super::*;

    const TARGET: Target = Target {
        client: 0,
        qos: QoS::AtLeastOnce,
        version: Version::V311,
    };

    fn open(outputs: &mut Outputs, client: u32) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        outputs.open(client, &Arc::new(SharedSocket::new(ours.into())));
        theirs
    }

    fn received(stream: &mut UnixStream) -> Vec<u8> {
        let mut bytes = vec![0; 4_096];
        let count = stream.read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    /// Relays a message with this payload; returns whether it was taken.
    fn relay(outputs: &mut Outputs, client: u32, payload: &[u8], totals: &mut Totals) -> bool {
        let publish = Publish {
            dup: false,
            qos: QoS::AtLeastOnce,
            retain: false,
            topic: "t/1",
            packet_id: PacketId::new(1),
            properties: PublishProperties::default(),
            payload,
        };
        let mut bytes = Vec::new();
        encode_publish(&publish, Version::V311, &mut bytes).unwrap();
        let frame = frame::split(&bytes, u32::MAX).unwrap().unwrap();
        let message = Message::parse(frame, &bytes, Version::V311).unwrap();
        let mut forms = Forms::default();
        outputs.relay(client, forms.of(&message, TARGET).unwrap(), totals)
    }

    #[test]
    fn answers_and_messages_of_a_turn_are_one_write_per_connection() {
        let mut outputs = Outputs::new(0, 1);
        let mut totals = Totals::default();
        let (mut first, mut second) = (open(&mut outputs, 0), open(&mut outputs, 7));
        outputs.answers(7).extend_from_slice(b"ack");
        for client in [0, 7, 0] {
            assert!(relay(&mut outputs, client, b"x", &mut totals));
        }
        assert_eq!(received(&mut first), b"");
        outputs.flush(&mut totals);
        assert_eq!(totals.writes, 2);
        let copy = |id| [0x32, 8, 0, 3, b't', b'/', b'1', 0, id, b'x'];
        assert_eq!(received(&mut first), [copy(1), copy(2)].concat());
        assert_eq!(received(&mut second), [&b"ack"[..], &copy(1)].concat());
        outputs.flush(&mut totals);
        assert_eq!(totals.writes, 2);
    }

    #[test]
    fn a_connection_that_has_ended_gets_nothing_and_its_number_is_reusable() {
        let mut outputs = Outputs::new(0, 1);
        let mut totals = Totals::default();
        let mut old = open(&mut outputs, 3);
        assert!(relay(&mut outputs, 3, b"x", &mut totals));
        outputs.close(3);
        assert!(!relay(&mut outputs, 3, b"x", &mut totals));
        let mut new = open(&mut outputs, 3);
        outputs.answers(3).extend_from_slice(b"hello");
        outputs.flush(&mut totals);
        assert_eq!(received(&mut old), b"");
        assert_eq!(received(&mut new), b"hello");
    }

    #[test]
    fn much_output_is_written_before_the_turn_is_over() {
        let mut outputs = Outputs::new(0, 1);
        let mut totals = Totals::default();
        let _peer = open(&mut outputs, 0);
        let payload = vec![0; GATHERED_BYTES_MAX / 2];
        assert!(relay(&mut outputs, 0, &payload, &mut totals));
        assert_eq!(totals.writes, 0);
        assert!(relay(&mut outputs, 0, &payload, &mut totals));
        assert!(totals.writes > 0);
    }

    #[test]
    fn a_connection_that_does_not_read_gets_no_more_messages() {
        let mut outputs = Outputs::new(0, 1);
        let mut totals = Totals::default();
        let _peer = open(&mut outputs, 0);
        let payload = vec![0; 1 << 20];
        let mut taken = 0;
        while taken < 100 && relay(&mut outputs, 0, &payload, &mut totals) {
            outputs.flush(&mut totals);
            taken += 1;
        }
        // The part that the socket takes, and 8 MiB that wait for it.
        assert!((9..20).contains(&taken), "{taken}");
    }

    #[test]
    fn packet_identifiers_of_threads_differ_and_are_never_0() {
        for threads in 1..=super::super::THREADS_MAX {
            let mut next = 1_u32;
            for thread in 0..threads {
                let ids = PacketIds::of(thread, threads);
                assert_eq!(u32::from(ids.first), next);
                next += u32::from(ids.count);
                assert!(next <= 65_536);
            }
        }
        assert_eq!(PacketIds::of(15, 16).count, 4_095);
        let mut outputs = Outputs::new(1, 2);
        let mut totals = Totals::default();
        let mut peer = open(&mut outputs, 0);
        for _ in 0..32_767 {
            relay(&mut outputs, 0, b"", &mut totals);
            outputs.flush(&mut totals);
            let bytes = received(&mut peer);
            assert!(u16::from_be_bytes([bytes[7], bytes[8]]) >= 32_768);
        }
        relay(&mut outputs, 0, b"", &mut totals);
        outputs.flush(&mut totals);
        assert_eq!(received(&mut peer)[7..9], 32_768_u16.to_be_bytes());
    }
}
