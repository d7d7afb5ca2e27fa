//! A shell without sockets: the engines of one node in one thread. A link represents a connection
//! and carries packets as bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thrum_codec::packet::{Connect, Packet};
use thrum_codec::{QoS, ReasonCode, Version, decode, encode, frame};
use thrum_engine::Engine;
use thrum_engine::access::{Shared, Verdict};
use thrum_engine::events::publish_events;
use thrum_engine::host::{Host, Surroundings};
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::mail::EngineMail;
use thrum_engine::node::placement::Placement;
use thrum_engine::node::session_counts::{Holder, SessionLimits};
use thrum_engine::node::{Capacity, NodeParts, NodeState, WallClock};
use thrum_engine::packets::Handled;
use thrum_engine::retained::RetainedLimits;
use thrum_engine::settings::{EngineSettings, SubscriptionLimits};
use thrum_engine::workers::WorkerId;
use thrum_protocol::server::{ConnAckParts, Handshake};
use thrum_protocol::{Limits, Time};
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Recovered, Stepper, Store, Submitter};

/// The time of all tests.
const NOW: Time = Time::from_millis(1_000_000_000);
/// Greatest number of rounds of turns until no packet or mail is in transit.
const TURNS_MAX: usize = 1_000;

/// Length of a segment, small enough that a test fills several.
const SEGMENT_BYTES: u64 = 16 * 1024;
const SEGMENTS_MAX: u64 = 64;

/// A host whose clock does not advance.
#[derive(Debug)]
struct FrozenHost;

impl Host for FrozenHost {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn resident_bytes(&self) -> Option<u64> {
        None
    }
}

/// Number of a link.
pub(crate) type LinkId = usize;

/// The connection of a client.
#[derive(Debug)]
struct Link {
    worker: usize,
    version: Version,
    /// The connection of the engine; none before the CONNECT is handled.
    connection: Option<ConnectionId>,
    is_closed: bool,
    /// Packets that the engine has not handled yet.
    to_engine: VecDeque<Vec<u8>>,
    to_client: Vec<u8>,
}

/// Mail from one worker to another.
#[derive(Debug)]
enum Mail {
    Engine(EngineMail),
    /// A connection whose session belongs to the receiving worker.
    Adopt(LinkId, Handshake),
}

/// A piece of the shell's mail, with the number of pieces of the engine that precede it.
#[derive(Debug)]
struct Placed {
    place: usize,
    to: usize,
    mail: Mail,
}

/// The engine, the mail and the links of one worker.
#[derive(Debug)]
struct WorkerState {
    engine: Engine,
    inbox: VecDeque<Mail>,
    own_mail: VecDeque<Placed>,
    links: BTreeMap<ConnectionKey, LinkId>,
}

/// The workers and the storage of one node.
#[derive(Debug)]
pub(crate) struct Shell {
    node: Arc<NodeState>,
    workers: Vec<WorkerState>,
    links: Vec<Link>,
    disk: Option<SimStorage>,
    storage: Option<(Committer, Stepper<SimDisk>)>,
}

impl Shell {
    /// Starts a node; with a disk it restores the state on it.
    pub(crate) fn start(workers: usize, disk: Option<SimStorage>) -> Self {
        let opened = disk.as_ref().map(open);
        let settings = settings();
        let mut wall = WallClock::default();
        let mut placement = Placement::new(workers);
        if let Some((_, recovered)) = &opened {
            wall.resume_from(recovered, NOW.as_millis());
            let sessions = recovered.sessions.iter().map(|session| session.id);
            placement = Placement::balanced(workers, &sessions.collect::<Vec<u64>>());
        }
        let node = Arc::new(NodeState::new(NodeParts {
            placement,
            strategy: thrum_routing::shared::Strategy::RoundRobin,
            retained: settings.retained,
            mailbox: Capacity {
                messages: 1_000,
                bytes: 1 << 20,
            },
            bans: Arc::default(),
            wall: Arc::new(wall),
            identity: 1,
        }));
        let mut restored = Vec::new();
        let storage = opened.map(|(store, recovered)| {
            let (committer, stepper, submitters) = stepped(store, workers + 1);
            restored = node.restore(recovered, submitters, NOW).0;
            (committer, stepper)
        });
        let mut restored = restored.into_iter();
        let workers = WorkerId::all(workers).map(|id| {
            let surroundings = Surroundings {
                host: Arc::new(FrozenHost),
                now: NOW,
            };
            let own = Arc::new(settings.own_copy());
            let mut engine = Engine::new(id, &node, own, surroundings);
            if let Some((journal, part)) = restored.next() {
                engine.restore(journal, part);
            }
            WorkerState {
                engine,
                inbox: VecDeque::new(),
                own_mail: VecDeque::new(),
                links: BTreeMap::new(),
            }
        });
        Self {
            workers: workers.collect(),
            node,
            links: Vec::new(),
            disk,
            storage,
        }
    }

    /// Simulates a loss of power, and starts the node again with as many workers.
    pub(crate) fn crash(self) -> Self {
        let workers = self.workers.len();
        drop((self.storage, self.workers));
        let disk = self.disk.inspect(SimStorage::crash);
        Self::start(workers, disk)
    }

    /// Connects a client to a worker.
    pub(crate) fn connect(&mut self, worker: usize, connect: &Connect<'_>) -> LinkId {
        let link = self.links.len();
        self.links.push(Link {
            worker,
            version: connect.version,
            connection: None,
            is_closed: false,
            to_engine: VecDeque::new(),
            to_client: Vec::new(),
        });
        let limits = Limits::default();
        let handshake = Handshake::new(connect, "", &limits).expect("it keeps to the limits");
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
            self.hand_over(worker, owner, Mail::Adopt(link, handshake));
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

    fn hand_over(&mut self, from: usize, to: WorkerId, mail: Mail) {
        let state = &mut self.workers[from];
        let place = state.engine.core.outboxes.send_beside(to, 0);
        let to = to.index();
        state.own_mail.push_back(Placed { place, to, mail });
    }

    /// Resumes the session of a client, or begins a new one.
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
        engine.core.outputs[key].begin_session(slot);
        engine.core.sessions[slot].connection = Some(key);
        let welcome = ConnAckParts {
            session_present: resumed.is_some(),
            ..ConnAckParts::default()
        };
        engine.complete_connect(slot, handshake, welcome, Holder::default());
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

    /// Ends a connection: writes the output that may be sent, and notifies the session.
    fn lose(&mut self, worker: usize, key: ConnectionKey, slot: Slot) {
        self.write(worker, key);
        let state = &mut self.workers[worker];
        state.engine.core.outputs[key].end_session();
        state.engine.core.outputs.close(key);
        if let Some(link) = state.links.remove(&key) {
            self.links[link].is_closed = true;
        }
        state.engine.session_lost(slot);
        state.engine.core.durable.end_unit();
    }

    /// Closes a link as a network failure does.
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

    /// Records that a client has abandoned a link for another one. A link that is still handed over
    /// is closed on arrival; otherwise the new link takes its session over.
    pub(crate) fn abandon(&mut self, link: LinkId) {
        let link = &mut self.links[link];
        link.is_closed |= link.connection.is_none();
    }

    /// Whether a link is open.
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

    /// Takes the bytes that a client has received since the last call.
    pub(crate) fn receive(&mut self, link: LinkId) -> Vec<u8> {
        std::mem::take(&mut self.links[link].to_client)
    }

    /// Does a whole turn of a worker.
    pub(crate) fn turn(&mut self, worker: usize) {
        self.take_in(worker);
        self.hand_out(worker);
    }

    /// Does the first half of a turn, which handles packets and mail.
    pub(crate) fn take_in(&mut self, worker: usize) {
        let level = self.node.memory.level();
        let engine = &mut self.workers[worker].engine;
        let core = &mut engine.core;
        core.turn.begin(NOW);
        core.memory.level = level;
        core.durable.release_safe(NOW, &mut core.outputs);
        engine.end_lanes();
        engine.replay_waiting();
        let links: Vec<LinkId> = self.workers[worker].links.values().copied().collect();
        for link in links {
            self.take_packets(worker, link);
        }
        self.take_mail(worker);
        let engine = &mut self.workers[worker].engine;
        publish_events(engine);
        engine.send_room_notices();
    }

    fn take_packets(&mut self, worker: usize, link: LinkId) {
        while !self.links[link].is_closed
            && let Some(connection) = self.links[link].connection
            && let Some(slot) = self.workers[worker].engine.core.outputs.session(connection)
            && let Some(bytes) = self.links[link].to_engine.pop_front()
        {
            let frame = frame::split(&bytes, u32::MAX).expect("it is well formed");
            let packet = decode(frame.expect("it is whole"), self.links[link].version);
            let packet = packet.expect("it is well formed");
            let (waiting, _) = self.node.mailbox_level(WorkerId::new(worker)).waiting();
            if matches!(packet, Packet::Unsubscribe(_)) && waiting > 0 {
                // The UNSUBSCRIBE is handled after the waiting mail.
                self.links[link].to_engine.push_front(bytes);
                return;
            }
            let engine = &mut self.workers[worker].engine;
            let cleared = engine.clearance(connection, slot, &packet, Verdict::Allowed);
            let cleared = cleared.expect("no queue is full");
            let handled = engine.packet(slot, packet, cleared);
            assert!(
                matches!(handled, Ok(Handled::Nothing | Handled::Published)),
                "{packet:?} leads to {handled:?}"
            );
            engine.core.durable.end_unit();
            engine.core.outputs.wrote(connection.key);
        }
    }

    fn take_mail(&mut self, worker: usize) {
        let mut messages = 0;
        let mut bytes = 0;
        while let Some(mail) = self.workers[worker].inbox.pop_front() {
            messages += 1;
            match mail {
                Mail::Engine(mail) => {
                    bytes += mail.bytes_len();
                    self.workers[worker].engine.take_mail(mail);
                }
                Mail::Adopt(link, handshake) => self.adopt(worker, link, handshake),
            }
            self.workers[worker].engine.core.durable.end_unit();
        }
        let level = self.node.mailbox_level(WorkerId::new(worker));
        level.fall(messages, bytes);
    }

    fn adopt(&mut self, worker: usize, link: LinkId, handshake: Handshake) {
        let owner = self.owner(worker, handshake.client_id());
        if owner.index() != worker {
            // The owner of the session changed during the handover.
            self.hand_over(worker, owner, Mail::Adopt(link, handshake));
            return;
        }
        let is_cut = self.links[link].is_closed;
        self.attach(worker, link, handshake);
        if is_cut {
            self.cut(link);
        }
    }

    /// Does the second half of a turn, which submits changes and sends mail and output.
    pub(crate) fn hand_out(&mut self, worker: usize) {
        if self.workers[worker].engine.core.settle() {
            self.hand_mail_over(worker);
        }
        let listed = self.workers[worker].engine.core.outputs.take_listed();
        for key in &listed {
            if self.workers[worker].engine.core.outputs.take_turn(*key) {
                self.write(worker, *key);
            }
        }
        let engine = &mut self.workers[worker].engine;
        engine.core.outputs.give_back(listed);
        if !engine.core.is_unsettled() {
            self.hand_mail_over(worker);
            self.workers[worker].engine.release_ended();
        }
    }

    fn hand_mail_over(&mut self, from: usize) {
        for to in WorkerId::all(self.workers.len()) {
            if self.workers[from].engine.core.outboxes.has_mail(to) {
                self.hand_mail_to(from, to);
            }
        }
    }

    fn hand_mail_to(&mut self, from: usize, to: WorkerId) {
        let state = &mut self.workers[from];
        let is_for_receiver = |placed: &Placed| placed.to == to.index();
        let all = std::mem::take(&mut state.own_mail).into_iter();
        let (mut own, rest): (VecDeque<Placed>, VecDeque<Placed>) = all.partition(is_for_receiver);
        state.own_mail = rest;
        let mut mail: Vec<Mail> = Vec::new();
        for (place, piece) in state.engine.core.outboxes.take(to).enumerate() {
            while let Some(placed) = own.pop_front_if(|placed| placed.place <= place) {
                mail.push(placed.mail);
            }
            mail.push(Mail::Engine(piece));
        }
        mail.extend(own.into_iter().map(|placed| placed.mail));
        let bytes = mail.iter().map(|mail| match mail {
            Mail::Engine(mail) => mail.bytes_len(),
            Mail::Adopt(..) => 0,
        });
        self.node.mailbox_level(to).rise(mail.len(), bytes.sum());
        self.workers[to.index()].inbox.extend(mail);
    }

    /// Moves the output that may be sent from a connection to its client.
    fn write(&mut self, worker: usize, key: ConnectionKey) {
        let link = self.workers[worker].links[&key];
        let outputs = &mut self.workers[worker].engine.core.outputs;
        if let Some(out) = outputs[key].sendable() {
            self.links[link].to_client.extend(out.to_vec());
            out.clear();
        }
        outputs[key].was_sent();
        if let Some(spare) = outputs[key].take_spare() {
            outputs.recycle(spare);
        }
    }

    /// Writes the submitted changes to the disk; false if there were none.
    pub(crate) fn commit(&mut self) -> bool {
        let stepper = self.storage.as_mut().map(|(_, stepper)| stepper);
        stepper.is_some_and(|stepper| stepper.step().expect("the disk has no faults"))
    }

    /// Does turns of all workers until no packet or mail is in transit.
    pub(crate) fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            for worker in 0..self.workers.len() {
                self.turn(worker);
            }
            if !self.commit() && self.is_quiet() {
                return;
            }
        }
        panic!("the node does not come to rest");
    }

    fn is_quiet(&self) -> bool {
        let is_quiet = |state: &WorkerState| {
            let core = &state.engine.core;
            let is_settled = core.outputs.is_empty() && core.rooms.is_quiet();
            is_settled
                && state.inbox.is_empty()
                && !core.is_unsettled()
                && !core.events.are_waiting()
                && !state.engine.replays.is_waiting()
        };
        let has_packets = |link: &Link| !link.is_closed && !link.to_engine.is_empty();
        self.workers.iter().all(is_quiet) && !self.links.iter().any(has_packets)
    }

    /// Removes the next message for another worker from the mailboxes; false if there is none.
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

fn settings() -> EngineSettings {
    EngineSettings {
        session: Arc::default(),
        queue_hold: Duration::ZERO,
        access: Arc::new(Shared::default()),
        sessions: SessionLimits {
            node: u64::MAX,
            user: 0,
            address: 0,
        },
        subscriptions: SubscriptionLimits {
            shared_max: 100,
            bytes_max: u32::MAX,
            packet_filters_max: 100,
            message_identifiers: 64,
        },
        output_bytes: 1 << 20,
        memory_bytes: 0,
        retained: RetainedLimits {
            message_count: 1_000,
            bytes: 1 << 20,
            payload_bytes: 1 << 20,
        },
        keeps_all_wills: false,
        published_qos_min: QoS::AtMostOnce,
    }
}

fn open(disk: &SimStorage) -> (Store<SimDisk>, Recovered) {
    let disk = disk.open().expect("nobody else has it");
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        disk_bytes_max: SEGMENT_BYTES * SEGMENTS_MAX,
        ..Options::default()
    };
    let (store, recovered, report) = Store::open(disk, options).expect("it opens");
    assert!(!report.is_damaged(), "{report:?}");
    (store, recovered)
}

fn stepped(store: Store<SimDisk>, workers: usize) -> (Committer, Stepper<SimDisk>, Vec<Submitter>) {
    let wakes = (0..workers).map(|_| Box::new(|| ()) as _).collect();
    Committer::stepped(store, wakes, QUEUE_BYTES_MAX)
}
