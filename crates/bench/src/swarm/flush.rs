//! One write per connection and turn; bytes that the socket does not take wait until it is
//! writable.

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::Swarm;
use super::outbox::{Outbox, Stalled, Unfinished, slot};
use super::peer::{Impairment, NONE, Peer, Step};
use super::ramp::reason_of;
use super::times::Write;

impl Swarm {
    /// Writes the acknowledgements and answers of this turn.
    pub(super) fn flush_replies(&mut self) {
        let mut outbox = std::mem::take(&mut self.out.replies);
        self.flush(&mut outbox);
        self.out.replies = outbox;
        let answers = std::mem::take(&mut self.out.answers);
        let releases = std::mem::take(&mut self.out.releases);
        if answers + releases > 0 {
            let held_ns = self.now_ns().saturating_sub(self.unread_since_ns);
            self.tally.answered(held_ns, answers);
            self.tally.released(held_ns, releases);
        }
    }

    /// Writes the messages of this turn, and counts them.
    pub(super) fn flush_publications(&mut self) {
        let mut outbox = std::mem::take(&mut self.out.publications);
        if self.out.messages.is_empty() {
            self.flush(&mut outbox);
        } else {
            let called_ns = self.now_ns();
            self.flush(&mut outbox);
            let write = Write {
                called_ns,
                returned_ns: self.now_ns(),
            };
            for sent in self.out.messages.drain(..) {
                self.tally.send(&sent, write);
            }
        }
        self.out.publications = outbox;
    }

    /// The socket takes bytes again, or its connection is up.
    pub(super) fn handle_writable(&mut self, peer: u32) {
        let state = &mut self.peers[slot(peer)];
        if state.step == Step::Opening {
            self.begin_session(peer);
            return;
        }
        if state.impairment() == Impairment::Frozen {
            return;
        }
        let Some(mut stalled) = state.stalled.take() else {
            return;
        };
        let unsent = std::mem::take(&mut stalled.unsent);
        let was_paused = std::mem::take(&mut stalled.paused);
        let unfinished = std::mem::take(&mut stalled.unfinished);
        if !stalled.is_empty() {
            state.stalled = Some(stalled);
        }
        self.write(peer, &unsent);
        if !unfinished.is_empty() {
            let now_ns = self.now_ns();
            let state = &mut self.peers[slot(peer)];
            let finished = state.write_on(unfinished, self.unread_since_ns, now_ns);
            let (events, late_ns) = finished.map_or((0, 0), Unfinished::finish);
            self.tally.finished(late_ns, events);
        }
        let publisher = self.peers[slot(peer)].publisher;
        if publisher != NONE {
            self.go_on_publishing(publisher);
        }
        if was_paused {
            // The connection may have ended while it was not read.
            self.handle_readable(peer, true);
        }
    }

    fn flush(&mut self, outbox: &mut Outbox) {
        for index in 0..outbox.len() {
            if let Some((peer, bytes)) = outbox.segment(index) {
                self.write_segment(peer, bytes);
            }
        }
        outbox.clear();
    }

    /// Writes to a client. On its way to being ready, what this turn took was the generator's.
    fn write_segment(&mut self, peer: u32, bytes: &[u8]) {
        if self.peers[slot(peer)].step == Step::Ready {
            self.wrap_and_write(peer, bytes);
            return;
        }
        let called_ns = self.now_ns();
        self.wrap_and_write(peer, bytes);
        self.note_step_written(peer, called_ns);
    }

    /// A client on its way to being ready was written to.
    pub(super) fn note_step_written(&mut self, peer: u32, called_ns: u64) {
        let write = Write {
            called_ns,
            returned_ns: self.now_ns(),
        };
        let unread_since_ns = self.unread_since_ns;
        let state = &mut self.peers[slot(peer)];
        let held_ns = write.handed_over_ns(unread_since_ns.max(state.since_ns));
        state.add_own(held_ns);
    }

    /// Writes bytes as they are to the socket.
    pub(super) fn write(&mut self, peer: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.peers[slot(peer)].write(bytes) {
            Ok(written) => {
                self.tally.count_bytes_out(written);
                if written < bytes.len() {
                    let (events, now_ns) = (self.out.events(&self.plan), self.now_ns());
                    self.peers[slot(peer)].wait_for_room(events, now_ns);
                }
            }
            Err(reason) => {
                // The broker's last bytes may still be readable, and are more informative than a
                // broken pipe. Within a read the buffer is in use, and the reading continues by
                // itself.
                if !self.read_buffer.is_empty() {
                    self.handle_readable(peer, true);
                }
                self.lose(peer, &reason);
            }
        }
    }
}

impl Peer {
    /// The socket did not take all of what these wait for.
    fn wait_for_room(&mut self, events: u64, now_ns: u64) {
        if let Some(stalled) = self.stalled.as_mut().filter(|_| events > 0) {
            stalled.unfinished.add(events, now_ns);
        }
    }

    /// The socket, which was full, was written to again; returns what it took the rest of.
    fn write_on(
        &mut self,
        mut unfinished: Unfinished,
        unread_since_ns: u64,
        now_ns: u64,
    ) -> Option<Unfinished> {
        unfinished.write_on(unread_since_ns, now_ns);
        let stalled = self.stalled.as_mut();
        let Some(stalled) = stalled.filter(|stalled| !stalled.unsent.is_empty()) else {
            return Some(unfinished);
        };
        unfinished.join(stalled.unfinished);
        stalled.unfinished = unfinished;
        None
    }

    /// Writes, or keeps, all of the bytes; returns how many were written.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let is_frozen = self.impairment() == Impairment::Frozen;
        let Some(stream) = &self.stream else {
            return Ok(0);
        };
        let has_unsent = is_frozen
            || self
                .stalled
                .as_ref()
                .is_some_and(|stalled| !stalled.unsent.is_empty());
        let mut written = 0;
        while !has_unsent && written < bytes.len() {
            // A plain system call, as for reading.
            match rustix::net::send(stream, &bytes[written..], SendFlags::NOSIGNAL) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(reason_of(&error.into())),
            }
        }
        if written < bytes.len() {
            let stalled = self
                .stalled
                .get_or_insert_with(|| Box::new(Stalled::default()));
            stalled.unsent.extend_from_slice(&bytes[written..]);
        }
        Ok(written)
    }
}
