//! A shell without sockets: the engines of one node in one thread. A link replaces a connection;
//! packets go in and out of it as bytes.

mod process;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_access::{Admission, Identity};
use thrum_codec::packet::{Connect, Packet};
use thrum_codec::{ReasonCode, Version, encode};
use thrum_engine::Engine;
use thrum_engine::access::ClientAccess;
use thrum_engine::events::Connected;
use thrum_engine::host::{Host, Surroundings};
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::interest::EventKind;
use thrum_engine::mail::EngineMail;
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::placement::Placement;
use thrum_engine::node::{NodeParts, NodeState, WallClock};
use thrum_engine::sinks::Places;
use thrum_engine::workers::WorkerId;
use thrum_protocol::server::{ConnAckParts, Handshake};
use thrum_protocol::{MountPoint, Time};
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Stepper};

use process::stepped;
pub(crate) use process::{Plan, SinkPlan};

/// The time at which tests begin.
const START: Time = Time::from_millis(1_000_000_000);

/// The number of a link.
pub(crate) type LinkId = usize;

/// One connection of a client.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one connection"
)]
struct Link {
    worker: usize,
    version: Version,
    /// None before the client is admitted.
    connection: Option<ConnectionId>,
    is_closed: bool,
    username: Option<Box<str>>,
    /// A PUBLISH waits for room in a queue.
    is_held: bool,
    /// A packet waits for the answers of other workers about their memory.
    is_inquiring: bool,
    /// The client does not read.
    is_slow: bool,
    /// Its messages have filled the mailbox of a worker, or a sink.
    found_full: bool,
    /// Packets that the engine has not taken yet.
    to_engine: VecDeque<Vec<u8>>,
    to_client: Vec<u8>,
}

/// Mail from one worker to another.
#[derive(Debug)]
enum Mail {
    Engine(EngineMail),
    /// The session of this client belongs to the receiver.
    Adopt(LinkId, Handshake),
}

/// Mail of the shell, and the number of engine items in front of it.
#[derive(Debug)]
struct PositionedMail {
    place: usize,
    to: usize,
    mail: Mail,
}

/// One worker.
#[derive(Debug)]
struct WorkerState {
    engine: Engine,
    inbox: VecDeque<Mail>,
    shell_mail: VecDeque<PositionedMail>,
    links: BTreeMap<ConnectionKey, LinkId>,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) node: Arc<NodeState>,
    pub(crate) now: Time,
    plan: Plan,
    workers: Vec<WorkerState>,
    links: Vec<Link>,
    storage: Option<(Committer, Stepper<SimDisk>)>,
    /// Clears the stored copies of messages that sinks have written.
    pub(crate) places: Option<Places>,
}

impl Shell {
    /// Starts a node, which restores the state of the disk, if it has one.
    pub(crate) fn start(workers: usize, disk: Option<SimStorage>) -> Self {
        Self::begin(Plan::new(workers, disk), START)
    }

    /// Starts a node by a plan, at that time.
    pub(crate) fn begin(plan: Plan, now: Time) -> Self {
        let workers = plan.workers;
        let opened = plan.open();
        let mut wall = WallClock::default();
        let mut placement = Placement::new(workers);
        if let Some((_, recovered)) = &opened {
            wall.resume_from(recovered, now.as_millis());
            let sessions = recovered.sessions.iter().map(|session| session.id);
            placement = Placement::balanced(workers, &sessions.collect::<Vec<u64>>());
        }
        let node = Arc::new(NodeState::new(NodeParts {
            placement,
            strategy: plan.strategy,
            retained: plan.settings.retained,
            mailbox: plan.mailbox,
            bans: Arc::clone(&plan.bans),
            wall: Arc::new(wall),
            identity: 1,
        }));
        if plan.settings.spans.is_some() {
            node.spans.begin_taking();
        }
        for sink in &plan.sinks {
            let opened = node.sinks.open(sink.name, sink.limits);
            let opened = opened.expect("there are few");
            node.interest.add_sink(sink.filter, opened.id);
        }
        let mut restored = Vec::new();
        let mut places = None;
        let storage = opened.map(|(store, recovered)| {
            let (committer, stepper, submitters) = stepped(store, workers + 1);
            let (parts, of_sinks) = node.restore(recovered, submitters, now);
            restored = parts;
            places = Some(of_sinks);
            (committer, stepper)
        });
        let mut restored = restored.into_iter();
        let states = WorkerId::all(workers).map(|id| {
            let host: Arc<dyn Host> = plan.process.clone();
            let own = Arc::new(plan.settings.own_copy());
            let mut engine = Engine::new(id, &node, own, Surroundings { host, now });
            if let Some((journal, part)) = restored.next() {
                engine.restore(journal, part);
            }
            WorkerState {
                engine,
                inbox: VecDeque::new(),
                shell_mail: VecDeque::new(),
                links: BTreeMap::new(),
            }
        });
        let mut shell = Self {
            workers: states.collect(),
            now,
            node,
            plan,
            links: Vec::new(),
            storage,
            places,
        };
        for worker in 0..workers {
            for timed in shell.workers[worker].engine.overdue_sessions() {
                shell.session_timer(worker, timed);
            }
        }
        shell
    }

    /// Cuts the power of the machine, and restarts the node with the same number of workers.
    pub(crate) fn crash(self) -> Self {
        drop((self.storage, self.places, self.workers));
        if let Some(disk) = &self.plan.disk {
            disk.crash();
        }
        Self::begin(self.plan, self.now)
    }

    /// Connects a client to a worker.
    pub(crate) fn connect(&mut self, worker: usize, connect: &Connect<'_>) -> LinkId {
        let link = self.links.len();
        self.links.push(Link {
            worker,
            version: connect.version,
            connection: None,
            is_closed: false,
            username: connect.username.map(Into::into),
            is_held: false,
            is_inquiring: false,
            is_slow: false,
            found_full: false,
            to_engine: VecDeque::new(),
            to_client: Vec::new(),
        });
        let limits = &self.plan.settings.session;
        let mut handshake = Handshake::new(connect, "", limits).expect("it keeps to the limits");
        if let Some(mount) = self.plan.mounts.get(connect.client_id) {
            let mount = MountPoint::parse(mount).expect("it is valid");
            handshake.mount(mount).expect("it is short");
        }
        let here = WorkerId::new(worker);
        let owner = self.owner(worker, handshake.client_id());
        let is_new = self.workers[worker]
            .engine
            .core
            .sessions
            .find(handshake.client_id())
            .is_none();
        let (waiting, _) = self.node.mailbox_level(here).waiting();
        if owner == here && !(is_new && waiting > 0) {
            self.attach(worker, link, handshake);
        } else {
            self.send_mail(worker, owner, Mail::Adopt(link, handshake));
        }
        link
    }

    fn owner(&self, worker: usize, client_id: &str) -> WorkerId {
        let here = WorkerId::new(worker);
        if self.node.workers() == 1 {
            return here;
        }
        self.node.registry.claim(client_id, here)
    }

    fn send_mail(&mut self, from: usize, to: WorkerId, mail: Mail) {
        let state = &mut self.workers[from];
        let place = state.engine.core.outboxes.send_beside(to, 0);
        let to = to.index();
        state
            .shell_mail
            .push_back(PositionedMail { place, to, mail });
    }

    /// Resumes the session of the client, or begins a new one.
    fn attach(&mut self, worker: usize, link: LinkId, handshake: Handshake) {
        let found = self.workers[worker]
            .engine
            .core
            .sessions
            .find(handshake.client_id());
        let resumed = found.and_then(|slot| self.take_over(worker, slot, &handshake));
        let state = &mut self.workers[worker];
        let engine = &mut state.engine;
        let connection = engine.core.outputs.open();
        let key = connection.key;
        state.links.insert(key, link);
        self.links[link].connection = Some(connection);
        self.links[link].worker = worker;
        let slot = resumed.unwrap_or_else(|| engine.begin_session(&handshake));
        let shared = Arc::clone(&engine.core.settings.access);
        let username = self.links[link].username.clone();
        let admission = Admission {
            identity: Identity {
                client_id: handshake.client_id().into(),
                username: username.clone(),
                ..Identity::default()
            },
            ..Admission::default()
        };
        let access = (!shared.is_open()).then(|| {
            let access = ClientAccess::new(admission, &shared);
            Box::new(access.with_mount(handshake.mount_point().cloned(), false))
        });
        engine.core.sessions[slot].take_rights(access);
        engine.core.row().add(Counter::ClientsConnected, 1);
        let limits = &engine.core.settings.sessions;
        let counts = &engine.core.node.session_counts;
        let holder = counts.holder(username.as_deref(), None, limits);
        engine.core.outputs[key].begin_session(slot);
        engine.core.sessions[slot].connection = Some(key);
        let welcome = ConnAckParts {
            session_present: resumed.is_some(),
            ..ConnAckParts::default()
        };
        engine.complete_connect(slot, handshake, welcome, holder);
        let version = self.links[link].version;
        if let Some(reporter) = engine.core.reporter(EventKind::ClientConnected) {
            reporter.connected(Connected {
                slot,
                peer: format_args!("here"),
                listener: "tcp",
                version,
                session_present: resumed.is_some(),
            });
        }
        if resumed.is_some() {
            engine.subscribing().set_groups_online(slot, true);
            engine.replay(slot);
        }
        engine.core.arm(slot);
        engine.core.durable.end_unit();
    }

    fn take_over(&mut self, worker: usize, slot: Slot, handshake: &Handshake) -> Option<Slot> {
        let engine = &mut self.workers[worker].engine;
        let id = engine.core.sessions[slot].session.id();
        if let Some(key) = engine.core.sessions[slot].connection {
            engine.core.outputs[key].drop_held();
            engine.core.write_last_packet(slot, |session, out| {
                session.disconnect(ReasonCode::SessionTakenOver, None, out);
            });
            self.lose(worker, key, slot);
        }
        let engine = &mut self.workers[worker].engine;
        if !engine.core.sessions.is(slot, id) {
            return None;
        }
        if handshake.clean_start() {
            engine.end_session(slot);
            return None;
        }
        Some(slot)
    }

    /// Ends a connection: output that may leave is written, and the session is notified.
    fn lose(&mut self, worker: usize, key: ConnectionKey, slot: Slot) {
        self.write(worker, key);
        let state = &mut self.workers[worker];
        state.engine.core.outputs[key].end_session();
        state.engine.core.outputs.close(key);
        if let Some(link) = state.links.remove(&key) {
            self.links[link].is_closed = true;
        }
        if let Some(reporter) = state.engine.core.reporter(EventKind::ClientDisconnected) {
            reporter.disconnected(slot, format_args!("here"), "closed");
        }
        state.engine.session_lost(slot);
        state.engine.core.durable.end_unit();
    }

    /// The network cuts a link.
    pub(crate) fn cut(&mut self, link: LinkId) {
        self.links[link].is_closed = true;
        let worker = self.links[link].worker;
        let outputs = &self.workers[worker].engine.core.outputs;
        let connection = self.links[link].connection;
        if let Some(connection) = connection
            && let Some(slot) = outputs.session(connection)
        {
            self.lose(worker, connection.key, slot);
        }
    }

    /// Advances the time in one step.
    pub(crate) fn advance_time(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let process = &self.plan.process;
        process.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Sets the memory of the process.
    pub(crate) fn set_resident(&mut self, bytes: u64) {
        let process = &self.plan.process;
        process.resident_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets how long ago the turns began in which something happens from now on.
    pub(crate) fn set_turn_age(&mut self, millis: u64) {
        let process = &self.plan.process;
        process.millis_of_turn.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn engine(&mut self, worker: usize) -> &mut Engine {
        &mut self.workers[worker].engine
    }

    /// Finds the session of a client.
    pub(crate) fn find(&self, client_id: &str) -> Option<(usize, Slot)> {
        let mut workers = self.workers.iter().enumerate();
        workers.find_map(|(worker, state)| {
            let slot = state.engine.core.sessions.find(client_id)?;
            Some((worker, slot))
        })
    }

    pub(crate) fn connection(&self, link: LinkId) -> Option<ConnectionId> {
        self.links[link].connection
    }

    /// Stops or resumes the reads of the client.
    pub(crate) fn set_slow(&mut self, link: LinkId, is_slow: bool) {
        self.links[link].is_slow = is_slow;
        let worker = self.links[link].worker;
        if let Some(connection) = self.links[link].connection {
            self.workers[worker]
                .engine
                .core
                .outputs
                .list(connection.key);
        }
    }

    /// A PUBLISH of the client waits for room in a queue.
    pub(crate) fn is_held(&self, link: LinkId) -> bool {
        self.links[link].is_held
    }

    /// Whether a packet of the client waits for the answers of other workers about their memory.
    pub(crate) fn is_inquiring(&self, link: LinkId) -> bool {
        self.links[link].is_inquiring
    }

    /// Releases the held packets of the client.
    pub(crate) fn release(&mut self, link: LinkId) {
        self.links[link].is_held = false;
    }

    /// Returns and resets whether the client has published to a full receiver.
    pub(crate) fn take_full(&mut self, link: LinkId) -> bool {
        std::mem::take(&mut self.links[link].found_full)
    }

    /// Abandons a link for another one: if it is not adopted yet, it ends then; else the other link
    /// takes over.
    pub(crate) fn abandon(&mut self, link: LinkId) {
        let link = &mut self.links[link];
        link.is_closed |= link.connection.is_none();
    }

    /// Whether the client is admitted and connected.
    pub(crate) fn is_open(&self, link: LinkId) -> bool {
        !self.links[link].is_closed
    }

    /// Sends a packet of a client.
    pub(crate) fn send(&mut self, link: LinkId, packet: &Packet<'_>) {
        let link = &mut self.links[link];
        let mut bytes = Vec::new();
        encode(packet, link.version, &mut bytes).expect("it can be encoded");
        link.to_engine.push_back(bytes);
    }

    /// Returns the bytes received by a client since the last call.
    pub(crate) fn receive(&mut self, link: LinkId) -> Vec<u8> {
        std::mem::take(&mut self.links[link].to_client)
    }

    /// Takes the next message for another worker out of the mailboxes; false if there is none.
    pub(crate) fn lose_message(&mut self) -> bool {
        let is_message = |mail: &Mail| matches!(mail, Mail::Engine(EngineMail::Publish(_)));
        for state in &mut self.workers {
            if let Some(place) = state.inbox.iter().position(is_message) {
                return state.inbox.remove(place).is_some();
            }
        }
        false
    }
}
