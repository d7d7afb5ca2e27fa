//! A session and the state that its worker stores with it.

use std::collections::BTreeMap;

use thin_vec::ThinVec;
use thrum_codec::topic::TopicFilter;
use thrum_protocol::server::{DropReason, GroupId, Session};
use thrum_protocol::{MountPoint, Time};
use thrum_routing::FilterId;
use thrum_storage::Owner;

use super::refusals::PublishRefusal;
use super::rooms::OwnRoom;
use crate::access::ClientAccess;
use crate::ids::ConnectionKey;
use crate::node::metrics::{Counter, Row};
use crate::node::session_counts::{Holder, SessionCounts};
use crate::retained::ReplayCursor;
use crate::subscription_cost::subscription_bytes;
use crate::timeline::REPEAT_TIME;

/// A session and the state that its worker stores with it.
#[derive(Debug)]
pub struct Client {
    /// The protocol state of the session.
    pub session: Session,
    /// The connection of the session; none while the client is disconnected.
    pub connection: Option<ConnectionKey>,
    /// Memory of the subscriptions of the session, in bytes.
    pub subscription_bytes: u32,
    /// The deadline of the earliest armed timer of the session.
    pub armed: Time,
    /// The subscriptions that are not shared.
    pub subscriptions: ThinVec<FilterId>,
    /// The access of the client; none if the client may do everything.
    pub access: Option<Box<ClientAccess>>,
    /// State that only some sessions have; none if the session has none of it.
    pub rare: Option<Box<Rare>>,
}

/// State that only some sessions have.
#[derive(Debug, Default)]
pub struct Rare {
    /// The shared groups that the session is a member of.
    pub groups: Vec<GroupId>,
    /// The capacity of the queue as other workers see it; none unless the session is a member of a
    /// shared group or its queue is nearly full.
    pub room: Option<OwnRoom>,
    /// Replays of retained messages that are not complete, by the filters of their subscriptions.
    pub replays: BTreeMap<Box<str>, Replay>,
    /// The replays are listed to be continued in the next turn.
    pub replay_waits: bool,
    /// A full queue was logged; further drops are not logged until the queue has recovered.
    pub drops_logged: bool,
    /// The session ends with its connection, and is stored only so that its will survives a crash.
    pub is_kept_for_will: bool,
    /// The user and the address that the session counts against.
    pub holder: Holder,
    /// The messages that the session did not receive, by reason.
    dropped: ThinVec<ReasonDrops>,
    /// The messages of the client that were refused, by reason.
    refused: ThinVec<(PublishRefusal, u64)>,
    /// The owner of a session that was restored and has had no connection since; none otherwise.
    /// The rights of its client are not known until the client connects.
    pub restored_owner: Option<Owner<Box<str>>>,
}

/// Messages that a session did not receive for one reason.
#[derive(Clone, Copy, Debug)]
struct ReasonDrops {
    /// All of them.
    total: u64,
    /// The last ones, of which each followed the one before within a minute.
    episode: DropEpisode,
}

/// Messages that a session did not receive for one reason, with little time between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropEpisode {
    /// The reason.
    pub reason: DropReason,
    /// The time of the first one.
    pub first: Time,
    /// The time of the last one.
    pub last: Time,
    /// Number of messages.
    pub count: u64,
}

/// A replay of retained messages that continues as the session accepts them.
#[derive(Debug, Default)]
pub struct Replay {
    /// The position behind the last message sent; none before the first message.
    pub after: Option<ReplayCursor>,
    /// What the storage knows of the replay.
    pub written: Written,
}

/// What the storage knows of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Written {
    /// The storage knows nothing of the replay.
    #[default]
    Nothing,
    /// The storage knows an earlier position of the replay.
    Earlier,
    /// The storage knows the current position of the replay.
    Place,
}

impl Written {
    /// Returns the state after the replay has sent further messages.
    #[must_use]
    pub fn outdated(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Earlier | Self::Place => Self::Earlier,
        }
    }
}

impl Client {
    /// Creates a session without connection and subscriptions.
    pub fn new(session: Session) -> Self {
        Self {
            session,
            connection: None,
            subscription_bytes: 0,
            armed: Time::from_millis(u64::MAX),
            subscriptions: ThinVec::new(),
            access: None,
            rare: None,
        }
    }

    /// Number of subscriptions, shared ones included.
    pub fn subscription_count(&self) -> usize {
        self.subscriptions.len() + self.groups().len()
    }

    /// The shared groups that the session is a member of.
    pub fn groups(&self) -> &[GroupId] {
        self.rare.as_deref().map_or(&[], |rare| &rare.groups)
    }

    /// Counts messages that the session did not receive. Messages that are dropped because the
    /// client is disconnected are not counted: that would take memory for each disconnected
    /// session.
    ///
    /// Returns the drops before, if these are later by more than a minute.
    pub(super) fn count_dropped(
        &mut self,
        reason: DropReason,
        count: u64,
        now: Time,
    ) -> Option<DropEpisode> {
        if reason == DropReason::Offline {
            return None;
        }
        let begun = DropEpisode {
            reason,
            first: now,
            last: now,
            count,
        };
        let dropped = &mut self.rare_mut().dropped;
        let known = |drops: &&mut ReasonDrops| drops.episode.reason == reason;
        let Some(drops) = dropped.iter_mut().find(known) else {
            dropped.push(ReasonDrops {
                total: count,
                episode: begun,
            });
            return None;
        };
        drops.total += count;
        if now.since(drops.episode.last) > REPEAT_TIME {
            return Some(std::mem::replace(&mut drops.episode, begun));
        }
        drops.episode.last = now;
        drops.episode.count += count;
        None
    }

    /// Number of messages that the session did not receive, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let dropped = self.rare.as_deref().map_or(&[][..], |rare| &rare.dropped);
        dropped
            .iter()
            .map(|drops| (drops.episode.reason, drops.total))
    }

    /// Counts a message of the client that was refused.
    pub(super) fn count_refused(&mut self, reason: PublishRefusal) {
        let refused = &mut self.rare_mut().refused;
        match refused.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => refused.push((reason, 1)),
        }
    }

    /// Number of messages of the client that were refused, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (PublishRefusal, u64)> {
        let refused = self.rare.as_deref().map_or(&[][..], |rare| &rare.refused);
        refused.iter().copied()
    }

    /// The last drops for each reason.
    pub(crate) fn drop_episodes(&self) -> impl Iterator<Item = DropEpisode> {
        let dropped = self.rare.as_deref().map_or(&[][..], |rare| &rare.dropped);
        dropped.iter().map(|drops| drops.episode)
    }

    /// When the last of [`Self::dropped`] was dropped; none if none was.
    pub fn last_dropped(&self) -> Option<Time> {
        let rare = self.rare.as_deref()?;
        rare.dropped.iter().map(|drops| drops.episode.last).max()
    }

    /// The mount point of the client's topics, if its listener has one.
    #[inline]
    pub(crate) fn mount_point(&self) -> Option<MountPoint> {
        self.session.link().mount_point().cloned()
    }

    /// Whether the session is stored only so that its will survives a crash.
    pub fn is_kept_for_will(&self) -> bool {
        let rare = self.rare.as_deref();
        rare.is_some_and(|rare| rare.is_kept_for_will)
    }

    /// Replaces the access of a client that has connected again, and returns the previous access.
    pub fn take_rights(&mut self, access: Option<Box<ClientAccess>>) -> Option<Box<ClientAccess>> {
        let before = std::mem::replace(&mut self.access, access);
        self.forget_owner();
        before
    }

    /// Forgets the restored owner, because the access of the client names it now.
    fn forget_owner(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.restored_owner = None;
            self.drop_unused();
        }
    }

    /// Adds the memory of a new subscription.
    pub fn add_subscription_bytes(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_add(bytes);
    }

    /// Subtracts the memory of a subscription that has ended.
    pub(super) fn subtract_subscription_bytes(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_sub(bytes);
    }

    /// Updates the counts of persistent sessions when a connection resumes or begins the session;
    /// `was_persistent` tells whether the session was counted before.
    pub fn count(
        &mut self,
        was_persistent: bool,
        holder: Holder,
        row: &Row,
        counts: &SessionCounts,
    ) {
        let is_persistent = self.session.lifetime().was_persistent_at_connect();
        match (was_persistent, is_persistent) {
            (false, true) => row.add(Counter::SessionsPersistent, 1),
            (true, false) => row.subtract(Counter::SessionsPersistent, 1),
            (false, false) | (true, true) => {}
        }
        let holder = if is_persistent {
            holder
        } else {
            Holder::default()
        };
        let before = self.set_holder(holder);
        if before != holder {
            counts.leave(before);
            counts.join(holder);
        }
    }

    /// Removes the session from the counts when it ends.
    pub(super) fn uncount(&self, row: &Row, counts: &SessionCounts) {
        if self.session.lifetime().was_persistent_at_connect() {
            row.subtract(Counter::SessionsPersistent, 1);
        }
        counts.leave(self.holder());
    }

    /// Frees the state that only some sessions have if none of it is in use.
    pub fn drop_unused(&mut self) {
        let Some(rare) = self.rare.as_deref_mut() else {
            return;
        };
        let is_counted = rare.holder != Holder::default();
        let has_counts = !rare.dropped.is_empty() || !rare.refused.is_empty();
        let is_marked = rare.drops_logged || rare.is_kept_for_will || has_counts;
        let is_used = is_counted || is_marked || rare.restored_owner.is_some();
        let is_member = rare.room.is_some() || !rare.groups.is_empty();
        if rare.replays.is_empty() && !is_member && !is_used {
            self.rare = None;
        }
    }

    /// The owner of the session: anonymous on a node without access control, as no user is
    /// verified.
    pub fn owner(&self) -> Owner<&str> {
        if let Some(access) = self.access.as_deref() {
            return access.owner();
        }
        let rare = self.rare.as_deref();
        let restored = rare.and_then(|rare| rare.restored_owner.as_ref());
        restored.map_or(Owner::Anonymous, Owner::as_deref)
    }

    /// The user and the address that the session counts against.
    pub fn holder(&self) -> Holder {
        let rare = self.rare.as_deref();
        rare.map_or_else(Holder::default, |rare| rare.holder)
    }

    /// Sets the user and the address that the session counts against, and returns the previous
    /// ones.
    pub fn set_holder(&mut self, holder: Holder) -> Holder {
        let before = self.holder();
        if before != holder {
            self.rare_mut().holder = holder;
            self.drop_unused();
        }
        before
    }

    /// Allows the next full queue to be logged, because the queue has recovered or the client has
    /// disconnected.
    pub fn log_next_drop(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut()
            && rare.drops_logged
        {
            rare.drops_logged = false;
            self.drop_unused();
        }
    }

    /// The state that only some sessions have, which is created if there is none.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_stays_small() {
        assert!(
            size_of::<Client>() <= 224,
            "a client takes {} bytes",
            size_of::<Client>()
        );
    }
}
