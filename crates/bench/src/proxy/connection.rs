//! A client's connection and the one to the broker that belongs to it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mio::net::TcpStream;
use socket2::SockRef;
use thrum_load::scenario::Network;

use super::chance::Chance;
use super::link::{Ending, Link};
use super::shared::{Shared, add};

/// Most rounds of reading and writing for one connection, then it is the others' turn.
const ROUNDS_MAX: usize = 16;

/// Receive buffers of both sockets: much more would hide a slow network from its senders.
const SOCKET_BUFFER_BYTES: usize = 64 * 1024;

/// Shared resources that a connection borrows for its turn.
pub(super) struct Turn<'a> {
    pub(super) now_ns: u64,
    pub(super) buffer: &'a mut [u8],
    pub(super) chance: &'a mut Chance,
    pub(super) shared: &'a Shared,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for a socket, or for this time if one is given.
    Waiting(Option<u64>),
    /// Has more to do at once.
    Unfinished,
    /// Both directions have ended.
    Closed,
    /// One end is unreachable, and the other is to be informed.
    Reset,
    /// The broker did not accept it.
    Refused,
}

/// One socket with its readiness, which holds until a system call refutes it.
#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    is_readable: bool,
    is_writable: bool,
    /// After the buffered bytes comes the end.
    has_ended: bool,
}

/// Events of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    /// The other end has finished or is broken.
    pub(super) has_ended: bool,
}

/// Which of the two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Broker,
}

/// Both sockets and what is on its way between them.
#[derive(Debug)]
pub(super) struct Connection {
    client: Socket,
    broker: Socket,
    is_connected: bool,
    up: Direction,
    down: Direction,
    /// When it is cut.
    pub(super) cut_ns: Option<u64>,
    /// When to serve it again.
    pub(super) wake_ns: Option<u64>,
}

#[derive(Debug)]
struct Direction {
    link: Link,
    /// The receiver was sent the end.
    is_over: bool,
}

impl Connection {
    pub(super) fn new(client: TcpStream, broker: TcpStream, network: Network) -> io::Result<Self> {
        for stream in [&client, &broker] {
            stream.set_nodelay(true)?;
            SockRef::from(stream).set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        }
        let socket = |stream| Socket {
            stream,
            is_readable: false,
            is_writable: false,
            has_ended: false,
        };
        Ok(Self {
            client: socket(client),
            broker: socket(broker),
            is_connected: false,
            up: Direction::new(network),
            down: Direction::new(network),
            cut_ns: None,
            wake_ns: None,
        })
    }

    pub(super) const fn stream(&mut self, side: Side) -> &mut TcpStream {
        match side {
            Side::Client => &mut self.client.stream,
            Side::Broker => &mut self.broker.stream,
        }
    }

    /// Takes the readiness of a socket.
    pub(super) const fn note(&mut self, side: Side, news: News) {
        let socket = match side {
            Side::Client => &mut self.client,
            Side::Broker => &mut self.broker,
        };
        socket.is_readable |= news.is_readable || news.has_ended;
        socket.is_writable |= news.is_writable;
        socket.has_ended |= news.has_ended;
    }

    pub(super) fn set_network(&mut self, network: Network) {
        self.up.link.set_network(network);
        self.down.link.set_network(network);
    }

    /// Moves what can be moved.
    pub(super) fn serve(&mut self, turn: &mut Turn<'_>) -> State {
        if !self.is_connected && self.broker.is_writable {
            if !matches!(self.broker.stream.take_error(), Ok(None)) {
                return State::Refused;
            }
            self.is_connected = true;
        }
        for _ in 0..ROUNDS_MAX {
            let (client, broker) = (&mut self.client, &mut self.broker);
            let (bytes_up, bytes_down) =
                (&turn.shared.bytes_to_broker, &turn.shared.bytes_to_clients);
            let mut has_moved = self.up.receive(client, turn);
            has_moved |= self.down.receive(broker, turn);
            has_moved |= deliver([&mut self.up, &mut self.down], broker, turn, bytes_up);
            has_moved |= deliver([&mut self.down, &mut self.up], client, turn, bytes_down);
            let endings = [
                self.up.finish(&broker.stream, turn.now_ns),
                self.down.finish(&client.stream, turn.now_ns),
            ];
            if endings.contains(&Some(Ending::Reset)) {
                return State::Reset;
            }
            if self.up.is_over && self.down.is_over {
                return State::Closed;
            }
            if !has_moved {
                return State::Waiting(self.next_ns(turn.now_ns));
            }
        }
        State::Unfinished
    }

    /// Closes both sockets with a reset.
    pub(super) fn reset(self) {
        for stream in [&self.client.stream, &self.broker.stream] {
            // If that fails, the socket is closed in the usual way.
            SockRef::from(stream).set_linger(Some(Duration::ZERO)).ok();
        }
    }

    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let times = [self.up.next_ns(now_ns), self.down.next_ns(now_ns)];
        times.into_iter().flatten().min()
    }
}

impl Direction {
    fn new(network: Network) -> Self {
        Self {
            link: Link::new(network),
            is_over: false,
        }
    }

    /// Reads once if there is room; true if something came.
    fn receive(&mut self, source: &mut Socket, turn: &mut Turn<'_>) -> bool {
        let room = self.link.room().min(turn.buffer.len());
        let Some(buffer) = turn
            .buffer
            .get_mut(..room)
            .filter(|_| room > 0 && source.is_readable)
        else {
            return false;
        };
        match source.stream.read(buffer) {
            Ok(0) => self.link.end(turn.now_ns, Ending::Finished, turn.chance),
            Ok(length) => {
                // Less than requested: the kernel has no more, and signals when it has.
                source.is_readable = length == room || source.has_ended;
                let bytes = buffer.get(..length).unwrap_or_default();
                self.link.enter(turn.now_ns, bytes, turn.chance);
                add(&turn.shared.held_back, usize::from(self.link.room() == 0));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                source.is_readable = false;
                return false;
            }
            Err(_) => self.link.end(turn.now_ns, Ending::Reset, turn.chance),
        }
        true
    }

    /// Sends the end to the receiver when it has arrived.
    fn finish(&mut self, sink: &TcpStream, now_ns: u64) -> Option<Ending> {
        if self.is_over {
            return None;
        }
        let ending = self.link.ended(now_ns)?;
        self.is_over = true;
        if ending == Ending::Finished {
            // The receiver may be gone already.
            sink.shutdown(Shutdown::Write).ok();
        }
        Some(ending)
    }

    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        if self.is_over {
            None
        } else {
            self.link.next_ns(now_ns)
        }
    }
}

/// Writes once the arrived bytes; true if some were accepted. Bytes in the opposite direction, from
/// a receiver that accepts none any more, are still delivered.
fn deliver(
    [way, back]: [&mut Direction; 2],
    sink: &mut Socket,
    turn: &mut Turn<'_>,
    counter: &AtomicU64,
) -> bool {
    if !sink.is_writable || way.is_over {
        return false;
    }
    let bytes = way.link.deliverable(turn.now_ns);
    if bytes.is_empty() {
        return false;
    }
    match sink.stream.write(bytes) {
        Ok(length) => {
            way.link.take(turn.now_ns, length);
            add(counter, length);
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            sink.is_writable = false;
            return false;
        }
        Err(_) => {
            way.link.abandon();
            back.link.end(turn.now_ns, Ending::Reset, turn.chance);
        }
    }
    true
}
