//! Sessions that outlive their connection: how many there may be, and of whom.

use thrum_access::Identity;
use thrum_codec::ReasonCode;
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;

use super::{Client, Worker};
use crate::ids::{ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::session_counts::{Full, Holder};

impl Worker {
    /// Whom a session of that client is counted for.
    pub(super) fn holder(&self, key: ConnectionKey, identity: &Identity) -> Holder {
        let address = self.local.connections[key].peer.address();
        let limits = &self.local.settings.sessions;
        let user = identity.username.as_deref();
        self.node.session_counts.holder(user, address, limits)
    }

    /// Whether the client may have a session that outlives its connection. One that has such a
    /// session keeps it.
    pub(super) fn may_begin_session(
        &self,
        handshake: &Handshake,
        existing: Option<Slot>,
        holder: Holder,
    ) -> Result<(), Violation> {
        let has_one = |slot: Slot| {
            let session = &self.local.clients[slot].session;
            session.was_persistent_at_connect()
        };
        self.has_memory_for(handshake, existing, existing.is_some_and(has_one))?;
        if handshake.session_expiry() == 0 || existing.is_some_and(has_one) {
            return Ok(());
        }
        let limits = &self.local.settings.sessions;
        let (counter, what) = if self.node.metrics.total(Counter::SessionsPersistent) >= limits.node
        {
            let what = "the broker has as many sessions as it may keep (limits.sessions)";
            (Counter::LimitSessions, what)
        } else {
            match self.node.session_counts.full(holder, limits) {
                None => return Ok(()),
                Some(Full::User) => {
                    let what =
                        "the user has as many sessions as it may keep (limits.user.sessions)";
                    (Counter::LimitUserSessions, what)
                }
                Some(Full::Address) => {
                    let what =
                        "the address has as many sessions as it may keep (limits.address.sessions)";
                    (Counter::LimitAddressSessions, what)
                }
            }
        };
        self.local.row().add(counter, 1);
        Err(Violation::new(ReasonCode::QuotaExceeded, what))
    }

    /// While memory is short, nothing begins that outlives its connection; while it is exhausted,
    /// nothing at all.
    fn has_memory_for(
        &self,
        handshake: &Handshake,
        existing: Option<Slot>,
        has_one: bool,
    ) -> Result<(), Violation> {
        let level = self.local.memory.level;
        let is_new = existing.is_none() && level >= MemoryLevel::Exhausted;
        let is_kept = handshake.session_expiry() > 0 && !has_one && level >= MemoryLevel::Short;
        if !is_new && !is_kept {
            return Ok(());
        }
        self.local.row().add(Counter::LimitMemorySessions, 1);
        let what = "memory is short: no session begins that takes more of it (limits.memory)";
        Err(Violation::new(ReasonCode::QuotaExceeded, what))
    }

    /// A connection has taken up or begun a session.
    pub(super) fn count_session(&mut self, slot: Slot, was_persistent: bool, holder: Holder) {
        let row = self.node.metrics.row(self.local.id.index());
        let client = &mut self.local.clients[slot];
        let is_persistent = client.session.was_persistent_at_connect();
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
        let before = client.set_holder(holder);
        if before != holder {
            self.node.session_counts.leave(before);
            self.node.session_counts.join(holder);
        }
    }

    /// A session is over.
    pub(super) fn forget_counted(&self, client: &Client) {
        if client.session.was_persistent_at_connect() {
            self.local.row().subtract(Counter::SessionsPersistent, 1);
        }
        self.node.session_counts.leave(client.holder());
    }
}
