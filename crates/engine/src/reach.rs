//! The source of a message, its matches, and the outcome of its routing.

use thrum_codec::{QoS, ReasonCode};
use thrum_protection::MemoryLevel;
use thrum_protocol::Time;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};

use crate::access::Verdict;
use crate::ids::Slot;
use crate::mail::PublishDelivery;
use crate::refusals::PublishRefusal;

/// Which receivers may refuse a message because their queues are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// All of them: room was not checked, or the publisher has waited until its deadline.
    NotAsked,
    /// Only receivers that do not make publishers wait: the others had room when it was checked.
    Given,
    /// None of them: the message was acknowledged before.
    Acknowledged,
}

/// Result of the checks of a PUBLISH before it is handled.
#[derive(Clone, Copy, Debug)]
pub struct Cleared {
    /// Which receivers may refuse the message because their queues are full.
    pub clearance: Clearance,
    /// Time of arrival; none if the PUBLISH has not waited.
    pub arrived_at: Option<Time>,
    /// The decision of the rules about the PUBLISH.
    pub verdict: Verdict,
}

impl Cleared {
    /// Creates the result for a packet whose receivers were not checked.
    pub const fn unasked(verdict: Verdict) -> Self {
        Self {
            clearance: Clearance::NotAsked,
            arrived_at: None,
            verdict,
        }
    }
}

/// A client that publishes.
#[derive(Clone, Copy, Debug)]
pub struct Publisher {
    /// The session of the client.
    pub slot: Slot,
    /// The protocol version and the quality of service allow an answer with a reason code.
    pub has_reason_code: bool,
}

/// The source of a message.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A publisher of this worker, which is told the outcome.
    Publisher(Clearance),
    /// The node, for a will, an event or a `$SYS` message. It cannot be refused, so full sinks drop
    /// its messages.
    Node,
    /// Another worker, which has sent the message.
    Worker(&'a PublishDelivery),
    /// Another worker, whose publisher was told that the message is accepted, while no session of
    /// this worker has memory for it.
    WorkerInsists(&'a PublishDelivery),
}

impl<'a> Source<'a> {
    /// The mail of the other worker; none for a publisher of this worker.
    pub fn delivery(self) -> Option<&'a PublishDelivery> {
        match self {
            Self::Publisher(_) | Self::Node => None,
            Self::Worker(delivery) | Self::WorkerInsists(delivery) => Some(delivery),
        }
    }

    /// Whether full queues may refuse it.
    pub(super) const fn clearance(self) -> Clearance {
        match self {
            Self::Publisher(clearance) => clearance,
            Self::Node | Self::Worker(_) | Self::WorkerInsists(_) => Clearance::NotAsked,
        }
    }
}

/// Outcome of the routing of a message by this worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach<'a> {
    pub(super) source: Source<'a>,
    /// Number of sessions, groups, workers and sinks that the message was for.
    pub(super) matched: u32,
    /// Number of those that refused it because their queue is full or memory is short.
    pub(super) refused: u32,
    /// Of these, the sinks.
    refused_by_sinks: u32,
}

impl<'a> Reach<'a> {
    pub(super) const fn of(source: Source<'a>) -> Self {
        Self {
            source,
            matched: 0,
            refused: 0,
            refused_by_sinks: 0,
        }
    }

    pub(super) fn add(&mut self, delivered: Delivered) {
        self.matched += 1;
        self.refused += u32::from(matches!(
            delivered,
            Delivered::Dropped(DropReason::QueueFull | DropReason::MemoryShort)
        ));
    }

    /// Counts one receiver that accepted the message.
    pub(super) const fn take_one(&mut self) {
        self.matched += 1;
    }

    /// Counts receivers that refused the message, no sinks among them.
    pub(super) const fn refuse(&mut self, count: u32) {
        self.matched += count;
        self.refused += count;
    }

    /// Counts a sink that refused the message.
    pub(super) const fn refuse_by_sink(&mut self) {
        self.refuse(1);
        self.refused_by_sinks += 1;
    }

    /// Whether at least one receiver accepted the message.
    pub(super) const fn is_taken(self) -> bool {
        self.refused < self.matched
    }

    /// The reason code for the publisher.
    ///
    /// # Errors
    /// No receiver has accepted the message, for that reason.
    pub(super) fn outcome(self, level: MemoryLevel) -> Result<ReasonCode, PublishRefusal> {
        if self.matched == 0 {
            Ok(ReasonCode::NoMatchingSubscribers)
        } else if self.refused < self.matched {
            Ok(ReasonCode::Success)
        } else {
            Err(self.refusal(level))
        }
    }

    /// Why no receiver has accepted the message.
    #[cold]
    fn refusal(self, level: MemoryLevel) -> PublishRefusal {
        if self.refused_by_sinks == self.refused {
            PublishRefusal::SinkFull
        } else if level >= MemoryLevel::Short {
            PublishRefusal::MemoryShort
        } else {
            PublishRefusal::QueuesFull
        }
    }
}

/// A session that a message matched, with the options of the delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    /// The session that matched.
    pub(super) slot: Slot,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) identifier: u32,
    /// The publisher was told that this session accepts the message.
    pub(super) is_acknowledged: bool,
    /// The session accepts the message regardless of the memory level.
    pub(super) is_promised: bool,
}

impl Match {
    pub(super) fn options(self, identifiers: &[u32]) -> DeliveryOptions<'_> {
        DeliveryOptions {
            qos: self.qos,
            retain: self.retain,
            identifiers,
            group: None,
            is_acknowledged: self.is_acknowledged,
        }
    }
}
