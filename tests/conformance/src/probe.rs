//! Well-behaved clients whose messages must arrive while other clients misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use crate::clock;
use crate::packets::{Connect, Publish, Version, ack, first, unique};
use crate::wire::Wire;

/// Longest time for one round that still counts as undisturbed on a busy machine.
pub const ROUND_MAX: Duration = Duration::from_secs(2);

/// A publisher and a subscriber of each version that stay connected.
#[derive(Debug)]
pub struct Probe {
    publishers: Vec<Wire>,
    subscribers: Vec<Wire>,
    topic: String,
    round: u16,
}

impl Probe {
    /// Connects and subscribes.
    pub fn new(address: SocketAddr) -> Self {
        let topic = unique("probe/");
        let join = |version| Wire::connect(address, &Connect::new(version)).0;
        let publishers = Version::STANDARD.map(join).into();
        let mut subscribers: Vec<_> = Version::STANDARD.map(join).into();
        for subscriber in &mut subscribers {
            subscriber.subscribe(&topic, 1);
        }
        Self {
            publishers,
            subscribers,
            topic,
            round: 0,
        }
    }

    /// Each publisher sends a message and each subscriber gets all; returns the time taken.
    ///
    /// # Panics
    /// A message is lost, doubled or late, or a connection is disturbed.
    pub fn round_trip(&mut self) -> Duration {
        let start = clock::now();
        self.round = self.round.checked_add(1).unwrap_or(1);
        for (index, publisher) in self.publishers.iter_mut().enumerate() {
            let payload = format!("{index} {}", self.round);
            let message = Publish::new(publisher.version(), &self.topic, 1, payload.as_bytes());
            publisher.send(&message.packet_id(self.round).bytes());
        }
        for publisher in &mut self.publishers {
            publisher.expect_ack(0x40, self.round, &[0]);
        }
        for subscriber in &mut self.subscribers {
            let mut payloads = Vec::new();
            for _ in 0..self.publishers.len() {
                let publish = subscriber.publish();
                assert!(!publish.dup && publish.qos == 1, "{publish:?}");
                subscriber.send(&ack(first::PUBACK, publish.packet_id));
                payloads.push(String::from_utf8_lossy(&publish.payload).into_owned());
            }
            payloads.sort();
            let expected = [0, 1].map(|index| format!("{index} {}", self.round));
            assert_eq!(payloads, expected, "the probe lost or doubled a message");
        }
        let took = start.elapsed();
        assert!(took <= ROUND_MAX, "the probe was delayed for {took:?}");
        took
    }
}
