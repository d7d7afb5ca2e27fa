//! Limits of what a session may accept while memory is short.

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::Session;

/// Greatest length in bytes of a short queue, which accepts messages until memory is full.
const SHORT_QUEUE_BYTES: usize = 64 * 1024;
/// Greatest number of unacknowledged messages to a client while memory is full.
const SMALL_WINDOW: usize = 16;

/// Whether memory is too short to deliver a message to a session, from [`MemoryLevel::Short`] on.
pub(super) fn lacks_memory(session: &Session, qos: QoS, level: MemoryLevel) -> bool {
    let (_, bytes, inflight) = session.outbound().backlog();
    let waits = session.would_queue(qos);
    if level < MemoryLevel::Full {
        return waits && bytes > SHORT_QUEUE_BYTES;
    }
    let is_kept = qos != QoS::AtMostOnce && session.lifetime().is_persistent();
    waits || (is_kept && inflight >= SMALL_WINDOW)
}

/// The memory level up to which a session accepts one more message with QoS 1 or 2.
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
