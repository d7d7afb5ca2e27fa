//! Mail for one other worker, collected during a turn.

use crate::mailbox::{Mail, Mailbox, Room};

/// What leaves for one worker at the end of the turn.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    mail: Vec<Mail>,
    /// What the mailbox has left beside this.
    room: Room,
}

impl Outbox {
    /// Puts a piece in; true if it fills the mailbox, or that was full. The mailbox is looked at
    /// for the first piece alone: others write to what its room is read from.
    pub(super) fn push(&mut self, mail: Mail, mailbox: &Mailbox) -> bool {
        if self.mail.is_empty() {
            self.room = mailbox.room();
        }
        self.room.take(&mail);
        self.mail.push(mail);
        self.room.is_used_up()
    }

    /// Hands everything over; true if the mailbox is full now.
    pub(super) fn empty_into(&mut self, mailbox: &Mailbox) -> bool {
        if self.mail.is_empty() {
            return false;
        }
        mailbox.push_all(&mut self.mail);
        mailbox.is_full()
    }
}
