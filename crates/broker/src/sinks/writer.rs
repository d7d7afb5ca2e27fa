//! The thread of a sink: takes messages from the queue, writes them, and clears their stored
//! copies.
//!
//! No other thread opens, locks, repairs or writes the file, so that a file has one writer and a
//! disk that hangs blocks nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thrum_engine::sinks::{Offer, Places, Sink};

use super::log_file::{LogFile, Target};
use crate::node::Node;

/// Most messages and bytes of one write; a single message may be larger.
const BATCH_MESSAGES: usize = 4096;
pub(super) const BATCH_BYTES: usize = 1024 * 1024;
/// Longest sleep of the thread while there is nothing to write.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(1);
/// Time between a failed write and the next attempt.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time for another sink to close a file that a reload took from it.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// Attempts of a write while the broker stops.
const STOP_ATTEMPTS: usize = 3;
/// Time between them.
const STOP_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The target of a sink; none while the configuration does not contain the sink.
#[derive(Debug, Default)]
pub(super) struct Assignment(Mutex<Option<Target>>);

impl Assignment {
    pub(super) fn set(&self, target: Option<Target>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    fn get(&self) -> Option<Target> {
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        target.clone()
    }
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct SinkWriter {
    sink: Arc<Sink>,
    assignment: Arc<Assignment>,
    file: Option<LogFile>,
    /// The file that could not be opened or written at the last attempt; the failure is logged.
    failing: Option<PathBuf>,
    /// None on a node without storage.
    places: Option<Arc<Places>>,
    node: Arc<Node>,
}

impl SinkWriter {
    pub(super) fn new(
        sink: Arc<Sink>,
        assignment: Arc<Assignment>,
        places: Option<Arc<Places>>,
        node: Arc<Node>,
    ) -> Self {
        Self {
            sink,
            assignment,
            file: None,
            failing: None,
            places,
            node,
        }
    }

    /// Runs until the queue is closed, and is empty or has no target.
    pub(super) fn run(mut self) {
        self.prepare_file();
        while self.run_once() {}
        self.flush_places();
    }

    /// Handles one batch of the queue; false at the end of the thread.
    fn run_once(&mut self) -> bool {
        let queue = &self.sink.queue;
        if self.assignment.get().is_none() {
            // Its file is released for other sinks, and its messages wait.
            self.file = None;
            self.failing = None;
            if !queue.is_closing() {
                queue.pause(IDLE_WAIT_MAX);
            }
            return !queue.is_closing();
        }
        let Some(mut offers) = queue.take(BATCH_MESSAGES, BATCH_BYTES, IDLE_WAIT_MAX) else {
            return false;
        };
        if offers.is_empty() {
            self.prepare_file();
        } else if !self.write_until_done(&mut offers) {
            self.sink.queue.put_back(offers);
            return !self.stops_with_messages();
        }
        true
    }

    /// Opens the file before the first message, and again after a failure. A file of an earlier
    /// configuration is released for other sinks.
    fn prepare_file(&mut self) {
        if let Some(target) = self.assignment.get()
            && !self.file.as_ref().is_some_and(|file| file.is_of(&target))
        {
            let opened = self.open(target.clone()).map(drop);
            self.log_outcome(&target.path, opened);
        }
        self.flush_places();
    }

    /// Writes until all messages are written; false if the broker stops or the sink was removed.
    fn write_until_done(&mut self, offers: &mut Vec<Offer>) -> bool {
        let mut attempts = STOP_ATTEMPTS;
        while let Some(target) = self.assignment.get() {
            let path = target.path.clone();
            let failure = match self.write(target, offers) {
                Ok(count) => {
                    self.clear(&offers[..count]);
                    offers.drain(..count);
                    None
                }
                Err(error) => Some(error),
            };
            if offers.is_empty() {
                self.log_outcome(&path, Ok(()));
                return true;
            }
            let Some(error) = failure else {
                continue;
            };
            self.log_outcome(&path, Err(error));
            let queue = &self.sink.queue;
            queue.count_failure();
            if !queue.is_closing() {
                queue.pause(RETRY_PAUSE);
            } else if attempts == 0 {
                return false;
            } else {
                attempts -= 1;
                queue.pause(STOP_RETRY_PAUSE);
            }
        }
        false
    }

    fn write(&mut self, target: Target, offers: &[Offer]) -> io::Result<usize> {
        let node = Arc::clone(&self.node);
        self.open(target)?.write(offers, &node.state.wall)
    }

    /// Returns the file of the target. Another open file is closed first, so that its lock is
    /// released.
    fn open(&mut self, target: Target) -> io::Result<&mut LogFile> {
        let open = self.file.take().filter(|file| file.is_current(&target));
        let file = match open {
            Some(file) => file,
            None => self.reopen(target)?,
        };
        Ok(self.file.insert(file))
    }

    /// Waits once if another sink still has the file, which it closes after a reload.
    fn reopen(&self, target: Target) -> io::Result<LogFile> {
        match LogFile::open(target.clone()) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                self.sink.queue.pause(BUSY_PAUSE);
                LogFile::open(target)
            }
            opened => opened,
        }
    }

    /// Logs the first failure of a series at a file, and its end.
    fn log_outcome(&mut self, path: &Path, outcome: io::Result<()>) {
        let sink = &*self.sink.name;
        match outcome {
            Ok(()) if self.failing.take().is_some() => tracing::info!(sink, "the sink works again"),
            Err(error) if self.failing.as_deref() != Some(path) => {
                self.failing = Some(path.to_owned());
                tracing::error!(
                    sink,
                    path = %path.display(),
                    %error,
                    "the sink cannot write; it tries again every second, and its messages wait"
                );
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn clear(&self, offers: &[Offer]) {
        if let Some(places) = &self.places {
            places.clear(offers.iter().filter_map(|offer| offer.place));
        }
        self.sink.queue.written(offers);
    }

    fn flush_places(&self) {
        if let Some(places) = &self.places {
            places.flush();
        }
    }

    /// Whether the broker stops while the target accepts no messages; logs it.
    fn stops_with_messages(&self) -> bool {
        if !self.sink.queue.is_closing() {
            return false;
        }
        tracing::warn!(
            sink = &*self.sink.name,
            waiting = self.sink.queue.counts().waiting,
            "the broker stops before the sink has written everything; messages of QoS 1 and 2 of a durable sink \
             are written after the next start"
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::QoS;
    use thrum_engine::sinks::QueueLimits;
    use thrum_protocol::{Message, Publication, Time};

    use super::*;
    use crate::config::Config;
    use crate::node::NodePlan;
    use crate::settings::Settings;

    fn writer() -> SinkWriter {
        let config = Config::default();
        let settings = Settings::new(&config, &Arc::default());
        let node = Node::new(NodePlan::new(&config), &settings.engine, None);
        let sink = node.state.sinks.open("all", QueueLimits::default());
        let sink = Arc::clone(sink.expect("there is room for a sink"));
        SinkWriter::new(sink, Arc::default(), None, Arc::new(node))
    }

    /// A file in a directory that does not exist.
    fn missing(name: &str) -> PathBuf {
        Path::new("/proc/no-folder").join(name)
    }

    fn assign(writer: &SinkWriter, path: PathBuf) {
        writer.assignment.set(Some(Target { path, syncs: false }));
        writer.sink.queue.wake();
    }

    fn offer(millis: u64) -> Offer {
        let message = Message::new(&Publication::new("a", b"", QoS::AtLeastOnce));
        Offer {
            message: Arc::new(message),
            received_at: Time::from_millis(millis),
            place: None,
        }
    }

    #[test]
    fn each_file_that_cannot_be_opened_is_logged_while_nothing_is_to_be_written() {
        let mut writer = writer();
        for name in ["first", "second"] {
            assign(&writer, missing(name));
            assert!(writer.run_once());
            assert_eq!(writer.failing, Some(missing(name)));
        }
        writer.assignment.set(None);
        writer.sink.queue.wake();
        assert!(writer.run_once());
        // A sink that is added again logs its failure again.
        assert_eq!(writer.failing, None);
    }

    #[test]
    fn unwritten_messages_return_to_the_front_of_the_queue() {
        let mut writer = writer();
        assign(&writer, missing("log"));
        let queue = &Arc::clone(&writer.sink).queue;
        queue.push_all(&mut [0, 1].map(offer).into());
        queue.close();
        assert!(!writer.run_once());
        queue.push_all(&mut vec![offer(2)]);
        let waiting = queue.take(usize::MAX, usize::MAX, Duration::ZERO);
        let times = waiting.iter().flatten().map(|offer| offer.received_at);
        assert_eq!(times.collect::<Vec<_>>(), [0, 1, 2].map(Time::from_millis));
    }

    #[test]
    fn a_sink_that_is_removed_before_a_write_has_no_failure() {
        let mut writer = writer();
        assert!(!writer.write_until_done(&mut vec![offer(0)]));
        assert_eq!(writer.sink.queue.counts().failures, 0);
        assert_eq!(writer.failing, None);
    }
}
