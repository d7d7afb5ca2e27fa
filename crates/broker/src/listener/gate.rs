//! What holds for the clients of one listener, and how many they are.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use thrum_transport::Acceptor;

use super::mount::MountTemplate;
use crate::config::{Anonymous, CertificateName, ListenerConfig, Network, Transport};
use crate::peer::Peer;
use crate::protection::{Account, Paces};

/// One listener as its connections see it. A reload makes another one of the same name, and connections keep theirs.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Name in the configuration.
    pub(crate) name: Arc<str>,
    /// Shared with the gates of the same name before and after this one.
    open: Arc<AtomicU32>,
    /// 0 is no limit.
    connections_max: u32,
    /// Rates of the listener.
    pub(crate) paces: Paces,
    /// What its clients have used of them; shared as `open`.
    pub(crate) account: Arc<Account>,
    /// Who needs no credentials here; none if the node's setting holds.
    pub(crate) anonymous: Option<Anonymous>,
    /// The same as it is now, shared as `open`: who came in without credentials may have to go.
    anonymous_now: Arc<AtomicU8>,
    /// Guards which TLS and WebSocket its next connection gets: read for a moment for each, written when certificates are
    /// read again.
    acceptor: RwLock<Acceptor>,
    /// TLS of its connections ends before they come here.
    pub(crate) is_quic: bool,
    /// Part of the client certificate that is the user name.
    pub(crate) username: CertificateName,
    /// What stands before the topics of its clients.
    pub(crate) mount: Option<MountTemplate>,
    /// Proxies that say whom they speak for; none if there are none and clients come by themselves.
    pub(crate) proxies: Option<Box<[Network]>>,
}

impl Gate {
    /// A gate of that name, after an earlier one of the same name.
    pub(crate) fn new(
        name: &str,
        (config, acceptor, username): (&ListenerConfig, Acceptor, CertificateName),
        before: Option<&Self>,
    ) -> Self {
        Self {
            name: name.into(),
            open: before.map_or_else(Arc::default, |before| Arc::clone(&before.open)),
            connections_max: config.max_connections,
            paces: Paces::new(&config.connect_rate, &config.messages, &config.bytes),
            account: before.map_or_else(Arc::default, |before| Arc::clone(&before.account)),
            anonymous: config.anonymous,
            anonymous_now: before.map_or_else(
                || Arc::new(AtomicU8::new(code(config.anonymous))),
                |before| Arc::clone(&before.anonymous_now),
            ),
            acceptor: RwLock::new(acceptor),
            is_quic: config.transport == Transport::Quic,
            username,
            mount: MountTemplate::new(&config.mount_point),
            proxies: config
                .proxy_protocol
                .then(|| config.proxy_from.clone().into_boxed_slice()),
        }
    }

    /// Counts a new connection in; false if the listener is full.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        if self.connections_max == 0 || before < self.connections_max {
            return true;
        }
        self.leave();
        false
    }

    /// Counts a connection out.
    pub(crate) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// TLS and WebSocket of its next connection.
    pub(crate) fn acceptor(&self) -> Acceptor {
        let acceptor = self.acceptor.read();
        acceptor.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its next connections get this; those that are here keep what they have.
    pub(super) fn renew(&self, acceptor: Acceptor) {
        let standing = self.acceptor.write();
        *standing.unwrap_or_else(PoisonError::into_inner) = acceptor;
    }

    /// It is in force from now on, also for those who came in through the gates before it.
    pub(super) fn put_in_force(&self) {
        self.anonymous_now
            .store(code(self.anonymous), Ordering::Relaxed);
    }

    /// Who needs no credentials at the gate of this name that is in force now; none if the node's setting holds.
    pub(crate) fn anonymous_now(&self) -> Option<Anonymous> {
        let code_now = self.anonymous_now.load(Ordering::Relaxed);
        let all = [Anonymous::Loopback, Anonymous::Everyone, Anonymous::Nobody];
        all.into_iter().find(|one| code(Some(*one)) == code_now)
    }

    /// The peer may say for whom it speaks.
    pub(crate) fn is_proxy(&self, peer: Peer) -> bool {
        let is_one = |networks: &[Network]| match peer.address() {
            Some(address) => networks.iter().any(|network| network.contains(address)),
            // Who may open the Unix socket is for its folder to say.
            None => true,
        };
        self.proxies.as_deref().is_some_and(is_one)
    }
}

const fn code(anonymous: Option<Anonymous>) -> u8 {
    match anonymous {
        None => 0,
        Some(Anonymous::Loopback) => 1,
        Some(Anonymous::Everyone) => 2,
        Some(Anonymous::Nobody) => 3,
    }
}

/// All gates there were, by number: none is used a second time, so that a connection can name its own in two bytes.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    list: RwLock<Vec<Arc<Gate>>>,
}

impl Gates {
    /// Adds one; none if the numbers are used up, after so many reloads that changed a listener.
    pub(crate) fn add(&self, gate: Arc<Gate>) -> Option<u16> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let number = u16::try_from(list.len()).ok()?;
        list.push(gate);
        Some(number)
    }

    /// Adds those that a worker does not know yet to its own list.
    pub(crate) fn learn(&self, known: &mut Vec<Arc<Gate>>) {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        known.extend_from_slice(list.get(known.len()..).unwrap_or_default());
    }

    /// Sockets of clients, in their handshake or beyond it.
    pub(crate) fn open_sockets(&self) -> u64 {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let mut counted: Vec<*const AtomicU32> = Vec::with_capacity(list.len());
        let mut sum = 0;
        for gate in list.iter() {
            let counter = Arc::as_ptr(&gate.open);
            if !counted.contains(&counter) {
                counted.push(counter);
                sum += u64::from(gate.open.load(Ordering::Relaxed));
            }
        }
        sum
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
            Gate::new("a", (&config, plain, CertificateName::None), before)
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
            Gate::new("a", (&config, plain, CertificateName::None), before)
        };
        let first = gate(Some(Anonymous::Everyone), None);
        assert_eq!(first.anonymous_now(), Some(Anonymous::Everyone));
        for anonymous in [Some(Anonymous::Loopback), Some(Anonymous::Nobody), None] {
            let second = gate(anonymous, Some(&first));
            assert_ne!(first.anonymous_now(), anonymous);
            second.put_in_force();
            assert_eq!(first.anonymous_now(), anonymous);
        }
    }

    #[test]
    fn connections_are_counted_over_a_reload() {
        let config = ListenerConfig {
            max_connections: 2,
            ..ListenerConfig::default()
        };
        let gates = Gates::default();
        let plain = || Acceptor::new(None, None).expect("plain TCP needs nothing");
        let first = Arc::new(Gate::new(
            "a",
            (&config, plain(), CertificateName::None),
            None,
        ));
        assert_eq!(gates.add(Arc::clone(&first)), Some(0));
        assert!(first.enter());
        let second = Arc::new(Gate::new(
            "a",
            (&config, plain(), CertificateName::None),
            Some(&first),
        ));
        assert_eq!(gates.add(Arc::clone(&second)), Some(1));
        assert!(second.enter() && !second.enter());
        assert_eq!(gates.open_sockets(), 2);
        first.leave();
        assert!(second.enter());
    }
}
