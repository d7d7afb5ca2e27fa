//! Bytes from a socket to packets to counts.

use std::cmp::Reverse;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use thrum_codec::error::DecodeError;
use thrum_codec::packet::{Packet, Publish};
use thrum_codec::{PacketId, ReasonCode, decode, decode_publish, frame};
use thrum_figures::SECOND_NS;
use thrum_load::delivered::Delivered;
use thrum_protocol::client::{Event, Incoming};
use thrum_transport::not_mqtt;

use super::outbox::{Stalled, slot};
use super::peer::{Impairment, NONE, Step};
use super::ramp::reason_of;
use super::times::Read;
use super::{Swarm, Wake};

/// Bytes that wait for a socket before its client is no longer read: a broker that does not take
/// acknowledgements gets no more of them.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;

/// Type of a PUBLISH in the first byte of its frame.
const PUBLISH: u8 = 3;

/// The result of one read.
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
                    self.lose(peer, &reason);
                    return;
                }
            }
            if self.peers[slot(peer)].stream.is_none() {
                return;
            }
            if self.read_ns >= self.next_due_ns {
                let now_ns = self.tick();
                self.send_due(now_ns);
            }
        }
    }

    /// Whether a socket is not to be read now.
    fn is_paused(&mut self, peer: u32) -> bool {
        let state = &mut self.peers[slot(peer)];
        if state.impairment() != Impairment::None || self.waits_for_next_read(peer) {
            return true;
        }
        let Some(stalled) = &mut self.peers[slot(peer)].stalled else {
            return false;
        };
        stalled.paused = stalled.unsent.len() > UNSENT_BYTES_MAX;
        stalled.paused
    }

    /// Whether a slow reader has read enough for now; a timer is set that makes it read again.
    fn waits_for_next_read(&mut self, peer: u32) -> bool {
        let state = &self.peers[slot(peer)];
        if self.groups[slot(state.group)].read_rate.is_none() {
            return false;
        }
        let now_ns = self.now_ns();
        let extra = self.peers[slot(peer)].extra();
        if extra.next_read_ns <= now_ns {
            return false;
        }
        let at_ns = extra.next_read_ns;
        // One timer, however often the socket is ready meanwhile.
        if extra.read_timer_ns != at_ns {
            extra.read_timer_ns = at_ns;
            self.timers.push(Reverse((at_ns, Wake::Read(peer))));
        }
        true
    }

    /// A slow reader rests for as long as what it read takes at its rate.
    fn rest_after_read(&mut self, peer: u32, bytes: usize) {
        let Some(rate) = self.groups[slot(self.peers[slot(peer)].group)].read_rate else {
            return;
        };
        let now_ns = self.now_ns();
        let takes_ns = u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .saturating_mul(SECOND_NS)
            / rate.max(1);
        self.peers[slot(peer)].extra().next_read_ns = now_ns + takes_ns;
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
        let limit = self.groups[slot(state.group)].read_limit();
        let is_layered = state
            .extra
            .as_ref()
            .is_some_and(|extra| extra.layers.is_some());
        let Some(stream) = &state.stream else {
            return Err(None);
        };
        let kept = match &mut state.stalled {
            Some(stalled) if !is_layered => {
                let kept = stalled.partial.len();
                if kept + super::READ_BUFFER_BYTES > buffer.len() {
                    buffer.resize(kept + super::READ_BUFFER_BYTES, 0);
                }
                buffer[..kept].copy_from_slice(&stalled.partial);
                kept
            }
            _ => 0,
        };
        let end = buffer.len().min(kept.saturating_add(limit));
        let read = read_some(stream, &mut buffer[kept..end])?;
        self.tally.count_bytes_in(read);
        if limit != usize::MAX {
            self.rest_after_read(peer, read);
        }
        let is_full = kept + read == end;
        if is_layered {
            self.handle_layered(peer, &mut buffer[..read])?;
        } else {
            self.handle_plain(peer, &buffer[..kept + read])?;
        }
        Ok(if is_full { Chunk::Full } else { Chunk::Drained })
    }

    /// Bytes of TLS or WebSocket: their contents follow the kept bytes.
    fn handle_layered(&mut self, peer: u32, bytes: &mut [u8]) -> Result<(), Option<String>> {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        if let Some(stalled) = &self.peers[slot(peer)].stalled {
            plain.extend_from_slice(&stalled.partial);
        }
        self.unwrap(peer, bytes, &mut plain);
        let handled = if self.peers[slot(peer)].stream.is_some() {
            self.handle_plain(peer, &plain)
        } else {
            Ok(())
        };
        self.plain = plain;
        handled
    }

    fn handle_plain(&mut self, peer: u32, bytes: &[u8]) -> Result<(), Option<String>> {
        let start = self.out.replies.open();
        let handled = self.handle_bytes(peer, bytes);
        self.out.replies.close(peer, start);
        if std::mem::take(&mut self.came_back) {
            self.flush_replies();
        }
        let handled = handled.map_err(Some)?;
        self.keep_partial(peer, &bytes[handled..]);
        Ok(())
    }

    /// Handles all whole packets; returns how many bytes they are.
    fn handle_bytes(&mut self, peer: u32, bytes: &[u8]) -> Result<usize, String> {
        let now_ns = self.now_ns();
        self.read_ns = now_ns;
        self.tally.turn_the_page(now_ns);
        let read = Read {
            at_ns: now_ns,
            unread_since_ns: self.unread_since_ns,
        };
        let state = &self.peers[slot(peer)];
        let options = state.client.options();
        let (version, packet_bytes_max) = (options.version, options.packet_bytes_max());
        let received_before = self.tally.counts.received;
        let group = &self.groups[slot(state.group)];
        if state.step == Step::Connecting
            && let Some(why) = not_mqtt(bytes, self.setup.scheme_of(group))
        {
            return Err(why.to_owned());
        }
        let mut at = 0;
        while let Some(frame) = frame::split(&bytes[at..], packet_bytes_max)
            .map_err(|error| format!("bad packet: {error}"))?
        {
            at += frame.len;
            if frame.first >> 4 == PUBLISH {
                self.handle_publish(peer, &decode_publish(frame, version), read)?;
            } else {
                self.handle_packet(peer, &decode(frame, version), read)?;
            }
            if self.peers[slot(peer)].stream.is_none() {
                return Ok(at);
            }
        }
        let received = self.tally.counts.received - received_before;
        self.tally.note_read(read, received);
        Ok(at)
    }

    /// Of a fan-out nearly every packet is one: it is not moved once it is decoded.
    fn handle_publish(
        &mut self,
        peer: u32,
        decoded: &Result<Publish<'_>, DecodeError>,
        read: Read,
    ) -> Result<(), String> {
        let publish = decoded.as_ref().map_err(bad_packet)?;
        let client = &mut self.peers[slot(peer)].client;
        let incoming = client.handle_publish(publish, self.time, &mut self.out.replies.bytes);
        match incoming {
            Ok(Incoming::Message { .. }) => self.handle_message(peer, publish, read),
            Ok(Incoming::Repeated) => {}
            Err(violation) => return Err(violation.what.to_owned()),
        }
        Ok(())
    }

    fn handle_message(&mut self, peer: u32, publish: &Publish<'_>, read: Read) {
        let state = &self.peers[slot(peer)];
        let responds = self.groups[slot(state.group)].responds;
        let delivered = Delivered {
            topic: publish.topic,
            qos: publish.qos,
            retain: publish.retain,
            payload: publish.payload,
        };
        self.tally.receive(state.subscriber, &delivered, read);
        if responds {
            self.answer(peer, publish);
        }
    }

    fn handle_packet(
        &mut self,
        peer: u32,
        decoded: &Result<Packet<'_>, DecodeError>,
        read: Read,
    ) -> Result<(), String> {
        let packet = decoded.as_ref().map_err(bad_packet)?;
        let client = &mut self.peers[slot(peer)].client;
        let event = client
            .handle_packet(*packet, self.time, &mut self.out.replies.bytes)
            .map_err(|violation| violation.what.to_owned())?;
        match &event {
            Event::Message { publish, .. } => self.handle_message(peer, publish, read),
            Event::Acknowledged { packet_id, reason } => {
                self.handle_acknowledged(peer, *packet_id, *reason, read);
            }
            Event::Released => {
                let is_publisher = self.peers[slot(peer)].publisher != NONE;
                self.out.releases += u64::from(is_publisher);
            }
            Event::Connected(ack) => self.handle_connected(peer, ack, read),
            Event::Subscribed(ack) => self.handle_subscribed(peer, ack, read),
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
        read: Read,
    ) {
        let responds = self.groups[slot(self.peers[slot(peer)].group)].responds;
        if responds {
            self.send_waiting_answers(peer);
        }
        let publisher = self.peers[slot(peer)].publisher;
        let Some(state) = self.publishers.get_mut(slot(publisher)) else {
            return;
        };
        if let Some(awaited) = state.take_awaited(packet_id) {
            self.awaiting = self.awaiting.saturating_sub(1);
            self.tally
                .acknowledge(state.number, &awaited, read, reason.is_error());
        }
        self.go_on_publishing(publisher);
    }

    /// Keeps the start of an incomplete packet.
    fn keep_partial(&mut self, peer: u32, rest: &[u8]) {
        let state = &mut self.peers[slot(peer)];
        if rest.is_empty() && state.stalled.is_none() {
            return;
        }
        if state.stream.is_none() {
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

fn bad_packet(error: &DecodeError) -> String {
    format!("bad packet: {error}")
}

/// One read; `Err(None)` if nothing can be read. A plain system call: the C library's is a point
/// where threads may be cancelled, which costs a few percent of a fan-out.
fn read_some(stream: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Option<String>> {
    loop {
        match rustix::net::recv(stream, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(Some("closed by the broker".to_owned())),
            Ok((read, _)) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(None),
            Err(error) => return Err(Some(reason_of(&error.into()))),
        }
    }
}
