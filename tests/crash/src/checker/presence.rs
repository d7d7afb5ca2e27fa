//! Whether the broker has a session of a client: the expected value of session present.

use super::client::End;
use crate::event::{Connect, Millis, NEVER};

/// A timer of the broker may be this late.
const LATE_MAX: Millis = 1_000;

/// Knowledge about one client's session.
#[derive(Clone, Debug, Default)]
pub(super) struct Presence {
    exists: Exists,
    /// Of the last connection that was acknowledged.
    expiry_secs: u32,
    /// CONNECT that has no CONNACK yet.
    pending: Option<Connect>,
    /// Time before which a session that was left must be there.
    expires_min: Option<Millis>,
    /// Time after which it must be gone; counted from the start of the broker after a kill.
    expires_max: Option<Millis>,
    /// The connection ended by a kill, and the broker has not started yet.
    waits_for_start: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Exists {
    #[default]
    No,
    Yes,
    /// A kill happened between a request and its answer.
    Maybe,
    /// The broker ended it and may forget that when it is killed, because no client knows.
    EndedInMemory,
}

impl Presence {
    pub(super) fn connecting(&mut self, connect: &Connect) {
        self.pending = Some(connect.clone());
        // It ends with its connection, and whether that ends before this one begins is the broker's
        // choice.
        if self.expiry_secs == 0 && self.exists == Exists::Yes {
            self.exists = Exists::Maybe;
        }
    }

    /// CONNACK was received.
    ///
    /// # Errors
    /// Session present is wrong.
    pub(super) fn connected(
        &mut self,
        connect: &Connect,
        present: bool,
        at: Millis,
    ) -> Result<(), String> {
        let result = match (present, self.exists) {
            (true, _) if connect.clean => Err("session present after a clean start".to_owned()),
            (false, _) if connect.clean => Ok(()),
            (false, Exists::Yes) if self.expires_min.is_none_or(|limit| at < limit) => {
                Err("the session is gone".to_owned())
            }
            (true, Exists::No | Exists::EndedInMemory) => {
                Err(format!("session present, but there is none: {self:?}"))
            }
            (true, Exists::Yes) if self.expires_max.is_some_and(|limit| at > limit) => {
                Err(format!("session present after its expiry: {self:?}"))
            }
            _ => Ok(()),
        };
        self.exists = Exists::Yes;
        self.expiry_secs = connect.expiry_secs;
        self.pending = None;
        self.expires_min = None;
        self.expires_max = None;
        self.waits_for_start = false;
        result
    }

    /// Whether the session is there, with all that was promised to it.
    pub(super) fn is_certain(&self) -> bool {
        self.exists == Exists::Yes
    }

    /// DISCONNECT that ends the session is sent.
    pub(super) fn ending(&mut self) {
        self.exists = Exists::Maybe;
        self.expiry_secs = 0;
    }

    /// The broker closed after a DISCONNECT.
    pub(super) fn ended_in_order(&mut self) {
        if self.expiry_secs == 0 {
            self.exists = Exists::EndedInMemory;
        }
    }

    pub(super) fn connection_ended(&mut self, end: End, at: Millis) {
        if let Some(connect) = self.pending.take() {
            self.exists = self.after_unanswered(&connect, at);
        } else if self.expiry_secs == 0 && self.exists == Exists::Yes {
            self.exists = match end {
                // A session without expiry is never on the disk.
                End::Crash => Exists::No,
                _ => Exists::Maybe,
            };
        }
        if self.expiry_secs != NEVER {
            let expiry = Millis::from(self.expiry_secs) * 1_000;
            self.expires_min.get_or_insert(at + expiry);
            self.waits_for_start = end == End::Crash;
            self.expires_max = (end != End::Crash).then_some(at + expiry + LATE_MAX);
        }
    }

    pub(super) fn killed(&mut self) {
        if self.exists == Exists::EndedInMemory {
            self.exists = Exists::Maybe;
        }
    }

    pub(super) fn started(&mut self, at: Millis) {
        if std::mem::take(&mut self.waits_for_start) {
            self.expires_max = Some(at + Millis::from(self.expiry_secs) * 1_000 + LATE_MAX);
        }
    }

    /// A CONNECT was sent and its connection ended before the CONNACK.
    fn after_unanswered(&self, connect: &Connect, at: Millis) -> Exists {
        let keeps = connect.expiry_secs > 0;
        // The session may have ended by then, and the CONNECT have begun another one.
        let may_be_another = self.expires_min.is_some_and(|limit| at >= limit);
        match self.exists {
            Exists::Yes if keeps && !connect.clean && !may_be_another => Exists::Yes,
            Exists::No if !keeps => Exists::No,
            _ => Exists::Maybe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECT: Connect = Connect {
        clean: false,
        expiry_secs: 2,
        will: None,
    };

    /// Knowledge after a CONNECT without an answer, whose connection ended this long after the one
    /// before.
    fn after_unanswered(later: Millis) -> Presence {
        let mut presence = Presence::default();
        presence.connecting(&CONNECT);
        presence.connected(&CONNECT, false, 1_000).unwrap();
        presence.connection_ended(End::Crash, 2_000);
        presence.started(2_500);
        presence.connecting(&CONNECT);
        presence.connection_ended(End::Crash, 2_000 + later);
        presence
    }

    #[test]
    fn a_connect_without_an_answer_may_have_begun_a_session_once_the_old_one_may_have_expired() {
        assert!(after_unanswered(1_999).is_certain());
        assert!(!after_unanswered(2_000).is_certain());
    }
}
