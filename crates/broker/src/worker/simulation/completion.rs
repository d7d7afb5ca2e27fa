//! The end of a run: without faults all expected messages arrive, all clients disconnect, and no
//! state is left.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_engine::node::metrics::Counter;
use thrum_storage::RecoveredSession;

use super::client::ConnectOptions;
use super::history::{ClientNumber, Ending, Event, Message, RETAINED};
use super::world::{Failure, World, has_connection};

/// Longer than the draining of a connection, any will delay and any keep alive.
const LONG: Duration = Duration::from_secs(200);

impl World {
    pub(super) fn complete(&mut self) -> Result<(), Failure> {
        self.reconnect_all()?;
        self.record(Event::Drained);
        self.inspect()?;
        self.disconnect_all()?;
        self.check_timelines()?;
        self.check_leftovers()
    }

    fn reconnect_all(&mut self) -> Result<(), Failure> {
        self.detect_silent();
        self.settle()?;
        for client in 0..self.clients.len() {
            let expiry_secs = self.clients[client]
                .options
                .map_or(0, |options| options.expiry_secs);
            if !has_connection(&self.clients[client]) && expiry_secs > 0 {
                self.connect(client, ConnectOptions::lasting(expiry_secs));
            }
        }
        self.settle()
    }

    fn inspect(&mut self) -> Result<(), Failure> {
        let client = self.clients.len();
        let inspector = self.new_client(client, Version::V5);
        self.clients.push(inspector);
        self.connect(client, ConnectOptions::clean());
        self.settle()?;
        let event = self.clients[client].subscribe("r/#", QoS::AtLeastOnce);
        self.record_all(event);
        self.settle()?;
        self.record(Event::Inspected { client });
        self.disconnect_and_close(client);
        self.settle()?;
        self.clients.pop();
        Ok(())
    }

    /// Disconnects all clients; the watcher stays until the last will has arrived.
    fn disconnect_all(&mut self) -> Result<(), Failure> {
        // A full sink could refuse messages that remove retained ones.
        self.machine.remove_sink();
        self.record(Event::SinkRemoved);
        let watcher = self.watcher();
        self.disconnect_clean(0..watcher)?;
        self.advance_time(LONG)?;
        self.settle()?;
        self.is_watched = false;
        self.disconnect_clean(watcher..watcher + 1)?;
        self.advance_time(LONG)?;
        self.settle()
    }

    /// Ends sessions and removes the retained messages of their clients.
    fn disconnect_clean(&mut self, clients: Range<ClientNumber>) -> Result<(), Failure> {
        for client in clients.clone() {
            self.cut(client);
            self.connect(client, ConnectOptions::clean());
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
            self.record_all(event);
        }
        self.settle()?;
        for client in clients {
            self.disconnect_and_close(client);
        }
        self.settle()
    }

    fn disconnect_and_close(&mut self, client: ClientNumber) {
        self.clients[client].disconnect(false, None);
        self.transfer_all_to_node(client);
        drop(self.end(
            client,
            Ending::Disconnect {
                with_will: false,
                expiry_secs: None,
            },
        ));
    }

    fn check_leftovers(&mut self) -> Result<(), Failure> {
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
            // Lanes between workers stay until the next start; only their contents count.
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
        for worker in &self.machine.workers {
            let worker = &worker.inner;
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
            "all clients have disconnected, but there are {} {details}",
            left.join(", ")
        ))
    }
}
