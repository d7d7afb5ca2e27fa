//! The operator stops and starts listeners, and has certificates read again.

use crate::config::Config;
use crate::control::Settling;
use crate::listener::{Change, StartError};
use crate::node::Broker;

impl Broker {
    /// The configuration without the addresses of listeners that the operator has stopped. Their
    /// tables stay: others may use their TLS.
    pub(super) fn without_stopped(&self, config: &Config) -> Config {
        let mut config = config.clone();
        for name in &*self.control.stopped() {
            if let Some(listener) = config.listeners.get_mut(name) {
                listener.bind.clear();
            }
        }
        config
    }

    /// Closes the addresses of a listener until it is started again, or the broker is; they are
    /// closed when the returned [`Settling`] ends. None if there is no such listener.
    ///
    /// Its clients stay, but for those of QUIC, which have no sockets of their own. No file is
    /// read, so that this works whatever the others are like.
    pub fn stop_listener(&mut self, name: &str) -> Option<Settling> {
        if !self.control.config().listeners.contains_key(name) {
            return None;
        }
        self.control.stopped().insert(name.to_owned());
        let changes = self.standing.close(name, self.node.workers());
        self.send_changes(changes);
        self.control.set_listening(&self.standing);
        Some(Settling::begin(&self.node))
    }

    /// Opens the addresses of a listener that was stopped; false if there is no such listener.
    ///
    /// # Errors
    /// An address cannot be bound, or the configuration cannot be put in force again; then it stays
    /// stopped.
    pub fn start_listener(&mut self, name: &str) -> Result<bool, StartError> {
        let config = self.control.config();
        if !config.listeners.contains_key(name) {
            return Ok(false);
        }
        let was_stopped = self.control.stopped().remove(name);
        let opened = self.prepare(&config).and_then(|plan| self.carry_out(plan));
        if opened.is_err() && was_stopped {
            self.control.stopped().insert(name.to_owned());
        }
        opened.map(|()| true)
    }

    /// Disconnects the clients of a listener (0x98).
    pub fn disconnect_listener(&self, name: &str) {
        let gates = self.node.gates.of_listener(name);
        let workers = 0..self.node.workers();
        let change = || vec![Change::Disconnect(gates.clone())];
        self.send_changes(workers.map(|_| change()).collect());
    }

    /// Reads the TLS files of all listeners again, whether they have changed or not; returns the
    /// reason for each listener whose files cannot be used, which keeps those it has.
    pub fn renew_certificates(&mut self) -> Vec<StartError> {
        let config = self.control.config();
        let now = self.node.clock.wall_now();
        self.certificates.renew_all(&config, &self.standing, now)
    }
}
