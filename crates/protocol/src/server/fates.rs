//! What became of the messages that a session held for its client: dropped ones are counted by
//! cause, and whoever wants to know is told of each that was sent, acknowledged or dropped.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::DropReason;
use super::held::Held;
use crate::Message;

/// What became of one message.
#[derive(Clone, Debug)]
pub struct MessageFate {
    /// The message.
    pub message: Arc<Message>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// What became of it.
    pub fate: Fate,
}

/// What can become of a message that a session held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was sent, maybe again.
    Sent,
    /// PUBACK or PUBREC came for it.
    Acknowledged,
    /// It was given up.
    Dropped(DropReason),
}

/// Why a message that the session held is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    Expired,
    TooLarge,
    MadeRoom,
    TooOld,
    OutsideMount,
    NotAllowed,
}

impl Cause {
    const fn reason(self) -> DropReason {
        match self {
            Self::Expired => DropReason::Expired,
            Self::TooLarge => DropReason::TooLarge,
            Self::MadeRoom => DropReason::QueueDropped,
            Self::TooOld => DropReason::QueueAge,
            Self::OutsideMount => DropReason::OutsideMount,
            Self::NotAllowed => DropReason::NotAllowed,
        }
    }
}

/// What became of messages since the node asked last; no memory while there is nothing to tell.
#[derive(Debug, Default)]
pub(super) struct Fates(Option<Box<Known>>);

#[derive(Debug, Default)]
struct Known {
    dropped: ByCause,
    /// None if nobody wants to know.
    each: Option<Vec<MessageFate>>,
}

#[derive(Debug, Default)]
struct ByCause {
    expired: u32,
    too_large: u32,
    made_room: u32,
    too_old: u32,
    outside_mount: u32,
    not_allowed: u32,
}

impl Fates {
    /// Each message is told until the next call of [`Self::take_each`].
    pub(super) fn tell_each(&mut self) {
        let known = self.0.get_or_insert_with(Box::default);
        known.each.get_or_insert_default();
    }

    /// Somebody wants to know of each message.
    #[inline]
    pub(super) fn tells_each(&self) -> bool {
        self.0.as_ref().is_some_and(|known| known.each.is_some())
    }

    /// What was told since the last call.
    pub(super) fn take_each(&mut self) -> Vec<MessageFate> {
        let known = self.0.as_mut();
        known
            .and_then(|known| known.each.take())
            .unwrap_or_default()
    }

    #[inline]
    pub(super) fn sent(&mut self, held: &Held) {
        self.tell(held, Fate::Sent);
    }

    #[inline]
    pub(super) fn acknowledged(&mut self, held: &Held) {
        self.tell(held, Fate::Acknowledged);
    }

    #[inline]
    fn tell(&mut self, held: &Held, fate: Fate) {
        let known = self.0.as_mut();
        if let Some(each) = known.and_then(|known| known.each.as_mut()) {
            each.push(MessageFate {
                message: Arc::clone(&held.message),
                qos: held.qos,
                retain: held.retain,
                fate,
            });
        }
    }

    /// One message was dropped.
    pub(super) fn dropped(&mut self, held: &Held, cause: Cause) {
        self.tell(held, Fate::Dropped(cause.reason()));
        let dropped = &mut self.0.get_or_insert_with(Box::default).dropped;
        let count = match cause {
            Cause::Expired => &mut dropped.expired,
            Cause::TooLarge => &mut dropped.too_large,
            Cause::MadeRoom => &mut dropped.made_room,
            Cause::TooOld => &mut dropped.too_old,
            Cause::OutsideMount => &mut dropped.outside_mount,
            Cause::NotAllowed => &mut dropped.not_allowed,
        };
        *count += 1;
    }

    /// Those dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        let known = match &mut self.0 {
            Some(known) if known.each.is_some() => Some(core::mem::take(&mut known.dropped)),
            all => all.take().map(|known| known.dropped),
        };
        known
            .into_iter()
            .flat_map(|dropped| dropped.by_reason())
            .filter(|(_, count)| *count > 0)
    }
}

impl ByCause {
    fn by_reason(&self) -> [(DropReason, u32); 6] {
        [
            (DropReason::Expired, self.expired),
            (DropReason::TooLarge, self.too_large),
            (DropReason::QueueDropped, self.made_room),
            (DropReason::QueueAge, self.too_old),
            (DropReason::OutsideMount, self.outside_mount),
            (DropReason::NotAllowed, self.not_allowed),
        ]
    }
}
