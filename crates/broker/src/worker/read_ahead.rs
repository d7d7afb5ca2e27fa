//! What a client sends behind a PUBLISH that is held back: acknowledgements and pings go ahead of
//! it, the rest stands behind.

use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::Packet;
use thrum_codec::{Version, decode};
use thrum_protection::MemoryLevel;

use super::input::Next;
use super::{READ_BYTES, Worker};
use crate::ids::ConnectionKey;
use crate::metrics::Counter;
use crate::partial::Seen;
use crate::publish::Cleared;
use crate::read_gate::PauseReason;

/// What may stand behind a held PUBLISH while memory is low: acknowledgements are read on, further
/// messages are not.
const BEHIND_BYTES_LOW: usize = 1024;
/// Kind of a DISCONNECT, in the upper half of its first byte.
const DISCONNECT: u8 = 14;

impl Worker {
    /// Input of a client whose PUBLISH is held back: what goes ahead of it is handled, the rest is
    /// kept behind it.
    pub(super) fn read_ahead(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let connection = &mut self.local.connections[key];
        connection.reading.take_packets();
        let mut waiting = connection.partial.take_seen();
        waiting.bytes.extend_from_slice(bytes);
        let Some(outlook) = self.look_ahead(key, &mut waiting) else {
            return;
        };
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        let held = frame::split(&waiting.bytes, packet_bytes_max);
        let held_bytes = held.ok().flatten().map_or(0, |frame| frame.len);
        let behind_bytes_max = if self.local.memory.level >= MemoryLevel::Low {
            BEHIND_BYTES_LOW
        } else {
            READ_BYTES
        };
        let connection = &mut self.local.connections[key];
        if waiting.bytes.len() > held_bytes + behind_bytes_max {
            connection.reading.close(PauseReason::Room);
            waiting.bytes.shrink_to_fit();
        }
        if outlook == Outlook::More {
            connection.reading.leave_packets();
        }
        connection.partial.put_seen(waiting);
        self.after_input(key);
        if outlook == Outlook::Leaving {
            self.let_leave(key);
        }
    }

    /// Handles what goes ahead and takes it out, as far as the portion goes; none if the connection
    /// has ended.
    fn look_ahead(&mut self, key: ConnectionKey, waiting: &mut Seen) -> Option<Outlook> {
        let connection = &self.local.connections[key];
        let (slot, version) = (connection.session()?, connection.version);
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        let mut at = waiting.seen;
        while let Ok(Some(frame)) = frame::split(&waiting.bytes[at..], packet_bytes_max) {
            let (end, kind) = (at + frame.len, frame.first >> 4);
            self.local.work += 1;
            let next = if let Some(packet) = ahead(frame, version) {
                self.local.row().add(Counter::PacketsReceived, 1);
                self.packet(key, slot, packet, Cleared::UNASKED)
            } else {
                waiting.keep(at..end);
                Next::Frame
            };
            self.local.end_unit();
            at = end;
            let outlook = match (next, kind) {
                (Next::Stop, _) => return None,
                (_, DISCONNECT) => Outlook::Leaving,
                _ if self.is_portion_over() => Outlook::More,
                _ => continue,
            };
            waiting.close_gap(at);
            return Some(outlook);
        }
        waiting.close_gap(at);
        Some(Outlook::Whole)
    }
}

/// What stands behind a held PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outlook {
    /// All of it has been looked at.
    Whole,
    /// More than the portion of the connection.
    More,
    /// The client's goodbye.
    Leaving,
}

/// A packet that goes ahead of a held PUBLISH: it is neither a message nor a request.
fn ahead(frame: Frame<'_>, version: Version) -> Option<Packet<'_>> {
    let goes_ahead = matches!(frame.first >> 4, 4..=7 | 12);
    goes_ahead.then(|| decode(frame, version).ok()).flatten()
}
