//! The figures that the broker publishes about its backends.

use std::collections::BTreeMap;
use std::time::Duration;

use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, Version, subscribe};
use thrum_conformance::wire::{Event, Wire};

use crate::brief_clients::{Accounts, Tally, packet};
use crate::node::Node;

/// Longest time until current figures are published; the broker publishes them every second.
const PATIENCE: Duration = Duration::from_secs(30);
const TOPICS: &str = "$SYS/broker/authentication/";

/// The figures, by the end of their topics.
#[derive(Debug)]
pub struct Figures {
    wire: Wire,
    backend: String,
    values: BTreeMap<String, u64>,
}

impl Figures {
    /// Subscribes to the figures.
    ///
    /// # Panics
    /// The superuser is refused.
    pub fn listen(node: &Node, accounts: &Accounts, backend: &str) -> Self {
        let (username, password) = &accounts.root;
        let connect = Connect::new(Version::V5).credentials(username, password);
        let mut wire = Wire::open(node.address(), Version::V5);
        wire.send(&connect.bytes());
        let told = packet(&mut wire, "CONNACK").connack(Version::V5).code;
        assert_eq!(told, 0, "{username} is refused");
        wire.send(&subscribe(Version::V5, 1, &[(&format!("{TOPICS}#"), 0)]));
        Self {
            wire,
            backend: backend.to_owned(),
            values: BTreeMap::new(),
        }
    }

    /// Waits until the figures cover the results of all clients and no login is pending.
    ///
    /// # Panics
    /// They do not in time.
    pub fn await_cover_of(mut self, tally: &Tally) {
        let deadline = clock::now() + PATIENCE;
        while !self.cover(tally) {
            assert!(
                clock::now() < deadline,
                "{:?} do not cover {tally:?}",
                self.values
            );
            if let Event::Packet(packet) = self.wire.next(PATIENCE)
                && packet.kind() == 3
            {
                let heard = packet.publish(Version::V5);
                let topic = heard.topic.strip_prefix(TOPICS).expect("a topic below");
                let value = std::str::from_utf8(&heard.payload).expect("text");
                self.values
                    .insert(topic.to_owned(), value.parse().expect("a number"));
            }
        }
    }

    fn cover(&self, tally: &Tally) -> bool {
        let value = |topic: &str| self.values.get(topic).copied();
        let of_backend = |name: &str| value(&format!("backends/{}/{name}", self.backend));
        let refused = u64::from(tally.unavailable());
        value("pending") == Some(0)
            && value("allowed") >= Some(u64::from(tally.admitted()))
            && value("denied") >= Some(u64::from(tally.denied()) + refused)
            && of_backend("allowed") >= Some(u64::from(tally.admitted()))
            && of_backend("errors") >= Some(refused)
    }
}
