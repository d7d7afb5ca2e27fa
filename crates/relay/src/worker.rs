//! One thread: its event loop and the connections that it accepted.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::time::Timespec;
use slab::Slab;

use super::client::{Client, READ_BYTES};
use super::message::Forms;
use super::outputs::Outputs;
use super::route::{Route, Routes, Target};
use super::shared_socket::SharedSocket;
use super::thread_group::{Change, ThreadGroup};
use super::totals::Totals;

/// Ready sockets taken from the kernel at once: a whole fan-out to 1 000 subscribers and more.
const EVENTS_MAX: usize = 4_096;

/// Numbers of event sources other than connections.
const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client disconnected or is gone.
    Left,
    /// A malformed packet.
    Malformed,
}

/// A thread of the relay.
#[derive(Debug)]
pub(super) struct Worker {
    number: u16,
    group: Arc<ThreadGroup>,
    epoll: OwnedFd,
    listener: TcpListener,
    /// A connection could not be accepted: retry when another one ends.
    accepts_later: bool,
    pub(super) clients: Slab<Client>,
    pub(super) routes: Routes,
    pub(super) outputs: Outputs,
    pub(super) forms: Forms,
    /// For all connections, one after the other.
    input: Vec<u8>,
    /// Connections that have more than one read took.
    unread: Vec<usize>,
    pub(super) totals: Totals,
}

impl Worker {
    /// # Errors
    /// The kernel gives no event queue.
    pub(super) fn new(
        number: u16,
        listener: TcpListener,
        group: Arc<ThreadGroup>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), flags)?;
        let waker = group.waker(number);
        epoll::add(&epoll, waker, EventData::new_u64(WAKER), flags)?;
        Ok(Self {
            number,
            epoll,
            listener,
            accepts_later: false,
            clients: Slab::new(),
            routes: Routes::default(),
            outputs: Outputs::new(number, group.threads()),
            forms: Forms::default(),
            input: Vec::with_capacity(2 * READ_BYTES),
            unread: Vec::new(),
            totals: Totals::default(),
            group,
        })
    }

    /// Runs until the relay is stopped.
    ///
    /// # Errors
    /// The event queue fails.
    pub(super) fn run(mut self) -> io::Result<Totals> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while !self.group.is_stopped() {
            let timeout = (!self.unread.is_empty()).then_some(&AT_ONCE);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.totals.wake_ups += 1;
            self.turn(&mut events);
        }
        Ok(self.totals)
    }

    /// Reads all that is ready, then writes.
    fn turn(&mut self, events: &mut Vec<Event>) {
        let unread = self.unread.len();
        for index in 0..unread {
            self.read(self.unread[index]);
        }
        self.unread.drain(..unread);
        for event in events.drain(..) {
            let (source, flags) = (event.data.u64(), event.flags);
            match source {
                LISTENER => self.accept(),
                WAKER => self.apply_changes(),
                key => self.serve(usize::try_from(key).unwrap_or(usize::MAX), flags),
            }
        }
        self.outputs.flush(&mut self.totals);
    }

    /// A connection as all threads know it.
    pub(super) fn number_of(&self, key: usize) -> u32 {
        let among_all = key * usize::from(self.group.threads()) + usize::from(self.number);
        u32::try_from(among_all).unwrap_or(u32::MAX)
    }

    fn accept(&mut self) {
        self.accepts_later = false;
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(&self.listener, flags) {
                Ok(socket) => self.welcome(socket),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.totals.refused += 1;
                    self.accepts_later = true;
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        let entry = self.clients.vacant_entry();
        let key = entry.key();
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let source = u64::try_from(key).unwrap_or(WAKER);
        if epoll::add(&self.epoll, &socket, EventData::new_u64(source), flags).is_err() {
            self.totals.refused += 1;
            return;
        }
        let socket = Arc::new(SharedSocket::new(socket));
        entry.insert(Client::new(Arc::clone(&socket)));
        self.totals.connections += 1;
        self.outputs.open(self.number_of(key), &socket);
    }

    fn serve(&mut self, key: usize, flags: EventFlags) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if flags.contains(EventFlags::OUT) {
            self.totals.writes += client.socket.send_unsent();
        }
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        client.has_ended |= flags.intersects(ends);
        if flags.intersects(EventFlags::IN | ends) {
            self.read(key);
        }
    }

    /// One read and all whole packets in it.
    fn read(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut input = client.begin_input(&mut self.input);
        let read = client.socket.receive(&mut input.bytes);
        self.totals.reads += 1;
        let is_full = input.bytes.len() == input.bytes.capacity();
        if read.is_ok_and(|bytes| bytes > 0) && (is_full || client.has_ended) {
            self.unread.push(key);
        }
        let handled = match read {
            Ok(0) => Err(End::Left),
            Ok(_) => self.handle(key, &input.bytes),
            Err(Errno::AGAIN) => Ok(0),
            Err(_) => Err(End::Left),
        };
        let client = &mut self.clients[key];
        client.end_input(input, handled.unwrap_or(0), &mut self.input);
        if let Err(end) = handled {
            self.close(key, end);
        }
    }

    fn close(&mut self, key: usize, end: End) {
        let number = self.number_of(key);
        let client = self.clients.remove(key);
        // The socket stays open until the other threads know.
        epoll::delete(&self.epoll, &*client.socket).ok();
        client.socket.shut();
        let is_broken = end == End::Malformed || client.socket.was_cut();
        self.totals.broken += u64::from(is_broken);
        for route in client.routes {
            self.unsubscribe(number, route);
        }
        self.outputs.close(number);
        let change = Change::Left { client: number };
        self.group.tell_others(self.number, &change);
        if self.accepts_later {
            self.accept();
        }
    }

    /// Applies the subscriptions and departures of the other threads. It runs before every packet,
    /// so that all publishers see a granted subscription.
    #[inline]
    pub(super) fn see_changes(&mut self) {
        if self.group.has_changes(self.number) {
            self.apply_changes();
        }
    }

    fn apply_changes(&mut self) {
        for change in self.group.take_changes(self.number) {
            match change {
                Change::Subscribed {
                    route,
                    target,
                    socket,
                } => {
                    self.outputs.open(target.client, &socket);
                    self.routes.add(route, target);
                }
                Change::Unsubscribed { route, client } => self.routes.remove(route, client),
                Change::Left { client } => self.outputs.close(client),
            }
        }
    }

    /// Here and at the other threads.
    pub(super) fn subscribe(&mut self, route: Route, target: Target, socket: Arc<SharedSocket>) {
        self.routes.add(route, target);
        let change = Change::Subscribed {
            route,
            target,
            socket,
        };
        self.group.tell_others(self.number, &change);
    }

    pub(super) fn unsubscribe(&mut self, client: u32, route: Route) {
        self.routes.remove(route, client);
        let change = Change::Unsubscribed { route, client };
        self.group.tell_others(self.number, &change);
    }
}
