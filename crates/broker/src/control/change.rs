//! The configuration and access in force on a node, and their change while it runs.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thrum_engine::access::{Access, Shared};
use thrum_engine::workers::WorkerId;

use super::live::History;
use super::query::{QueryLimit, SettingLater};
use crate::clock::Clock;
use crate::config::Config;
use crate::listener::{Gate, HttpPort, Listening, OpenListeners};
use crate::mailbox::Mail;
use crate::node::Node;
use crate::protection::KeptBans;
use crate::settings::Settings;
use crate::telemetry::ExportCounts;

/// The configuration and access in force, and their change.
#[derive(Debug)]
pub(crate) struct Control {
    node: Arc<Node>,
    /// Held while it is changed and sent to the workers, so that all of them get the changes in the
    /// same order.
    in_force: Mutex<(Config, Arc<Shared>)>,
    /// Addresses that accept clients; locked for a copy of them, and at reloads.
    listening: Mutex<Vec<Listening>>,
    /// The gates of their listeners; locked in the same way.
    gates: Mutex<Vec<Arc<Gate>>>,
    /// The seconds of the last minutes; locked to enter one, and for a copy of them.
    history: Mutex<History>,
    /// Held by whoever changes the filters of topic metrics, also while it writes and waits for the
    /// workers.
    topic_metrics: Mutex<SettingLater>,
    /// The HTTP listeners among them, without their sockets; locked in the same way.
    http: Mutex<Vec<HttpPort>>,
    /// Names of the listeners that the operator has stopped; locked in the same way.
    stopped: Mutex<BTreeSet<String>>,
    /// Limits the pending queries.
    pub(super) query_limit: Arc<QueryLimit>,
    /// The bans and their file.
    pub(super) bans: KeptBans,
    /// What became of exported metrics, logs and traces.
    pub(super) exports: Arc<ExportCounts>,
}

impl Control {
    pub(crate) fn new(node: Arc<Node>, config: Config, access: Arc<Shared>) -> Self {
        Self {
            bans: KeptBans::in_memory(Arc::clone(node.protection.bans())),
            node,
            in_force: Mutex::new((config, access)),
            listening: Mutex::default(),
            gates: Mutex::default(),
            history: Mutex::default(),
            topic_metrics: Mutex::default(),
            http: Mutex::default(),
            stopped: Mutex::default(),
            query_limit: Arc::default(),
            exports: Arc::default(),
        }
    }

    /// With bans that are kept in a file.
    pub(crate) fn with_bans(self, bans: KeptBans) -> Self {
        Self { bans, ..self }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Whether the workers end, or are about to.
    pub(crate) fn is_stopping(&self) -> bool {
        self.query_limit.is_closed()
    }

    /// Replaces the addresses that accept clients, and the gates of their listeners.
    pub(crate) fn set_listening(&self, standing: &OpenListeners) {
        *self.listening() = standing.addresses();
        *self.gates() = standing.gates();
        let ports = standing.http_ports();
        *self.http() = ports.iter().map(HttpPort::for_connection).collect();
    }

    /// The HTTP listeners that accept connections; they do not keep their addresses.
    pub(super) fn http(&self) -> MutexGuard<'_, Vec<HttpPort>> {
        self.http.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of the listeners that the operator has stopped.
    pub(crate) fn stopped(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The gate of each listener that accepts clients, by name.
    pub(super) fn gates(&self) -> MutexGuard<'_, Vec<Arc<Gate>>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seconds of the last minutes.
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else changes the filters of topic metrics.
    pub(super) fn topic_metrics(&self) -> MutexGuard<'_, SettingLater> {
        let metrics = &self.topic_metrics;
        metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Addresses that accept clients.
    pub(super) fn listening(&self) -> MutexGuard<'_, Vec<Listening>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The access in force.
    pub(super) fn access(&self) -> Arc<Shared> {
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&in_force.1)
    }

    /// Refuses all queries from now on: the workers are about to end.
    pub(crate) fn refuse_queries(&self) {
        self.query_limit.close();
    }

    /// Drops the queries in the mailboxes of workers that have ended, so that their callers return.
    pub(crate) fn drop_queries(&self) {
        for worker in WorkerId::all(self.node.workers()) {
            self.node.mailbox(worker).take(&mut Vec::new());
        }
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Config {
        self.with_config(Config::clone)
    }

    /// A part of the configuration in force.
    pub(crate) fn with_config<T>(&self, part: impl FnOnce(&Config) -> T) -> T {
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        part(&in_force.0)
    }

    /// Puts another configuration or access in force.
    pub(crate) fn change(&self, change: impl FnOnce(&mut (Config, Arc<Shared>))) -> Settling {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut in_force);
        let (config, access) = &*in_force;
        let settings = Arc::new(Settings::new(config, access));
        self.node
            .state
            .retained
            .set_limits(settings.engine.retained);
        self.node.send_all(|| Mail::Reload(Arc::clone(&settings)));
        Settling::begin(&self.node)
    }
}

/// Changes the access of a running broker.
#[derive(Clone, Debug)]
pub struct AccessHandle(pub(crate) Arc<Control>);

impl AccessHandle {
    /// Puts another access in force. Connected clients are checked again: a subscription that is no
    /// longer allowed ends, with its connection.
    pub fn set(&self, access: Access) -> Settling {
        self.0.change(|(_, shared)| {
            let generation = shared.generation + 1;
            *shared = Arc::new(Shared { access, generation });
        })
    }
}

/// A change that is being sent to the workers: it is in force when all of them have received it.
#[derive(Debug)]
pub struct Settling {
    workers: usize,
    answers: Receiver<WorkerId>,
}

impl Settling {
    /// When a worker answers, it has handled all mail that was sent to it before.
    pub(crate) fn begin(node: &Node) -> Self {
        let workers = node.workers();
        // The channel has room for all answers, so that no worker waits.
        let (sender, answers) = sync_channel(workers);
        node.send_all(|| Mail::Settled(sender.clone()));
        Self { workers, answers }
    }

    /// Waits until all workers have received it.
    ///
    /// # Errors
    /// The names of the workers that have not answered in that time.
    pub fn wait(self, at_most: Duration) -> Result<(), Vec<String>> {
        let clock = Clock::start();
        let mut missing: Vec<usize> = (0..self.workers).collect();
        while !missing.is_empty() {
            let left = at_most.saturating_sub(clock.elapsed());
            match self.answers.recv_timeout(left) {
                Ok(worker) => missing.retain(|number| *number != worker.index()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let names = missing.iter().map(|number| format!("worker-{number}"));
                    return Err(names.collect());
                }
            }
        }
        Ok(())
    }
}

/// Reports that a worker has received all earlier changes; the waiting thread may have ended.
pub(crate) fn settled(worker: WorkerId, sender: &SyncSender<WorkerId>) {
    sender.try_send(worker).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_without_an_answer_are_named() {
        let (sender, answers) = sync_channel(3);
        settled(WorkerId::new(1), &sender);
        let settling = Settling {
            workers: 3,
            answers,
        };
        let missing = settling.wait(Duration::ZERO).unwrap_err();
        assert_eq!(missing, ["worker-0", "worker-2"]);
    }

    #[test]
    fn waiting_ends_when_all_workers_have_answered() {
        let (sender, answers) = sync_channel(2);
        settled(WorkerId::new(1), &sender);
        settled(WorkerId::new(0), &sender);
        let settling = Settling {
            workers: 2,
            answers,
        };
        assert_eq!(settling.wait(Duration::ZERO), Ok(()));
    }
}
