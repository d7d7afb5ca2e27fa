//! The network between a client and the node: the run transfers bytes, in pieces, until it cuts the
//! connection.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use thrum_codec::{Packet, Version, decode, frame};
use thrum_transport::Layers;

use super::random::Random;
use super::websocket::{CLOSE, WebSocket};
use super::world::Failure;

/// One connection, seen from the client.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// MQTT bytes that are not yet in the network.
    pub(super) output: Vec<u8>,
    /// The encoded bytes for the network.
    wire: Vec<u8>,
    layer: Layer,
    input: Vec<u8>,
    /// CONNACK has arrived.
    is_answered: bool,
    fault: Option<Failure>,
}

/// The layers between client and node.
#[derive(Debug)]
pub(super) enum Layer {
    Nothing,
    WebSocket(WebSocket),
    /// With a WebSocket inside or without one.
    Tls(Box<Layers>),
}

impl Layer {
    pub(super) fn web_socket() -> Self {
        Self::WebSocket(WebSocket::default())
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transferred {
    Nothing,
    Bytes,
    /// The node closed the connection, or it is broken.
    End,
}

impl Link {
    pub(super) fn new(stream: UnixStream, mut layer: Layer) -> Self {
        let mut wire = Vec::new();
        match &mut layer {
            Layer::Nothing => {}
            Layer::WebSocket(_) => wire = WebSocket::request(),
            Layer::Tls(layers) => layers.start(&mut wire).expect("random numbers"),
        }
        Self {
            stream,
            output: Vec::new(),
            wire,
            layer,
            input: Vec::new(),
            is_answered: false,
            fault: None,
        }
    }

    /// Whether all output is in the network.
    pub(super) fn is_sent(&self) -> bool {
        self.output.is_empty() && self.wire.is_empty()
    }

    /// Ends the layer right behind the output of the client.
    pub(super) fn end_layers(&mut self) {
        self.wrap_output();
        match &mut self.layer {
            Layer::Nothing => {}
            Layer::WebSocket(_) => WebSocket::frame(CLOSE, &[], &mut self.wire),
            Layer::Tls(layers) => layers.close(&mut self.wire),
        }
    }

    /// Encodes the output of the client, which waits until a handshake is complete.
    fn wrap_output(&mut self) {
        if self.output.is_empty() {
            return;
        }
        match &mut self.layer {
            Layer::Nothing => self.wire.append(&mut self.output),
            Layer::WebSocket(_) => WebSocket::wrap(&self.output, &mut self.wire),
            Layer::Tls(layers) if layers.is_open() => {
                let sent = layers.send(&self.output, &mut self.wire);
                self.fault = self.fault.take().or_else(|| Some(sent.err()?.to_string()));
            }
            Layer::Tls(_) => return,
        }
        self.output.clear();
    }

    /// Transfers at most `bytes_max` bytes to the node.
    pub(super) fn transfer_to_node(&mut self, bytes_max: usize) -> Transferred {
        self.wrap_output();
        let len = self.wire.len().min(bytes_max);
        if len == 0 {
            return Transferred::Nothing;
        }
        match self.stream.write(&self.wire[..len]) {
            Ok(written) => {
                self.wire.drain(..written);
                Transferred::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Transferred::Nothing,
            Err(_) => Transferred::End,
        }
    }

    /// Transfers at most `bytes_max` bytes to the client.
    pub(super) fn transfer_to_client(&mut self, bytes_max: usize) -> Transferred {
        let mut buffer = [0; 4096];
        let len = buffer.len().min(bytes_max);
        match self.stream.read(&mut buffer[..len]) {
            Ok(0) => Transferred::End,
            Ok(read) => {
                let arrived = &mut buffer[..read];
                let fault = match &mut self.layer {
                    Layer::Nothing => {
                        self.input.extend_from_slice(arrived);
                        None
                    }
                    Layer::WebSocket(web_socket) => {
                        web_socket.unwrap(arrived, &mut self.input).err()
                    }
                    Layer::Tls(layers) => {
                        let received = layers.receive(arrived, &mut self.input, &mut self.wire);
                        received.err().map(|error| error.to_string())
                    }
                };
                self.fault = self.fault.take().or(fault);
                Transferred::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Transferred::Nothing,
            Err(_) => Transferred::End,
        }
    }

    /// Whether the bytes that have arrived are whole packets.
    pub(super) fn has_whole_packets(&self) -> bool {
        self.input.is_empty()
    }

    /// The received part of an incomplete packet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.input
    }

    /// Hands every whole packet that has arrived to `handle`, which may write answers.
    pub(super) fn packets(
        &mut self,
        version: Version,
        mut handle: impl FnMut(Packet<'_>, &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        loop {
            let split = frame::split(&input[at..], u32::MAX);
            let Some(frame) =
                split.map_err(|error| format!("bytes that are no packet: {error}"))?
            else {
                break;
            };
            at += frame.len;
            let packet = decode(frame, version)
                .map_err(|error| format!("a packet that cannot be decoded: {error}"))?;
            // [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.14.0-1]
            let is_answer = matches!(packet, Packet::ConnAck(_));
            if self.is_answered == is_answer {
                return Err(format!("not the one CONNACK in front: {packet:?}"));
            }
            self.is_answered = true;
            handle(packet, &mut self.output)?;
        }
        self.input = input[at..].to_vec();
        Ok(())
    }
}

/// A random transfer size: mostly a few bytes, sometimes unlimited.
pub(super) fn piece(random: &mut Random) -> usize {
    match random.below(8) {
        0 => 1 + random.below(3),
        1..=3 => 1 + random.below(40),
        4..=5 => 1 + random.below(600),
        _ => 4096,
    }
}
