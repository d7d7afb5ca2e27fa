//! Starts, changes and stops the sinks of a configuration.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_codec::topic::TopicFilter;

use super::log_file::LogFile;
use super::places::Places;
use super::writer::SinkWriter;
use super::{QueueLimits, SINKS_MAX, Sink};
use crate::config::{Config, Durability, SinkConfig, SinkKind};
use crate::node::Node;

/// How long a stop waits for the thread of one sink.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Why a sink cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// A setting is missing or wrong.
    #[error("sink {sink:?}: {cause}")]
    Setting {
        /// Name in the configuration.
        sink: String,
        /// What is wrong, and how to set it right.
        cause: String,
    },
    /// Its file cannot be opened.
    #[error("sink {sink:?}: cannot open {}: {source}", .path.display())]
    File {
        /// Name in the configuration.
        sink: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start the thread of a sink: {0}")]
    Thread(io::Error),
}

/// A sink that runs.
#[derive(Debug)]
struct Running {
    sink: Arc<Sink>,
    /// As configured; none once a reload has removed it.
    config: Option<SinkConfig>,
    next_target: Arc<Mutex<Option<LogFile>>>,
    thread: JoinHandle<()>,
    /// Closed at the end of the thread.
    end: Receiver<Never>,
}

/// Nothing is sent.
#[derive(Debug, PartialEq, Eq)]
enum Never {}

/// The sinks that run, by name.
#[derive(Debug, Default)]
pub(crate) struct SinkKeeper {
    running: BTreeMap<String, Running>,
    places: Option<Arc<Places>>,
}

/// Sinks of another configuration, with their files open.
#[derive(Debug, Default)]
pub(crate) struct PreparedSinks {
    sinks: BTreeMap<String, SinkConfig>,
    /// Those that are new or changed.
    targets: BTreeMap<String, LogFile>,
}

/// Looks at the sinks of a configuration as a start does, and creates no file.
pub(crate) fn check(config: &Config) -> Vec<SinkError> {
    let problems = config.sinks.iter().filter_map(|(name, sink)| {
        check_settings(config, name, sink)
            .and_then(|()| check_file(name, sink))
            .err()
    });
    problems.collect()
}

fn check_settings(config: &Config, name: &str, sink: &SinkConfig) -> Result<(), SinkError> {
    let wrong = |cause: String| {
        Err(SinkError::Setting {
            sink: name.to_owned(),
            cause,
        })
    };
    if config.sinks.len() > SINKS_MAX {
        return wrong(format!("a node has at most {SINKS_MAX} sinks"));
    }
    if sink.filter.is_empty() {
        return wrong(format!(
            "it has no topic filter, set sinks.{name}.filter, for example to \"#\""
        ));
    }
    match TopicFilter::parse(&sink.filter) {
        Err(error) => return wrong(format!("filter {:?}: {error}", sink.filter)),
        Ok(filter) if filter.shared().is_some() => {
            return wrong("its filter is a shared one; a sink gets every message".to_owned());
        }
        Ok(_) => {}
    }
    if sink.path.as_os_str().is_empty() {
        return wrong(format!("it has no file, set sinks.{name}.path"));
    }
    let mut others = config.sinks.iter().take_while(|(other, _)| *other != name);
    if let Some((other, _)) = others.find(|(_, other)| other.path == sink.path) {
        return wrong(format!("it has the same path as the sink {other:?}"));
    }
    Ok(())
}

fn check_file(name: &str, sink: &SinkConfig) -> Result<(), SinkError> {
    let parent = sink
        .path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let fault = match std::fs::metadata(&sink.path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"),
        Err(_) => match std::fs::metadata(parent) {
            Ok(metadata) if metadata.is_dir() => return Ok(()),
            Ok(_) => io::ErrorKind::NotADirectory.into(),
            Err(error) => error,
        },
    };
    Err(file_error(name, sink, fault))
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
        when_full: sink.when_full,
        is_durable: sink.durable,
    }
}

impl SinkKeeper {
    /// Gives the sinks of the first configuration their numbers, so that messages that were found
    /// on the disk have a queue to wait in.
    pub(crate) fn number(config: &Config, node: &Node) {
        for (name, sink) in &config.sinks {
            node.sinks.open(name, limits_of(sink));
        }
    }

    /// On a node with storage: the way to clear places.
    pub(crate) fn set_places(&mut self, places: Places) {
        self.places = Some(Arc::new(places));
    }

    /// Opens the files of sinks that are new or changed.
    ///
    /// # Errors
    /// [`SinkError`]; nothing has changed then, but for files that were created.
    pub(crate) fn prepare(&self, config: &Config, node: &Node) -> Result<PreparedSinks, SinkError> {
        let mut prepared = PreparedSinks {
            sinks: config.sinks.clone(),
            targets: BTreeMap::new(),
        };
        let mut numbers = node.sinks.iter().count();
        for (name, sink) in &config.sinks {
            check_settings(config, name, sink)?;
            numbers += usize::from(node.sinks.find(name).is_none());
            if numbers > SINKS_MAX {
                return Err(SinkError::Setting {
                    sink: name.clone(),
                    cause: format!(
                        "the broker has had {SINKS_MAX} different sinks since its start; restart it"
                    ),
                });
            }
            let known = self.running.get(name).and_then(|one| one.config.as_ref());
            let SinkKind::Log = sink.kind;
            let is_same =
                known.is_some_and(|known| known.path == sink.path && known.durable == sink.durable);
            if !is_same {
                let syncs = sink.durable && config.storage.durability == Durability::Fsync;
                let target = LogFile::open(&sink.path, syncs)
                    .map_err(|error| file_error(name, sink, error))?;
                prepared.targets.insert(name.clone(), target);
            }
        }
        Ok(prepared)
    }

    /// From now on messages go to these sinks and to no others.
    ///
    /// # Errors
    /// The system has no thread for a new one.
    pub(crate) fn put_in_force(
        &mut self,
        prepared: PreparedSinks,
        node: &Arc<Node>,
    ) -> Result<(), SinkError> {
        let PreparedSinks { sinks, mut targets } = prepared;
        for (name, running) in &mut self.running {
            if !sinks.contains_key(name)
                && let Some(gone) = running.config.take()
            {
                node.interest.remove_sink(&gone.filter, running.sink.id);
            }
        }
        for (name, config) in sinks {
            let target = targets.remove(&name);
            if let Some(running) = self.running.get_mut(&name) {
                running.change(config, target, node);
            } else if let Some(target) = target {
                let running = self.begin(&name, config, target, node)?;
                self.running.insert(name, running);
            }
        }
        Ok(())
    }

    fn begin(
        &self,
        name: &str,
        config: SinkConfig,
        target: LogFile,
        node: &Arc<Node>,
    ) -> Result<Running, SinkError> {
        let Some(sink) = node.sinks.open(name, limits_of(&config)) else {
            return Err(SinkError::Setting {
                sink: name.to_owned(),
                cause: format!("a node has at most {SINKS_MAX} sinks"),
            });
        };
        let sink = Arc::clone(sink);
        let next_target = Arc::default();
        let writer = SinkWriter {
            sink: Arc::clone(&sink),
            target,
            next_target: Arc::clone(&next_target),
            places: self.places.clone(),
            node: Arc::clone(node),
        };
        let (at_end, end) = mpsc::sync_channel(0);
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn(move || {
                writer.run();
                drop(at_end);
            })
            .map_err(SinkError::Thread)?;
        node.interest.add_sink(&config.filter, sink.id);
        Ok(Running {
            sink,
            config: Some(config),
            next_target,
            thread,
            end,
        })
    }

    /// Ends the threads once they have written what they can. Nobody offers anything any more.
    pub(crate) fn stop(&mut self) {
        for running in self.running.values() {
            running.sink.queue.close();
        }
        for (name, running) in std::mem::take(&mut self.running) {
            if running.end.recv_timeout(STOP_PATIENCE) == Err(RecvTimeoutError::Timeout) {
                tracing::error!(
                    sink = name,
                    waiting = running.sink.queue.counts().waiting,
                    "a write of the sink takes too long: the broker stops without its end; messages of QoS 1 and 2 of a \
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

impl Running {
    fn change(&mut self, config: SinkConfig, target: Option<LogFile>, node: &Node) {
        self.sink.queue.set_limits(limits_of(&config));
        if let Some(target) = target {
            let mut next = self
                .next_target
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *next = Some(target);
            drop(next);
            self.sink.queue.call();
        }
        let before = self.config.as_ref().map(|before| before.filter.as_str());
        if before != Some(config.filter.as_str()) {
            // First the new one: what matches both is offered all the time.
            node.interest.add_sink(&config.filter, self.sink.id);
            if let Some(before) = before {
                node.interest.remove_sink(before, self.sink.id);
            }
        }
        self.config = Some(config);
    }
}
