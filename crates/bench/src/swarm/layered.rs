//! Bytes of clients with TLS or WebSocket: through their layers on the way in and out.

use thrum_transport::LayerError;

use super::Swarm;
use super::outbox::slot;
use super::peer::Step;

impl Swarm {
    /// The TCP connection is up: starts the handshakes; false if there are none.
    pub(super) fn begin_layers(&mut self, peer: u32) -> bool {
        let state = &mut self.peers[slot(peer)];
        let connector = &self.setup.targets[self.groups[slot(state.group)].target].connector;
        let Some(mut layers) = connector.layers() else {
            return false;
        };
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        let started = layers.start(&mut wire);
        state.extra().layers = Some(layers);
        state.step = Step::Securing;
        self.finish_layers(peer, started, wire);
        true
    }

    /// Takes bytes of the socket through the layers; the MQTT bytes in them are appended to
    /// `plain`.
    pub(super) fn unwrap(&mut self, peer: u32, bytes: &mut [u8], plain: &mut Vec<u8>) {
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        let state = &mut self.peers[slot(peer)];
        let Some(layers) = state.extra.as_mut().and_then(|extra| extra.layers.as_mut()) else {
            return;
        };
        let received = layers.receive(bytes, plain, &mut wire);
        let is_open = layers.is_open();
        self.finish_layers(peer, received, wire);
        if is_open && self.peers[slot(peer)].step == Step::Securing {
            self.send_connect(peer);
        }
    }

    /// Takes MQTT's bytes through the layers, if there are any, and writes them.
    pub(super) fn wrap_and_write(&mut self, peer: u32, bytes: &[u8]) {
        let state = &mut self.peers[slot(peer)];
        let Some(layers) = state.extra.as_mut().and_then(|extra| extra.layers.as_mut()) else {
            self.write(peer, bytes);
            return;
        };
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        let sent = layers.send(bytes, &mut wire);
        self.finish_layers(peer, sent, wire);
    }

    fn finish_layers(&mut self, peer: u32, outcome: Result<(), LayerError>, wire: Vec<u8>) {
        // An alert for the broker may be in there even if this end gives up.
        let is_step = self.peers[slot(peer)].step == Step::Securing;
        let called_ns = if is_step { self.now_ns() } else { 0 };
        self.write(peer, &wire);
        if is_step {
            self.note_step_written(peer, called_ns);
        }
        self.wire = wire;
        if let Err(error) = outcome {
            self.lose(peer, &error.to_string());
        }
    }
}
