//! How often a message reached one session, and whether it may be repeated.

use super::client::{End, Place};

/// Deliveries of one message to one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    qos: u8,
    deliveries: u32,
    /// Those on the last connection.
    on_connection: u32,
    /// The last one.
    last: Place,
    /// PUBACK of the last one was sent.
    is_acknowledged: bool,
    /// That PUBACK is on the broker's disk.
    is_settled: bool,
}

impl Copies {
    pub(super) fn first(qos: u8, place: Place) -> Self {
        Self {
            qos,
            deliveries: 1,
            on_connection: 1,
            last: place,
            is_acknowledged: false,
            is_settled: false,
        }
    }

    pub(super) fn acknowledge(&mut self) {
        self.is_acknowledged = true;
        self.is_settled = false;
    }

    pub(super) fn settle(&mut self) {
        self.is_settled = self.is_acknowledged;
    }

    /// Whether it arrived only once so far.
    pub(super) fn is_first(&self) -> bool {
        self.deliveries == 1
    }

    pub(super) fn last(&self) -> Place {
        self.last
    }

    /// It arrives again; `sends` is how often its publisher sent it with `QoS` 1, `accepted_in` the
    /// start of the broker in which that was acknowledged, and `end` the end of the receiver's last
    /// connection.
    ///
    /// # Errors
    /// Why it must not.
    pub(super) fn again(
        &mut self,
        place: Place,
        sends: u32,
        accepted_in: Option<u32>,
        end: Option<End>,
    ) -> Result<(), String> {
        let was = *self;
        let is_new_connection = place.connection > was.last.connection;
        self.deliveries += 1;
        self.on_connection = if is_new_connection {
            1
        } else {
            was.on_connection + 1
        };
        self.last = place;
        self.is_acknowledged = false;
        self.is_settled = false;
        let crashed = place.run > was.last.run;
        // It arrived before its publisher had an answer, and the kill undid it: the next one is
        // another message.
        let is_anew = crashed && accepted_in.is_none_or(|run| run > was.last.run);
        let is_allowed = match was.qos {
            // Each PUBLISH of its publisher may be a message of its own, and the receiver cannot
            // distinguish them.
            _ if sends > 1 => self.on_connection <= sends,
            0 => crashed,
            1 if is_anew => true,
            1 if was.is_acknowledged => {
                let may_be_lost = crashed || matches!(end, Some(End::Vanished | End::Taken));
                is_new_connection && !was.is_settled && may_be_lost
            }
            1 => is_new_connection,
            _ => false,
        };
        match was.qos {
            _ if is_allowed => Ok(()),
            1 if was.is_settled => Err("came again although PUBACK was safe".to_owned()),
            _ => Err(format!(
                "came again although nothing was lost in between ({was:?}, now {place:?})"
            )),
        }
    }
}
