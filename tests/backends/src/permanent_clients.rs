//! Clients that stay connected during the outage; their messages need no backend.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, Publish, Version, subscribe};
use thrum_conformance::received::Packet;
use thrum_conformance::wire::{Event, Wire};

use crate::brief_clients::{Accounts, Credentials, name, packet};
use crate::node::Node;

/// Time between two messages.
const PAUSE: Duration = Duration::from_millis(10);
/// Wait for one more message of other clients.
const LOOK: Duration = Duration::from_millis(1);

/// A superuser that receives everything, and a user that subscribed to everything but may receive
/// only its own topics.
#[derive(Debug)]
pub struct PermanentClients {
    root: Wire,
    ann: Wire,
    /// Topic that only `ann` may receive.
    beat: String,
    latencies: Vec<Duration>,
    /// Topics that the broker let others publish to.
    seen: Vec<String>,
}

impl PermanentClients {
    /// Connects both.
    ///
    /// # Panics
    /// One is refused.
    pub fn start(node: &Node, accounts: &Accounts) -> Self {
        let enter = |credentials: &Credentials, client_id: &str| {
            let (username, password) = credentials;
            let connect = Connect::new(Version::V5).client_id(client_id);
            let mut wire = Wire::open(node.address(), Version::V5);
            wire.send(&connect.credentials(username, password).bytes());
            let told = packet(&mut wire, "CONNACK").connack(Version::V5).code;
            assert_eq!(told, 0, "{username} is refused");
            wire.send(&subscribe(Version::V5, 1, &[("#", 0)]));
            let told = packet(&mut wire, "SUBACK").ack(Version::V5).codes;
            assert_eq!(told, [0], "{username} may not listen");
            wire
        };
        let client_id = name("permanent");
        Self {
            root: enter(&accounts.root, &name("root")),
            ann: enter(&accounts.ann, &client_id),
            beat: format!("down/{client_id}/beat"),
            latencies: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Sends messages from one to the other until `is_over` is set.
    ///
    /// # Panics
    /// A message is lost, or a forbidden one arrives.
    #[must_use]
    pub fn beat_until(mut self, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::Relaxed) {
            self.beat_once();
            clock::sleep(PAUSE);
        }
        self
    }

    /// Topics that the broker let others publish to.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// 90th percentile of the latency.
    ///
    /// # Panics
    /// No message was sent.
    pub fn latency(&self) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted[sorted.len() * 9 / 10]
    }

    fn beat_once(&mut self) {
        let number = self.latencies.len().to_string();
        let begun = clock::now();
        let message = Publish::new(Version::V5, &self.beat, 0, number.as_bytes());
        self.root.send(&message.bytes());
        let heard = packet(&mut self.ann, "a message").publish(Version::V5);
        self.latencies.push(begun.elapsed());
        // `ann` may receive nothing else.
        assert_eq!(heard.topic, self.beat, "{heard:?}");
        assert_eq!(heard.payload, number.as_bytes());
        while let Some(packet) = self.next_for_root() {
            let heard = packet.publish(Version::V5);
            if heard.topic != self.beat {
                self.seen.push(heard.topic);
            }
        }
    }

    fn next_for_root(&mut self) -> Option<Packet> {
        match self.root.next(LOOK) {
            Event::Packet(packet) => Some(packet),
            Event::Silence => None,
            Event::Closed => panic!("a connected client is disconnected"),
        }
    }
}
