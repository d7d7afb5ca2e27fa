//! One node with its workers, its clients and the network between them, all in the hands of one
//! thread.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_engine::hashing::repeatable::start_over;
use thrum_protocol::Time;
use thrum_storage::disk::sim::SimStorage;
use thrum_transport::Scheme;

use super::client::{Answered, Client, Leaving, Phase, Wish};
use super::gatekeeper::{certificate, has_certificate, user};
use super::history::{ClientNumber, Ending, Entry, Event, MessageNumber, Millis};
use super::link::{Carried, Layer, Link, piece};
use super::machine::Machine;
use super::plan::{EXPIRY_SECS_MAX, Plan};
use super::random::Random;
use super::seat::Seat;
use super::tls::Connectors;
use crate::clock::Clock;
use crate::socket::Socket;

/// The first of January 2026.
const START: Millis = 1_767_225_600_000;
/// The least that the system takes for a socket's output, in bytes.
const SMALL_SOCKET: usize = 4608;
/// Rounds after which a node that nobody talks to must be done.
const ROUNDS_MAX: usize = 5000;
/// Rounds in which nothing moves before everything is settled: mail between workers needs one for
/// each step.
const QUIET_ROUNDS: usize = 4;

/// Time that passes at once at least.
const TICK: Duration = Duration::from_millis(1);

/// Why a run failed.
pub(super) type Failure = String;

#[derive(Debug)]
pub(super) struct World {
    pub(super) random: Random,
    pub(super) plan: Plan,
    pub(super) millis: Arc<AtomicU64>,
    /// Milliseconds by which the wall clock is ahead of the time that really is.
    pub(super) wall_ahead: i64,
    pub(super) disk: Option<SimStorage>,
    pub(super) machine: Machine,
    connectors: Connectors,
    /// Messages that members of groups left to others while earlier nodes ran.
    pub(super) redispatched: usize,
    /// Most pieces of mail that waited for a worker which took no turns.
    pub(super) most_mail: usize,
    /// The last one watches the wills.
    pub(super) clients: Vec<Client>,
    /// Connections of which only the node does not know that they are dead. They are read once the
    /// client has another one.
    pub(super) silent: Vec<Leaving>,
    /// Connections on which the client has said goodbye.
    pub(super) leaving: Vec<Leaving>,
    pub(super) history: Vec<Entry>,
    pub(super) next_number: MessageNumber,
    /// The watcher comes back whenever it has lost its connection.
    pub(super) is_watched: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let plan = Plan::new(&mut random);
        Self::with_plan(random, plan)
    }

    pub(super) fn with_plan(mut random: Random, plan: Plan) -> Self {
        start_over();
        let millis = Arc::new(AtomicU64::new(START + random.next() % 1000));
        let disk = plan.has_disk.then(|| SimStorage::new(random.next()));
        let clock = Clock::manual(&millis, 0);
        let machine = Machine::start(&plan, clock, random.next(), disk.as_ref());
        let watcher = plan.versions.len();
        let versions = plan.versions.iter().copied().chain([Version::V5]);
        let versions: Vec<Version> = versions.collect();
        let mut world = Self {
            random,
            plan,
            millis,
            wall_ahead: 0,
            disk,
            machine,
            connectors: Connectors::default(),
            redispatched: 0,
            most_mail: 0,
            clients: Vec::new(),
            silent: Vec::new(),
            leaving: Vec::new(),
            history: Vec::new(),
            next_number: 1,
            is_watched: true,
        };
        for (number, version) in versions.into_iter().enumerate() {
            let client = world.newcomer(number, version);
            world.clients.push(client);
        }
        world.connect(watcher, Wish::lasting(EXPIRY_SECS_MAX));
        world
    }

    /// A client that has not been here before.
    pub(super) fn newcomer(&self, number: ClientNumber, version: Version) -> Client {
        let has_name = self.plan.has_users && !has_certificate(number);
        let mut client = Client::new(number, version);
        client.username = has_name.then(|| user(number));
        client
    }

    pub(super) fn watcher(&self) -> ClientNumber {
        self.plan.versions.len()
    }

    pub(super) fn now(&self) -> Millis {
        self.millis.load(Ordering::Relaxed)
    }

    pub(super) fn note(&mut self, event: Event) {
        let at = self.now();
        self.history.push(Entry { at, event });
    }

    pub(super) fn note_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.note(event);
        }
    }

    pub(super) fn number(&mut self) -> MessageNumber {
        self.next_number += 1;
        self.next_number
    }

    /// A new connection to any of the workers, and CONNECT on its way. The last connection must be
    /// over.
    pub(super) fn connect(&mut self, client: ClientNumber, wish: Wish) {
        let seat = self.random.below(self.machine.seats.len());
        self.connect_to(seat, client, wish);
    }

    pub(super) fn connect_to(&mut self, seat: usize, client: ClientNumber, wish: Wish) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        if self.plan.has_small_sockets {
            rustix::net::sockopt::set_socket_send_buffer_size(&theirs, SMALL_SOCKET).unwrap();
        }
        let shows_certificate = self.plan.has_users && has_certificate(client);
        let layer = match self.plan.scheme {
            Scheme::Ws => Layer::web_socket(),
            scheme if scheme.is_tls() => {
                let layers = self.connectors.layers(client, scheme, shows_certificate);
                Layer::Tls(Box::new(layers))
            }
            _ => Layer::Nothing,
        };
        let is_shown_outside = shows_certificate && !self.plan.scheme.is_tls();
        let certificate = is_shown_outside.then(|| certificate(client)).flatten();
        let socket = Socket::from(OwnedFd::from(theirs));
        self.machine.seats[seat].arrives(socket, certificate);
        let link = Link::new(ours, layer);
        let event = self.clients[client].connect(link, wish);
        self.note(event);
    }

    /// The connection ends for the client; gives back its end if it is to stay open.
    pub(super) fn end(&mut self, client: ClientNumber, how: Ending) -> Option<Link> {
        let link = self.clients[client].connection_over()?;
        self.note(Event::Gone { client, how });
        Some(link)
    }

    /// A piece of what the client has written reaches the node.
    pub(super) fn carry_up(&mut self, client: ClientNumber) {
        let bytes = piece(&mut self.random);
        let carried = self.clients[client]
            .link
            .as_mut()
            .map(|link| link.carry_up(bytes));
        if carried == Some(Carried::End) {
            self.end(client, Ending::ByNode);
        }
    }

    /// A piece of what the node has written reaches the client, and is handled.
    pub(super) fn carry_down(&mut self, client: ClientNumber) -> Result<Carried, Failure> {
        let bytes = piece(&mut self.random);
        self.carry_down_at_most(client, bytes)
    }

    pub(super) fn carry_down_at_most(
        &mut self,
        client: ClientNumber,
        bytes: usize,
    ) -> Result<Carried, Failure> {
        let Some(link) = &mut self.clients[client].link else {
            return Ok(Carried::Nothing);
        };
        let carried = link.carry_down(bytes);
        let mut events = Vec::new();
        let handled = self.clients[client].handle_arrived(&mut events);
        self.note_all(events);
        handled.map_err(|what| format!("client {client}: {what}"))?;
        if carried == Carried::End || self.clients[client].is_dismissed {
            self.end(client, Ending::ByNode);
            return Ok(Carried::End);
        }
        Ok(carried)
    }

    /// Everything that is under way in either direction moves once, through all workers; true if
    /// anything did.
    pub(super) fn flow(&mut self) -> Result<bool, Failure> {
        let mut moved = false;
        for client in 0..self.clients.len() {
            moved |= self.carry_all_up(client);
        }
        for seat in &mut self.machine.seats {
            moved |= seat.takes_a_turn();
        }
        moved |= self.sink_writes_all()?;
        moved |= self.machine.commit_or_tidy();
        for client in 0..self.clients.len() {
            moved |= self.carry_all_down(client)?;
        }
        moved |= self.carry_left(usize::MAX)?;
        Ok(moved)
    }

    /// What comes on connections that their clients do not use any more, so many bytes of each at
    /// most; true if anything did.
    pub(super) fn carry_left(&mut self, bytes_max: usize) -> Result<bool, Failure> {
        let clients = &self.clients;
        let is_replaced =
            |silent: &&mut Leaving| clients[silent.client].connections > silent.connection;
        let replaced = self.silent.iter_mut().filter(is_replaced);
        let mut moved = false;
        let mut answers = Vec::new();
        for left in self.leaving.iter_mut().chain(replaced) {
            moved |= left.carry_down(bytes_max, &mut answers)? == Carried::Bytes;
        }
        self.leaving.retain(|left| !left.has_ended);
        for Answered {
            client,
            connection,
            packet_id,
            outcome,
        } in answers
        {
            let event = self.clients[client].answered_late(connection, packet_id, outcome);
            self.note_all(event);
        }
        Ok(moved)
    }

    /// The node learns of those that have gone silent.
    pub(super) fn bury_silent(&mut self) {
        for Leaving {
            client, connection, ..
        } in std::mem::take(&mut self.silent)
        {
            self.note(Event::Buried { client, connection });
        }
    }

    pub(super) fn carry_all_up(&mut self, client: ClientNumber) -> bool {
        let mut moved = false;
        while let Some(link) = &mut self.clients[client].link {
            match link.carry_up(usize::MAX) {
                Carried::Bytes => moved = true,
                Carried::Nothing => break,
                Carried::End => {
                    self.end(client, Ending::ByNode);
                }
            }
        }
        moved
    }

    pub(super) fn carry_all_down(&mut self, client: ClientNumber) -> Result<bool, Failure> {
        let mut moved = false;
        while self.carry_down_at_most(client, usize::MAX)? == Carried::Bytes {
            moved = true;
        }
        Ok(moved)
    }

    /// Everything moves until nothing more can happen at this moment. The disk works while it does.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        self.heal_disk();
        while self.machine.commit_or_tidy() {}
        for _ in 0..ROUNDS_MAX {
            self.come_to_rest()?;
            self.all_are_answered()?;
            let watcher = self.watcher();
            if !self.is_watched || self.clients[watcher].phase == Phase::Connected {
                self.note(Event::Settled);
                return Ok(());
            }
            if self.clients[watcher].phase == Phase::Connecting {
                return Err("the watcher's CONNECT gets no answer".to_owned());
            }
            self.connect(watcher, Wish::lasting(EXPIRY_SECS_MAX));
        }
        Err("the watcher is always refused".to_owned())
    }

    /// Everybody takes what comes, so nobody waits for room in a queue; but for one that is of a
    /// connection which is dead.
    fn all_are_answered(&self) -> Result<(), Failure> {
        if !self.silent.is_empty() {
            return Ok(());
        }
        let mut clients = self.clients.iter();
        let waiting = clients.find_map(|client| Some((client.number, client.unanswered()?)));
        waiting.map_or(Ok(()), |(client, number)| {
            Err(format!(
                "client {client} gets no answer to message {number}, and nothing is in its way"
            ))
        })
    }

    fn come_to_rest(&mut self) -> Result<(), Failure> {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            quiet = if self.flow()? { 0 } else { quiet + 1 };
            if quiet == QUIET_ROUNDS {
                return Ok(());
            }
        }
        Err("the node does not come to rest".to_owned())
    }

    /// All workers take their turns until they have nothing more to do.
    pub(super) fn turns(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            let mut had_work = false;
            for seat in &mut self.machine.seats {
                had_work |= seat.takes_a_turn();
            }
            quiet = if had_work { 0 } else { quiet + 1 };
            if quiet == QUIET_ROUNDS {
                return;
            }
        }
    }

    /// Time passes, from timer to timer; what the wills have to say by then is heard before.
    pub(super) fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.machine.seats.iter_mut().for_each(Seat::ends_turn);
        let mut rest = time;
        while !rest.is_zero() {
            self.carry_all_down(self.watcher())?;
            let now = Time::from_millis(self.now());
            let seats = self.machine.seats.iter();
            let next = seats
                .filter_map(|seat| seat.worker.traffic.engine.core.timers.next_wait(now))
                .min();
            let wait = next.map_or(rest, |next| next.max(TICK).min(rest));
            rest -= wait;
            let millis = u64::try_from(wait.as_millis()).unwrap();
            self.millis.fetch_add(millis, Ordering::Relaxed);
            if !rest.is_zero() {
                self.turns();
            }
        }
        Ok(())
    }
}

impl Wish {
    /// A resumed session, without a will.
    pub(super) fn lasting(expiry_secs: u32) -> Self {
        Self {
            clean_start: false,
            expiry_secs,
            keep_alive: 0,
            receive_maximum: 100,
            topic_alias_maximum: 0,
            will: None,
        }
    }

    /// A session that begins and ends with its connection.
    pub(super) fn clean() -> Self {
        Self {
            clean_start: true,
            ..Self::lasting(0)
        }
    }
}

/// The highest quality of service of a subscription.
pub(super) fn any_qos(random: &mut Random) -> QoS {
    random.pick(&[
        QoS::AtMostOnce,
        QoS::AtLeastOnce,
        QoS::AtLeastOnce,
        QoS::ExactlyOnce,
        QoS::ExactlyOnce,
    ])
}

/// Whether a client has a connection, accepted or not.
pub(super) fn has_connection(client: &Client) -> bool {
    client.phase != Phase::Away
}
