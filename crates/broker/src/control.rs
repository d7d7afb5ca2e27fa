//! The configuration and access in force on a node, and their change while it runs.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thrum_engine::access::{Access, Shared};
use thrum_engine::workers::WorkerId;

use crate::clock::Clock;
use crate::config::Config;
use crate::mailbox::Mail;
use crate::node::Node;
use crate::settings::Settings;

/// The configuration and access in force, and their change.
#[derive(Debug)]
pub(crate) struct Control {
    node: Arc<Node>,
    /// Held while it is changed and sent to the workers, so that all of them get the changes in the
    /// same order.
    in_force: Mutex<(Config, Arc<Shared>)>,
}

impl Control {
    pub(crate) fn new(node: Arc<Node>, config: Config, access: Arc<Shared>) -> Self {
        Self {
            node,
            in_force: Mutex::new((config, access)),
        }
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Config {
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        in_force.0.clone()
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

/// A change on its way to the workers: new connections and packets are judged by it once all of
/// them have it.
#[derive(Debug)]
pub struct Settling {
    workers: usize,
    answers: Receiver<WorkerId>,
}

impl Settling {
    /// What was sent to the workers before is in force on each that answers.
    pub(crate) fn begin(node: &Node) -> Self {
        let workers = node.workers();
        // Room for all, so that no worker waits.
        let (sender, answers) = sync_channel(workers);
        node.send_all(|| Mail::Settled(sender.clone()));
        Self { workers, answers }
    }

    /// Waits until all workers have it.
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

/// A worker has all earlier changes; the waiting thread may be gone.
pub(crate) fn settled(worker: WorkerId, sender: &SyncSender<WorkerId>) {
    sender.try_send(worker).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_answered_is_named() {
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
    fn it_is_over_when_all_have_answered() {
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
