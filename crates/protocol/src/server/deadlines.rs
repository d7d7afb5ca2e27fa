//! What the passing of time means: keep alive, the end of an admission, will delay, session expiry.

use core::time::Duration;

use super::session::Link;
use super::{Session, Timeout};
use crate::Time;

impl Session {
    /// The connection may last until then and no longer (the end of a token); none for as long as
    /// the client wants.
    ///
    /// Holds for the connection at hand, so call it behind [`Session::connect`]: it does nothing
    /// without a connection, and another connection begins without it. [`Session::next_deadline`]
    /// may be earlier than before.
    pub fn set_valid_until(&mut self, at: Option<Time>) {
        if at.is_some() && self.is_connected() {
            self.rare.get_or_insert_default().valid_until = at;
        } else if let Some(rare) = &mut self.rare {
            rare.valid_until = None;
        }
    }

    /// When [`Session::handle_timeout`] wants to be called; may be earlier than needed, never
    /// later.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.link {
            Link::New | Link::Closing => None,
            Link::Up => [self.keep_alive_deadline(), self.valid_until()]
                .into_iter()
                .flatten()
                .min(),
            Link::Away => [self.will_deadline(), self.expiry_deadline()]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) -> Timeout {
        let is_over = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        match self.link {
            Link::Up if is_over(self.valid_until()) => Timeout::NotAuthorized,
            // [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
            Link::Up if is_over(self.keep_alive_deadline()) => Timeout::KeepAlive,
            // [MQTT-4.1.0-2] [MQTT3-4.1.0-2]
            Link::Away if is_over(self.expiry_deadline()) => {
                Timeout::Expired(self.take_will_at(now))
            }
            // [MQTT-3.1.2-8]
            Link::Away if is_over(self.will_deadline()) => self
                .take_will_at(now)
                .map_or(Timeout::Pending, Timeout::Will),
            Link::New | Link::Up | Link::Closing | Link::Away => Timeout::Pending,
        }
    }

    fn valid_until(&self) -> Option<Time> {
        self.rare.as_ref()?.valid_until
    }

    /// One and a half keep alives after the last packet.
    fn keep_alive_deadline(&self) -> Option<Time> {
        let silence_max = Duration::from_millis(u64::from(self.keep_alive) * 1500);
        (self.keep_alive > 0).then(|| self.seen.plus(silence_max))
    }

    fn will_deadline(&self) -> Option<Time> {
        let will = self.will.as_ref()?;
        Some(self.seen.plus(will.delay()))
    }

    fn expiry_deadline(&self) -> Option<Time> {
        (self.session_expiry != u32::MAX).then(|| self.seen.plus_secs(self.session_expiry))
    }
}
