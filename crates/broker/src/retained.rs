//! The node's retained messages: the last one of each topic, within limits.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use thrum_protocol::{Message, Time};
use thrum_routing::Retained;

/// Limits of the retained store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetainedLimits {
    pub(crate) message_count: usize,
    pub(crate) bytes: usize,
    pub(crate) payload_bytes: usize,
}

/// The store and its size.
#[derive(Debug)]
pub(crate) struct RetainedStore {
    /// Guards the store: written per retained publish, read per page of a replay.
    inner: RwLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    messages: Retained<Arc<Message>>,
    bytes: usize,
    limits: RetainedLimits,
}

/// Place in a replay, to go on from at the next turn.
pub(crate) type ReplayCursor = thrum_routing::Position;

impl RetainedStore {
    pub(crate) fn new(limits: RetainedLimits) -> Self {
        Self {
            inner: RwLock::new(Inner {
                messages: Retained::new(),
                bytes: 0,
                limits,
            }),
        }
    }

    /// Keeps the message as its topic's last; an empty payload removes it ([MQTT-3.3.1-6], [MQTT-3.3.1-7]).
    /// Whatever its quality of service. [MQTT3-3.3.1-7] False if the limits leave no room.
    #[must_use]
    pub(crate) fn store(&self, message: &Arc<Message>) -> bool {
        let payload_bytes = message.publication().payload.len();
        let mut inner = self.write();
        let Inner {
            messages,
            bytes,
            limits,
        } = &mut *inner;
        // [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT3-3.3.1-10] [MQTT3-3.3.1-11]
        if payload_bytes == 0 {
            if let Some(old) = messages.remove(message.topic()) {
                *bytes -= old.bytes_len();
            }
            return true;
        }
        if payload_bytes > limits.payload_bytes {
            return false;
        }
        let old = messages.get(message.topic()).map(|old| old.bytes_len());
        let count_after = messages.len() + usize::from(old.is_none());
        let bytes_after = *bytes - old.unwrap_or(0) + message.bytes_len();
        if count_after > limits.message_count || bytes_after > limits.bytes {
            return false;
        }
        // [MQTT-3.3.1-5] [MQTT3-3.3.1-5]
        messages.insert(message.topic(), Arc::clone(message));
        *bytes = bytes_after;
        true
    }

    /// The next messages that match, at most `max`; the cursor goes on where it stopped, none at the end.
    pub(crate) fn page(
        &self,
        filter: &str,
        after: Option<&ReplayCursor>,
        max: usize,
        into: &mut Vec<Arc<Message>>,
    ) -> Option<ReplayCursor> {
        self.read()
            .messages
            .next_page(filter, after, max, |message| into.push(Arc::clone(message)))
    }

    /// Removes what has expired.
    pub(crate) fn sweep(&self, now: Time) {
        let mut expired = Vec::new();
        self.read().messages.for_each_match("#", |message| {
            expired.extend(message.is_expired(now).then(|| Arc::clone(message)));
            ControlFlow::Continue(())
        });
        if expired.is_empty() {
            return;
        }
        let mut inner = self.write();
        for message in expired {
            let same = inner
                .messages
                .get(message.topic())
                .is_some_and(|kept| Arc::ptr_eq(kept, &message));
            if same && let Some(old) = inner.messages.remove(message.topic()) {
                inner.bytes -= old.bytes_len();
            }
        }
    }

    /// Messages and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let inner = self.read();
        (inner.messages.len(), inner.bytes)
    }

    pub(crate) fn set_limits(&self, limits: RetainedLimits) {
        self.write().limits = limits;
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}
