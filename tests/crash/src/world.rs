//! All clients of a run in one loop, so that all events have one order.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thrum_conformance::clock;

use crate::client::{Client, Phase, Role, Surroundings};
use crate::event::{Event, Millis};
use crate::inspector::Inspector;
use crate::journal::Journal;
use crate::random::Random;

/// Longest wait for a socket: clients act by the clock too.
const TURN: Duration = Duration::from_millis(1);
/// Longest wait until the sockets of a killed broker close.
const DRAIN_MAX: Millis = 5_000;

/// Clients, journal and dice.
#[derive(Debug)]
pub struct World {
    clients: Vec<Client>,
    inspector: Option<Inspector>,
    journal: Journal,
    random: Random,
}

impl World {
    /// Clients that were never connected.
    pub fn new(roles: Vec<Role>, random: Random) -> Self {
        let journal = Journal::new(roles.len());
        let clients = roles.into_iter().enumerate();
        Self {
            clients: clients
                .map(|(index, role)| Client::new(index, role))
                .collect(),
            inspector: None,
            journal,
            random,
        }
    }

    /// The journal.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// A round begins.
    pub fn begin_round(&mut self, address: SocketAddr, looks: bool) {
        let now = self.journal.now();
        for client in &mut self.clients {
            client.begin_round(&mut self.random, now);
        }
        if looks {
            self.inspect(address);
        }
    }

    /// Looks at what is retained.
    pub fn inspect(&mut self, address: SocketAddr) {
        self.inspector = Inspector::new(address, &mut self.journal);
    }

    /// Waits briefly for packets, handles them, and lets every client act.
    pub fn turn(&mut self, address: SocketAddr, phase: Phase) {
        self.read(address);
        let mut around = Surroundings {
            address,
            now: self.journal.now(),
            journal: &mut self.journal,
            random: &mut self.random,
            phase,
        };
        for client in &mut self.clients {
            client.act(&mut around);
            client.flush();
        }
        self.inspector
            .take_if(|inspector| inspector.turn(&mut self.journal));
    }

    /// Waits briefly for packets and takes them.
    fn read(&mut self, address: SocketAddr) {
        let ready = self.wait();
        let mut around = Surroundings {
            address,
            now: self.journal.now(),
            journal: &mut self.journal,
            random: &mut self.random,
            phase: Phase::Settle,
        };
        let clients = self.clients.iter_mut().zip(ready);
        for (client, _) in clients.filter(|(_, is_ready)| *is_ready) {
            client.read(&mut around);
        }
    }

    /// The broker was killed no earlier than at a time: reads what it had sent.
    ///
    /// # Panics
    /// A socket of a killed process stays open.
    pub fn broker_died(&mut self, at: Millis, address: SocketAddr) {
        let began = self.journal.now();
        while self.clients.iter().any(|client| client.socket().is_some()) {
            let now = self.journal.now();
            assert!(
                now < began + DRAIN_MAX,
                "sockets of a killed broker stay open"
            );
            self.read(address);
        }
        self.inspector
            .take_if(|inspector| inspector.turn(&mut self.journal));
        self.journal.note_at(at, Event::Killed);
        let now = self.journal.now();
        for client in &mut self.clients {
            client.broker_died(&mut self.random, now);
        }
    }

    /// Whether every required message has arrived, and every client is done.
    pub fn is_settled(&self) -> bool {
        let checker = self.journal.checker();
        let is_done = |client: &Client| client.is_idle() && checker.is_fenced(client.index());
        self.inspector.is_none() && checker.outstanding() == 0 && self.clients.iter().all(is_done)
    }

    /// Clients that are not done, as text.
    pub fn unsettled(&self) -> Vec<String> {
        let checker = self.journal.checker();
        let is_done = |client: &&Client| !client.is_idle() || !checker.is_fenced(client.index());
        self.clients
            .iter()
            .filter(is_done)
            .map(Client::describe)
            .collect()
    }

    /// Names of the clients.
    pub fn names(&self) -> Vec<String> {
        self.clients
            .iter()
            .map(|client| client.role().name.clone())
            .collect()
    }

    /// Which clients have something to read.
    fn wait(&self) -> Vec<bool> {
        let sockets = self.clients.iter().map(Client::socket);
        let own: Vec<_> = sockets.map(|socket| socket.map(poll_fd)).collect();
        let mut fds: Vec<_> = own.iter().flatten().cloned().collect();
        fds.extend(
            self.inspector
                .iter()
                .map(|inspector| poll_fd(inspector.socket())),
        );
        let timeout = Timespec::try_from(TURN).expect("a millisecond is a time");
        if fds.is_empty() {
            clock::sleep(TURN);
        } else if let Err(error) = poll(&mut fds, Some(&timeout)) {
            assert_eq!(error, rustix::io::Errno::INTR, "waiting for sockets");
        }
        let mut events = fds.iter().map(|fd| !fd.revents().is_empty());
        own.iter()
            .map(|socket| socket.is_some() && events.next().unwrap_or(false))
            .collect()
    }
}

fn poll_fd((fd, writes): (BorrowedFd<'_>, bool)) -> PollFd<'_> {
    let flags = if writes {
        PollFlags::IN | PollFlags::OUT
    } else {
        PollFlags::IN
    };
    PollFd::from_borrowed_fd(fd, flags)
}
