//! Wills: which have to be published, which must not, and when.

use super::Checker;
use crate::event::{ClientIndex, Connect, Disconnect, MessageNumber, Millis, Will};

/// Wills of one client.
#[derive(Clone, Debug, Default)]
pub(super) struct Wills {
    /// Of the open connection.
    armed: Option<Will>,
    /// Of a CONNECT that has no CONNACK yet.
    asked: Option<Will>,
    /// The connection is gone, the delay may not be over.
    waiting: Option<Waiting>,
    /// Discarded by a DISCONNECT that the broker received; a killed broker may forget that, because
    /// the client had no answer.
    discarded: Vec<MessageNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: MessageNumber,
    due_min: Millis,
}

impl Wills {
    /// Messages of unknown fate.
    pub(super) fn pending(&self) -> Vec<MessageNumber> {
        let mut numbers: Vec<_> = self
            .armed
            .iter()
            .chain(&self.asked)
            .map(|will| will.number)
            .collect();
        numbers.extend(self.waiting.map(|waiting| waiting.number));
        numbers.extend(&self.discarded);
        numbers
    }

    pub(super) fn killed(&mut self) {
        self.discarded.clear();
        self.asked = None;
    }
}

impl Checker {
    /// Whether a will of this client has to be published if the client stays disconnected.
    pub fn has_waiting_will(&self, client: ClientIndex) -> bool {
        self.clients[client].wills.waiting.is_some()
    }

    /// The pending wills of disconnected clients have to be published: no client returns from now
    /// on and the broker is not killed. A client whose CONNECT is in flight may still be in time to
    /// cancel its will.
    pub fn expect_waiting_wills(&mut self) {
        for client in 0..self.clients.len() {
            let found = &self.clients[client];
            let stays_away = !found.is_opening();
            if let Some(waiting) = found.wills.waiting.filter(|_| stays_away) {
                self.accepted(waiting.number);
            }
        }
    }

    /// The broker is asked to stop: it publishes the will of every connected client.
    pub fn stops(&mut self) {
        self.is_stopping = true;
    }

    /// It has ended.
    pub fn stopped(&mut self) {
        self.is_stopping = false;
    }

    /// A will with a CONNECT that is sent is requested, the one before it is still armed.
    pub(super) fn will_asked(&mut self, client: ClientIndex, connect: &Connect) {
        let wills = &mut self.clients[client].wills;
        wills.asked.clone_from(&connect.will);
        let before = wills.armed.as_ref().map(|will| will.number);
        self.published_from_here(before);
        // A clean start ends the session, and the will is published at once.
        let waiting = self.clients[client].wills.waiting;
        if let Some(waiting) = waiting.filter(|_| connect.clean) {
            self.not_before(waiting.number, 0);
        }
    }

    pub(super) fn will_after_connect(
        &mut self,
        client: ClientIndex,
        connect: &Connect,
        is_takeover: bool,
    ) {
        let at = self.clock.at;
        let wills = &mut self.clients[client].wills;
        wills.asked = None;
        let taken = std::mem::replace(&mut wills.armed, connect.will.clone());
        let waiting = wills.waiting.take();
        let discarded = std::mem::take(&mut wills.discarded);
        if let Some(will) = taken.filter(|_| is_takeover) {
            if will.delay == 0 || connect.clean {
                self.will_is_due(will.number);
            } else {
                self.will_is_forbidden(will.number, "its session was taken up again");
            }
        }
        if let Some(waiting) = waiting {
            if connect.clean {
                self.will_is_due(waiting.number);
            } else if at < waiting.due_min {
                self.will_is_forbidden(waiting.number, "the client was back before it was due");
            } else {
                // It was on its way, or just not.
                self.not_before(waiting.number, 0);
            }
        }
        // While the disk fails, a client without a lasting session is admitted though what it
        // discarded cannot be written down.
        let is_written = self.clock.faulty_since.is_none();
        for number in discarded.into_iter().filter(|_| is_written) {
            self.will_is_forbidden(number, "the client had disconnected");
        }
    }

    /// A CONNECT had no answer: it may have cancelled the will that waits.
    pub(super) fn will_unanswered(&mut self, client: ClientIndex, connect: &Connect) {
        if connect.clean {
            return;
        }
        if let Some(waiting) = self.clients[client].wills.waiting.take() {
            self.not_before(waiting.number, 0);
        }
    }

    pub(super) fn will_at_disconnect(&mut self, client: ClientIndex, disconnect: Disconnect) {
        let wills = &mut self.clients[client].wills;
        let number = wills.armed.as_ref().map(|will| will.number);
        if !disconnect.with_will {
            wills.armed = None;
            wills.discarded.extend(number);
            return;
        }
        if disconnect.ends_session {
            // It is published with the session's end, at once; should a kill undo that, it is
            // pending again and may be cancelled.
            wills.armed.take_if(|will| will.delay > 0);
        }
        self.published_from_here(number);
    }

    /// The connection ended at a time or later; `is_opening` if its CONNECT had no CONNACK.
    pub(super) fn will_at_end(
        &mut self,
        client: ClientIndex,
        at: Millis,
        expiry_secs: u32,
        is_opening: bool,
    ) {
        let wills = &mut self.clients[client].wills;
        wills.asked = None;
        let armed = wills.armed.as_ref().map(|will| will.number);
        self.published_from_here(armed);
        let wills = &mut self.clients[client].wills;
        let Some(will) = wills.armed.take() else {
            return;
        };
        // One that waits may be cancelled by the CONNECT. That of a session without expiry is on
        // the disk, if that worked.
        let is_kept = expiry_secs > 0 || !(is_opening || self.has_faulted);
        if !is_kept || (is_opening && will.delay > 0) {
            return;
        }
        // An orderly stop publishes them all.
        if will.delay == 0 || expiry_secs == 0 || self.is_stopping {
            return self.will_is_due(will.number);
        }
        let due_min = at + will.delay.min(Millis::from(expiry_secs) * 1_000);
        wills.waiting = Some(Waiting {
            number: will.number,
            due_min,
        });
        self.not_before(will.number, due_min);
    }

    /// A will was delivered: all other subscribers must get it too.
    pub(super) fn will_seen(&mut self, client: ClientIndex, number: MessageNumber) {
        let wills = &mut self.clients[client].wills;
        if wills
            .waiting
            .take_if(|waiting| waiting.number == number)
            .is_some()
        {
            self.will_is_due(number);
        }
    }

    /// The broker may publish it from now on, and not before: current subscribers get it.
    fn published_from_here(&mut self, number: Option<MessageNumber>) {
        let event = self.clock.event;
        if let Some(message) = number.and_then(|number| self.messages.find(number)) {
            message.leaves(event);
        }
    }

    fn will_is_due(&mut self, number: MessageNumber) {
        self.not_before(number, 0);
        self.accepted(number);
    }

    fn will_is_forbidden(&mut self, number: MessageNumber, reason: &'static str) {
        self.counts.wills_discarded += 1;
        if let Some(message) = self.messages.find(number) {
            message.forbidden = Some(reason);
        }
    }

    fn not_before(&mut self, number: MessageNumber, not_before: Millis) {
        if let Some(message) = self.messages.find(number) {
            message.not_before = not_before;
        }
    }
}
