//! The listeners of the configuration, and what goes through them.

use std::sync::Arc;

use thrum_transport::ServerCertificate;

use super::sender::QuerySender;
use crate::config::ListenerConfig;
use crate::listener::{Gate, Listening};

/// One listener of the configuration.
#[derive(Clone, Debug)]
pub struct ListenerState {
    /// Name in the configuration.
    pub name: String,
    /// Its settings.
    pub config: ListenerConfig,
    /// The operator has stopped it.
    pub is_stopped: bool,
    /// Open addresses.
    pub addresses: Vec<Listening>,
    /// Connections through it, those in their handshake among them. Those of HTTP that are no
    /// clients of MQTT are not counted.
    pub connections: u64,
    /// Connections that were refused because of its `max_connections`, since the start.
    pub over_limit: u64,
    /// The certificates that it shows; none without TLS.
    pub certificates: Vec<ServerCertificate>,
}

/// See [`Queries::listeners`](super::Queries::listeners).
pub(super) fn listeners(sender: &QuerySender) -> Vec<ListenerState> {
    let control = &sender.control;
    let configured = control.with_config(|config| config.listeners.clone());
    let open = control.listening().clone();
    let gates: Vec<Arc<Gate>> = control.gates().clone();
    let http = control.http().clone();
    let stopped = control.stopped().clone();
    let states = configured.into_iter().map(|(name, config)| {
        let gate = gates.iter().find(|gate| *gate.name == *name);
        let port = http.iter().find(|port| port.listening().listener == name);
        let certificates = match (port, gate) {
            (Some(port), _) => port.certificates(),
            (None, Some(gate)) => gate.acceptor().certificates().to_vec(),
            (None, None) => Vec::new(),
        };
        let its = open.iter().filter(|one| one.listener == name);
        ListenerState {
            is_stopped: stopped.contains(&name),
            addresses: its.cloned().collect(),
            connections: gate.map_or(0, |gate| gate.connections().0.into()),
            over_limit: gate.map_or(0, |gate| gate.over_limit()),
            certificates,
            config,
            name,
        }
    });
    states.collect()
}
