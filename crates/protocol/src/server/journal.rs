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
use super::{DeliveryOptions, GroupId};
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

/// The steps of a session that were not taken yet, and the places of its deliveries. Nothing in a
/// session that was never durable.
#[derive(Debug, Default)]
pub struct SessionJournal(Option<Box<Notes>>);

#[derive(Debug)]
struct Notes {
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

impl SessionJournal {
    /// On, behind the last place that was given and the last that was sent.
    pub(super) fn behind_places(seq_last: Seq, sent_last: Seq) -> Self {
        Self(Some(Box::new(Notes::behind(seq_last, sent_last))))
    }

    /// Steps are noted from here on, or no longer; what was noted and not taken is forgotten with
    /// the latter.
    ///
    /// To be turned on before the first delivery: what the session holds at that moment is in no
    /// step. It is turned off when the session is resumed with an expiry of 0.
    pub fn set_on(&mut self, is_on: bool) {
        if is_on {
            let new = || Box::new(Notes::behind(UNNOTED, UNNOTED));
            self.0.get_or_insert_with(new).is_on = true;
        } else if let Some(notes) = &mut self.0 {
            notes.is_on = false;
            notes.steps = None;
        }
    }

    /// Steps are noted.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|notes| notes.is_on)
    }

    /// There are steps to take.
    #[cfg(test)]
    pub(super) fn has_steps(&self) -> bool {
        let steps = self.0.as_ref().and_then(|notes| notes.steps.as_ref());
        steps.is_some_and(|steps| !steps.is_empty())
    }

    /// The steps since the last call, in order; the caller may empty the list and lend it again.
    /// None if nothing was noted; an empty list only if that was lent.
    pub fn take_steps(&mut self) -> Option<Box<Vec<Step>>> {
        self.0.as_mut()?.steps.take()
    }

    /// There is a list to note steps in, or steps in it.
    #[must_use]
    pub fn has_list(&self) -> bool {
        self.0.as_ref().is_some_and(|notes| notes.steps.is_some())
    }

    /// A list to note the next steps in, so that steady traffic allocates nothing. It is emptied,
    /// and let go if the session has one or is not durable.
    pub fn lend_steps(&mut self, mut empty: Box<Vec<Step>>) {
        if let Some(notes) = &mut self.0
            && notes.is_on
            && notes.steps.is_none()
        {
            empty.clear();
            notes.steps = Some(empty);
        }
    }

    /// Gives a delivery its place; [`UNNOTED`] with `QoS` 0 and in a session that is not durable.
    pub(super) fn note_queued(
        &mut self,
        message: &Arc<Message>,
        options: &DeliveryOptions<'_>,
    ) -> Seq {
        let Some(notes) = self.0.as_mut().filter(|notes| notes.is_on) else {
            return UNNOTED;
        };
        if options.qos == QoS::AtMostOnce {
            return UNNOTED;
        }
        notes.seq_last += 1;
        let seq = notes.seq_last;
        notes.push(Step::Queued {
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
        let sent_last = self.0.as_ref().map(|notes| notes.sent_last);
        if sent_last.is_some_and(|sent_last| held.seq < sent_last) && self.is_on() {
            let overtaken = held.seq;
            held.seq = self.note_queued(&held.message, &held.options());
            self.note_removed(overtaken);
        }
        if let Some(notes) = &mut self.0 {
            notes.sent_last = held.seq;
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
        if let Some(notes) = &mut self.0
            && notes.is_on
        {
            notes.push(step);
        }
    }
}

impl Notes {
    fn behind(seq_last: Seq, sent_last: Seq) -> Self {
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
