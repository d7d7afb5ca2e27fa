//! Bytes from a socket to packets to counts.

use std::io::{ErrorKind, Read};

use thrum_codec::{PacketId, ReasonCode, decode, frame};
use thrum_protocol::client::Event;

use super::Swarm;
use super::outbox::{Stalled, slot};
use super::peer::Step;
use super::ramp::reason_of;
use crate::clock;

/// Bytes that wait for a socket before its client is no longer read: a broker that does not take
/// acknowledgements gets no more of them.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;

/// What one read found.
enum Chunk {
    /// Everything there was.
    Drained,
    /// As much as the buffer holds; there may be more.
    Full,
}

impl Swarm {
    /// Reads all that a socket has.
    pub(super) fn handle_readable(&mut self, peer: u32, is_closing: bool) {
        loop {
            if self.is_paused(peer) {
                return;
            }
            match self.read_chunk(peer) {
                // The end of the stream shows only in a further read.
                Ok(Chunk::Drained) if !is_closing => return,
                Ok(Chunk::Drained | Chunk::Full) => {}
                Err(None) => return,
                Err(Some(reason)) => {
                    self.lose(peer, reason);
                    return;
                }
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= self.next_due_ns {
                self.send_due(now_ns);
            }
        }
    }

    fn is_paused(&mut self, peer: u32) -> bool {
        let Some(stalled) = &mut self.peers[slot(peer)].stalled else {
            return false;
        };
        stalled.paused = stalled.unsent.len() > UNSENT_BYTES_MAX;
        stalled.paused
    }

    /// One read and all packets in it; `Err(None)` when there was nothing to read.
    fn read_chunk(&mut self, peer: u32) -> Result<Chunk, Option<String>> {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let outcome = self.read_into(peer, &mut buffer);
        self.read_buffer = buffer;
        outcome
    }

    fn read_into(&mut self, peer: u32, buffer: &mut Vec<u8>) -> Result<Chunk, Option<String>> {
        let state = &mut self.peers[slot(peer)];
        let Some(stream) = &mut state.stream else {
            return Err(None);
        };
        let kept = match &mut state.stalled {
            Some(stalled) => {
                let kept = stalled.partial.len();
                if kept + super::READ_BUFFER_BYTES > buffer.len() {
                    buffer.resize(kept + super::READ_BUFFER_BYTES, 0);
                }
                buffer[..kept].copy_from_slice(&stalled.partial);
                kept
            }
            None => 0,
        };
        let read = loop {
            match stream.read(&mut buffer[kept..]) {
                Ok(0) => return Err(Some("closed by the broker".to_owned())),
                Ok(read) => break read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(None),
                Err(error) => return Err(Some(reason_of(&error))),
            }
        };
        self.tally.counts.bytes_in += u64::try_from(read).unwrap_or(u64::MAX);
        let is_full = kept + read == buffer.len();
        let start = self.replies.open();
        let handled = self.handle_bytes(peer, &buffer[..kept + read]);
        self.replies.close(peer, start);
        let handled = handled.map_err(Some)?;
        self.keep_partial(peer, &buffer[handled..kept + read]);
        Ok(if is_full { Chunk::Full } else { Chunk::Drained })
    }

    /// Handles all whole packets; returns how many bytes they are.
    fn handle_bytes(&mut self, peer: u32, bytes: &[u8]) -> Result<usize, String> {
        let now_ns = clock::monotonic_ns();
        let version = self.options.version;
        let packet_bytes_max = self.options.packet_bytes_max();
        let mut at = 0;
        while let Some(frame) = frame::split(&bytes[at..], packet_bytes_max)
            .map_err(|error| format!("bad packet: {error}"))?
        {
            at += frame.len;
            let packet = decode(frame, version).map_err(|error| format!("bad packet: {error}"))?;
            let client = &mut self.peers[slot(peer)].client;
            let event = client
                .handle_packet(packet, self.time, &mut self.replies.bytes)
                .map_err(|violation| violation.what.to_owned())?;
            self.handle_client_event(peer, &event, now_ns)?;
        }
        Ok(at)
    }

    fn handle_client_event(
        &mut self,
        peer: u32,
        event: &Event<'_>,
        now_ns: u64,
    ) -> Result<(), String> {
        match event {
            Event::Message { publish, .. } => {
                let subscriber = self.peers[slot(peer)].subscriber;
                self.tally.receive(subscriber, publish.payload, now_ns);
            }
            Event::Acknowledged { packet_id, reason } => {
                self.handle_acknowledged(peer, *packet_id, *reason, now_ns);
            }
            Event::Connected(_) => self.handle_connected(peer, now_ns),
            Event::Subscribed(ack) => self.handle_subscribed(peer, ack, now_ns),
            Event::Refused(ack) => return Err(format!("connection refused: {:?}", ack.reason)),
            Event::Disconnected(disconnect) => {
                return Err(format!(
                    "disconnected by the broker: {:?}",
                    disconnect.reason
                ));
            }
            Event::Authenticate(_) => return Err("the broker demands authentication".to_owned()),
            Event::None | Event::Unsubscribed(_) | Event::Pong => {}
        }
        Ok(())
    }

    fn handle_acknowledged(
        &mut self,
        peer: u32,
        packet_id: PacketId,
        reason: ReasonCode,
        now_ns: u64,
    ) {
        let publisher = self.peers[slot(peer)].publisher;
        let Some(state) = self.publishers.get_mut(slot(publisher)) else {
            return;
        };
        let is_held = state.held;
        if let Some(sent_ns) = state.take_sent(packet_id) {
            self.awaiting = self.awaiting.saturating_sub(1);
            self.tally.acknowledge(sent_ns, now_ns, reason.is_error());
        }
        if is_held {
            self.catch_up(publisher);
        }
    }

    /// Keeps the start of a packet whose rest is still to come.
    fn keep_partial(&mut self, peer: u32, rest: &[u8]) {
        let state = &mut self.peers[slot(peer)];
        if rest.is_empty() && state.stalled.is_none() {
            return;
        }
        if matches!(state.step, Step::Failed | Step::Lost) {
            return;
        }
        let stalled = state
            .stalled
            .get_or_insert_with(|| Box::new(Stalled::default()));
        stalled.partial.clear();
        stalled.partial.extend_from_slice(rest);
        state.stalled.take_if(|stalled| stalled.is_empty());
    }
}
