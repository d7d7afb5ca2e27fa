//! Access of benchmarks to the tables that all workers of a node share.

use std::sync::Arc;

use thrum_transport::Acceptor;

use crate::config::{CertificateName, ListenerConfig};
use crate::listener::{Gate, GateParts, Gates};

/// The counts of connections of some listeners over plain TCP.
#[derive(Debug)]
pub struct ListenerCounts {
    gates: Gates,
    each: Vec<Arc<Gate>>,
}

impl ListenerCounts {
    /// Counts of this number of listeners.
    pub fn new(listeners: usize) -> Self {
        let config = ListenerConfig::default();
        let gate = |number: usize| {
            let plain = Acceptor::new(None, None).expect("plain TCP needs nothing");
            let name = format!("listener-{number}");
            Arc::new(Gate::new(
                &name,
                GateParts {
                    config: &config,
                    acceptor: plain,
                    username: CertificateName::None,
                },
                None,
            ))
        };
        Self {
            gates: Gates::new(1),
            each: (0..listeners).map(gate).collect(),
        }
    }

    /// Counts an accepted socket; false if its listener is full.
    pub fn accept(&self, listener: usize) -> bool {
        let gate = &self.each[listener];
        self.gates.open_sockets() < u64::MAX && self.gates.enter(gate) && gate.layers().is_none()
    }

    /// Counts a closed socket.
    pub fn close(&self, listener: usize) {
        self.gates.leave(&self.each[listener]);
    }

    /// Whether the listener has rates, as checked for each packet of a client with a rate.
    pub fn has_rates(&self, listener: usize) -> bool {
        self.each[listener].scope().paces.messages.is_some()
    }
}
