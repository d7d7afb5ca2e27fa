//! A correct client: it keeps its session when the broker is killed and resumes it as the
//! specification asks.

mod acts;
mod habit;
mod link;
mod packets;
mod role;
mod session;

pub(crate) use link::Link;
pub use role::{Habit, Publishes, Role, WillRole};

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::event::{ClientEvent, ClientIndex, Millis};
use crate::journal::Journal;
use crate::random::Random;
use session::Session;

/// The environment of a client's actions.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Address of the broker.
    pub address: SocketAddr,
    /// The journal for its events.
    pub journal: &'a mut Journal,
    /// Its choices.
    pub random: &'a mut Random,
    /// The present goal of all clients.
    pub phase: Phase,
    /// Now.
    pub now: Millis,
}

/// The goal of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Every client acts by its role.
    Load,
    /// All clients connect, and nothing new is published.
    Settle,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    index: ClientIndex,
    role: Role,
    stage: Stage,
    link: Option<Link>,
    /// The connection that is being taken over; never read again.
    taken: Option<Link>,
    session: Session,
    /// Acknowledgements that are not sent yet, with their time.
    held: VecDeque<(Millis, Answer)>,
    next_publish: Millis,
    next_move: Millis,
    next_fence: Millis,
    next_ask: Millis,
    /// When a disconnected client reconnects.
    returns: Millis,
}

/// State of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Away,
    Opening,
    Up,
    /// DISCONNECT is sent.
    Leaving,
    /// The broker closed at this time; perhaps it was killed.
    Broken(Millis),
}

/// An acknowledgement of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Puback(u16),
    Pubrec(u16),
    Pubcomp(u16),
}

/// A closed connection is the broker's fault if the broker still runs this long after.
const BROKEN_MAX: Millis = 1_000;

impl Client {
    /// A client that was never connected.
    pub fn new(index: ClientIndex, role: Role) -> Self {
        Self {
            index,
            session: Session::new(&role),
            role,
            stage: Stage::Away,
            link: None,
            taken: None,
            held: VecDeque::new(),
            next_publish: 0,
            next_move: 0,
            next_fence: 0,
            next_ask: 0,
            returns: 0,
        }
    }

    /// Its socket, if it has one, and whether something waits to be written.
    pub fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.link
            .as_ref()
            .map(|link| (link.as_fd(), link.has_output()))
    }

    /// Reads the received packets.
    pub fn read(&mut self, around: &mut Surroundings<'_>) {
        let Some(link) = &mut self.link else {
            return;
        };
        let is_open = link.read();
        while let Some(packet) = self.link.as_mut().and_then(Link::next_packet) {
            self.packet(&packet, around);
        }
        if !is_open && self.link.is_some() {
            self.closed(around);
        }
    }

    /// Writes what waits.
    pub fn flush(&mut self) {
        if let Some(link) = &mut self.link {
            link.flush();
        }
    }

    /// A round begins: a client that is mostly disconnected may connect.
    pub fn begin_round(&mut self, random: &mut Random, now: Millis) {
        if let Habit::Absent(rounds) = self.role.habit
            && random.below(rounds) == 0
        {
            self.returns = now + random.below(200);
        }
    }

    /// The broker was killed, and everything that it had sent was read.
    pub fn broker_died(&mut self, random: &mut Random, now: Millis) {
        let was_connected = self.stage != Stage::Away;
        self.link = None;
        self.taken = None;
        self.stage = Stage::Away;
        self.held.clear();
        if was_connected {
            self.returns = now + self.role.pause(random);
        }
    }

    /// Whether all its packets are answered.
    pub fn is_idle(&self) -> bool {
        let is_up =
            self.stage == Stage::Up && self.link.as_ref().is_some_and(|link| !link.has_output());
        is_up && self.held.is_empty() && self.session.is_idle()
    }

    /// Words for a report.
    pub fn describe(&self) -> String {
        format!(
            "client {} {} {:?}: {:?}",
            self.index, self.role.name, self.stage, self.session
        )
    }

    /// Its index among all.
    pub fn index(&self) -> ClientIndex {
        self.index
    }

    /// The role it plays.
    pub fn role(&self) -> &Role {
        &self.role
    }

    fn closed(&mut self, around: &mut Surroundings<'_>) {
        self.link = None;
        self.held.clear();
        if self.stage == Stage::Leaving {
            self.note(around, ClientEvent::Disconnected);
            self.stage = Stage::Away;
            self.returns = around.now + self.role.pause(around.random);
        } else {
            self.stage = Stage::Broken(around.now);
        }
    }

    fn note(&self, around: &mut Surroundings<'_>, event: ClientEvent) {
        around.journal.client(self.index, event);
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Some(link) = &mut self.link {
            link.send(bytes);
        }
    }
}
