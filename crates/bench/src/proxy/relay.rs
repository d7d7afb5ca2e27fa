//! The thread of a proxy: one event loop for all its connections.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;
use socket2::{Domain, SockRef, Socket, Type};
use thrum_figures::{SECOND_NS, nanos};

use super::chance::Chance;
use super::connection::{Connection, News, Side, State, Turn};
use super::shared::{Controls, Shared, add};
use super::timetable::Timetable;
use crate::clock;
use crate::swarm::alarm::Alarm;

/// Most connections; more wait to be accepted. The ports of one source address suffice for half of
/// them.
const CONNECTIONS_MAX: usize = 65_536;

/// Connections that may wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 4096;

/// Events that are fetched at a time.
const EVENTS_MAX: usize = 1024;

/// Most bytes that are read at a time.
const READ_BYTES_MAX: usize = 64 * 1024;

/// Rest before the next attempt when there is no file for a connection.
const RETRY_NS: u64 = SECOND_NS / 10;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const ALARM: Token = Token(usize::MAX - 2);

/// All connections of a proxy.
pub(super) struct Relay {
    poll: Poll,
    listener: TcpListener,
    waker: Arc<Waker>,
    alarm: Alarm,
    upstream: SocketAddr,
    shared: Arc<Shared>,
    controls: Controls,
    chance: Chance,
    connections: Slab<Connection>,
    /// When to serve which connection; an entry holds if the connection has the same time.
    wakes: Timetable,
    /// When to cut which connection, likewise.
    cuts: Timetable,
    can_accept: bool,
    accept_again_ns: Option<u64>,
    buffer: Box<[u8]>,
    /// Connections with news from the kernel.
    awake: Vec<usize>,
}

impl Relay {
    pub(super) fn new(upstream: SocketAddr, shared: Arc<Shared>, seed: u64) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = listen()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            waker: Arc::new(Waker::new(poll.registry(), WAKER)?),
            alarm: Alarm::new(&poll, ALARM)?,
            poll,
            listener,
            upstream,
            controls: shared.controls(),
            shared,
            chance: Chance::new(seed),
            connections: Slab::new(),
            wakes: Timetable::default(),
            cuts: Timetable::default(),
            can_accept: false,
            accept_again_ns: None,
            buffer: vec![0; READ_BYTES_MAX].into_boxed_slice(),
            awake: Vec::with_capacity(EVENTS_MAX),
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Runs until it is stopped, or until waiting for events fails.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.controls.is_stopped {
            if self.arm().is_err() {
                return;
            }
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => self.turn(&events, clock::monotonic_ns()),
            }
        }
    }

    fn turn(&mut self, events: &Events, now_ns: u64) {
        for event in events {
            self.note(event);
        }
        let controls = self.shared.controls();
        if controls != self.controls {
            self.apply(controls, now_ns);
        }
        if self.accept_again_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.accept_again_ns = None;
        }
        self.cut_due(now_ns);
        self.accept(now_ns);
        while let Some(key) = self.awake.pop() {
            self.serve(key, now_ns);
        }
        self.serve_due(now_ns);
    }

    fn note(&mut self, event: &Event) {
        match event.token() {
            LISTENER => self.can_accept = true,
            WAKER => {}
            ALARM => self.alarm.rang(),
            token => {
                let (key, side) = place(token);
                let Some(connection) = self.connections.get_mut(key) else {
                    return;
                };
                let is_broken = event.is_error();
                let news = News {
                    is_readable: event.is_readable(),
                    is_writable: event.is_writable() || event.is_write_closed() || is_broken,
                    has_ended: event.is_read_closed() || is_broken,
                };
                connection.note(side, news);
                self.awake.push(key);
            }
        }
    }

    /// Applies the owner's settings, and gives every connection a turn.
    fn apply(&mut self, controls: Controls, now_ns: u64) {
        let network = controls.network;
        let has_new_lifetime = network.cut_after != self.controls.network.cut_after;
        self.controls = controls;
        self.awake.clear();
        for (key, connection) in &mut self.connections {
            connection.set_network(network);
            self.awake.push(key);
        }
        if has_new_lifetime {
            // An exponential lifetime has no memory, so a new one may be drawn.
            self.draw_lifetimes(now_ns);
        }
    }

    fn draw_lifetimes(&mut self, now_ns: u64) {
        let mean = self.controls.network.cut_after;
        self.cuts = Timetable::default();
        for (key, connection) in &mut self.connections {
            connection.cut_ns = mean.map(|mean| cut_ns(mean, now_ns, &mut self.chance));
            self.cuts.extend(connection.cut_ns, key);
        }
    }

    fn accept(&mut self, now_ns: u64) {
        while self.can_accept
            && self.accept_again_ns.is_none()
            && self.connections.len() < CONNECTIONS_MAX
        {
            match self.listener.accept() {
                Ok((client, _)) => self.open(client, now_ns),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_accept = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => self.accept_again_ns = Some(now_ns + RETRY_NS),
            }
        }
    }

    fn open(&mut self, client: TcpStream, now_ns: u64) {
        add(&self.shared.connections, 1);
        // The handle shares the socket: it is reset even if the rest fails.
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).ok();
        let opened = self.connect(client);
        let Ok(mut connection) = opened else {
            add(&self.shared.failed, 1);
            add(&self.shared.closed, 1);
            return;
        };
        SockRef::from(&*connection.stream(Side::Client))
            .set_linger(None)
            .ok();
        let key = self.connections.vacant_key();
        let mean = self.controls.network.cut_after;
        connection.cut_ns = mean.map(|mean| cut_ns(mean, now_ns, &mut self.chance));
        self.cuts.extend(connection.cut_ns, key);
        self.connections.insert(connection);
        self.awake.push(key);
    }

    fn connect(&self, client: TcpStream) -> io::Result<Connection> {
        let key = self.connections.vacant_key();
        let broker = TcpStream::connect(self.upstream)?;
        let mut connection = Connection::new(client, broker, self.controls.network)?;
        for side in [Side::Client, Side::Broker] {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(connection.stream(side), token(key, side), interest)?;
        }
        Ok(connection)
    }

    fn cut_due(&mut self, now_ns: u64) {
        while let Some((at_ns, key)) = self.cuts.take_due(now_ns) {
            let connection = self.connections.get(key);
            if connection.is_some_and(|it| it.cut_ns == Some(at_ns)) {
                add(&self.shared.cut, 1);
                self.reset(key);
            }
        }
        let connections = &self.connections;
        self.cuts.prune(connections.len(), |at_ns, key| {
            connections
                .get(key)
                .is_some_and(|it| it.cut_ns == Some(at_ns))
        });
    }

    fn serve_due(&mut self, now_ns: u64) {
        // Those that are due again at once have their turn after the others.
        for _ in 0..self.wakes.len() {
            let Some((at_ns, key)) = self.wakes.take_due(now_ns) else {
                break;
            };
            let connection = self.connections.get_mut(key);
            if let Some(connection) = connection.filter(|it| it.wake_ns == Some(at_ns)) {
                connection.wake_ns = None;
                self.serve(key, now_ns);
            }
        }
        let connections = &self.connections;
        self.wakes.prune(connections.len(), |at_ns, key| {
            connections
                .get(key)
                .is_some_and(|it| it.wake_ns == Some(at_ns))
        });
    }

    fn serve(&mut self, key: usize, now_ns: u64) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let mut turn = Turn {
            now_ns,
            buffer: &mut self.buffer,
            chance: &mut self.chance,
            shared: &self.shared,
        };
        match connection.serve(&mut turn) {
            State::Waiting(None) => connection.wake_ns = None,
            State::Waiting(Some(at_ns)) => self.wake_at(key, at_ns),
            State::Unfinished => self.wake_at(key, now_ns),
            State::Closed => {
                self.connections.remove(key);
                add(&self.shared.closed, 1);
            }
            State::Reset => self.reset(key),
            State::Refused => {
                add(&self.shared.failed, 1);
                self.reset(key);
            }
        }
    }

    fn wake_at(&mut self, key: usize, at_ns: u64) {
        if let Some(connection) = self.connections.get_mut(key)
            && connection.wake_ns != Some(at_ns)
        {
            connection.wake_ns = Some(at_ns);
            self.wakes.add(at_ns, key);
        }
    }

    fn reset(&mut self, key: usize) {
        self.connections.remove(key).reset();
        add(&self.shared.closed, 1);
    }

    fn arm(&mut self) -> io::Result<()> {
        let times = [
            self.wakes.next_ns(),
            self.cuts.next_ns(),
            self.accept_again_ns,
        ];
        match times.into_iter().flatten().min() {
            Some(at_ns) => self.alarm.arm(at_ns),
            None => Ok(()),
        }
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// When a connection with a mean lifetime is cut.
fn cut_ns(mean: Duration, now_ns: u64, chance: &mut Chance) -> u64 {
    now_ns.saturating_add(chance.lifetime(nanos(mean)))
}

/// The token of a socket: even numbers are clients.
const fn token(key: usize, side: Side) -> Token {
    match side {
        Side::Client => Token(key * 2),
        Side::Broker => Token(key * 2 + 1),
    }
}

const fn place(token: Token) -> (usize, Side) {
    let side = if token.0.is_multiple_of(2) {
        Side::Client
    } else {
        Side::Broker
    };
    (token.0 / 2, side)
}
