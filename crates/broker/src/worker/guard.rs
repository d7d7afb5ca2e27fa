//! Who may come in and stay: what protection says is asked here, told to the client and counted.

use std::net::IpAddr;

use thrum_access::Identity;
use thrum_protection::{BanChanges, BanList, ClientRef, Refusal, Subject, SubjectRef};
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;

use super::Worker;
use super::rounds::Errand;
use crate::ids::ConnectionKey;
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::workers::WorkerId;

/// Client identifiers whose connections are looked up when they are banned; for more all
/// connections are looked at.
const BANS_AT_ONCE: usize = 256;

impl Worker {
    /// A connection from there may go on; if not, it is closed without a word.
    pub(super) fn may_open(&mut self, address: Option<IpAddr>) -> bool {
        let (settings, now) = (&self.local.settings.protection, self.local.now);
        let Err(refusal) = self.node.protection.may_open(address, settings, now) else {
            return true;
        };
        self.local.row().add(refusal.into(), 1);
        if let Some(address) = address
            && self.may_log()
        {
            tracing::info!(%address, reason = refusal.what(), "connection closed");
        }
        false
    }

    /// A client may try to log in.
    pub(super) fn may_log_in(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        username: Option<&str>,
    ) -> Result<(), Violation> {
        let who = self.login_of(key, handshake.client_id(), username);
        let (settings, now) = (&self.local.settings.protection, self.local.now);
        let may_be = self.node.protection.may_log_in(&who, settings, now);
        self.counted(may_be)
    }

    /// A client that is admitted may begin its session.
    pub(super) fn may_enter(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let who = self.who(key, handshake.client_id(), identity.username.as_deref());
        let (settings, now) = (&self.local.settings.protection, self.local.now);
        let may_be = self.node.protection.may_enter(&who, settings, now);
        self.counted(may_be)
    }

    /// A client may begin its session: somebody may have been banned while the client was judged.
    pub(super) fn may_begin(
        &self,
        key: ConnectionKey,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let who = self.who(key, handshake.client_id(), identity.username.as_deref());
        self.counted(self.node.protection.may_begin(&who, self.local.now))
    }

    /// The user that the client claims to be has logged in from there before.
    pub(super) fn is_known_there(&self, key: ConnectionKey, username: Option<&str>) -> bool {
        let who = self.login_of(key, "", username);
        self.node.protection.is_known(&who)
    }

    /// What the client has shown is wrong.
    pub(super) fn login_failed(
        &mut self,
        key: ConnectionKey,
        client_id: &str,
        username: Option<&str>,
    ) {
        self.local.row().add(Counter::LoginsFailed, 1);
        let who = self.login_of(key, client_id, username);
        let (settings, now) = (&self.local.settings.protection, self.local.now);
        if self.node.protection.login_failed(&who, settings, now) {
            self.local.row().add(Counter::LoginWaits, 1);
            if self.may_log() {
                let peer = self.local.connections[key].peer;
                tracing::warn!(
                    %peer,
                    "too many failed logins: logins from this address are refused for a while \
                     (protection.logins)"
                );
            }
        }
    }

    /// What the client has shown is right.
    pub(super) fn login_succeeded(
        &self,
        key: ConnectionKey,
        client_id: &str,
        username: Option<&str>,
    ) {
        let who = self.login_of(key, client_id, username);
        let settings = &self.local.settings.protection;
        self.node.protection.login_succeeded(&who, settings);
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
            address: self.local.connections[key].peer.address(),
        }
    }

    /// The same for what counts logins.
    fn login_of<'a>(
        &self,
        key: ConnectionKey,
        client_id: &'a str,
        username: Option<&'a str>,
    ) -> ClientRef<'a> {
        ClientRef {
            address: self.local.connections[key].peer.login_address(),
            ..self.who(key, client_id, username)
        }
    }

    fn counted(&self, may_be: Result<(), Refusal>) -> Result<(), Violation> {
        may_be.map_err(|refusal| {
            self.local.row().add(refusal.into(), 1);
            refusal.into()
        })
    }

    /// Tells all workers of new bans. One worker looks for all, so that the others may sleep.
    pub(super) fn watch_bans(&mut self) {
        let Some(changes) = self.node.protection.bans().changes(&mut self.bans_seen) else {
            return;
        };
        for worker in WorkerId::all(self.node.workers()) {
            if worker != self.local.id {
                self.send(worker, Mail::Banned(changes.clone()));
            }
        }
        self.banned(&changes);
    }

    /// Clients that are banned and connected have to go.
    pub(super) fn banned(&mut self, changes: &BanChanges) {
        let keys = match changes {
            BanChanges::Added(subjects) => self.keys_of(subjects),
            BanChanges::Unknown => None,
        };
        let Some(keys) = keys else {
            self.go_round(Errand::Bans);
            return;
        };
        for key in keys {
            self.disconnect_banned(key);
            self.local.end_unit();
        }
    }

    /// Connections of client identifiers; none if there are many, or a user or a network is among
    /// them, which nobody can look up.
    fn keys_of(&self, subjects: &[Subject]) -> Option<Vec<ConnectionKey>> {
        if subjects.len() > BANS_AT_ONCE {
            return None;
        }
        let mut keys = Vec::new();
        for subject in subjects {
            let Subject::ClientId(client_id) = subject else {
                return None;
            };
            let slot = self.local.find(client_id);
            let key = slot.and_then(|slot| self.local.clients[slot].connection);
            keys.extend(key);
        }
        Some(keys)
    }

    pub(super) fn is_banned(&self, key: ConnectionKey, list: &BanList, seconds: u64) -> bool {
        let Some(connection) = self.local.connections.get(key) else {
            return false;
        };
        if connection.is_draining() {
            return false;
        }
        let from = connection.peer.address();
        if from.is_some_and(|address| list.find_address(address, seconds).is_some()) {
            return true;
        }
        let Some(slot) = connection.session() else {
            return false;
        };
        let client = &self.local.clients[slot];
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
        subjects.any(|subject| list.find(subject, seconds).is_some())
    }

    /// Forgets what is over.
    pub(super) fn sweep_protection(&mut self) {
        let ahead = self.node.clock.look_at_wall();
        self.node.protection.bans().set_wall_ahead(ahead);
        let (settings, now) = (&self.local.settings.protection, self.local.now);
        let forgotten = self.node.protection.sweep(settings, now);
        self.local
            .row()
            .add(Counter::RateAccountsForgotten, forgotten);
    }
}
