//! The state that the workers of one node share, and the handle that starts and stops them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use mio::{Poll, Waker};
use thrum_engine::access::{Access, Shared};
use thrum_engine::durable::{Journal, Part};
use thrum_engine::host::Host;
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::placement::Placement;
use thrum_engine::node::{Capacity, NodeParts, NodeState};
use thrum_engine::settings::EngineSettings;
use thrum_engine::sinks::Places;
use thrum_engine::workers::{SharedWorkerSet, WORKERS_MAX, WorkerId};
use thrum_protection::{Protection, SharedBucket};
use thrum_protocol::Time;
use thrum_routing::shared::Strategy;
use thrum_storage::disk::RealDisk;
use thrum_storage::{Committer, QUEUE_BYTES_MAX, Recovered, Store, Submitter, Wake};

use crate::clock::Clock;
use crate::config::{Config, Workers};
use crate::control::{AccessHandle, Control, Queries, Settling, restore_topic_metrics};
use crate::door::review_at_start;
use crate::listener::{
    CertificateFiles, CertificateWatch, Change, Gates, HttpPort, Listening, OpenListeners, Plan,
    StartError,
};
use crate::machine::WORKER_THREAD;
use crate::mailbox::{Mail, Mailbox};
use crate::protection::{BanKeeper, LoginKeeper};
use crate::settings::Settings;
use crate::sinks::{PreparedSinks, SinkKeeper};
use crate::storage::{self, StorageError};
use crate::system;
use crate::trace::TraceSlots;
use crate::worker::{self, Worker};

/// Longest time that a stop waits until all wills have reached the workers of their subscribers; it
/// usually takes some milliseconds.
const WILLS_GRACE: Duration = Duration::from_secs(5);

/// The parts of a new node.
#[derive(Debug)]
pub(crate) struct NodePlan {
    pub(crate) workers: usize,
    pub(crate) strategy: Strategy,
    pub(crate) mailbox: Capacity,
    pub(crate) clock: Clock,
    /// Part of every client identifier that the node assigns, so that other clients cannot guess
    /// it.
    pub(crate) identity: u64,
}

/// The state that all workers of a node share.
#[derive(Debug)]
pub(crate) struct Node {
    /// The part of the state that the engines of the workers share.
    pub(crate) state: Arc<NodeState>,
    pub(crate) clock: Clock,
    pub(crate) gates: Arc<Gates>,
    pub(crate) protection: Protection,
    /// The unused part of `limits.connect_rate`, for all workers and all listeners.
    pub(crate) connects: CachePadded<SharedBucket>,
    /// The state of the storage thread; none on a node without storage.
    pub(crate) storage: OnceLock<thrum_storage::StorageMonitor>,
    /// The overloaded workers, which leave new connections in the backlog.
    deferring: SharedWorkerSet,
    /// The numbers of the traces.
    pub(crate) trace_slots: Arc<TraceSlots>,
    /// Each mailbox has cache lines of its own.
    mailboxes: Box<[CachePadded<OnceLock<Mailbox>>]>,
}

impl NodePlan {
    /// Takes the values of the configuration, with a clock that starts now.
    pub(crate) fn new(config: &Config) -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self {
            workers: worker_count(config.node.workers),
            strategy: config.shared.strategy,
            mailbox: Capacity {
                messages: config.limits.mailbox_messages as usize,
                bytes: config.limits.mailbox_bytes as usize,
            },
            clock: Clock::start(),
            identity: RandomState::new().hash_one("node"),
        }
    }
}

impl Node {
    /// A node without listeners, which continues with the time and the sessions of the recovered
    /// state.
    pub(crate) fn new(
        plan: NodePlan,
        settings: &EngineSettings,
        recovered: Option<&Recovered>,
    ) -> Self {
        let NodePlan {
            workers,
            strategy,
            mailbox,
            mut clock,
            identity,
        } = plan;
        let placement = match recovered {
            None => Placement::new(workers),
            Some(recovered) => {
                clock.resume_after(recovered);
                let sessions = recovered.sessions.iter().map(|session| session.id);
                let sessions: Vec<u64> = sessions.collect();
                Placement::balanced(workers, &sessions)
            }
        };
        let protection = Protection::default();
        let state = NodeState::new(NodeParts {
            placement,
            strategy,
            retained: settings.retained,
            mailbox,
            bans: Arc::clone(protection.bans()),
            wall: Arc::clone(clock.wall_clock()),
            identity,
        });
        Self {
            state: Arc::new(state),
            clock,
            gates: Arc::new(Gates::new(workers)),
            protection,
            connects: CachePadded::default(),
            storage: OnceLock::new(),
            deferring: SharedWorkerSet::default(),
            trace_slots: Arc::default(),
            mailboxes: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Gives a worker its mailbox, whose waker wakes it from that poll.
    pub(crate) fn open_mailbox(&self, worker: WorkerId, poll: &Poll) -> io::Result<()> {
        let waker = Waker::new(poll.registry(), worker::WAKER)?;
        let level = Arc::clone(self.state.mailbox_level(worker));
        self.mailboxes[worker.index()]
            .set(Mailbox::new(waker, level))
            .expect("each mailbox is set once");
        Ok(())
    }

    /// Sets whether the worker leaves new connections in the backlog.
    pub(crate) fn set_defers_connections(&self, worker: WorkerId, defers: bool) {
        self.deferring.put(worker, defers, Ordering::Relaxed);
    }

    /// Whether the worker leaves new connections in the backlog.
    pub(crate) fn defers_connections(&self, worker: WorkerId) -> bool {
        self.deferring.load(Ordering::Relaxed).contains(worker)
    }

    /// Whether all workers leave new connections in the backlog.
    pub(crate) fn all_defer_connections(&self) -> bool {
        let deferring = self.deferring.load(Ordering::Relaxed);
        deferring.len() as usize == self.workers()
    }

    /// Number of sockets of clients, in their handshake or after it.
    pub(crate) fn open_sockets(&self) -> u64 {
        self.gates.open_sockets()
    }

    /// The mailbox of a worker.
    pub(crate) fn mailbox(&self, worker: WorkerId) -> &Mailbox {
        self.mailboxes[worker.index()]
            .get()
            .expect("mailboxes are filled before workers start")
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// A function that wakes a worker once the changes that it waits for are on the disk.
    fn wake(self: &Arc<Self>, worker: usize) -> Wake {
        let node = Arc::clone(self);
        let worker = WorkerId::new(worker);
        Box::new(move || node.mailbox(worker).wake())
    }

    /// Takes over the recovered state; returns each worker's part of it, with its journal. The last
    /// submitter is for the sinks.
    pub(crate) fn restore(
        &self,
        recovered: Recovered,
        submitters: Vec<Submitter>,
    ) -> (Vec<(Journal, Part)>, Places) {
        self.state.restore(recovered, submitters, self.clock.now())
    }

    /// The functions with which the storage thread wakes each worker. The last one is for the
    /// sinks, which wait for no change.
    pub(crate) fn wakes(self: &Arc<Self>) -> Vec<Wake> {
        let workers = (0..self.workers()).map(|worker| self.wake(worker));
        let of_sinks: Wake = Box::new(|| {});
        workers.chain([of_sinks]).collect()
    }

    /// Sends the same mail to all workers.
    pub(crate) fn send_all(&self, mail: impl Fn() -> Mail) {
        for worker in 0..self.workers() {
            let worker = WorkerId::new(worker);
            self.mailbox(worker).push(mail());
        }
    }
}

impl Host for Node {
    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn no_earlier_than_now(&self, turn: Time) -> Time {
        self.clock.rounded_up().max(turn)
    }

    fn resident_bytes(&self) -> Option<u64> {
        system::resident_bytes()
    }
}

/// A new configuration whose files have been read and whose new addresses have been bound.
#[derive(Debug)]
pub struct Reload {
    config: Config,
    plan: Plan,
    files: CertificateFiles,
    sinks: PreparedSinks,
}

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    pub(super) node: Arc<Node>,
    /// The configuration at the start: some keys keep its values until a restart.
    started: Config,
    pub(super) control: Arc<Control>,
    pub(super) standing: OpenListeners,
    pub(super) certificates: CertificateWatch,
    threads: Vec<JoinHandle<()>>,
    committer: Option<Committer>,
    /// None only while it ends.
    ban_keeper: Option<BanKeeper>,
    login_keeper: Option<LoginKeeper>,
    sinks: SinkKeeper,
}

impl Broker {
    /// Takes over the durable state, starts the workers, and then binds the listeners.
    ///
    /// # Errors
    /// The data directory is in use or cannot be read, an address cannot be bound, or the system
    /// provides no thread or epoll instance.
    pub fn start(config: Config, access: Access) -> Result<Self, StartError> {
        let access = Arc::new(Shared {
            access,
            generation: 1,
        });
        let settings = Arc::new(Settings::new(&config, &access));
        let opened = storage::open(&config)?;
        let recovered = opened.as_ref().map(|(_, recovered)| recovered);
        let node = Node::new(NodePlan::new(&config), &settings.engine, recovered);
        let count = node.workers();
        let node = Arc::new(node);
        SinkKeeper::open_queues(&config, &node);
        restore_topic_metrics(&node, &config.node.data_dir);
        let ban_keeper = keep_bans(&config, &node)?;
        let login_keeper = keep_logins(&config, &node);
        let control = Control::new(Arc::clone(&node), config.clone(), access);
        let mut broker = Self {
            control: Arc::new(control.with_bans(ban_keeper.bans())),
            node,
            started: config,
            standing: OpenListeners::default(),
            certificates: CertificateWatch::default(),
            threads: Vec::with_capacity(count),
            committer: None,
            ban_keeper: Some(ban_keeper),
            login_keeper,
            sinks: SinkKeeper::default(),
        };
        let sinks = broker.sinks.prepare(&broker.started, &broker.node)?;
        let polls = broker.open_mailboxes(count)?;
        let mut parts = match opened {
            None => Vec::new(),
            Some((store, recovered)) => broker.take_over(store, recovered)?,
        };
        broker.sinks.put_in_force(sinks, &broker.node)?;
        if !parts.is_empty() {
            review_at_start(&broker.node, &settings.engine.access);
        }
        // No worker takes a turn before all of them have their sessions: work that is due at once
        // is for subscribers on any worker.
        let all_restored = Arc::new(Barrier::new(count + 1));
        for (number, poll) in polls.into_iter().enumerate() {
            let id = WorkerId::new(number);
            let (node, settings) = (Arc::clone(&broker.node), Arc::clone(&settings));
            let part = (!parts.is_empty()).then(|| parts.remove(0));
            let restored = Arc::clone(&all_restored);
            let thread = std::thread::Builder::new()
                .name(format!("{WORKER_THREAD}{}", id.index()))
                // Each worker is created on its own thread, as its state never leaves that thread.
                .spawn(move || {
                    let worker = Worker::new(id, node, &settings, poll).restored(part);
                    restored.wait();
                    worker.run();
                })
                .map_err(StartError::System)?;
            broker.threads.push(thread);
        }
        all_restored.wait();
        broker.listen()?;
        Ok(broker)
    }

    fn open_mailboxes(&self, count: usize) -> Result<Vec<Poll>, StartError> {
        let mut polls = Vec::with_capacity(count);
        for number in 0..count {
            let id = WorkerId::new(number);
            let poll = Poll::new().map_err(StartError::System)?;
            let opened = self.node.open_mailbox(id, &poll);
            opened.map_err(StartError::System)?;
            polls.push(poll);
        }
        Ok(polls)
    }

    /// Starts the storage thread; returns the state that each worker continues with.
    fn take_over(
        &mut self,
        store: Store<RealDisk>,
        recovered: Recovered,
    ) -> Result<Vec<(Journal, Part)>, StartError> {
        let (committer, submitters) =
            Committer::start(store, self.node.wakes(), QUEUE_BYTES_MAX)
                .map_err(|error| StartError::Storage(StorageError::Thread(error)))?;
        self.node.storage.get_or_init(|| committer.monitor());
        self.committer = Some(committer);
        let (parts, places) = self.node.restore(recovered, submitters);
        self.sinks.set_places(places);
        Ok(parts)
    }

    /// Opens the ports of the first configuration.
    fn listen(&mut self) -> Result<(), StartError> {
        let listening = self.listen_as(&self.started.clone());
        if listening.is_err() {
            self.end();
        }
        listening
    }

    /// Opens and closes ports until they match the configuration.
    fn listen_as(&mut self, config: &Config) -> Result<(), StartError> {
        let prepared = self.prepare(config)?;
        self.carry_out(prepared)
    }

    pub(super) fn carry_out(&mut self, reload: Reload) -> Result<(), StartError> {
        let Reload {
            plan, files, sinks, ..
        } = reload;
        let sinks = self.sinks.put_in_force(sinks, &self.node);
        let changes = plan.carry_out(&mut self.standing, self.node.workers());
        let now = self.node.clock.wall_now();
        self.certificates.record_files(files, &self.standing, now);
        self.send_changes(changes);
        self.control.set_listening(&self.standing);
        Ok(sinks?)
    }

    /// Sends each worker its own changes.
    pub(super) fn send_changes(&self, changes: Vec<Vec<Change>>) {
        self.node.gates.count_sent();
        for (number, changes) in changes.into_iter().enumerate() {
            let worker = WorkerId::new(number);
            self.node.mailbox(worker).push(Mail::Listen(changes));
        }
    }

    /// Frees the gates of changed or closed listeners that have no clients left.
    fn sweep_gates(&self) {
        let forgotten = self.node.gates.sweep();
        if !forgotten.is_empty() {
            let workers = 0..self.node.workers();
            self.send_changes(
                workers
                    .map(|_| vec![Change::Forget(forgotten.clone())])
                    .collect(),
            );
        }
    }

    /// Checks whether TLS files have changed; the files of such a listener are read again, for its
    /// next connections. Warns of certificates that expire soon. The caller repeats this at an
    /// interval; it costs some system calls on files.
    pub fn look_at_certificates(&mut self) {
        self.sweep_gates();
        let config = self.control.config();
        let now = self.node.clock.wall_now();
        self.certificates.check(&config, &self.standing, now);
    }

    /// The addresses that accept clients.
    pub fn addresses(&self) -> Vec<Listening> {
        self.standing.addresses()
    }

    /// The open addresses of HTTP listeners, whose connections the caller accepts. They change with
    /// a reload.
    pub fn http_ports(&self) -> Vec<HttpPort> {
        self.standing.http_ports()
    }

    /// Takes over another configuration, except for the keys that need a restart; returns the
    /// changed ones among these. The configuration is in force on all workers once the returned
    /// [`Settling`] ends.
    ///
    /// # Errors
    /// A listener cannot be set up; then no setting changes.
    pub fn reload(&mut self, config: &Config) -> Result<(Vec<String>, Settling), StartError> {
        let prepared = self.prepare(config)?;
        Ok(self.put_in_force(prepared))
    }

    /// Reads the files of another configuration and binds its new addresses. No client is affected,
    /// and the addresses are released if the configuration is not put in force.
    ///
    /// # Errors
    /// A listener cannot be set up.
    pub fn prepare(&self, config: &Config) -> Result<Reload, StartError> {
        self.sweep_gates();
        let plan = Plan::new(&self.without_stopped(config), &self.standing, &self.node)?;
        Ok(Reload {
            sinks: self.sinks.prepare(config, &self.node)?,
            config: config.clone(),
            files: CertificateWatch::files_of(config),
            plan,
        })
    }

    /// Takes over a prepared configuration, as [`Broker::reload`] does.
    pub fn put_in_force(&mut self, reload: Reload) -> (Vec<String>, Settling) {
        let config = reload.config.clone();
        let waiting = self.started.keys_for_restart(&config);
        if let Err(error) = self.carry_out(reload) {
            tracing::error!(%error, "a part of the configuration is not in force");
        }
        let is_there = |name: &String| config.listeners.contains_key(name);
        self.control.stopped().retain(is_there);
        let settling = self.control.change(|(in_force, _)| *in_force = config);
        (waiting, settling)
    }

    /// A handle that replaces the access in force, from any thread, while the broker runs.
    pub fn access_handle(&self) -> AccessHandle {
        AccessHandle(Arc::clone(&self.control))
    }

    /// A handle for requests to the running broker, from any thread.
    pub fn queries(&self) -> Queries {
        Queries::new(Arc::clone(&self.control))
    }

    /// Number of connected clients.
    pub fn clients_connected(&self) -> u64 {
        self.node.state.metrics.total(Counter::ClientsConnected)
    }

    /// Publishes the wills of all clients, disconnects them (0x8B), ends the workers and closes the
    /// storage.
    pub fn stop(mut self) {
        self.node.send_all(|| Mail::StopWills);
        if let Err(missing) = Settling::begin(&self.node).wait(WILLS_GRACE) {
            tracing::warn!(?missing, "stopping before all wills are published");
        }
        self.end();
    }

    fn end(&mut self) {
        self.control.refuse_queries();
        self.node.send_all(|| Mail::Stop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker ended by a panic");
            }
        }
        self.control.drop_queries();
        self.standing.clean_up();
        if let Some(keeper) = self.ban_keeper.take() {
            keeper.stop();
        }
        if let Some(keeper) = self.login_keeper.take() {
            keeper.stop();
        }
        // The workers, which offer messages to the sinks, have ended.
        self.sinks.stop(&self.node.clock);
        if let Some(committer) = self.committer.take() {
            storage::closed(committer.stop());
        }
    }
}

/// Reads the bans before any client can connect, and starts to watch their file.
fn keep_bans(config: &Config, node: &Arc<Node>) -> Result<BanKeeper, StartError> {
    let bans = Arc::clone(node.protection.bans());
    // Ends of bans are times of the wall clock, from which the node's clock may differ.
    bans.set_wall_ahead(node.clock.update_wall_clock());
    let node = Arc::clone(node);
    Ok(BanKeeper::start_configured(config, bans, move || {
        node.clock.now()
    })?)
}

/// Reads the known logins, and starts to save them; without that, every user counts as new after a
/// restart.
fn keep_logins(config: &Config, node: &Node) -> Option<LoginKeeper> {
    let data_dir = &config.node.data_dir;
    if data_dir.as_os_str().is_empty() {
        return None;
    }
    let started = LoginKeeper::start(data_dir, Arc::clone(node.protection.logins()));
    started
        .inspect_err(|error| {
            let path = data_dir.display();
            tracing::warn!(%path, %error, "known logins are not saved: after a restart every user counts as new once");
        })
        .ok()
}

fn worker_count(workers: Workers) -> usize {
    let count = match workers {
        Workers::Auto => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            // docs/decisions/0006: on two cores a hand-over between workers costs more than the
            // second one brings.
            if cores <= 2 { 1 } else { cores }
        }
        Workers::Count(count) => usize::from(count),
    };
    count.clamp(1, WORKERS_MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;
    use crate::config::{Anonymous, Bind, ListenerConfig, TlsConfig, Transport};

    /// CONNECT of an MQTT 3.1.1 client with a clean session and the identifier `a`.
    const CONNECT: [u8; 15] = *b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a";
    const PINGREQ: [u8; 2] = [0xC0, 0];

    /// A listener of each kind, and no more connections through one than that.
    fn config(folder: &std::path::Path, max_connections: u32) -> Config {
        let mut config = Config::default();
        config.node.workers = Workers::Count(2);
        config.auth.anonymous = Anonymous::Allow;
        config.listeners.clear();
        let kinds = [
            ("plain", Transport::Tcp, false),
            ("tls", Transport::Tcp, true),
            ("quic", Transport::Quic, true),
        ];
        for (name, transport, is_tls) in kinds {
            let tls = TlsConfig {
                cert: folder.join("cert.pem"),
                key: folder.join("key.pem"),
                ..TlsConfig::default()
            };
            let listener = ListenerConfig {
                bind: vec![Bind::from(SocketAddr::from(([127, 0, 0, 1], 0)))],
                transport,
                max_connections,
                tls: if is_tls { tls } else { TlsConfig::default() },
                ..ListenerConfig::default()
            };
            config.listeners.insert(name.to_owned(), listener);
        }
        config
    }

    fn certificate(folder: &std::path::Path) {
        let made = generate_simple_self_signed(["localhost".to_owned()]);
        let CertifiedKey { cert, signing_key } = made.unwrap();
        let write = |file: &str, label: &str, der: &[u8]| {
            let text = STANDARD.encode(der);
            let text = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
            std::fs::write(folder.join(file), text).unwrap();
        };
        write("cert.pem", "CERTIFICATE", cert.der());
        write("key.pem", "PRIVATE KEY", &signing_key.serialize_der());
    }

    /// Reloads once, and waits for the workers.
    fn reload(broker: &mut Broker, config: &Config) {
        let (_, settling) = broker.reload(config).unwrap();
        settling.wait(Duration::from_secs(20)).unwrap();
    }

    fn gates(broker: &Broker) -> usize {
        let all = (0..=u16::MAX).filter(|number| broker.node.gates.get(*number).is_some());
        all.count()
    }

    #[test]
    fn gates_that_reloads_have_replaced_are_freed_when_their_last_client_has_gone() {
        let folder = std::env::temp_dir().join(format!("thrum-gates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        certificate(&folder);
        let mut broker = Broker::start(config(&folder, 10), Access::default()).unwrap();
        let addresses = broker.addresses();
        let plain = addresses
            .iter()
            .find(|one| one.listener == "plain")
            .unwrap();
        let mut client = TcpStream::connect(plain.socket_address().unwrap()).unwrap();
        client.write_all(&CONNECT).unwrap();
        let mut connack = [0; 4];
        client.read_exact(&mut connack).unwrap();
        // Those of the three listeners, and that of the address of QUIC.
        assert_eq!(gates(&broker), 4);
        for round in 0..100 {
            reload(&mut broker, &config(&folder, 11 + round % 2));
            // The new ones, those of the last round, and the one that the client came through.
            assert!(gates(&broker) <= 2 * 4 + 1, "{}", gates(&broker));
            client.write_all(&PINGREQ).unwrap();
            client.read_exact(&mut connack[..2]).unwrap();
        }
        let highest = (0..=u16::MAX)
            .rev()
            .find(|number| broker.node.gates.get(*number).is_some());
        assert!(highest < Some(20), "numbers are used again: {highest:?}");
        // A reload that changes nothing needs no gate.
        let same = config(&folder, 5);
        for _ in 0..4 {
            reload(&mut broker, &same);
        }
        assert_eq!(gates(&broker), 5);
        drop(client);
        while broker.node.open_sockets() > 0 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            reload(&mut broker, &same);
        }
        assert_eq!(gates(&broker), 4);
        broker.stop();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn reloads_that_fail_leave_no_gate_behind() {
        let folder = std::env::temp_dir().join(format!("thrum-gates-bad-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        certificate(&folder);
        let mut broker = Broker::start(config(&folder, 10), Access::default()).unwrap();
        let mut bad = config(&folder, 11);
        let mut missing = bad.listeners["tls"].clone();
        missing.tls.cert = folder.join("missing.pem");
        bad.listeners.insert("z".to_owned(), missing);
        for _ in 0..20 {
            broker.reload(&bad).unwrap_err();
            reload(&mut broker, &config(&folder, 10));
            assert!(gates(&broker) <= 2 * 4, "{}", gates(&broker));
        }
        broker.stop();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
