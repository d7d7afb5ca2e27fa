//! What a worker does when memory is short: it looks, refuses what would have to wait, and gives
//! back what is free.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::Session;
use thrum_protocol::{Outgoing, Time};

use super::Worker;
use super::local::{Local, QUEUED_BYTES};
use super::trim::give_back;
use crate::ids::Slot;
use crate::metrics::Counter;
use crate::system;

/// A queue that takes no more than this is short: it takes messages until memory is full.
const SHORT_QUEUE_BYTES: usize = 64 * 1024;
/// Messages on their way to a client that is to acknowledge them, while memory is full.
const SMALL_WINDOW: usize = 16;

impl Local {
    /// A message waits for a session.
    pub(super) fn has_queued(&mut self, outgoing: &Outgoing<'_>, identifiers: usize) {
        let publication = outgoing.publication();
        let text = publication.topic.len() + publication.payload.len();
        let bytes = QUEUED_BYTES + text + identifiers * size_of::<u32>();
        if self.memory.grew(bytes) {
            self.look_at_memory();
        }
        self.memory.has_queued |= self.memory.level >= MemoryLevel::Low;
    }

    /// Whether a message for that session would take memory that there is not.
    #[cold]
    pub(crate) fn lacks_memory_for(&self, slot: Slot, qos: QoS) -> bool {
        // What was on its way at the last start was acknowledged then.
        if self.only.is_some() {
            return false;
        }
        let session = &self.clients[slot].session;
        lacks_memory(session, qos, self.memory.level)
    }

    /// The limit in force is another one.
    pub(super) fn set_memory_limit(&mut self) {
        let limit = self.settings.memory_bytes;
        if limit != self.memory.limit() {
            self.memory.set_limit(limit, self.node.workers());
            self.look_at_memory();
        }
    }

    /// The end of a turn.
    #[inline]
    pub(super) fn look_at_memory_if_due(&mut self, now: Time) {
        if self.memory.is_to_look(&self.node.memory, now) {
            self.look_at_memory();
        }
    }

    #[cold]
    pub(super) fn look_at_memory(&mut self) {
        self.memory.looks();
        let limit = self.memory.limit();
        let bytes = if limit == 0 {
            0
        } else {
            system::resident_bytes().unwrap_or(0)
        };
        let (level, before) = self.node.memory.observe(bytes, limit);
        self.memory.level = level;
        let Some(before) = before else { return };
        if level < before {
            if level == MemoryLevel::Ample {
                tracing::info!(bytes, limit, "{}", level.what());
            }
            return;
        }
        if before == MemoryLevel::Ample {
            self.row().add(Counter::OverloadMemory, 1);
        }
        tracing::warn!(bytes, limit, "{}", level.what());
    }
}

impl Worker {
    /// Each second, one worker: what nobody else looks at.
    pub(super) fn watch_memory(&mut self) {
        self.local.look_at_memory();
        let memory = &self.node.memory;
        let level = self.local.memory.level;
        if level >= MemoryLevel::Full {
            self.local.row().add(Counter::LimitMemory, 1);
        }
        if level >= MemoryLevel::Low && memory.should_give_back(self.local.memory.limit()) {
            let node = Arc::clone(&self.node);
            let is_done_later = give_back(move || {
                system::give_back_memory();
                node.memory.gave_back();
            });
            if !is_done_later {
                memory.gave_back();
            }
        }
    }
}

/// Whether a message for that session would take memory that there is not, from
/// [`MemoryLevel::Short`] on.
fn lacks_memory(session: &Session, qos: QoS, level: MemoryLevel) -> bool {
    let (_, bytes, inflight) = session.backlog();
    let waits = session.would_queue(qos);
    if level < MemoryLevel::Full {
        return waits && bytes > SHORT_QUEUE_BYTES;
    }
    let is_kept = qos != QoS::AtMostOnce && session.is_persistent();
    waits || (is_kept && inflight >= SMALL_WINDOW)
}

/// The level up to which a session takes one more message with `QoS` 1 or 2.
pub(super) fn takes_until(session: &Session) -> MemoryLevel {
    let lacks = |level| lacks_memory(session, QoS::AtLeastOnce, level);
    if lacks(MemoryLevel::Short) {
        MemoryLevel::Low
    } else if lacks(MemoryLevel::Full) {
        MemoryLevel::Short
    } else {
        MemoryLevel::Exhausted
    }
}
