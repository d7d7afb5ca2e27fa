//! How often a message reached one session, and whether it may come again.

use super::client::{End, Place};

/// Deliveries of one message to one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    qos: u8,
    /// Deliveries that were not repetitions of one before.
    count: u32,
    /// All of them.
    deliveries: u32,
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
            count: 1,
            deliveries: 1,
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

    /// Whether it came only once up to now.
    pub(super) fn is_first(&self) -> bool {
        self.deliveries == 1
    }

    pub(super) fn last(&self) -> Place {
        self.last
    }

    /// It comes again; `sends` is how often its publisher sent it with `QoS` 1, and `end` how the last connection ended.
    ///
    /// # Errors
    /// Why it must not.
    pub(super) fn again(
        &mut self,
        place: Place,
        sends: u32,
        end: Option<End>,
    ) -> Result<(), String> {
        let may_be_copy = self.count < sends;
        let is_new_connection = place.connection > self.last.connection;
        let crashed = place.run > self.last.run;
        let lost_acknowledgement = crashed || matches!(end, Some(End::Vanished | End::Taken));
        let may_be_repetition = match self.qos {
            0 => crashed,
            1 if self.is_acknowledged => {
                is_new_connection && !self.is_settled && lost_acknowledgement
            }
            1 => is_new_connection,
            _ => false,
        };
        let was = *self;
        self.last = place;
        self.deliveries += 1;
        self.is_acknowledged = false;
        self.is_settled = false;
        if may_be_repetition {
            return Ok(());
        }
        self.count += 1;
        if may_be_copy {
            return Ok(());
        }
        Err(match self.qos {
            1 if was.is_settled => "came again although PUBACK was safe".to_owned(),
            1 => {
                format!("came again although nothing was lost in between ({was:?}, now {place:?})")
            }
            qos => format!("QoS {qos} came twice"),
        })
    }
}
