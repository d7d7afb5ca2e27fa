//! Messages that are refused to their publisher: why, whether it is told, and how many.
//!
//! A refused message is not a dropped one: a publisher that is told still has it. Nothing here is
//! called for a message that is accepted.

use thrum_codec::ReasonCode;

use crate::core::Core;
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::reach::Publisher;
use crate::undelivered::CountedMessage;

/// Why a PUBLISH is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublishRefusal {
    /// The rules or the gatekeeper deny it.
    NotAllowed,
    /// The topic is reserved for the broker.
    ReservedTopic,
    /// The topic is too long behind the mount point of the listener.
    TopicTooLong,
    /// The payload is longer than `limits.max_payload`.
    PayloadTooLarge,
    /// No receiver has room: the queues of all of them are full.
    QueuesFull,
    /// Memory is short, and no receiver takes the message; or it is full, and the message was to be
    /// retained.
    MemoryShort,
    /// A limit of retained messages is reached.
    RetainedLimit,
    /// The disk of the broker is full.
    DiskFull,
    /// A sink is full that refuses publishers, or sinks that are full are the only receivers.
    SinkFull,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Its reason.
    pub reason: PublishRefusal,
    /// The publisher was told: by a reason code, or by the end of its connection.
    pub is_told: bool,
}

impl Refusal {
    /// A refusal that a client may be told of by a reason code.
    pub(super) const fn to(publisher: Publisher, reason: PublishRefusal) -> Self {
        Self {
            reason,
            is_told: publisher.has_reason_code,
        }
    }

    /// A refusal that ends the connection, unless there is a reason code.
    pub(super) const fn told(reason: PublishRefusal) -> Self {
        Self {
            reason,
            is_told: true,
        }
    }
}

impl PublishRefusal {
    /// The reasons.
    pub const ALL: [Self; 9] = [
        Self::NotAllowed,
        Self::ReservedTopic,
        Self::TopicTooLong,
        Self::PayloadTooLarge,
        Self::QueuesFull,
        Self::MemoryShort,
        Self::RetainedLimit,
        Self::DiskFull,
        Self::SinkFull,
    ];

    /// Its name in `$SYS/broker/publish/messages/refused/…`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not_allowed",
            Self::ReservedTopic => "reserved_topic",
            Self::TopicTooLong => "topic_too_long",
            Self::PayloadTooLarge => "payload_too_large",
            Self::QueuesFull => "queues_full",
            Self::MemoryShort => "memory_short",
            Self::RetainedLimit => "retained_limit",
            Self::DiskFull => "disk_full",
            Self::SinkFull => "sink_full",
        }
    }

    /// Its counter.
    pub const fn counter(self) -> Counter {
        match self {
            Self::NotAllowed => Counter::RefusedNotAllowed,
            Self::ReservedTopic => Counter::RefusedReservedTopic,
            Self::TopicTooLong => Counter::RefusedTopicTooLong,
            Self::PayloadTooLarge => Counter::RefusedPayloadTooLarge,
            Self::QueuesFull => Counter::RefusedQueuesFull,
            Self::MemoryShort => Counter::RefusedMemoryShort,
            Self::RetainedLimit => Counter::RefusedRetainedLimit,
            Self::DiskFull => Counter::RefusedDiskFull,
            Self::SinkFull => Counter::RefusedSinkFull,
        }
    }

    /// Whether the message itself is the cause, so that only its publisher can cure it; or else the
    /// broker or its receivers lack room.
    pub const fn is_of_publisher(self) -> bool {
        match self {
            Self::NotAllowed | Self::ReservedTopic | Self::TopicTooLong | Self::PayloadTooLarge => {
                true
            }
            Self::QueuesFull
            | Self::MemoryShort
            | Self::RetainedLimit
            | Self::DiskFull
            | Self::SinkFull => false,
        }
    }

    /// The reason code of the answer, if there is one.
    pub const fn code(self) -> ReasonCode {
        match self {
            Self::NotAllowed | Self::ReservedTopic | Self::TopicTooLong => {
                ReasonCode::NotAuthorized
            }
            Self::PayloadTooLarge
            | Self::QueuesFull
            | Self::MemoryShort
            | Self::RetainedLimit
            | Self::DiskFull
            | Self::SinkFull => ReasonCode::QuotaExceeded,
        }
    }
}

/// Counts a PUBLISH that was refused: for the node, for its client, and by its topic.
#[cold]
pub(super) fn count_refused(core: &mut Core, slot: Slot, topic: &str, refusal: Refusal) {
    let Refusal { reason, is_told } = refusal;
    let now = core.turn.now;
    let row = core.row();
    row.add(reason.counter(), 1);
    if !is_told {
        row.add(Counter::RefusedUntold, 1);
    }
    let client = &mut core.sessions[slot];
    client.count_refused(reason);
    let message = CountedMessage {
        reason: refusal,
        client: client.session.client_id(),
        topic: Some(topic),
        count: 1,
    };
    core.undelivered.refused.record(message, now);
}
