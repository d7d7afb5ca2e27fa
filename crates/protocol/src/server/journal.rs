//! What a durable session tells the node to write down: one step for each change that must survive
//! a crash.
//!
//! Invariant: while a session is durable, applying its steps in their order to what it was before
//! gives what it is now, in everything that [`Stored`](super::Stored) can say.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use super::held::Held;
use super::{DeliveryOptions, GroupId, Session};
use crate::Message;

/// Place of a delivery in its session: from 1, never used again in the session.
pub type Seq = u64;

/// In place of a [`Seq`]: the delivery is in no journal.
pub(super) const UNNOTED: Seq = 0;

/// What the client has to answer next to a delivery.
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
    /// The first answer to a message; none to `QoS` 0.
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
    /// A message is to be delivered: it waits, or was sent at once, and then [`Step::Sent`]
    /// follows.
    Queued {
        /// Its place.
        seq: Seq,
        /// What.
        message: Arc<Message>,
        /// Quality of service of the delivery, 1 or 2.
        qos: QoS,
        /// Retain flag of the delivery.
        retain: bool,
        /// Subscription identifiers.
        identifiers: Box<[u32]>,
        /// Shared group it was chosen for.
        group: Option<GroupId>,
    },
    /// A delivery was sent, or went from PUBREC to PUBCOMP.
    Sent {
        /// Which one.
        seq: Seq,
        /// The identifier it was sent with; it stays.
        packet_id: PacketId,
        /// What the client has to answer next.
        awaiting: Awaiting,
    },
    /// A delivery is over: acknowledged, expired or dropped.
    Removed {
        /// Which one.
        seq: Seq,
    },
    /// A `QoS` 2 message of the client was taken over.
    Received {
        /// Of its PUBLISH.
        packet_id: PacketId,
    },
    /// PUBREL came for it, or it was refused.
    ReceivedRemoved {
        /// Of the PUBLISH.
        packet_id: PacketId,
    },
    /// The will was taken to be published, or withdrawn. [`Session::connect`] puts another one (or
    /// none) in its place without this step.
    WillRemoved,
}

/// The steps of a session that were not taken yet.
#[derive(Debug)]
pub(super) struct Journal {
    /// Off in a session that was durable and is to end with its connection; it keeps the last
    /// place, as none may be used twice.
    is_on: bool,
    /// The last place given.
    seq_last: Seq,
    /// The highest place of a delivery that was sent.
    sent_last: Seq,
    #[expect(clippy::box_collection, reason = "it goes to the caller and back")]
    steps: Option<Box<Vec<Step>>>,
}

impl Journal {
    /// On, behind the last place that was given and the last that was sent.
    pub(super) fn behind(seq_last: Seq, sent_last: Seq) -> Self {
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

impl Session {
    /// Steps are noted from here on, or no longer; what was noted and not taken is forgotten with
    /// the latter.
    ///
    /// To be turned on before the first delivery: what the session holds at that moment is in no
    /// step. It is turned off when the session is resumed with an expiry of 0.
    pub fn set_durable(&mut self, durable: bool) {
        if durable {
            let journal = self
                .journal
                .get_or_insert_with(|| Box::new(Journal::behind(UNNOTED, UNNOTED)));
            journal.is_on = true;
        } else if let Some(journal) = &mut self.journal {
            journal.is_on = false;
            journal.steps = None;
        }
    }

    /// Steps are noted.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_on)
    }

    /// There are steps to take.
    #[cfg(test)]
    pub(super) fn has_steps(&self) -> bool {
        let steps = self
            .journal
            .as_ref()
            .and_then(|journal| journal.steps.as_ref());
        steps.is_some_and(|steps| !steps.is_empty())
    }

    /// The steps since the last call, in order; the caller may empty the list and lend it again.
    /// None if nothing was noted; an empty list only if that was lent.
    pub fn take_steps(&mut self) -> Option<Box<Vec<Step>>> {
        self.journal.as_mut()?.steps.take()
    }

    /// A list to note the next steps in, so that steady traffic allocates nothing. It is emptied,
    /// and let go if the session has one or is not durable.
    pub fn lend_steps(&mut self, mut empty: Box<Vec<Step>>) {
        if let Some(journal) = &mut self.journal
            && journal.is_on
            && journal.steps.is_none()
        {
            empty.clear();
            journal.steps = Some(empty);
        }
    }

    /// The last packet identifier that was given to a delivery, 0 before the first: a hint for
    /// [`Stored::last_packet_id`](super::Stored::last_packet_id).
    pub fn last_packet_id(&self) -> u16 {
        self.packet_ids.last()
    }

    /// Gives a delivery its place; [`UNNOTED`] with `QoS` 0 and in a session that is not durable.
    pub(super) fn note_queued(
        &mut self,
        message: &Arc<Message>,
        options: &DeliveryOptions<'_>,
    ) -> Seq {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.is_on) else {
            return UNNOTED;
        };
        if options.qos == QoS::AtMostOnce {
            return UNNOTED;
        }
        journal.seq_last += 1;
        let seq = journal.seq_last;
        journal.push(Step::Queued {
            seq,
            message: Arc::clone(message),
            qos: options.qos,
            retain: options.retain,
            identifiers: options.identifiers.into(),
            group: options.group,
        });
        seq
    }

    /// A delivery was sent for the first time. If a later one of a higher priority was sent before
    /// it, it gets a new place, so that places tell in which order to send again.
    #[inline]
    pub(super) fn note_first_sent(&mut self, held: &mut Held, packet_id: PacketId) {
        if held.seq == UNNOTED {
            return;
        }
        let sent_last = self.journal.as_ref().map(|journal| journal.sent_last);
        if sent_last.is_some_and(|sent_last| held.seq < sent_last) && self.is_durable() {
            let overtaken = held.seq;
            held.seq = self.note_queued(&held.message, &held.options());
            self.note_removed(overtaken);
        }
        if let Some(journal) = &mut self.journal {
            journal.sent_last = held.seq;
        }
        if let Some(awaiting) = Awaiting::first(held.qos) {
            self.note_sent(held.seq, packet_id, awaiting);
        }
    }

    #[inline]
    pub(super) fn note_sent(&mut self, seq: Seq, packet_id: PacketId, awaiting: Awaiting) {
        if seq != UNNOTED {
            self.note(Step::Sent {
                seq,
                packet_id,
                awaiting,
            });
        }
    }

    #[inline]
    pub(super) fn note_removed(&mut self, seq: Seq) {
        if seq != UNNOTED {
            self.note(Step::Removed { seq });
        }
    }

    #[inline]
    pub(super) fn note(&mut self, step: Step) {
        if let Some(journal) = &mut self.journal
            && journal.is_on
        {
            journal.push(step);
        }
    }
}
