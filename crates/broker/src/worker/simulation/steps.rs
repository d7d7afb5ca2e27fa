//! Steps of a run, one after the other.

use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_transport::Scheme;

use super::client::{Phase, Wish};
use super::history::{
    ClientNumber, Ending, Event, Message, Millis, PLAIN, RETAINED, SHARED, WillNote,
};
use super::link::{Link, piece};
use super::plan::{Act, EXPIRY_SECS_MAX};
use super::world::{Failure, World, any_qos, has_connection};

/// Subscriptions of clients: plain topics, retained ones, and a group for each shared topic.
const FILTERS: [&str; 10] = [
    "t/0",
    "t/1",
    "t/+",
    "t/#",
    "t/2",
    "r/+",
    "r/0/#",
    "r/#",
    "$share/g/s/0",
    "$share/h/s/1",
];
/// Time that passes at a time, so that clients with a keep alive can ping.
const PORTION: Duration = Duration::from_secs(5);
/// With the answers, more than the node keeps of them.
const PINGS: usize = 100_000;
/// Turns that the others take while a worker takes none.
const STALLED_ROUNDS: usize = 40;
/// A connection that the node itself does not read has that much longer, in milliseconds.
const GRACE: Millis = 31_000;

impl World {
    /// The clients but the watcher.
    pub(super) fn anyone(&mut self) -> ClientNumber {
        let watcher = self.watcher();
        self.random.below(watcher)
    }

    /// The watcher watches, and most of the others are there and have subscriptions.
    pub(super) fn prelude(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let watcher = self.watcher();
        let event = self.clients[watcher].subscribe("w/+", QoS::ExactlyOnce);
        self.note_all(event);
        for client in 0..watcher {
            if self.random.percent(85) {
                self.connect_somehow(client);
            }
        }
        self.settle()?;
        for client in 0..watcher {
            for _ in 0..self.random.below(4) {
                self.subscribe(client);
            }
        }
        self.settle()
    }

    pub(super) fn step(&mut self) -> Result<(), Failure> {
        let client = self.anyone();
        match self.plan.next_act(&mut self.random) {
            Act::Publish => self.publish(client),
            Act::CarryUp => {
                let all = self.clients.len();
                let client = self.random.below(all);
                self.carry_up(client);
            }
            Act::CarryDown => {
                let all = self.clients.len();
                let client = self.random.below(all);
                self.carry_down(client)?;
                let bytes = piece(&mut self.random);
                self.carry_left(bytes)?;
            }
            Act::Turn => {
                let all = self.machine.seats.len();
                let seat = self.random.below(all);
                self.machine.seats[seat].takes_a_turn();
            }
            Act::HalfTurn => {
                let all = self.machine.seats.len();
                let seat = self.random.below(all);
                self.machine.seats[seat].takes_half_a_turn();
            }
            Act::Flow => {
                self.flow()?;
            }
            Act::Subscribe => self.subscribe(client),
            Act::Unsubscribe => {
                let filter = self.random.pick(&FILTERS);
                let event = self.clients[client].unsubscribe(filter);
                self.note_all(event);
            }
            Act::Connect => {
                self.connect_many(60);
            }
            Act::TakeOver => self.take_over(client),
            Act::Cut => self.cut(client),
            Act::Silence => self.silence(client),
            Act::Goodbye => self.goodbye(client),
            Act::LastMessage => self.last_message()?,
            Act::TakeOverFull => self.take_over_full()?,
            Act::Tick => {
                let millis = 1 + self.random.below(400);
                self.pass(Duration::from_millis(millis as u64))?;
            }
            Act::Leap => self.leap()?,
            Act::Storm => self.storm(),
            Act::Settle => self.settle()?,
            Act::Commit => {
                self.machine.commit();
            }
            Act::Tidy => self.machine.tidy(),
            Act::DiskTrouble => self.trouble_disk(),
            Act::Crash => self.crash()?,
            Act::SetClock => self.set_clock()?,
            Act::Flood => self.flood(client),
            Act::Stall => self.stall()?,
            Act::Reload => self.reload(),
            Act::SinkWrites => self.sink_writes()?,
            Act::Ask => self.ask_for_sessions()?,
        }
        self.restart_after_power_loss()?;
        self.check_bounds()
    }

    fn publish(&mut self, client: ClientNumber) {
        for _ in 0..=self.random.below(5) {
            let kind = self.random.below(10);
            let kind = if self.plan.retains_most && kind > 2 {
                9
            } else {
                kind
            };
            let topic = match kind {
                0..=4 => self.random.pick(&PLAIN),
                5..=7 => self.random.pick(&SHARED),
                _ => self.random.pick(&RETAINED[client]),
            };
            let retain = kind >= 8;
            let number = self.number();
            let qos = if retain {
                // A topic has one quality of service: a message with QoS 1 that is repeated may
                // come after a later one with QoS 2.
                [QoS::AtLeastOnce, QoS::ExactlyOnce][client % 2]
            } else {
                any_qos(&mut self.random)
            };
            let message = Message {
                number,
                topic,
                qos,
                retain,
                is_empty: retain && self.random.percent(20),
                expiry_secs: self.random.percent(5).then_some(3),
            };
            let event = self.clients[client].publish(message);
            self.note_all(event);
        }
    }

    fn subscribe(&mut self, client: ClientNumber) {
        let filter = if self.plan.retains_most && self.random.percent(70) {
            self.random.pick(&["r/#", "r/+", "r/0/#"])
        } else {
            self.random.pick(&FILTERS)
        };
        let qos = if filter.starts_with("$share/") {
            self.random.pick(&[QoS::AtLeastOnce, QoS::ExactlyOnce])
        } else {
            any_qos(&mut self.random)
        };
        let event = self.clients[client].subscribe(filter, qos);
        self.note_all(event);
    }

    pub(super) fn connect_somehow(&mut self, client: ClientNumber) {
        let is_v5 = self.clients[client].version == Version::V5;
        let clean_start = self.random.percent(8) && (is_v5 || !self.plan.all_last);
        let expiry_secs = match (is_v5, clean_start) {
            (true, _) if self.plan.all_last => {
                self.random.pick(&[5, 30, 300, 300, EXPIRY_SECS_MAX])
            }
            (true, _) => self.random.pick(&[0, 0, 5, 30, 300, 300, EXPIRY_SECS_MAX]),
            (false, true) => 0,
            (false, false) => EXPIRY_SECS_MAX,
        };
        let will = self.random.percent(50).then(|| WillNote {
            number: self.number(),
            delay_secs: if is_v5 {
                self.random.pick(&[0, 0, 2, 20, 100])
            } else {
                0
            },
            qos: self.random.pick(&[QoS::AtLeastOnce, QoS::ExactlyOnce]),
        });
        let wish = Wish {
            clean_start,
            expiry_secs,
            keep_alive: if self.random.percent(15) { 12 } else { 0 },
            receive_maximum: if is_v5 {
                self.random.pick(&[0, 1, 2, 10])
            } else {
                0
            },
            topic_alias_maximum: self.random.pick(&[0, 1, 10]),
            will,
        };
        self.connect(client, wish);
    }

    /// A new connection while the node believes in the old one.
    fn take_over(&mut self, client: ClientNumber) {
        if has_connection(&self.clients[client]) {
            if self.random.percent(50) {
                self.cut(client);
            } else {
                self.silence(client);
            }
            self.connect_somehow(client);
        }
    }

    /// What is under way to the node and has not left the client is lost, and so is what the client
    /// has not read.
    pub(super) fn cut(&mut self, client: ClientNumber) {
        drop(self.end(client, Ending::Cut));
    }

    pub(super) fn silence(&mut self, client: ClientNumber) {
        if !has_connection(&self.clients[client]) {
            return;
        }
        // Packets that have left the client count as a sign of life at the latest now.
        self.turns();
        let keep_alive = self.clients[client].wish.map_or(0, |wish| wish.keep_alive);
        let silence = Millis::from(keep_alive) * 1500;
        let connecting = self.history.iter().rev().find(|entry| {
            matches!(entry.event, Event::Connecting { client: other, .. } if other == client)
        });
        let since = connecting.map_or(0, |entry| entry.at);
        let window = (since + silence, self.now() + silence + GRACE);
        let how = Ending::Silent((keep_alive > 0).then_some(window));
        let link = self.end(client, how);
        let silent = link.map(|link| self.clients[client].leaving(link));
        self.silent.extend(silent);
    }

    fn goodbye(&mut self, client: ClientNumber) {
        if self.clients[client].phase != Phase::Connected {
            return;
        }
        if self.random.percent(50) {
            // In one segment with the goodbye.
            self.publish(client);
        }
        self.say_goodbye(client);
    }

    /// DISCONNECT behind all that the client has written.
    pub(super) fn say_goodbye(&mut self, client: ClientNumber) {
        let is_v5 = self.clients[client].version == Version::V5;
        let with_will = is_v5 && self.random.percent(30);
        let lasts = self.clients[client]
            .wish
            .is_some_and(|wish| wish.expiry_secs > 0);
        let expiry_secs =
            (is_v5 && lasts && self.random.percent(40)).then(|| self.random.pick(&[0, 4, 40]));
        self.clients[client].goodbye(with_will, expiry_secs);
        if self.plan.scheme != Scheme::Mqtt
            && self.random.percent(50)
            && let Some(link) = &mut self.clients[client].link
        {
            link.end_layers();
        }
        self.carry_all_up(client);
        let link = self.clients[client].link.as_ref();
        let how = if link.is_some_and(Link::is_sent) {
            Ending::Goodbye {
                with_will,
                expiry_secs,
            }
        } else {
            Ending::Cut
        };
        let link = self.end(client, how).filter(|_| how != Ending::Cut);
        let leaving = link.map(|link| self.clients[client].leaving(link));
        self.leaving.extend(leaving);
        if how != Ending::Cut
            && expiry_secs == Some(0)
            && let Some(wish) = &mut self.clients[client].wish
        {
            // What was under way belongs to a session that is no more, if the node has read this.
            wish.expiry_secs = 0;
        }
    }

    /// Seconds pass, and everyone who wants to stay says so in time.
    pub(super) fn leap(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let mut rest = Duration::from_secs(self.random.pick(&[1, 3, 10, 40, 150]));
        while !rest.is_zero() {
            let portion = rest.min(PORTION);
            rest -= portion;
            self.pass(portion)?;
            for client in &mut self.clients {
                client.ping();
            }
            self.flow()?;
        }
        self.settle()
    }

    /// More questions than the node may keep answers to, from a client that does not read them.
    fn flood(&mut self, client: ClientNumber) {
        if !self.plan.has_floods {
            return;
        }
        for _ in 0..PINGS {
            self.clients[client].ping();
        }
        for _ in 0..2 {
            self.carry_all_up(client);
            self.turns();
        }
    }

    /// A worker gets other rules. The others follow, or do not.
    fn reload(&mut self) {
        if self.plan.has_rules {
            let all = self.machine.seats.len();
            let seat = self.random.below(all);
            self.machine.reload(seat, &self.plan);
        }
    }

    /// One worker takes no turns for a while, the others do, and everybody publishes.
    fn stall(&mut self) -> Result<(), Failure> {
        let all = self.machine.seats.len();
        let stalled = self.random.below(all);
        let before = self.mail_waiting();
        for _ in 0..STALLED_ROUNDS {
            for client in 0..self.watcher() {
                self.publish(client);
                self.carry_all_up(client);
            }
            for number in (0..all).filter(|number| *number != stalled) {
                self.machine.seats[number].takes_a_turn();
            }
            for client in 0..self.watcher() {
                self.carry_all_down(client)?;
            }
            self.check_mailboxes(&before)?;
        }
        Ok(())
    }

    /// Everyone loses the connection and comes back at once.
    pub(super) fn storm(&mut self) {
        for client in 0..self.watcher() {
            if self.random.percent(80) {
                self.cut(client);
            }
        }
        self.connect_many(80);
    }

    /// So many of a hundred who are away come back.
    fn connect_many(&mut self, percent: usize) {
        for client in 0..self.watcher() {
            if !has_connection(&self.clients[client]) && self.random.percent(percent) {
                self.connect_somehow(client);
            }
        }
    }
}
