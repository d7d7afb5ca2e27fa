//! Steps of a run, one after the other.

use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_transport::Scheme;

use super::client::{ConnectOptions, Phase};
use super::history::{
    ClientNumber, Ending, Event, Message, Millis, PLAIN, RETAINED, SHARED, SentWill,
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
/// Longest step of time, so that clients with a keep alive can ping.
const PORTION: Duration = Duration::from_secs(5);
/// More PINGRESP packets than the node buffers.
const PINGS: usize = 100_000;
/// Turns of the other workers while one is stalled.
const STALLED_ROUNDS: usize = 40;
/// Extra milliseconds before the keep alive ends a connection that the node does not read.
const GRACE: Millis = 31_000;

impl World {
    /// A random client other than the watcher.
    pub(super) fn random_client(&mut self) -> ClientNumber {
        let watcher = self.watcher();
        self.random.below(watcher)
    }

    /// Subscribes the watcher to the wills, and connects and subscribes most other clients.
    pub(super) fn set_up(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let watcher = self.watcher();
        let event = self.clients[watcher].subscribe("w/+", QoS::ExactlyOnce);
        self.record_all(event);
        for client in 0..watcher {
            if self.random.percent(85) {
                self.connect_randomly(client);
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
        let client = self.random_client();
        match self.plan.next_act(&mut self.random) {
            Act::Publish => self.publish(client),
            Act::TransferToNode => {
                let all = self.clients.len();
                let client = self.random.below(all);
                self.transfer_to_node(client);
            }
            Act::TransferToClient => {
                let all = self.clients.len();
                let client = self.random.below(all);
                self.transfer_to_client(client)?;
                let bytes = piece(&mut self.random);
                self.read_old_connections(bytes)?;
            }
            Act::Turn => {
                let all = self.machine.workers.len();
                let worker = self.random.below(all);
                self.machine.workers[worker].run_turn();
            }
            Act::HalfTurn => {
                let all = self.machine.workers.len();
                let worker = self.random.below(all);
                self.machine.workers[worker].run_half_turn();
            }
            Act::Flow => {
                self.flow()?;
            }
            Act::Subscribe => self.subscribe(client),
            Act::Unsubscribe => {
                let filter = self.random.pick(&FILTERS);
                let event = self.clients[client].unsubscribe(filter);
                self.record_all(event);
            }
            Act::Connect => {
                self.connect_many(60);
            }
            Act::TakeOver => self.take_over(client),
            Act::Cut => self.cut(client),
            Act::Silence => self.silence(client),
            Act::Disconnect => self.disconnect(client),
            Act::DisconnectAfterPublish => self.disconnect_after_publish()?,
            Act::TakeOverSlowClient => self.take_over_slow_client()?,
            Act::Tick => {
                let millis = 1 + self.random.below(400);
                self.advance_time(Duration::from_millis(millis as u64))?;
            }
            Act::SkipTime => self.skip_time()?,
            Act::MassReconnect => self.mass_reconnect(),
            Act::Settle => self.settle()?,
            Act::Commit => {
                self.machine.commit();
            }
            Act::Tidy => self.machine.tidy(),
            Act::DiskFaults => self.inject_disk_faults(),
            Act::Crash => self.crash()?,
            Act::SetClock => self.set_clock()?,
            Act::Flood => self.flood(client),
            Act::Stall => self.stall()?,
            Act::Reload => self.reload(),
            Act::WriteToSink => self.write_some_to_sink()?,
            Act::ListSessions => {
                self.begin_trace()?;
                self.list_sessions()?;
            }
        }
        self.restart_after_power_loss()?;
        self.check_trace()?;
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
                // A topic has one quality of service: a repeated message with QoS 1 may arrive
                // after a later one with QoS 2.
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
            self.record_all(event);
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
        self.record_all(event);
    }

    pub(super) fn connect_randomly(&mut self, client: ClientNumber) {
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
        let will = self.random.percent(50).then(|| SentWill {
            number: self.number(),
            delay_secs: if is_v5 {
                self.random.pick(&[0, 0, 2, 20, 100])
            } else {
                0
            },
            qos: self.random.pick(&[QoS::AtLeastOnce, QoS::ExactlyOnce]),
        });
        let options = ConnectOptions {
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
        self.connect(client, options);
    }

    /// Reconnects while the old connection is established for the node.
    fn take_over(&mut self, client: ClientNumber) {
        if has_connection(&self.clients[client]) {
            if self.random.percent(50) {
                self.cut(client);
            } else {
                self.silence(client);
            }
            self.connect_randomly(client);
        }
    }

    /// Cuts the connection: bytes that have not left the client, or that it has not read, are lost.
    pub(super) fn cut(&mut self, client: ClientNumber) {
        drop(self.end(client, Ending::Cut));
    }

    pub(super) fn silence(&mut self, client: ClientNumber) {
        if !has_connection(&self.clients[client]) {
            return;
        }
        // Packets that have left the client restart the keep alive now at the latest.
        self.turns();
        let keep_alive = self.clients[client]
            .options
            .map_or(0, |options| options.keep_alive);
        let silence = Millis::from(keep_alive) * 1500;
        let connecting = self.history.iter().rev().find(|entry| {
            matches!(entry.event, Event::Connecting { client: other, .. } if other == client)
        });
        let since = connecting.map_or(0, |entry| entry.at);
        let window = (since + silence, self.now() + silence + GRACE);
        let how = Ending::Silent((keep_alive > 0).then_some(window));
        let link = self.end(client, how);
        let silent = link.map(|link| self.clients[client].old_connection(link));
        self.silent.extend(silent);
    }

    fn disconnect(&mut self, client: ClientNumber) {
        if self.clients[client].phase != Phase::Connected {
            return;
        }
        if self.random.percent(50) {
            // Messages in the same segment as DISCONNECT.
            self.publish(client);
        }
        self.send_disconnect(client);
    }

    /// Sends DISCONNECT behind all other packets of the client.
    pub(super) fn send_disconnect(&mut self, client: ClientNumber) {
        let is_v5 = self.clients[client].version == Version::V5;
        let with_will = is_v5 && self.random.percent(30);
        let lasts = self.clients[client]
            .options
            .is_some_and(|options| options.expiry_secs > 0);
        let expiry_secs =
            (is_v5 && lasts && self.random.percent(40)).then(|| self.random.pick(&[0, 4, 40]));
        self.clients[client].disconnect(with_will, expiry_secs);
        if self.plan.scheme != Scheme::Mqtt
            && self.random.percent(50)
            && let Some(link) = &mut self.clients[client].link
        {
            link.end_layers();
        }
        self.transfer_all_to_node(client);
        let link = self.clients[client].link.as_ref();
        let how = if link.is_some_and(Link::is_sent) {
            Ending::Disconnect {
                with_will,
                expiry_secs,
            }
        } else {
            Ending::Cut
        };
        let link = self.end(client, how).filter(|_| how != Ending::Cut);
        let disconnected = link.map(|link| self.clients[client].old_connection(link));
        self.disconnected.extend(disconnected);
        if how != Ending::Cut
            && expiry_secs == Some(0)
            && let Some(options) = &mut self.clients[client].options
        {
            // The session and its messages are gone, if the node has read this.
            options.expiry_secs = 0;
        }
    }

    /// Lets seconds pass, in which all clients ping in time.
    pub(super) fn skip_time(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let mut rest = Duration::from_secs(self.random.pick(&[1, 3, 10, 40, 150]));
        while !rest.is_zero() {
            let portion = rest.min(PORTION);
            rest -= portion;
            self.advance_time(portion)?;
            for client in &mut self.clients {
                client.ping();
            }
            self.flow()?;
        }
        self.settle()
    }

    /// Sends more PINGREQ packets than the node may buffer answers to; the client does not read
    /// them.
    fn flood(&mut self, client: ClientNumber) {
        if !self.plan.has_floods {
            return;
        }
        for _ in 0..PINGS {
            self.clients[client].ping();
        }
        for _ in 0..2 {
            self.transfer_all_to_node(client);
            self.turns();
        }
    }

    /// Reloads the rules of one worker; the others may follow later.
    fn reload(&mut self) {
        if self.plan.has_rules {
            let all = self.machine.workers.len();
            let worker = self.random.below(all);
            self.machine.reload(worker, &self.plan);
        }
    }

    /// Stalls one worker for a while, while all clients publish.
    fn stall(&mut self) -> Result<(), Failure> {
        let all = self.machine.workers.len();
        let stalled = self.random.below(all);
        let before = self.mail_waiting();
        for _ in 0..STALLED_ROUNDS {
            for client in 0..self.watcher() {
                self.publish(client);
                self.transfer_all_to_node(client);
            }
            for number in (0..all).filter(|number| *number != stalled) {
                self.machine.workers[number].run_turn();
            }
            for client in 0..self.watcher() {
                self.transfer_all_to_client(client)?;
            }
            self.check_mailboxes(&before)?;
        }
        Ok(())
    }

    /// Cuts most connections, and reconnects most clients at once.
    pub(super) fn mass_reconnect(&mut self) {
        for client in 0..self.watcher() {
            if self.random.percent(80) {
                self.cut(client);
            }
        }
        self.connect_many(80);
    }

    /// Reconnects this percentage of the disconnected clients.
    fn connect_many(&mut self, percent: usize) {
        for client in 0..self.watcher() {
            if !has_connection(&self.clients[client]) && self.random.percent(percent) {
                self.connect_randomly(client);
            }
        }
    }
}
