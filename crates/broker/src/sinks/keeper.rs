//! Starts, changes and stops the sinks of a configuration.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Access, access};
use thrum_codec::topic::TopicFilter;
use thrum_engine::sinks::{Places, QueueLimits, SINKS_MAX, Sink};

use super::log_file::Target;
use super::writer::{Assignment, SinkWriter};
use crate::clock::Clock;
use crate::config::{Config, Durability, SinkConfig, SinkKind};
use crate::node::Node;

/// Longest time that a stop waits for the threads of all sinks.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// Reasons why a sink cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// A setting is missing or wrong.
    #[error("sink {sink:?}: {cause}")]
    Setting {
        /// Name in the configuration.
        sink: String,
        /// The error, and the remedy.
        cause: String,
    },
    /// The file of the sink cannot be opened.
    #[error("sink {sink:?}: cannot open {}: {source}", .path.display())]
    File {
        /// Name in the configuration.
        sink: String,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start the thread of a sink: {0}")]
    Thread(io::Error),
}

/// A running sink.
#[derive(Debug)]
struct RunningSink {
    sink: Arc<Sink>,
    /// Its configuration; `None` once a reload has removed the sink.
    config: Option<SinkConfig>,
    assignment: Arc<Assignment>,
    thread: JoinHandle<()>,
    /// Closed at the end of the thread.
    end: Receiver<Never>,
}

/// No value is ever sent: the end of the channel marks the end of the thread.
#[derive(Debug, PartialEq, Eq)]
enum Never {}

/// The running sinks, by name.
#[derive(Debug, Default)]
pub(crate) struct SinkKeeper {
    running: BTreeMap<String, RunningSink>,
    /// Whether `storage.durability` required syncs at the start.
    syncs: Option<bool>,
    places: Option<Arc<Places>>,
}

/// The sinks of a configuration that is not in force yet.
#[derive(Debug, Default)]
pub(crate) struct PreparedSinks {
    sinks: BTreeMap<String, SinkConfig>,
    syncs: bool,
}

/// Checks the sinks of a configuration as a start does; creates no file.
pub(crate) fn check(config: &Config) -> Vec<SinkError> {
    let problems = config.sinks.iter().filter_map(|(name, sink)| {
        check_settings(config, name, sink)
            .and_then(|()| check_file(name, sink))
            .err()
    });
    problems.collect()
}

fn check_settings(config: &Config, name: &str, sink: &SinkConfig) -> Result<(), SinkError> {
    let invalid = |cause: String| {
        Err(SinkError::Setting {
            sink: name.to_owned(),
            cause,
        })
    };
    if config.sinks.len() > SINKS_MAX {
        return invalid(format!("a node has at most {SINKS_MAX} sinks"));
    }
    if sink.filter.is_empty() {
        return invalid(format!(
            "it has no topic filter, set sinks.{name}.filter, for example to \"#\""
        ));
    }
    match TopicFilter::parse(&sink.filter) {
        Err(error) => return invalid(format!("filter {:?}: {error}", sink.filter)),
        Ok(filter) if filter.shared().is_some() => {
            return invalid(
                "its filter is a shared subscription; a sink receives every message".to_owned(),
            );
        }
        Ok(_) => {}
    }
    if sink.path.as_os_str().is_empty() {
        return invalid(format!("it has no file, set sinks.{name}.path"));
    }
    let mut others = config.sinks.iter().take_while(|(other, _)| *other != name);
    if let Some((other, _)) = others.find(|(_, other)| other.path == sink.path) {
        return invalid(format!("it has the same path as the sink {other:?}"));
    }
    Ok(())
}

/// Checks that the file can be written, or created in its folder. The file is not opened: a disk
/// that does not answer would delay the reload.
fn check_file(name: &str, sink: &SinkConfig) -> Result<(), SinkError> {
    let is_writable = |path: &Path| Ok(access(path, Access::WRITE_OK)?);
    let parent = sink.path.parent();
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    let outcome = match std::fs::metadata(&sink.path) {
        Ok(metadata) if metadata.is_file() => is_writable(&sink.path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
        Err(_) => is_writable(parent.unwrap_or_else(|| Path::new("."))),
    };
    outcome.map_err(|error| file_error(name, sink, error))
}

fn file_error(name: &str, sink: &SinkConfig, source: io::Error) -> SinkError {
    SinkError::File {
        sink: name.to_owned(),
        path: sink.path.clone(),
        source,
    }
}

fn limits_of(sink: &SinkConfig) -> QueueLimits {
    QueueLimits {
        messages: sink.queue_messages as usize,
        bytes: usize::try_from(sink.queue_bytes).unwrap_or(usize::MAX),
        when_full: sink.when_full.into(),
        is_durable: sink.durable,
    }
}

impl SinkKeeper {
    /// Opens the queues of the sinks of the first configuration, so that the messages recovered for
    /// them have a queue.
    pub(crate) fn open_queues(config: &Config, node: &Node) {
        for (name, sink) in &config.sinks {
            node.state.sinks.open(name, limits_of(sink));
        }
    }

    /// Sets the handle that clears stored messages, on a node with storage.
    pub(crate) fn set_places(&mut self, places: Places) {
        self.places = Some(Arc::new(places));
    }

    /// Checks the sinks of another configuration. The file of an unchanged sink may be missing: its
    /// messages wait, and a reload can change all other settings.
    ///
    /// # Errors
    /// [`SinkError`]; then no setting changes.
    pub(crate) fn prepare(&self, config: &Config, node: &Node) -> Result<PreparedSinks, SinkError> {
        let mut queues = node.state.sinks.iter().count();
        for (name, sink) in &config.sinks {
            check_settings(config, name, sink)?;
            let running = self.running.get(name);
            if running.and_then(|running| running.config.as_ref()) != Some(sink) {
                check_file(name, sink)?;
            }
            queues += usize::from(node.state.sinks.find(name).is_none());
            if queues > SINKS_MAX {
                return Err(SinkError::Setting {
                    sink: name.clone(),
                    cause: format!(
                        "the broker has had {SINKS_MAX} different sinks since its start; restart it"
                    ),
                });
            }
        }
        Ok(PreparedSinks {
            sinks: config.sinks.clone(),
            syncs: config.storage.durability == Durability::Fsync,
        })
    }

    /// Makes these the sinks of the node: messages go to no other sink from now on.
    ///
    /// # Errors
    /// The system provides no thread for a new sink; the other sinks are in force.
    pub(crate) fn put_in_force(
        &mut self,
        prepared: PreparedSinks,
        node: &Arc<Node>,
    ) -> Result<(), SinkError> {
        // A change of `storage.durability` takes effect at a restart, for sinks too.
        let syncs = *self.syncs.get_or_insert(prepared.syncs);
        for (name, running) in &mut self.running {
            if !prepared.sinks.contains_key(name) {
                running.remove(node);
            }
        }
        let mut outcome = Ok(());
        for (name, config) in prepared.sinks {
            let SinkKind::Log = config.kind;
            let target = Target {
                path: config.path.clone(),
                syncs: config.durable && syncs,
            };
            if let Some(running) = self.running.get_mut(&name) {
                running.change(config, target, node);
                continue;
            }
            match self.start(&name, config, target, node) {
                Ok(running) => drop(self.running.insert(name, running)),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn start(
        &self,
        name: &str,
        config: SinkConfig,
        target: Target,
        node: &Arc<Node>,
    ) -> Result<RunningSink, SinkError> {
        let Some(sink) = node.state.sinks.open(name, limits_of(&config)) else {
            return Err(SinkError::Setting {
                sink: name.to_owned(),
                cause: format!("a node has at most {SINKS_MAX} sinks"),
            });
        };
        let sink = Arc::clone(sink);
        let assignment = Arc::<Assignment>::default();
        assignment.set(Some(target));
        let writer = SinkWriter::new(
            Arc::clone(&sink),
            Arc::clone(&assignment),
            self.places.clone(),
            Arc::clone(node),
        );
        let (at_end, end) = mpsc::sync_channel(0);
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn(move || {
                writer.run();
                drop(at_end);
            })
            .map_err(SinkError::Thread)?;
        node.state.sinks.enqueue_kept(&sink);
        node.state.interest.add_sink(&config.filter, sink.id);
        Ok(RunningSink {
            sink,
            config: Some(config),
            assignment,
            thread,
            end,
        })
    }

    /// Ends the threads of all sinks within one time limit, after they have written what they can.
    /// The workers must have stopped offering messages.
    pub(crate) fn stop(&mut self, clock: &Clock) {
        for running in self.running.values() {
            running.sink.queue.close();
        }
        let deadline = clock.elapsed() + STOP_TIME_MAX;
        for (name, running) in std::mem::take(&mut self.running) {
            let left = deadline.saturating_sub(clock.elapsed());
            if running.end.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                tracing::error!(
                    sink = name,
                    waiting = running.sink.queue.counts().waiting,
                    "a write of the sink takes too long: the broker stops without waiting for it; messages of QoS 1 and 2 of a \
                     durable sink are written after the next start"
                );
                continue;
            }
            if running.thread.join().is_err() {
                tracing::error!(sink = name, "the thread of a sink ended by a panic");
            }
        }
    }
}

impl RunningSink {
    fn change(&mut self, config: SinkConfig, target: Target, node: &Node) {
        self.sink.queue.set_limits(limits_of(&config));
        self.assignment.set(Some(target));
        self.sink.queue.wake();
        let before = self.config.as_ref().map(|before| before.filter.as_str());
        if before != Some(config.filter.as_str()) {
            // The new filter is added first, so that messages that match both are offered without a
            // gap.
            node.state.interest.add_sink(&config.filter, self.sink.id);
            if let Some(before) = before {
                node.state.interest.remove_sink(before, self.sink.id);
            }
        }
        self.config = Some(config);
    }

    /// A reload has removed the sink: its file is released, and its waiting messages are kept.
    fn remove(&mut self, node: &Node) {
        let Some(removed) = self.config.take() else {
            return;
        };
        node.state
            .interest
            .remove_sink(&removed.filter, self.sink.id);
        self.sink.queue.set_limits(QueueLimits {
            is_durable: removed.durable,
            ..QueueLimits::default()
        });
        self.assignment.set(None);
        self.sink.queue.wake();
    }
}
