//! What time brings: PINGREQ when the connection was silent, an error when the server is.

use alloc::vec::Vec;
use core::time::Duration;

use thrum_codec::ReasonCode;
use thrum_codec::packet::Packet;

use super::Client;
use super::machine::Phase;
use crate::{Time, Violation};

impl Client {
    /// When [`Client::handle_timeout`] wants to be called; none while there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Time> {
        let response = self.response_deadline();
        match self.phase {
            Phase::Disconnected => None,
            Phase::Connecting => response,
            Phase::Connected => match (response, self.ping_deadline()) {
                (Some(response), Some(ping)) => Some(response.min(ping)),
                (response, ping) => response.or(ping),
            },
        }
    }

    /// Time has passed: writes a PINGREQ if the connection was silent for the keep alive.
    ///
    /// # Errors
    /// The server did not answer in time: close the connection.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), Violation> {
        let overdue = self.response_deadline().is_some_and(|at| at <= now);
        match self.phase {
            Phase::Disconnected => Ok(()),
            Phase::Connecting if overdue => Err(Violation::new(
                ReasonCode::UnspecifiedError,
                "no CONNACK in time",
            )),
            Phase::Connected if overdue => Err(Violation::new(
                ReasonCode::UnspecifiedError,
                "no PINGRESP in time",
            )),
            Phase::Connecting => Ok(()),
            Phase::Connected => {
                // [MQTT-3.1.2-20] [MQTT3-3.1.2-23]
                if self.ping_deadline().is_some_and(|at| at <= now) {
                    self.reply(&Packet::PingReq, now, out)?;
                    self.awaiting.get_or_insert(now);
                }
                Ok(())
            }
        }
    }

    fn response_deadline(&self) -> Option<Time> {
        Some(self.awaiting?.plus(self.options.response_timeout))
    }

    /// Up to a second before the keep alive is over, so that a late wake-up does not overdraw it.
    fn ping_deadline(&self) -> Option<Time> {
        let keep_alive = u64::from(self.server.keep_alive) * 1000;
        let early = (keep_alive / 4).min(1000);
        (keep_alive != 0).then(|| {
            self.last_sent
                .plus(Duration::from_millis(keep_alive - early))
        })
    }
}
