//! The thread of a sink: takes offers, writes them, and clears their places.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::log_file::LogFile;
use super::places::Places;
use super::{Offer, Sink};
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

/// See above.
#[derive(Debug)]
pub(super) struct SinkWriter {
    pub(super) sink: Arc<Sink>,
    pub(super) target: LogFile,
    /// What a reload puts in place of the target.
    pub(super) next_target: Arc<Mutex<Option<LogFile>>>,
    /// None on a node without storage.
    pub(super) places: Option<Arc<Places>>,
    pub(super) node: Arc<Node>,
}

impl SinkWriter {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(offers) = self.sink.queue.take(BATCH_MESSAGES, BATCH_BYTES, PATIENCE) {
            self.take_next_target();
            if offers.is_empty() {
                self.flush_places();
            } else if self.write(&offers).is_ok() {
                self.clear(&offers);
            } else {
                self.give_up(&offers);
                return;
            }
        }
        self.flush_places();
    }

    /// Writes until that succeeds; while the broker stops, a few times.
    fn write(&mut self, offers: &[Offer]) -> io::Result<()> {
        let Err(error) = self.target.write(offers, &self.node.clock) else {
            return Ok(());
        };
        let sink = Arc::clone(&self.sink);
        tracing::error!(
            sink = &*sink.name,
            %error,
            "the sink cannot write; it tries again every second, and its messages wait"
        );
        let mut last_tries = LAST_TRIES;
        loop {
            sink.queue.count_failure();
            if sink.queue.is_closing() {
                last_tries -= 1;
                sink.queue.rest(LAST_PAUSE);
            } else {
                sink.queue.rest(RETRY_PAUSE);
            }
            self.take_next_target();
            match self.target.write(offers, &self.node.clock) {
                Ok(()) => break,
                Err(error) if last_tries == 0 => return Err(error),
                Err(_) => {}
            }
        }
        tracing::info!(sink = &*sink.name, "the sink works again");
        Ok(())
    }

    fn clear(&self, offers: &[Offer]) {
        if let Some(places) = &self.places {
            places.clear(offers.iter().filter_map(|offer| offer.place));
        }
        self.sink.queue.written(offers);
    }

    fn take_next_target(&mut self) {
        let mut next = self
            .next_target
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = next.take() {
            self.target = next;
        }
    }

    fn flush_places(&self) {
        if let Some(places) = &self.places {
            places.flush();
        }
    }

    /// The broker stops, and the target takes nothing.
    fn give_up(&self, offers: &[Offer]) {
        let waiting = self.sink.queue.counts().waiting;
        let kept = offers.iter().filter(|offer| offer.place.is_some()).count();
        tracing::warn!(
            sink = &*self.sink.name,
            waiting,
            "the broker stops before the sink has written everything; messages of QoS 1 and 2 of a durable sink \
             are written after the next start ({kept} of the first {} are)",
            offers.len()
        );
    }
}
