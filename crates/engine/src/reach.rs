//! Where a message comes from, whom it is for, and what became of it.

use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::Time;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};

use crate::access::Verdict;
use crate::ids::Slot;
use crate::mail::PublishDelivery;

/// Whether a message may be refused because queues are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// By all that are: nobody was asked, or the publisher has waited for as long as it may.
    NotAsked,
    /// Not by those who hold its publisher back: they had room just now.
    Given,
    /// By none: it was acknowledged before.
    Acknowledged,
}

/// What is known of a PUBLISH that is handled.
#[derive(Clone, Copy, Debug)]
pub struct Cleared {
    /// Whether it may be refused because queues are full.
    pub clearance: Clearance,
    /// When it came, if it has waited since.
    pub came_at: Option<Time>,
    /// What the rules say of it.
    pub verdict: Verdict,
}

impl Cleared {
    /// Nobody was asked.
    pub const fn unasked(verdict: Verdict) -> Self {
        Self {
            clearance: Clearance::NotAsked,
            came_at: None,
            verdict,
        }
    }
}

/// A client that publishes.
#[derive(Clone, Copy, Debug)]
pub struct Publisher {
    /// Its session.
    pub slot: Slot,
    /// Its version and the quality of service have a way to say that a message is refused.
    pub can_be_told: bool,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A publisher of this worker, who is told what becomes of it.
    Publisher(Clearance),
    /// Another worker.
    Worker(&'a PublishDelivery),
    /// The same, and nobody here has memory for what its publisher was told is taken.
    LastResort(&'a PublishDelivery),
}

impl<'a> Source<'a> {
    pub fn delivery(self) -> Option<&'a PublishDelivery> {
        match self {
            Self::Publisher(_) => None,
            Self::Worker(delivery) | Self::LastResort(delivery) => Some(delivery),
        }
    }
}

/// What became of a message on this worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach<'a> {
    pub(super) source: Source<'a>,
    /// Sessions, groups and workers it was for.
    pub(super) matched: u32,
    /// Of those, how many could not take it because their queue is full.
    pub(super) refused: u32,
}

impl<'a> Reach<'a> {
    pub(super) const fn of(source: Source<'a>) -> Self {
        Self {
            source,
            matched: 0,
            refused: 0,
        }
    }

    pub(super) fn add(&mut self, delivered: Delivered) {
        self.matched += 1;
        self.refused += u32::from(matches!(
            delivered,
            Delivered::Dropped(DropReason::QueueFull | DropReason::MemoryShort)
        ));
    }

    /// It was for one more, which took it.
    pub(super) const fn take_one(&mut self) {
        self.matched += 1;
    }

    /// So many more it was for, none of which could take it.
    pub(super) const fn refuse(&mut self, count: u32) {
        self.matched += count;
        self.refused += count;
    }

    /// Somebody took it.
    pub(super) const fn is_taken(self) -> bool {
        self.refused < self.matched
    }

    /// The reason code for the publisher.
    pub(super) const fn outcome(self) -> ReasonCode {
        if self.matched == 0 {
            ReasonCode::NoMatchingSubscribers
        } else if self.refused == self.matched {
            ReasonCode::QuotaExceeded
        } else {
            ReasonCode::Success
        }
    }
}

/// One session that several filters matched, while they are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    /// Its session.
    pub(super) slot: Slot,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) identifier: u32,
    /// Its publisher was told that this session takes it.
    pub(super) is_acknowledged: bool,
    /// It is taken however short memory is.
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
