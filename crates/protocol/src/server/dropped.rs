//! Messages that a session held and dropped, by cause.

use alloc::boxed::Box;

use super::DropReason;

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

/// How many were dropped since the node asked last; no memory while none was.
#[derive(Debug, Default)]
pub(super) struct Dropped(Option<Box<ByCause>>);

#[derive(Debug, Default)]
struct ByCause {
    expired: u32,
    too_large: u32,
    made_room: u32,
    too_old: u32,
    outside_mount: u32,
    not_allowed: u32,
}

impl Dropped {
    /// One more.
    pub(super) fn count(&mut self, cause: Cause) {
        let dropped = self.0.get_or_insert_with(Box::default);
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

    /// Those since the last call.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        let dropped = self.0.take();
        dropped
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
