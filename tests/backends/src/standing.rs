//! Clients that were there before and stay: what they do needs nobody's word but the broker's own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, Publish, Version, subscribe};
use thrum_conformance::received::Packet;
use thrum_conformance::wire::{Event, Wire};

use crate::crowd::{Cast, Credentials, name, packet};
use crate::node::Node;

/// Time between two messages.
const PAUSE: Duration = Duration::from_millis(10);
/// How long is waited for one more of the messages of others.
const LOOK: Duration = Duration::from_millis(1);

/// One who sees everything, and one who asked for everything and may see its own.
#[derive(Debug)]
pub struct Standing {
    root: Wire,
    ann: Wire,
    /// Where only `ann` may listen.
    beat: String,
    latencies: Vec<Duration>,
    /// What the broker let others publish.
    seen: Vec<String>,
}

impl Standing {
    /// Both come in.
    ///
    /// # Panics
    /// One does not.
    pub fn start(node: &Node, cast: &Cast) -> Self {
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
        let client_id = name("standing");
        Self {
            root: enter(&cast.root, &name("root")),
            ann: enter(&cast.ann, &client_id),
            beat: format!("down/{client_id}/beat"),
            latencies: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Messages go from one to the other until it is over.
    ///
    /// # Panics
    /// One does not arrive, or one arrives that nobody may send or see.
    #[must_use]
    pub fn beat_until(mut self, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::Relaxed) {
            self.beat_once();
            clock::sleep(PAUSE);
        }
        self
    }

    /// What the broker let others publish, topic by topic.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Nine messages of ten took no longer.
    ///
    /// # Panics
    /// There were none.
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
        // Whatever else arrives is not for the one who may only hear this.
        assert_eq!(heard.topic, self.beat, "{heard:?}");
        assert_eq!(heard.payload, number.as_bytes());
        while let Some(packet) = self.root_hears() {
            let heard = packet.publish(Version::V5);
            if heard.topic != self.beat {
                self.seen.push(heard.topic);
            }
        }
    }

    fn root_hears(&mut self) -> Option<Packet> {
        match self.root.next(LOOK) {
            Event::Packet(packet) => Some(packet),
            Event::Silence => None,
            Event::Closed => panic!("a client that is connected is turned away"),
        }
    }
}
