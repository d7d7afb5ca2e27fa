//! Bans and failed logins: checks them, informs the client and counts.

use thrum_access::Identity;
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_protection::{BanList, ClientRef, Refusal, SubjectRef};
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;

use crate::edge::Edge;

/// See above.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    pub(super) edge: &'a Edge,
    pub(super) engine: &'a mut Engine,
}

impl Guard<'_> {
    /// Whether a client may try to log in.
    pub(super) fn may_log_in(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        username: Option<&str>,
    ) -> Result<(), Violation> {
        let who = self.login_of(key, handshake.client_id(), username);
        let (settings, now) = (&self.edge.settings.protection, self.engine.core.turn.now);
        let may_be = self.edge.node.protection.may_log_in(&who, settings, now);
        self.counted(may_be)
    }

    /// Whether an admitted client may begin its session.
    pub(super) fn may_enter(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let who = self.who(key, handshake.client_id(), identity.username.as_deref());
        let (settings, now) = (&self.edge.settings.protection, self.engine.core.turn.now);
        let may_be = self.edge.node.protection.may_enter(&who, settings, now);
        self.counted(may_be)
    }

    /// Whether a client may begin its session: a ban may have been added while the client was
    /// judged.
    pub(super) fn may_begin(
        &self,
        key: ConnectionKey,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let who = self.who(key, handshake.client_id(), identity.username.as_deref());
        self.counted(
            self.edge
                .node
                .protection
                .may_begin(&who, self.engine.core.turn.now),
        )
    }

    /// The claimed user has logged in from this address before.
    pub(super) fn is_known_there(&self, key: ConnectionKey, username: Option<&str>) -> bool {
        let who = self.login_of(key, "", username);
        self.edge.node.protection.is_known(&who)
    }

    /// The client's credentials are wrong.
    pub(super) fn login_failed(
        &mut self,
        key: ConnectionKey,
        client_id: &str,
        username: Option<&str>,
    ) {
        self.engine.core.row().add(Counter::LoginsFailed, 1);
        let who = self.login_of(key, client_id, username);
        let (settings, now) = (&self.edge.settings.protection, self.engine.core.turn.now);
        if self.edge.node.protection.login_failed(&who, settings, now) {
            self.engine.core.row().add(Counter::LoginWaits, 1);
            if self.engine.core.may_log() {
                let peer = self.edge.connections[key].peer;
                tracing::warn!(
                    %peer,
                    "too many failed logins: logins from this address are refused for a while \
                     (protection.logins)"
                );
            }
        }
    }

    /// The client's credentials are right.
    pub(super) fn login_succeeded(
        &self,
        key: ConnectionKey,
        client_id: &str,
        username: Option<&str>,
    ) {
        let who = self.login_of(key, client_id, username);
        let settings = &self.edge.settings.protection;
        self.edge.node.protection.login_succeeded(&who, settings);
    }

    fn who<'a>(
        &self,
        key: ConnectionKey,
        client_id: &'a str,
        username: Option<&'a str>,
    ) -> ClientRef<'a> {
        ClientRef {
            client_id,
            username,
            address: self.edge.connections[key].peer.address(),
        }
    }

    /// The login in the form in which logins are counted.
    fn login_of<'a>(
        &self,
        key: ConnectionKey,
        client_id: &'a str,
        username: Option<&'a str>,
    ) -> ClientRef<'a> {
        ClientRef {
            address: self.edge.connections[key].peer.login_address(),
            ..self.who(key, client_id, username)
        }
    }

    fn counted(&self, may_be: Result<(), Refusal>) -> Result<(), Violation> {
        may_be.map_err(|refusal| {
            self.engine.core.row().add(refusal.into(), 1);
            refusal.into()
        })
    }
}

/// Whether a ban disconnects the client of a connection.
pub(crate) fn is_disconnected_by_ban(
    edge: &Edge,
    engine: &Engine,
    key: ConnectionKey,
    list: &BanList,
    seconds: u64,
) -> bool {
    let Some(connection) = edge.connections.get(key) else {
        return false;
    };
    if connection.is_draining() {
        return false;
    }
    let from = connection.peer.address();
    let mut of_address = from
        .into_iter()
        .flat_map(|from| list.of_address(from, seconds));
    if of_address.any(|ban| ban.disconnects) {
        return true;
    }
    let Some(slot) = connection.session() else {
        return false;
    };
    let client = &engine.core.sessions[slot];
    let client_id = SubjectRef::ClientId(client.session.client_id());
    let access = client.access.as_deref();
    let username = access.and_then(|access| access.identity.username.as_deref());
    let who = ClientRef {
        client_id: client.session.client_id(),
        username,
        address: from,
    };
    let username = username.map(SubjectRef::Username);
    let mut subjects = [Some(client_id), Some(who.subject()), username]
        .into_iter()
        .flatten();
    subjects.any(|subject| {
        let ban = list.find(subject, seconds);
        ban.is_some_and(|ban| ban.disconnects)
    })
}
