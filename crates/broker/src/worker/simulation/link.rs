//! The network between a client and the node: bytes move when the run says so, in pieces, until someone cuts it.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use thrum_codec::{Packet, Version, decode, frame};

use super::random::Random;
use super::websocket::{CLOSE, WebSocket};
use super::world::Failure;

/// One connection, seen from the client.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// MQTT that is not yet in the network.
    pub(super) output: Vec<u8>,
    /// The same as the network gets it.
    wire: Vec<u8>,
    /// The layer between them, if there is one.
    web_socket: Option<WebSocket>,
    input: Vec<u8>,
    fault: Option<Failure>,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    Nothing,
    Bytes,
    /// The node closed the connection, or it is broken.
    End,
}

impl Link {
    pub(super) fn new(stream: UnixStream, has_web_socket: bool) -> Self {
        Self {
            stream,
            output: Vec::new(),
            wire: if has_web_socket {
                WebSocket::request()
            } else {
                Vec::new()
            },
            web_socket: has_web_socket.then(WebSocket::default),
            input: Vec::new(),
            fault: None,
        }
    }

    /// Everything is in the network.
    pub(super) fn is_sent(&self) -> bool {
        self.output.is_empty() && self.wire.is_empty()
    }

    /// The client's last frame comes right behind what it has written.
    pub(super) fn end_web_socket(&mut self) {
        if self.web_socket.is_some() {
            self.wrap_output();
            WebSocket::frame(CLOSE, &[], &mut self.wire);
        }
    }

    fn wrap_output(&mut self) {
        let output = std::mem::take(&mut self.output);
        if self.web_socket.is_none() {
            self.wire.extend_from_slice(&output);
        } else if !output.is_empty() {
            WebSocket::wrap(&output, &mut self.wire);
        }
    }

    /// Moves so many bytes towards the node at most.
    pub(super) fn carry_up(&mut self, bytes_max: usize) -> Carried {
        self.wrap_output();
        let len = self.wire.len().min(bytes_max);
        if len == 0 {
            return Carried::Nothing;
        }
        match self.stream.write(&self.wire[..len]) {
            Ok(written) => {
                self.wire.drain(..written);
                Carried::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Carried::Nothing,
            Err(_) => Carried::End,
        }
    }

    /// Moves so many bytes towards the client at most.
    pub(super) fn carry_down(&mut self, bytes_max: usize) -> Carried {
        let mut buffer = [0; 4096];
        let len = buffer.len().min(bytes_max);
        match self.stream.read(&mut buffer[..len]) {
            Ok(0) => Carried::End,
            Ok(read) => {
                match &mut self.web_socket {
                    None => self.input.extend_from_slice(&buffer[..read]),
                    Some(web_socket) => {
                        let unwrapped = web_socket.unwrap(&buffer[..read], &mut self.input);
                        self.fault = self.fault.take().or_else(|| unwrapped.err());
                    }
                }
                Carried::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Carried::Nothing,
            Err(_) => Carried::End,
        }
    }

    /// Whether the bytes that have arrived are whole packets.
    pub(super) fn has_whole_packets(&self) -> bool {
        self.input.is_empty()
    }

    /// What has arrived of a packet that is not whole.
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
            handle(packet, &mut self.output)?;
        }
        self.input = input[at..].to_vec();
        Ok(())
    }
}

/// A piece of a network: mostly a few bytes, sometimes all there is.
pub(super) fn piece(random: &mut Random) -> usize {
    match random.below(8) {
        0 => 1 + random.below(3),
        1..=3 => 1 + random.below(40),
        4..=5 => 1 + random.below(600),
        _ => 4096,
    }
}
