//! Checks before admission: limits of connections, sessions and memory, and ownership of client
//! identifiers.

use thrum_access::Identity;
use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::access::ClientAccess;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::session_counts::{Full, Holder};
use thrum_protection::MemoryLevel;
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;
use thrum_storage::Owner;

use super::wills::may_leave_will;
use crate::config::Takeover;
use crate::edge::Edge;

/// A client that is about to begin or resume a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entrant<'a> {
    pub(super) key: ConnectionKey,
    pub(super) handshake: &'a Handshake,
    pub(super) access: Option<&'a ClientAccess>,
    /// The session of its client identifier.
    pub(super) existing: Option<Slot>,
    /// The same session, if it belongs to the client's user.
    pub(super) own: Option<Slot>,
    /// The limits had room for it before it had to wait.
    pub(super) has_room: bool,
    /// The account of its user or address that its session counts for.
    pub(super) holder: Holder,
}

/// See above.
#[derive(Debug)]
pub(super) struct Checks<'a> {
    pub(super) edge: &'a mut Edge,
    pub(super) engine: &'a mut Engine,
}

impl Checks<'_> {
    /// Whether a client may have the session that it asks for.
    pub(super) fn may_attach(&mut self, entrant: &Entrant<'_>) -> Result<(), Violation> {
        let Entrant {
            handshake,
            access,
            existing,
            ..
        } = *entrant;
        let takes_over = existing.is_some_and(|slot| self.has_connection(slot));
        if !entrant.has_room && !takes_over {
            self.has_room()?;
        }
        let core = &self.engine.core;
        core.durable
            .may_keep(handshake, existing.is_some(), core.row())?;
        self.belongs_to_user(entrant.key, existing, access)?;
        self.may_begin_session(handshake, entrant.own, entrant.holder)?;
        may_leave_will(self.engine, handshake, access)
    }

    /// The account that a session of this client counts for.
    pub(super) fn holder(&self, key: ConnectionKey, identity: &Identity) -> Holder {
        let address = self.edge.connections[key].peer.address();
        let limits = &self.engine.core.settings.sessions;
        let user = identity.username.as_deref();
        self.engine
            .core
            .node
            .session_counts
            .holder(user, address, limits)
    }

    pub(super) fn has_room(&self) -> Result<(), Violation> {
        let connected = self
            .engine
            .core
            .node
            .metrics
            .total(Counter::ClientsConnected);
        if connected >= self.edge.settings.connections_max {
            self.engine.core.row().add(Counter::ConnectionsOverLimit, 1);
            let what = "the broker's limit of connections is reached (limits.connections)";
            return Err(Violation::new(ReasonCode::QuotaExceeded, what));
        }
        Ok(())
    }

    /// Whether the client may have a session that outlives its connection. A client that has such a
    /// session keeps it.
    pub(super) fn may_begin_session(
        &self,
        handshake: &Handshake,
        existing: Option<Slot>,
        holder: Holder,
    ) -> Result<(), Violation> {
        let has_one = |slot: Slot| {
            let session = &self.engine.core.sessions[slot].session;
            session.lifetime().was_persistent_at_connect()
        };
        self.has_memory_for(handshake, existing, existing.is_some_and(has_one))?;
        if handshake.session_expiry() == 0 || existing.is_some_and(has_one) {
            return Ok(());
        }
        let limits = &self.engine.core.settings.sessions;
        let (counter, what) = if self
            .engine
            .core
            .node
            .metrics
            .total(Counter::SessionsPersistent)
            >= limits.node
        {
            let what = "the broker's limit of sessions is reached (limits.sessions)";
            (Counter::LimitSessions, what)
        } else {
            match self.engine.core.node.session_counts.full(holder, limits) {
                None => return Ok(()),
                Some(Full::User) => {
                    let what = "the user's limit of sessions is reached (limits.user.sessions)";
                    (Counter::LimitUserSessions, what)
                }
                Some(Full::Address) => {
                    let what =
                        "the address's limit of sessions is reached (limits.address.sessions)";
                    (Counter::LimitAddressSessions, what)
                }
            }
        };
        self.engine.core.row().add(counter, 1);
        Err(Violation::new(ReasonCode::QuotaExceeded, what))
    }

    /// While memory is short, no session that outlives its connection begins; while it is
    /// exhausted, no session at all.
    pub(super) fn has_memory_for(
        &self,
        handshake: &Handshake,
        existing: Option<Slot>,
        has_one: bool,
    ) -> Result<(), Violation> {
        let level = self.engine.core.memory.level;
        let is_new = existing.is_none() && level >= MemoryLevel::Exhausted;
        let is_kept = handshake.session_expiry() > 0 && !has_one && level >= MemoryLevel::Short;
        if !is_new && !is_kept {
            return Ok(());
        }
        self.engine.core.row().add(Counter::LimitMemorySessions, 1);
        let what = "memory is short: no session that takes more of it is admitted (limits.memory)";
        Err(Violation::new(ReasonCode::QuotaExceeded, what))
    }

    /// Whether the client identifier may already have a connection, which the new one replaces.
    /// Sessions of other workers count as connected.
    pub(super) fn may_take_over(&self, client_id: &str) -> bool {
        if client_id.is_empty() {
            return false;
        }
        match self.engine.core.sessions.find(client_id) {
            Some(slot) => self.has_connection(slot),
            None => {
                self.engine.core.node.workers() > 1 && self.engine.core.node.registry.has(client_id)
            }
        }
    }

    pub(super) fn has_connection(&self, slot: Slot) -> bool {
        self.engine.core.sessions[slot].connection.is_some()
    }

    /// The client may use this identifier; one that the broker assigned is always allowed.
    pub(super) fn may_use_identifier(
        &mut self,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let username = identity.username.as_deref();
        let pattern = &self.edge.settings.client_id;
        if handshake.is_client_id_assigned() || pattern.admits(handshake.client_id(), username) {
            return Ok(());
        }
        self.engine.core.row().add(Counter::ClientIdsNotOfUser, 1);
        let what = "the client identifier does not have the required form (auth.client_id)";
        Err(Violation::new(ReasonCode::ClientIdentifierNotValid, what))
    }

    /// The session belongs to another user. The owner of a session from an older version is
    /// unknown.
    pub(super) fn is_of_another(&self, slot: Slot, access: Option<&ClientAccess>) -> bool {
        let before = self.engine.core.sessions[slot].owner();
        let now = access.map_or(Owner::Anonymous, ClientAccess::owner);
        before != Owner::Unknown && before != now
    }

    /// A client identifier with a session of a user stays with that user.
    pub(super) fn belongs_to_user(
        &mut self,
        key: ConnectionKey,
        existing: Option<Slot>,
        access: Option<&ClientAccess>,
    ) -> Result<(), Violation> {
        let Some(slot) = existing.filter(|slot| self.is_of_another(*slot, access)) else {
            return Ok(());
        };
        let allows = self.edge.settings.takeover == Takeover::AnyUser;
        // A session that a client without user name began has no owner.
        if allows || self.engine.core.sessions[slot].owner().user().is_none() {
            return Ok(());
        }
        self.engine.core.row().add(Counter::ClientIdsOfOthers, 1);
        if self.engine.core.may_log() {
            let session = &self.engine.core.sessions[slot];
            let (client_id, owner) = (session.session.client_id(), session.owner().user());
            let peer = self.edge.connections[key].peer;
            let user = access.and_then(|access| access.identity.username.as_deref());
            tracing::warn!(%peer, client_id, user, owner, "refused: this client identifier has a session of another \
                 user; auth.takeover = \"any_user\" lets every user take it over");
        }
        let what = "this client identifier has a session of another user (auth.takeover)";
        Err(Violation::new(ReasonCode::ClientIdentifierNotValid, what))
    }

    /// Whether an unverified client may stay connected: it must still be admissible.
    pub(super) fn may_stay(&mut self, key: ConnectionKey) -> Result<(), Violation> {
        let connection = &self.edge.connections[key];
        let (number, is_loopback) = (connection.gate, connection.peer.is_loopback());
        let has_gatekeeper = self.engine.core.settings.access.access.gatekeeper.is_some();
        if connection.is_unverified && has_gatekeeper {
            let what = "users have been added since this client connected: log in again";
            return Err(Violation::new(ReasonCode::NotAuthorized, what));
        }
        let of_node = self.edge.settings.anonymous;
        let of_gate = self.edge.gates.get(number).anonymous_now();
        if of_gate.unwrap_or(of_node).admits(is_loopback) {
            return Ok(());
        }
        let what = "clients without credentials are no longer admitted from here (auth.anonymous)";
        Err(Violation::new(ReasonCode::NotAuthorized, what))
    }
}
