//! Connections that end right behind a message, or within a packet.

use thrum_codec::QoS;

use super::client::{Phase, is_large};
use super::history::{ClientNumber, Message, MessageNumber, PLAIN};
use super::world::{Failure, World, any_qos};

/// More messages with a large payload than a small socket takes.
const LARGE_MESSAGES: usize = 8;
/// Rounds within which a subscription is mostly acknowledged.
const ROUNDS: usize = 8;

impl World {
    /// Sends DISCONNECT right behind messages, runs everything but the disk, and reads the answers.
    /// Often the node is killed then.
    pub(super) fn disconnect_after_publish(&mut self) -> Result<(), Failure> {
        let Some(client) = self.random_connected() else {
            return Ok(());
        };
        for _ in 0..=self.random.below(3) {
            let qos = self
                .random
                .pick(&[QoS::AtLeastOnce, QoS::AtLeastOnce, QoS::ExactlyOnce]);
            let number = self.number();
            let topic = self.random.pick(&PLAIN);
            self.publish_plain(client, number, (topic, qos));
        }
        self.send_disconnect(client);
        for _ in 0..=self.random.below(3) {
            self.run_random_turns();
            self.read_old_connections(usize::MAX)?;
        }
        if self.random.percent(50) {
            self.crash()?;
        }
        Ok(())
    }

    /// Lets a client not read while others publish and its own answers wait for the disk; then it
    /// reconnects, and reads the old connection to its end.
    pub(super) fn take_over_slow_client(&mut self) -> Result<(), Failure> {
        let Some(client) = self.random_connected() else {
            return Ok(());
        };
        let topic = self.random.pick(&PLAIN);
        let qos = any_qos(&mut self.random);
        let event = self.clients[client].subscribe(topic, qos);
        self.record_all(event);
        for _ in 0..ROUNDS {
            self.flow()?;
            self.restart_after_power_loss()?;
        }
        // A delivery does not begin while it waits for the disk.
        let qos = self
            .random
            .pick(&[QoS::AtMostOnce, QoS::AtMostOnce, QoS::ExactlyOnce]);
        for _ in 0..LARGE_MESSAGES {
            let publisher = self.random_connected().unwrap_or(client);
            let number = self.large_number();
            self.publish_plain(publisher, number, (topic, qos));
        }
        for publisher in 0..self.watcher() {
            self.transfer_all_to_node(publisher);
        }
        self.turns();
        // Reads as much as the socket holds, so that there is room for a part of the next output.
        if self.random.percent(70) {
            self.transfer_all_to_client(client)?;
            self.turns();
        }
        let number = self.number();
        self.publish_plain(client, number, (topic, QoS::AtLeastOnce));
        self.transfer_all_to_node(client);
        self.turns();
        self.silence(client);
        self.connect_randomly(client);
        self.transfer_all_to_node(client);
        for _ in 0..=self.random.below(3) {
            self.turns();
            self.read_old_connections(usize::MAX)?;
        }
        Ok(())
    }

    fn random_connected(&mut self) -> Option<ClientNumber> {
        let all = 0..self.watcher();
        let is_connected = |client: &ClientNumber| self.clients[*client].phase == Phase::Connected;
        let connected: Vec<ClientNumber> = all.filter(is_connected).collect();
        (!connected.is_empty()).then(|| self.random.pick(&connected))
    }

    /// Runs a turn, half a turn or none of each worker.
    fn run_random_turns(&mut self) {
        for worker in 0..self.machine.workers.len() {
            let worker = &mut self.machine.workers[worker];
            match self.random.below(4) {
                0 => {}
                1 => {
                    worker.run_turn();
                }
                _ => worker.run_half_turn(),
            }
        }
    }

    fn large_number(&mut self) -> MessageNumber {
        while !is_large(self.number()) {}
        self.next_number
    }

    fn publish_plain(
        &mut self,
        client: ClientNumber,
        number: MessageNumber,
        (topic, qos): (&'static str, QoS),
    ) {
        let message = Message {
            number,
            topic,
            qos,
            retain: false,
            is_empty: false,
            expiry_secs: None,
        };
        let event = self.clients[client].publish(message);
        self.record_all(event);
    }
}
