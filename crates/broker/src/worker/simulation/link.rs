//! The network between a client and the node: bytes move when the run says so, in pieces, until someone cuts it.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use thrum_codec::{Packet, Version, decode, frame};

use super::random::Random;
use super::world::Failure;

/// One connection, seen from the client.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// Not yet in the network.
    pub(super) output: Vec<u8>,
    input: Vec<u8>,
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
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            output: Vec::new(),
            input: Vec::new(),
        }
    }

    /// Moves so many bytes towards the node at most.
    pub(super) fn carry_up(&mut self, bytes_max: usize) -> Carried {
        let len = self.output.len().min(bytes_max);
        if len == 0 {
            return Carried::Nothing;
        }
        match self.stream.write(&self.output[..len]) {
            Ok(written) => {
                self.output.drain(..written);
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
                self.input.extend_from_slice(&buffer[..read]);
                Carried::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Carried::Nothing,
            Err(_) => Carried::End,
        }
    }

    /// Hands every whole packet that has arrived to `handle`, which may write answers.
    pub(super) fn packets(
        &mut self,
        version: Version,
        mut handle: impl FnMut(Packet<'_>, &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
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
