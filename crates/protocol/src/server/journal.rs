//! Journal of a durable session: one step for each change that must survive a crash.
//!
//! Invariant: while a session is durable, applying its steps in order to its earlier state yields
//! its current state, in everything that [`Stored`](super::Stored) contains.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use super::held::Held;
use super::{DeliveryOptions, GroupId};
use crate::Message;

/// Sequence number of a delivery in its session: from 1, never reused in the session.
pub type Seq = u64;

/// The [`Seq`] of a delivery that is not recorded in the journal.
pub(super) const UNRECORDED: Seq = 0;

/// The acknowledgement that a delivery expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    /// `QoS` 1.
    PubAck,
    /// `QoS` 2, first step.
    PubRec,
    /// `QoS` 2, second step: the client has the message.
    PubComp,
}

impl Awaiting {
    /// The first acknowledgement of a message; `None` with `QoS` 0.
    pub(super) fn first(qos: QoS) -> Option<Self> {
        match qos {
            QoS::AtMostOnce => None,
            QoS::AtLeastOnce => Some(Self::PubAck),
            QoS::ExactlyOnce => Some(Self::PubRec),
        }
    }
}

/// A change of a durable session.
#[derive(Clone, Debug)]
pub enum Step {
    /// A message is to be delivered: it was queued, or sent at once, in which case [`Step::Sent`]
    /// follows.
    Queued {
        /// Its sequence number.
        seq: Seq,
        /// The message.
        message: Arc<Message>,
        /// Quality of service of the delivery, 1 or 2.
        qos: QoS,
        /// Retain flag of the delivery.
        retain: bool,
        /// Subscription identifiers.
        identifiers: Box<[u32]>,
        /// Shared subscription that the session was chosen for.
        group: Option<GroupId>,
    },
    /// A delivery was sent, or its PUBREC arrived.
    Sent {
        /// Its sequence number.
        seq: Seq,
        /// The packet identifier of the transmission; it does not change.
        packet_id: PacketId,
        /// The acknowledgement that the delivery expects next.
        awaiting: Awaiting,
    },
    /// A delivery is complete: acknowledged, expired or dropped.
    Removed {
        /// Its sequence number.
        seq: Seq,
    },
    /// A `QoS` 2 message of the client was accepted.
    Received {
        /// Packet identifier of the PUBLISH.
        packet_id: PacketId,
    },
    /// PUBREL arrived for a `QoS` 2 message, or the message was refused.
    ReceivedRemoved {
        /// Packet identifier of the PUBLISH.
        packet_id: PacketId,
    },
    /// The will was taken for publication, or deleted.
    /// [`Session::connect`](super::Session::connect) replaces the will (possibly with none) without
    /// this step.
    WillRemoved,
}

/// The steps of a session that the node has not taken yet, and the sequence numbers of its
/// deliveries. Empty in a session that was never durable.
#[derive(Debug, Default)]
pub struct SessionJournal(Option<Box<JournalState>>);

#[derive(Debug)]
struct JournalState {
    /// Off in a session that was durable and will end with its connection; it keeps the last
    /// sequence number, which must not be reused.
    is_on: bool,
    /// The last assigned sequence number.
    seq_last: Seq,
    /// The highest sequence number of a delivery that was sent.
    sent_last: Seq,
    #[expect(
        clippy::box_collection,
        reason = "the caller takes the list and returns it"
    )]
    steps: Option<Box<Vec<Step>>>,
}

impl SessionJournal {
    /// Creates an active journal; sequence numbers continue after the last assigned and the last
    /// sent one.
    pub(super) fn continue_after(seq_last: Seq, sent_last: Seq) -> Self {
        Self(Some(Box::new(JournalState::after(seq_last, sent_last))))
    }

    /// Starts or stops the recording of steps; stopping discards the steps that were not taken.
    ///
    /// Start it before the first delivery, because the current contents of the session are not
    /// recorded as steps. It is stopped when the session is resumed with an expiry of 0.
    pub fn set_on(&mut self, is_on: bool) {
        if is_on {
            let new = || Box::new(JournalState::after(UNRECORDED, UNRECORDED));
            self.0.get_or_insert_with(new).is_on = true;
        } else if let Some(state) = &mut self.0 {
            state.is_on = false;
            state.steps = None;
        }
    }

    /// Whether steps are recorded.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.is_on)
    }

    /// Whether there are steps to take.
    #[cfg(test)]
    pub(super) fn has_steps(&self) -> bool {
        let steps = self.0.as_ref().and_then(|state| state.steps.as_ref());
        steps.is_some_and(|steps| !steps.is_empty())
    }

    /// Removes and returns the steps since the last call, in order; the caller may return the list
    /// with [`Self::reuse_list`]. `None` if no step was recorded; an empty list only if one was
    /// returned before.
    pub fn take_steps(&mut self) -> Option<Box<Vec<Step>>> {
        self.0.as_mut()?.steps.take()
    }

    /// Whether the journal has a list, empty or with steps.
    #[must_use]
    pub fn has_list(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.steps.is_some())
    }

    /// Returns a list for the next steps, so that steady traffic allocates no memory. It is
    /// emptied, and freed if the journal has a list or is off.
    pub fn reuse_list(&mut self, mut empty: Box<Vec<Step>>) {
        if let Some(state) = &mut self.0
            && state.is_on
            && state.steps.is_none()
        {
            empty.clear();
            state.steps = Some(empty);
        }
    }

    /// Assigns a sequence number to a delivery and records it; [`UNRECORDED`] with `QoS` 0 and in a
    /// session that is not durable.
    pub(super) fn record_queued(
        &mut self,
        message: &Arc<Message>,
        options: &DeliveryOptions<'_>,
    ) -> Seq {
        let Some(state) = self.0.as_mut().filter(|state| state.is_on) else {
            return UNRECORDED;
        };
        if options.qos == QoS::AtMostOnce {
            return UNRECORDED;
        }
        state.seq_last += 1;
        let seq = state.seq_last;
        state.push(Step::Queued {
            seq,
            message: Arc::clone(message),
            qos: options.qos,
            retain: options.retain,
            identifiers: options.identifiers.into(),
            group: options.group,
        });
        seq
    }

    /// Records the first transmission of a delivery. If a later one with a higher priority was sent
    /// before it, it gets a new sequence number, so that sequence numbers give the order of
    /// retransmission.
    #[inline]
    pub(super) fn record_first_sent(&mut self, held: &mut Held, packet_id: PacketId) {
        if held.seq == UNRECORDED {
            return;
        }
        let sent_last = self.0.as_ref().map(|state| state.sent_last);
        if sent_last.is_some_and(|sent_last| held.seq < sent_last) && self.is_on() {
            let overtaken = held.seq;
            held.seq = self.record_queued(&held.message, &held.options());
            self.record_removed(overtaken);
        }
        if let Some(state) = &mut self.0 {
            state.sent_last = held.seq;
        }
        if let Some(awaiting) = Awaiting::first(held.qos) {
            self.record_sent(held.seq, packet_id, awaiting);
        }
    }

    #[inline]
    pub(super) fn record_sent(&mut self, seq: Seq, packet_id: PacketId, awaiting: Awaiting) {
        if seq != UNRECORDED {
            self.record(Step::Sent {
                seq,
                packet_id,
                awaiting,
            });
        }
    }

    #[inline]
    pub(super) fn record_removed(&mut self, seq: Seq) {
        if seq != UNRECORDED {
            self.record(Step::Removed { seq });
        }
    }

    #[inline]
    pub(super) fn record(&mut self, step: Step) {
        if let Some(state) = &mut self.0
            && state.is_on
        {
            state.push(step);
        }
    }
}

impl JournalState {
    fn after(seq_last: Seq, sent_last: Seq) -> Self {
        Self {
            is_on: true,
            seq_last,
            sent_last,
            steps: None,
        }
    }

    #[inline(never)]
    fn push(&mut self, step: Step) {
        self.steps.get_or_insert_default().push(step);
    }
}
