//! The end of a run: everything heals, what is owed is paid, and nothing is left.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_engine::node::metrics::Counter;
use thrum_storage::RecoveredSession;

use super::client::Wish;
use super::history::{ClientNumber, Ending, Event, Message, RETAINED};
use super::world::{Failure, World, has_connection};

/// Longer than a connection is drained, than any will waits and any keep alive lasts.
const LONG: Duration = Duration::from_secs(200);

impl World {
    pub(super) fn finale(&mut self) -> Result<(), Failure> {
        self.everyone_is_there()?;
        self.note(Event::Drained);
        self.inspect()?;
        self.everyone_leaves()?;
        self.nothing_is_left()
    }

    fn everyone_is_there(&mut self) -> Result<(), Failure> {
        self.bury_silent();
        self.settle()?;
        for client in 0..self.clients.len() {
            let expiry_secs = self.clients[client].wish.map_or(0, |wish| wish.expiry_secs);
            if !has_connection(&self.clients[client]) && expiry_secs > 0 {
                self.connect(client, Wish::lasting(expiry_secs));
            }
        }
        self.settle()
    }

    fn inspect(&mut self) -> Result<(), Failure> {
        let client = self.clients.len();
        let inspector = self.newcomer(client, Version::V5);
        self.clients.push(inspector);
        self.connect(client, Wish::clean());
        self.settle()?;
        let event = self.clients[client].subscribe("r/#", QoS::AtLeastOnce);
        self.note_all(event);
        self.settle()?;
        self.note(Event::Inspected { client });
        self.leave(client);
        self.settle()?;
        self.clients.pop();
        Ok(())
    }

    /// The watcher stays until the last will has come.
    fn everyone_leaves(&mut self) -> Result<(), Failure> {
        // It might refuse what removes retained messages.
        self.machine.remove_sink();
        self.note(Event::SinkRemoved);
        let watcher = self.watcher();
        self.leave_clean(0..watcher)?;
        self.pass(LONG)?;
        self.settle()?;
        self.is_watched = false;
        self.leave_clean(watcher..watcher + 1)?;
        self.pass(LONG)?;
        self.settle()
    }

    /// Sessions end, and with them what their clients have retained.
    fn leave_clean(&mut self, clients: Range<ClientNumber>) -> Result<(), Failure> {
        for client in clients.clone() {
            self.cut(client);
            self.connect(client, Wish::clean());
        }
        self.settle()?;
        let own = |client: ClientNumber| RETAINED[client].map(|topic| (client, topic));
        for (client, topic) in clients.clone().flat_map(own) {
            let number = self.number();
            let event = self.clients[client].publish(Message {
                number,
                topic,
                qos: QoS::AtLeastOnce,
                retain: true,
                is_empty: true,
                expiry_secs: None,
            });
            self.note_all(event);
        }
        self.settle()?;
        for client in clients {
            self.leave(client);
        }
        self.settle()
    }

    fn leave(&mut self, client: ClientNumber) {
        self.clients[client].goodbye(false, None);
        self.carry_all_up(client);
        drop(self.end(
            client,
            Ending::Goodbye {
                with_will: false,
                expiry_secs: None,
            },
        ));
    }

    fn nothing_is_left(&mut self) -> Result<(), Failure> {
        let mut left = Vec::new();
        let mut details = String::new();
        let mut count = |what: &str, number: u64| {
            if number > 0 {
                left.push(format!("{number} {what}"));
            }
        };
        let node = Arc::clone(&self.machine.node);
        let total = |counter| node.state.metrics.total(counter);
        count("sessions counted", total(Counter::Sessions));
        count("clients counted", total(Counter::ClientsConnected));
        count("subscriptions counted", total(Counter::Subscriptions));
        count("memberships counted", total(Counter::SharedSubscriptions));
        count("held publishers", total(Counter::PublishersHeld));
        count("bytes of held publishers", total(Counter::BytesHeld));
        let holding = node.state.holding.load(Ordering::Relaxed);
        count("sessions that hold publishers", holding as u64);
        count("sockets", node.open_sockets());
        let (retained, bytes) = node.state.retained.size();
        count("retained messages", retained as u64);
        count("bytes of retained messages", bytes as u64);
        count("client identifiers", node.state.registry.len() as u64);
        count("filters of the node", node.state.interest.len() as u64);
        if let Some(disk) = &self.disk {
            let found = self.machine.close(disk);
            details = format!("{found:?}");
            // Lanes between workers stay until the next start; only what is in them counts.
            let is_left = |session: &&RecoveredSession| {
                !session.is_of_node() || !session.deliveries.is_empty()
            };
            let left = found.sessions.iter().filter(is_left);
            count("sessions on the disk", left.count() as u64);
            count("messages on the disk", found.messages.len() as u64);
            count("topics on the disk", found.retained.len() as u64);
            let orphans = found.orphans;
            let orphans = orphans.sessions + orphans.deliveries + orphans.retained;
            count("orphans on the disk", orphans);
        }
        for seat in &self.machine.seats {
            let worker = &seat.worker;
            count("connections", worker.traffic.edge.connections.len() as u64);
            count("sessions", worker.traffic.engine.core.sessions.len() as u64);
            let [filters, nearly_full] = worker.traffic.engine.router.topics.counts();
            count("filters", filters as u64);
            count("filters that are nearly full", nearly_full as u64);
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(format!(
            "everyone left, but there are {} {details}",
            left.join(", ")
        ))
    }
}
