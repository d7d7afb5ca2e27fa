//! Connections that end at a bad moment: right behind a message, and in the middle of a packet.

use thrum_codec::QoS;

use super::client::{Phase, is_large};
use super::history::{ClientNumber, Message, MessageNumber, PLAIN};
use super::world::{Failure, World, any_qos};

/// More messages with a large payload than a small socket takes.
const LARGE_MESSAGES: usize = 8;
/// Rounds in which a subscription is mostly acknowledged.
const ROUNDS: usize = 8;

impl World {
    /// The client says goodbye right behind messages, everything but the disk goes on, and what
    /// comes back is read. Often the node dies then.
    pub(super) fn last_message(&mut self) -> Result<(), Failure> {
        let Some(client) = self.someone_connected() else {
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
        self.say_goodbye(client);
        for _ in 0..=self.random.below(3) {
            self.some_turns();
            self.carry_left(usize::MAX)?;
        }
        if self.random.percent(50) {
            self.crash()?;
        }
        Ok(())
    }

    /// A client reads nothing while others publish and while answers to itself wait for the disk;
    /// then it comes back on another connection, and reads the old one to its end.
    pub(super) fn take_over_full(&mut self) -> Result<(), Failure> {
        let Some(client) = self.someone_connected() else {
            return Ok(());
        };
        let topic = self.random.pick(&PLAIN);
        let qos = any_qos(&mut self.random);
        let event = self.clients[client].subscribe(topic, qos);
        self.note_all(event);
        for _ in 0..ROUNDS {
            self.flow()?;
            self.restart_after_power_loss()?;
        }
        // A delivery that waits for the disk is not begun.
        let qos = self
            .random
            .pick(&[QoS::AtMostOnce, QoS::AtMostOnce, QoS::ExactlyOnce]);
        for _ in 0..LARGE_MESSAGES {
            let publisher = self.someone_connected().unwrap_or(client);
            let number = self.large_number();
            self.publish_plain(publisher, number, (topic, qos));
        }
        for publisher in 0..self.watcher() {
            self.carry_all_up(publisher);
        }
        self.turns();
        // As much as the socket holds: of what comes next a part finds room.
        if self.random.percent(70) {
            self.carry_all_down(client)?;
            self.turns();
        }
        let number = self.number();
        self.publish_plain(client, number, (topic, QoS::AtLeastOnce));
        self.carry_all_up(client);
        self.turns();
        self.silence(client);
        self.connect_somehow(client);
        self.carry_all_up(client);
        for _ in 0..=self.random.below(3) {
            self.turns();
            self.carry_left(usize::MAX)?;
        }
        Ok(())
    }

    fn someone_connected(&mut self) -> Option<ClientNumber> {
        let all = 0..self.watcher();
        let is_connected = |client: &ClientNumber| self.clients[*client].phase == Phase::Connected;
        let connected: Vec<ClientNumber> = all.filter(is_connected).collect();
        (!connected.is_empty()).then(|| self.random.pick(&connected))
    }

    /// Each worker takes a turn, half of one or none.
    fn some_turns(&mut self) {
        for seat in 0..self.machine.seats.len() {
            let seat = &mut self.machine.seats[seat];
            match self.random.below(4) {
                0 => {}
                1 => {
                    seat.takes_a_turn();
                }
                _ => seat.takes_half_a_turn(),
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
        self.note_all(event);
    }
}
