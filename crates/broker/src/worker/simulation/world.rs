//! One node with its workers, its clients and the network between them, all run by one thread.

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

use super::client::{Client, ConnectOptions, LateAck, OldConnection, Phase};
use super::gatekeeper::{certificate, has_certificate, user};
use super::history::{ClientNumber, Ending, Entry, Event, MessageNumber, Millis};
use super::link::{Layer, Link, Transferred, piece};
use super::machine::Machine;
use super::plan::{EXPIRY_SECS_MAX, Plan};
use super::random::Random;
use super::stepped_worker::SteppedWorker;
use super::tls::Connectors;
use super::traces::SimTrace;
use crate::clock::Clock;
use crate::socket::Socket;

/// The first of January 2026.
const START: Millis = 1_767_225_600_000;
/// One of so many messages is stamped.
const STAMPS: [u32; 3] = [0, 1, 7];
/// The least that the system takes for a socket's output, in bytes.
const SMALL_SOCKET: usize = 4608;
/// Rounds after which a node without new input must be idle.
const ROUNDS_MAX: usize = 5000;
/// Idle rounds after which everything is settled: mail between workers needs one for each step.
const QUIET_ROUNDS: usize = 4;

/// Smallest step of the virtual time.
const TICK: Duration = Duration::from_millis(1);

/// Why a run failed.
pub(super) type Failure = String;

#[derive(Debug)]
pub(super) struct World {
    pub(super) random: Random,
    pub(super) plan: Plan,
    pub(super) millis: Arc<AtomicU64>,
    /// Milliseconds by which the wall clock is ahead of the real time.
    pub(super) wall_ahead: i64,
    pub(super) disk: Option<SimStorage>,
    pub(super) machine: Machine,
    connectors: Connectors,
    /// Messages redispatched to other group members before the last restart.
    pub(super) redispatched: usize,
    /// Most mail items that waited for a stalled worker.
    pub(super) most_mail: usize,
    /// The last one subscribes to the wills.
    pub(super) clients: Vec<Client>,
    /// Connections that are dead without the knowledge of the node. They are read once the client
    /// has another one.
    pub(super) silent: Vec<OldConnection>,
    /// Connections on which the client has sent DISCONNECT.
    pub(super) disconnected: Vec<OldConnection>,
    pub(super) history: Vec<Entry>,
    pub(super) next_number: MessageNumber,
    /// The watcher reconnects whenever it has lost its connection.
    pub(super) is_watched: bool,
    /// The trace of a client.
    pub(super) trace: Option<SimTrace>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut plan = Plan::new(&mut random);
        // Not a choice of the seed, whose other choices stay as they are.
        plan.config.node.stamp_messages = STAMPS[usize::try_from(seed % 3).unwrap_or(0)];
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
            disconnected: Vec::new(),
            history: Vec::new(),
            next_number: 1,
            is_watched: true,
            trace: None,
        };
        for (number, version) in versions.into_iter().enumerate() {
            let client = world.new_client(number, version);
            world.clients.push(client);
        }
        world.connect(watcher, ConnectOptions::lasting(EXPIRY_SECS_MAX));
        world
    }

    /// Creates a client that has not connected before.
    pub(super) fn new_client(&self, number: ClientNumber, version: Version) -> Client {
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

    pub(super) fn record(&mut self, event: Event) {
        let at = self.now();
        self.history.push(Entry { at, event });
    }

    pub(super) fn record_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.record(event);
        }
    }

    pub(super) fn number(&mut self) -> MessageNumber {
        self.next_number += 1;
        self.next_number
    }

    /// Opens a connection to a random worker and sends CONNECT. The last connection must be closed.
    pub(super) fn connect(&mut self, client: ClientNumber, options: ConnectOptions) {
        let worker = self.random.below(self.machine.workers.len());
        self.connect_to(worker, client, options);
    }

    pub(super) fn connect_to(
        &mut self,
        worker: usize,
        client: ClientNumber,
        options: ConnectOptions,
    ) {
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
        self.machine.workers[worker].add_connection(socket, certificate);
        let link = Link::new(ours, layer);
        let event = self.clients[client].connect(link, options);
        self.record(event);
    }

    /// Ends the connection for the client; returns the client's end, which the caller may keep
    /// open.
    pub(super) fn end(&mut self, client: ClientNumber, how: Ending) -> Option<Link> {
        let link = self.clients[client].connection_over()?;
        self.record(Event::Disconnected { client, how });
        Some(link)
    }

    /// Transfers some bytes from the client to the node.
    pub(super) fn transfer_to_node(&mut self, client: ClientNumber) {
        let bytes = piece(&mut self.random);
        let transferred = self.clients[client]
            .link
            .as_mut()
            .map(|link| link.transfer_to_node(bytes));
        if transferred == Some(Transferred::End) {
            self.end(client, Ending::ByBroker);
        }
    }

    /// Transfers some bytes from the node to the client, which handles them.
    pub(super) fn transfer_to_client(
        &mut self,
        client: ClientNumber,
    ) -> Result<Transferred, Failure> {
        let bytes = piece(&mut self.random);
        self.transfer_at_most_to_client(client, bytes)
    }

    pub(super) fn transfer_at_most_to_client(
        &mut self,
        client: ClientNumber,
        bytes: usize,
    ) -> Result<Transferred, Failure> {
        let Some(link) = &mut self.clients[client].link else {
            return Ok(Transferred::Nothing);
        };
        let transferred = link.transfer_to_client(bytes);
        let mut events = Vec::new();
        let handled = self.clients[client].handle_arrived(&mut events);
        self.record_all(events);
        handled.map_err(|what| format!("client {client}: {what}"))?;
        if transferred == Transferred::End || self.clients[client].is_disconnected_by_node {
            self.end(client, Ending::ByBroker);
            return Ok(Transferred::End);
        }
        Ok(transferred)
    }

    /// Transfers all bytes in both directions once, and runs a turn of each worker; true if
    /// anything moved.
    pub(super) fn flow(&mut self) -> Result<bool, Failure> {
        let mut moved = false;
        for client in 0..self.clients.len() {
            moved |= self.transfer_all_to_node(client);
        }
        for worker in &mut self.machine.workers {
            moved |= worker.run_turn();
        }
        moved |= self.write_all_to_sink()?;
        moved |= self.machine.commit_or_tidy();
        for client in 0..self.clients.len() {
            moved |= self.transfer_all_to_client(client)?;
        }
        moved |= self.read_old_connections(usize::MAX)?;
        Ok(moved)
    }

    /// Reads at most `bytes_max` bytes of each connection that its client no longer uses; true if
    /// any arrived.
    pub(super) fn read_old_connections(&mut self, bytes_max: usize) -> Result<bool, Failure> {
        let clients = &self.clients;
        let is_replaced =
            |silent: &&mut OldConnection| clients[silent.client].connections > silent.connection;
        let replaced = self.silent.iter_mut().filter(is_replaced);
        let mut moved = false;
        let mut answers = Vec::new();
        for left in self.disconnected.iter_mut().chain(replaced) {
            moved |= left.transfer_to_client(bytes_max, &mut answers)? == Transferred::Bytes;
        }
        self.disconnected.retain(|left| !left.has_ended);
        for LateAck {
            client,
            connection,
            packet_id,
            outcome,
        } in answers
        {
            let event = self.clients[client].acknowledged_late(connection, packet_id, outcome);
            self.record_all(event);
        }
        Ok(moved)
    }

    /// The node notices the ends of all silent connections.
    pub(super) fn detect_silent(&mut self) {
        for OldConnection {
            client, connection, ..
        } in std::mem::take(&mut self.silent)
        {
            self.record(Event::SilenceDetected { client, connection });
        }
    }

    pub(super) fn transfer_all_to_node(&mut self, client: ClientNumber) -> bool {
        let mut moved = false;
        while let Some(link) = &mut self.clients[client].link {
            match link.transfer_to_node(usize::MAX) {
                Transferred::Bytes => moved = true,
                Transferred::Nothing => break,
                Transferred::End => {
                    self.end(client, Ending::ByBroker);
                }
            }
        }
        moved
    }

    pub(super) fn transfer_all_to_client(&mut self, client: ClientNumber) -> Result<bool, Failure> {
        let mut moved = false;
        while self.transfer_at_most_to_client(client, usize::MAX)? == Transferred::Bytes {
            moved = true;
        }
        Ok(moved)
    }

    /// Runs everything, with a working disk, until nothing more can happen at this moment.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        self.clear_disk_faults();
        while self.machine.commit_or_tidy() {}
        for _ in 0..ROUNDS_MAX {
            self.run_until_idle()?;
            self.check_unanswered()?;
            let watcher = self.watcher();
            if !self.is_watched || self.clients[watcher].phase == Phase::Connected {
                self.record(Event::Settled);
                return Ok(());
            }
            if self.clients[watcher].phase == Phase::Connecting {
                return Err("the watcher's CONNECT gets no answer".to_owned());
            }
            self.connect(watcher, ConnectOptions::lasting(EXPIRY_SECS_MAX));
        }
        Err("the watcher is always refused".to_owned())
    }

    /// Checks that every message has its answer: all clients read, so that no publisher waits for
    /// room in a queue, except in that of a dead connection.
    fn check_unanswered(&self) -> Result<(), Failure> {
        if !self.silent.is_empty() {
            return Ok(());
        }
        let mut clients = self.clients.iter();
        let waiting = clients.find_map(|client| Some((client.number, client.unanswered()?)));
        waiting.map_or(Ok(()), |(client, number)| {
            Err(format!(
                "client {client} gets no answer to message {number}, although nothing delays it"
            ))
        })
    }

    fn run_until_idle(&mut self) -> Result<(), Failure> {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            quiet = if self.flow()? { 0 } else { quiet + 1 };
            if quiet == QUIET_ROUNDS {
                return Ok(());
            }
        }
        Err("the node does not become idle".to_owned())
    }

    /// Runs turns of all workers until they are idle.
    pub(super) fn turns(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            let mut had_work = false;
            for worker in &mut self.machine.workers {
                had_work |= worker.run_turn();
            }
            quiet = if had_work { 0 } else { quiet + 1 };
            if quiet == QUIET_ROUNDS {
                return;
            }
        }
    }

    /// Advances the time from timer to timer; the watcher reads its wills before each step.
    pub(super) fn advance_time(&mut self, time: Duration) -> Result<(), Failure> {
        self.machine
            .workers
            .iter_mut()
            .for_each(SteppedWorker::finish_turn);
        let mut rest = time;
        while !rest.is_zero() {
            self.transfer_all_to_client(self.watcher())?;
            let now = Time::from_millis(self.now());
            let workers = self.machine.workers.iter();
            let next = workers
                .filter_map(|worker| worker.inner.traffic.engine.core.timers.next_wait(now))
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

impl ConnectOptions {
    /// Resumes a session, without a will.
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

    /// Begins a session that ends with its connection.
    pub(super) fn clean() -> Self {
        Self {
            clean_start: true,
            ..Self::lasting(0)
        }
    }
}

/// A random quality of service.
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
    client.phase != Phase::Disconnected
}
