//! Outcomes of the messages that a session held for its client: dropped ones are counted by cause,
//! and on request each message that is sent, acknowledged or dropped is recorded.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use super::DropReason;
use super::held::Held;
use crate::Message;

/// An event in the delivery of one message.
#[derive(Clone, Debug)]
pub struct MessageEvent {
    /// The message.
    pub message: Arc<Message>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// The event.
    pub event: DeliveryEvent,
}

/// A kind of event in the delivery of a message that a session held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// The message was sent, possibly not for the first time.
    Sent {
        /// None if its quality of service has none.
        packet_id: Option<PacketId>,
        /// Length of the output up to its end.
        end: usize,
    },
    /// PUBACK or PUBREC arrived for the message.
    Acknowledged,
    /// The message was dropped.
    Dropped(DropReason),
}

/// Cause for dropping a message that the session held.
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

/// Dropped messages that are recorded with their topic until the node takes them; more at once, as
/// when a long queue expires, are only counted.
const NAMED_MAX: usize = 64;

/// Events since the last call of the node; without allocated memory while there are none.
#[derive(Debug, Default)]
pub(super) struct DeliveryEvents(Option<Box<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    dropped: ByCause,
    /// The first dropped messages.
    named: Vec<(DropReason, Arc<Message>)>,
    /// `None` if single events are not requested.
    each: Option<Vec<MessageEvent>>,
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

impl DeliveryEvents {
    /// Records each event until the next call of [`Self::take_each`].
    pub(super) fn record_each(&mut self) {
        let recorded = self.0.get_or_insert_with(Box::default);
        recorded.each.get_or_insert_default();
    }

    /// Whether each event is recorded.
    #[inline]
    pub(super) fn records_each(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|recorded| recorded.each.is_some())
    }

    /// Removes and returns the events since the last call.
    pub(super) fn take_each(&mut self) -> Vec<MessageEvent> {
        let recorded = self.0.as_mut();
        recorded
            .and_then(|recorded| recorded.each.take())
            .unwrap_or_default()
    }

    #[inline]
    pub(super) fn sent(&mut self, held: &Held, packet_id: Option<PacketId>, end: usize) {
        self.record(held, DeliveryEvent::Sent { packet_id, end });
    }

    #[inline]
    pub(super) fn acknowledged(&mut self, held: &Held) {
        self.record(held, DeliveryEvent::Acknowledged);
    }

    #[inline]
    fn record(&mut self, held: &Held, event: DeliveryEvent) {
        if self.0.is_some() {
            self.push(held, event);
        }
    }

    #[cold]
    #[inline(never)]
    fn push(&mut self, held: &Held, event: DeliveryEvent) {
        let recorded = self.0.as_mut();
        if let Some(each) = recorded.and_then(|recorded| recorded.each.as_mut()) {
            each.push(MessageEvent {
                message: Arc::clone(&held.message),
                qos: held.qos,
                retain: held.retain,
                event,
            });
        }
    }

    /// Counts one dropped message.
    pub(super) fn dropped(&mut self, held: &Held, cause: Cause) {
        self.record(held, DeliveryEvent::Dropped(cause.reason()));
        let recorded = self.0.get_or_insert_with(Box::default);
        if recorded.named.len() < NAMED_MAX {
            let named = (cause.reason(), Arc::clone(&held.message));
            recorded.named.push(named);
        }
        let dropped = &mut recorded.dropped;
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

    /// Whether anything was recorded.
    #[inline]
    pub(super) fn are_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Removes and returns some of the messages dropped since the last call; to be called before
    /// [`Self::take_dropped`], which counts them too.
    pub(super) fn take_named(&mut self) -> Vec<(DropReason, Arc<Message>)> {
        let recorded = self.0.as_mut();
        recorded.map_or_else(Vec::new, |recorded| core::mem::take(&mut recorded.named))
    }

    /// Removes and returns the number of messages dropped since the last call, by reason.
    pub(super) fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        let recorded = match &mut self.0 {
            Some(recorded) if recorded.each.is_some() => {
                recorded.named.clear();
                Some(core::mem::take(&mut recorded.dropped))
            }
            all => all.take().map(|recorded| recorded.dropped),
        };
        recorded
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
