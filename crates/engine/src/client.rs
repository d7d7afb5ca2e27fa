//! A session and what its worker keeps beside it.

use std::collections::BTreeMap;

use thin_vec::ThinVec;
use thrum_codec::topic::TopicFilter;
use thrum_protocol::Time;
use thrum_protocol::server::{GroupId, Session};
use thrum_routing::FilterId;
use thrum_storage::Owner;

use super::rooms::OwnRoom;
use crate::access::ClientAccess;
use crate::ids::ConnectionKey;
use crate::node::metrics::{Counter, Row};
use crate::node::session_counts::{Holder, SessionCounts};
use crate::retained::ReplayCursor;
use crate::subscription_cost::subscription_bytes;

/// A session and what the worker keeps beside it.
#[derive(Debug)]
pub struct Client {
    /// Its state by the protocol.
    pub session: Session,
    /// None while the client is away.
    pub connection: Option<ConnectionKey>,
    /// Memory of its subscriptions, in bytes.
    pub subscription_bytes: u32,
    /// The earliest timer that is armed.
    pub armed: Time,
    /// Its plain subscriptions.
    pub subscriptions: ThinVec<FilterId>,
    /// What it may do; none if that is everything.
    pub access: Option<Box<ClientAccess>>,
    pub rare: Option<Box<Rare>>,
}

/// What only some sessions have.
#[derive(Debug, Default)]
pub struct Rare {
    /// Memberships in shared groups.
    pub groups: Vec<GroupId>,
    /// What others see of the queue: of members of shared groups, and while it is nearly full.
    pub room: Option<OwnRoom>,
    /// Of subscriptions by their filters: retained messages still to be sent.
    pub replays: BTreeMap<Box<str>, Replay>,
    /// They go on in the next turn.
    pub replay_waits: bool,
    /// A full queue was logged; silent until it recovered.
    pub drops_logged: bool,
    /// The session ends with its connection, and is on the disk for the sake of its will.
    pub is_kept_for_will: bool,
    /// Whom the session is counted for.
    pub holder: Holder,
    /// Of a session that was restored and has had no connection since: whose it is. What it may do
    /// is not known yet.
    pub restored_owner: Option<Owner<Box<str>>>,
}

/// A replay of retained messages that goes on as the session takes them.
#[derive(Debug, Default)]
pub struct Replay {
    /// None before the first message.
    pub after: Option<ReplayCursor>,
    /// What the disk has of it.
    pub written: Written,
}

/// What the disk has of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Written {
    #[default]
    Nothing,
    /// That it is owed from an earlier place on.
    Earlier,
    /// Its place.
    Place,
}

impl Written {
    /// After the replay has gone on.
    pub fn outdated(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Earlier | Self::Place => Self::Earlier,
        }
    }
}

impl Client {
    /// A session without connection and subscriptions.
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

    /// Subscriptions, shared ones included.
    pub fn subscription_count(&self) -> usize {
        self.subscriptions.len() + self.groups().len()
    }

    /// Its memberships in shared groups.
    pub fn groups(&self) -> &[GroupId] {
        self.rare.as_deref().map_or(&[], |rare| &rare.groups)
    }

    /// The session is on the disk for the sake of its will.
    pub fn is_kept_for_will(&self) -> bool {
        let rare = self.rare.as_deref();
        rare.is_some_and(|rare| rare.is_kept_for_will)
    }

    /// What its client may do that is here again; what it might when its session was last looked
    /// at.
    pub fn take_rights(&mut self, access: Option<Box<ClientAccess>>) -> Option<Box<ClientAccess>> {
        let before = std::mem::replace(&mut self.access, access);
        self.forget_owner();
        before
    }

    /// What its client may do tells whose it is.
    fn forget_owner(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.restored_owner = None;
            self.drop_unused();
        }
    }

    /// One more subscription.
    pub fn subscription_came(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_add(bytes);
    }

    /// One less.
    pub(super) fn subscription_went(&mut self, filter: TopicFilter<'_>) {
        let bytes = subscription_bytes(filter);
        self.subscription_bytes = self.subscription_bytes.saturating_sub(bytes);
    }

    /// A connection has taken it up, or begun it; `was_persistent` before.
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

    /// It is over.
    pub(super) fn forget_counted(&self, row: &Row, counts: &SessionCounts) {
        if self.session.lifetime().was_persistent_at_connect() {
            row.subtract(Counter::SessionsPersistent, 1);
        }
        counts.leave(self.holder());
    }

    /// Gives memory back once all replays are done.
    pub fn drop_unused(&mut self) {
        let Some(rare) = self.rare.as_deref_mut() else {
            return;
        };
        let is_counted = rare.holder != Holder::default();
        let is_marked = rare.drops_logged || rare.is_kept_for_will;
        let is_used = is_counted || is_marked || rare.restored_owner.is_some();
        let is_member = rare.room.is_some() || !rare.groups.is_empty();
        if rare.replays.is_empty() && !is_member && !is_used {
            self.rare = None;
        }
    }

    /// Whose the session is: a client of an open node has no user that anybody verified.
    pub fn owner(&self) -> Owner<&str> {
        if let Some(access) = self.access.as_deref() {
            return access.owner();
        }
        let rare = self.rare.as_deref();
        let restored = rare.and_then(|rare| rare.restored_owner.as_ref());
        restored.map_or(Owner::Anonymous, Owner::as_deref)
    }

    /// Whom the session is counted for.
    pub fn holder(&self) -> Holder {
        let rare = self.rare.as_deref();
        rare.map_or_else(Holder::default, |rare| rare.holder)
    }

    /// Whom it is counted for from now on; whom it was before.
    pub fn set_holder(&mut self, holder: Holder) -> Holder {
        let before = self.holder();
        if before != holder {
            self.rare_mut().holder = holder;
            self.drop_unused();
        }
        before
    }

    /// Its queue has recovered, or begins anew: the next full one is logged.
    pub fn log_next_drop(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut()
            && rare.drops_logged
        {
            rare.drops_logged = false;
            self.drop_unused();
        }
    }

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
