//! Settings for the clients of one listener, and their number.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use crossbeam_utils::CachePadded;
use crossbeam_utils::sync::ShardedLock;
use thrum_access::Network;
use thrum_codec::Version;
use thrum_engine::peer::Peer;
use thrum_protection::{Account, ListenerScope, Paces};
use thrum_transport::{Acceptor, ServerLayers};

use super::mount::MountTemplate;
use crate::config::{Anonymous, CertificateName, ListenerConfig, ProtocolVersion, Transport};

/// One listener as its connections see it. A reload creates another one of the same name, and
/// connections keep theirs.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Name in the configuration.
    pub(crate) name: Arc<str>,
    /// Shared with the gates of the same name before and after this one. Written for each
    /// connection, as `own` is: separate from the fields that are read for each packet.
    open: Arc<CachePadded<AtomicU32>>,
    /// Connections through this gate itself, and those on their way to a worker: the gate is needed
    /// until they have ended.
    own: CachePadded<AtomicU32>,
    /// Connections that were refused because the listener was full; shared as `open`, and written
    /// for each of them only.
    over_limit: Arc<AtomicU64>,
    /// 0 is no limit.
    connections_max: u32,
    /// Rates of the listener.
    pub(crate) paces: Paces,
    /// The usage of these rates by its clients; shared as `open`.
    pub(crate) account: Arc<Account>,
    /// Which clients need no credentials here; `None` if the node's setting applies.
    pub(crate) anonymous: Option<Anonymous>,
    /// The present setting, shared as `open`: clients that were admitted without credentials may be
    /// disconnected by it.
    anonymous_now: Arc<AtomicU8>,
    /// Guards the TLS and WebSocket of the next connection: read for a moment for each that has
    /// any, written when certificates are read again.
    acceptor: ShardedLock<Acceptor>,
    /// There is TLS or WebSocket.
    has_layers: AtomicBool,
    /// TLS of its connections ends in the QUIC endpoint.
    pub(crate) is_quic: bool,
    /// Part of the client certificate that is the user name.
    pub(crate) username: CertificateName,
    /// Versions of MQTT that its clients may use.
    versions: Box<[ProtocolVersion]>,
    /// The prefix of its clients' topics.
    pub(crate) mount: Option<MountTemplate>,
    /// Messages that its clients publish may be retained.
    pub(crate) retain_available: bool,
    /// Networks of the proxies that name the client's address; none if clients connect without a
    /// proxy.
    pub(crate) proxies: Option<Box<[Network]>>,
}

/// The parts of a new gate.
#[derive(Debug)]
pub(crate) struct GateParts<'a> {
    pub(crate) config: &'a ListenerConfig,
    pub(crate) acceptor: Acceptor,
    /// Part of the client certificate that is the user name.
    pub(crate) username: CertificateName,
}

impl Gate {
    /// A gate of that name, after an earlier one of the same name.
    pub(crate) fn new(name: &str, parts: GateParts<'_>, before: Option<&Self>) -> Self {
        let GateParts {
            config,
            acceptor,
            username,
        } = parts;
        Self {
            name: name.into(),
            open: before.map_or_else(Arc::default, |before| Arc::clone(&before.open)),
            own: CachePadded::default(),
            over_limit: before.map_or_else(Arc::default, |before| Arc::clone(&before.over_limit)),
            connections_max: config.max_connections,
            paces: Paces::new(&config.connect_rate, &config.messages, &config.bytes),
            account: before.map_or_else(Arc::default, |before| Arc::clone(&before.account)),
            anonymous: config.anonymous,
            anonymous_now: before.map_or_else(
                || Arc::new(AtomicU8::new(code(config.anonymous))),
                |before| Arc::clone(&before.anonymous_now),
            ),
            has_layers: AtomicBool::new(acceptor.has_layers()),
            acceptor: ShardedLock::new(acceptor),
            is_quic: config.transport == Transport::Quic,
            username,
            versions: config.accept_protocol_versions.as_slice().into(),
            mount: MountTemplate::new(&config.mount_point),
            retain_available: config.retain_available,
            proxies: config
                .proxy_protocol
                .then(|| config.proxy_from.clone().into_boxed_slice()),
        }
    }

    /// The rates that its clients share.
    pub(crate) fn scope(&self) -> ListenerScope<'_> {
        ListenerScope {
            paces: &self.paces,
            account: &self.account,
        }
    }

    /// Connections through gates of that name, and their limit; none if there is none.
    pub(crate) fn connections(&self) -> (u32, Option<u32>) {
        let limit = Some(self.connections_max).filter(|limit| *limit > 0);
        (self.open.load(Ordering::Relaxed), limit)
    }

    /// Connections that were refused because the listener was full, since the start of the broker.
    pub(crate) fn over_limit(&self) -> u64 {
        self.over_limit.load(Ordering::Relaxed)
    }

    /// Counts a new connection; false if the listener is full.
    #[must_use]
    pub(super) fn enter(&self) -> bool {
        self.hold();
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        if self.connections_max == 0 || before < self.connections_max {
            return true;
        }
        self.leave();
        self.over_limit.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Counts the end of a connection.
    pub(super) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.release();
    }

    /// A connection is on its way to a worker.
    pub(crate) fn hold(&self) {
        self.own.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection has arrived at the worker.
    pub(crate) fn release(&self) {
        self.own.fetch_sub(1, Ordering::Relaxed);
    }

    /// No connection through it is left.
    pub(super) fn is_unused(&self) -> bool {
        self.own.load(Ordering::Relaxed) == 0
    }

    /// Whether its clients may use that version.
    pub(crate) fn accepts(&self, version: Version) -> bool {
        let named = match version {
            Version::V31 => ProtocolVersion::V31,
            Version::V311 => ProtocolVersion::V311,
            Version::V5 => ProtocolVersion::V5,
        };
        self.versions.contains(&named)
    }

    /// TLS and WebSocket of its next connection; none over plain TCP, which costs no lock.
    pub(crate) fn layers(&self) -> Option<ServerLayers> {
        if !self.has_layers.load(Ordering::Acquire) {
            return None;
        }
        let acceptor = self.acceptor.read();
        acceptor.unwrap_or_else(PoisonError::into_inner).layers()
    }

    /// The acceptor of its next connections' TLS and WebSocket.
    pub(crate) fn acceptor(&self) -> Acceptor {
        let acceptor = self.acceptor.read();
        acceptor.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the acceptor of its next connections; existing ones keep theirs.
    pub(super) fn renew(&self, acceptor: Acceptor) {
        let standing = self.acceptor.write();
        let mut standing = standing.unwrap_or_else(PoisonError::into_inner);
        self.has_layers
            .store(acceptor.has_layers(), Ordering::Release);
        *standing = acceptor;
    }

    /// Puts it in force, also for clients of the gates before it.
    pub(super) fn put_in_force(&self) {
        self.anonymous_now
            .store(code(self.anonymous), Ordering::Relaxed);
    }

    /// Clients that need no credentials at the present gate of this name; none if the node's
    /// setting holds.
    pub(crate) fn anonymous_now(&self) -> Option<Anonymous> {
        let code_now = self.anonymous_now.load(Ordering::Relaxed);
        let all = [Anonymous::Loopback, Anonymous::Allow, Anonymous::Deny];
        all.into_iter().find(|one| code(Some(*one)) == code_now)
    }

    /// The peer is a trusted proxy.
    pub(crate) fn is_proxy(&self, peer: Peer) -> bool {
        let is_one = |networks: &[Network]| match peer.address() {
            Some(address) => networks.iter().any(|network| network.contains(address)),
            // Access to a Unix socket is decided by its directory's permissions.
            None => true,
        };
        self.proxies.as_deref().is_some_and(is_one)
    }
}

const fn code(anonymous: Option<Anonymous>) -> u8 {
    match anonymous {
        None => 0,
        Some(Anonymous::Loopback) => 1,
        Some(Anonymous::Allow) => 2,
        Some(Anonymous::Deny) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_listener_has_used_of_its_rates_is_kept_over_a_reload() {
        let gate = |before: Option<&Gate>| {
            let plain = Acceptor::new(None, None).expect("plain TCP needs nothing");
            let config = ListenerConfig::default();
            let parts = GateParts {
                config: &config,
                acceptor: plain,
                username: CertificateName::None,
            };
            Gate::new("a", parts, before)
        };
        let first = gate(None);
        assert!(Arc::ptr_eq(&first.account, &gate(Some(&first)).account));
    }

    #[test]
    fn who_may_be_anonymous_changes_for_all_once_the_new_gate_is_in_force() {
        let gate = |anonymous, before: Option<&Gate>| {
            let plain = Acceptor::new(None, None).expect("plain TCP needs nothing");
            let config = ListenerConfig {
                anonymous,
                ..ListenerConfig::default()
            };
            let parts = GateParts {
                config: &config,
                acceptor: plain,
                username: CertificateName::None,
            };
            Gate::new("a", parts, before)
        };
        let first = gate(Some(Anonymous::Allow), None);
        assert_eq!(first.anonymous_now(), Some(Anonymous::Allow));
        for anonymous in [Some(Anonymous::Loopback), Some(Anonymous::Deny), None] {
            let second = gate(anonymous, Some(&first));
            assert_ne!(first.anonymous_now(), anonymous);
            second.put_in_force();
            assert_eq!(first.anonymous_now(), anonymous);
        }
    }
}
