//! Mail of other workers that this worker has taken and not handled yet, and the connections that
//! wait behind it.

use std::collections::VecDeque;

use thrum_codec::packet::Packet;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey};

use crate::edge::Edge;
use crate::mailbox::{Mail, Mailbox};

/// See above.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    mail: VecDeque<Mail>,
    /// Pieces handled since the start.
    handled: u64,
    /// Pieces opened since, which still count as waiting.
    opened: usize,
    /// Connections that wait behind a piece, by its number.
    behind: VecDeque<(u64, ConnectionId)>,
}

impl Inbox {
    /// Whether all taken mail is handled.
    pub(crate) fn is_empty(&self) -> bool {
        self.mail.is_empty()
    }

    /// Takes the mail of the mailbox, once all mail taken before is handled.
    pub(crate) fn fill(&mut self, mailbox: &Mailbox) {
        if !self.mail.is_empty() || mailbox.is_empty() {
            return;
        }
        // Neither conversion copies anything.
        let mut taken = Vec::from(std::mem::take(&mut self.mail));
        mailbox.take(&mut taken);
        self.mail = VecDeque::from(taken);
    }

    /// Opens the next piece of mail.
    pub(crate) fn open_next(&mut self) -> Option<Mail> {
        let piece = self.mail.pop_front()?;
        self.opened += 1;
        Some(piece)
    }

    /// Pieces that have been opened and count as waiting.
    pub(crate) const fn opened(&self) -> usize {
        self.opened
    }

    /// Records that the opened pieces are handled; returns their number.
    pub(crate) const fn end_portion(&mut self) -> usize {
        let messages = std::mem::replace(&mut self.opened, 0);
        self.handled += messages as u64;
        messages
    }

    /// An UNSUBSCRIBE waits for the mail present: a message in it may have been acknowledged before
    /// the client sent the UNSUBSCRIBE, and reaches it as it would have on the publisher's worker.
    pub(super) fn has_to_wait(
        &mut self,
        edge: &mut Edge,
        engine: &Engine,
        key: ConnectionKey,
        packet: &Packet<'_>,
    ) -> bool {
        let core = &engine.core;
        if !matches!(packet, Packet::Unsubscribe(_)) || core.node.workers() == 1 {
            return false;
        }
        let reading = &mut edge.connections[key].reading;
        if reading.has_waited_behind_mail() {
            return false;
        }
        let (waiting, _) = core.node.mailbox_level(core.id).waiting();
        if waiting == 0 {
            return false;
        }
        reading.wait_behind_mail();
        let last = self.handled + waiting as u64;
        self.behind.push_back((last, core.outputs.id(key)));
        true
    }

    /// The next connection whose preceding mail is handled.
    pub(crate) fn next_to_resume(&mut self) -> Option<ConnectionId> {
        let handled = self.handled;
        let first = self.behind.pop_front_if(|(last, _)| *last <= handled);
        first.map(|(_, connection)| connection)
    }
}
