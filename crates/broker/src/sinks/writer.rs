//! The thread of a sink: takes offers, writes them, and clears their places.
//!
//! It alone opens, locks, repairs and writes the file, so that a file has one writer and a disk
//! that hangs holds up nothing else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thrum_engine::sinks::{Offer, Places, Sink};

use super::log_file::{LogFile, Target};
use crate::node::Node;

/// Most messages and bytes of one write; a single message may be larger.
const BATCH_MESSAGES: usize = 4096;
pub(super) const BATCH_BYTES: usize = 1024 * 1024;
/// How long the thread sleeps at most while there is nothing to write.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between a write that failed and the next try.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Tries of a write while the broker stops.
const LAST_TRIES: usize = 3;
/// Time between them.
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// Where a sink writes to; none while the configuration does not have it.
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

/// See above.
#[derive(Debug)]
pub(super) struct SinkWriter {
    sink: Arc<Sink>,
    assignment: Arc<Assignment>,
    file: Option<LogFile>,
    /// The last try to open or write the file failed, and the log says so.
    is_failing: bool,
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
            is_failing: false,
            places,
            node,
        }
    }

    /// Works until the queue is closed and empty, or has no target.
    pub(super) fn run(mut self) {
        self.idle();
        while self.step() {}
        self.flush_places();
    }

    /// One look at the queue; false if the work is over.
    fn step(&mut self) -> bool {
        let queue = &self.sink.queue;
        if self.assignment.get().is_none() {
            // Its file is free for others, and its messages wait.
            self.file = None;
            if !queue.is_closing() {
                queue.rest(PATIENCE);
            }
            return !queue.is_closing();
        }
        let Some(offers) = queue.take(BATCH_MESSAGES, BATCH_BYTES, PATIENCE) else {
            return false;
        };
        if offers.is_empty() {
            self.idle();
        } else if self.write_until_done(&offers) {
            self.clear(&offers);
        } else {
            self.sink.queue.put_back(offers);
            return !self.is_given_up();
        }
        true
    }

    /// The file is there before the first message, and is opened again if it could not be.
    fn idle(&mut self) {
        if self.file.is_none() && self.assignment.get().is_some() {
            let opened = self.open();
            self.tell(&opened);
        }
        self.flush_places();
    }

    /// Writes until that succeeds; false if the broker stops, or the sink was removed.
    fn write_until_done(&mut self, offers: &[Offer]) -> bool {
        let mut last_tries = LAST_TRIES;
        loop {
            let written = self.write(offers);
            self.tell(&written);
            if written.is_ok() {
                return true;
            }
            let queue = &self.sink.queue;
            queue.count_failure();
            if !queue.is_closing() {
                queue.rest(RETRY_PAUSE);
            } else if last_tries == 0 {
                return false;
            } else {
                last_tries -= 1;
                queue.rest(LAST_PAUSE);
            }
            if self.assignment.get().is_none() {
                return false;
            }
        }
    }

    /// Writes to the file that the configuration names now.
    fn write(&mut self, offers: &[Offer]) -> io::Result<()> {
        self.open()?;
        match &mut self.file {
            Some(file) => file.write(offers, &self.node.state.wall),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The file that is open is the one that the configuration names now, if it names one.
    fn open(&mut self) -> io::Result<()> {
        let target = self.assignment.get();
        let open = self.file.take();
        let is_current = |file: &LogFile| target.as_ref().is_some_and(|one| file.is_current(one));
        self.file = match (open.filter(is_current), target) {
            (Some(open), _) => Some(open),
            (None, Some(target)) => Some(LogFile::open(target)?),
            (None, None) => None,
        };
        Ok(())
    }

    /// Logs the first failure of a series, and its end.
    fn tell(&mut self, outcome: &io::Result<()>) {
        let was_failing = std::mem::replace(&mut self.is_failing, outcome.is_err());
        let sink = &*self.sink.name;
        match outcome {
            Ok(()) if was_failing => tracing::info!(sink, "the sink works again"),
            Err(error) if !was_failing => tracing::error!(
                sink,
                %error,
                "the sink cannot write; it tries again every second, and its messages wait"
            ),
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

    /// Whether the broker stops while the target takes nothing.
    fn is_given_up(&self) -> bool {
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
