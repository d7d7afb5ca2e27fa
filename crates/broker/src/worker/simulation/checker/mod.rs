//! Checks the history of a run against the guarantees of MQTT and of the broker.
//!
//! It knows the actions and observations of the clients, and how long the node may take to notice
//! them: the certain is required, the possible is allowed, everything else is a violation.

mod deliveries;
mod retained;
mod sessions;
mod sinks;
mod subscriptions;
mod tests;
mod will;
mod wills;

use deliveries::Deliveries;
use retained::Retained;
use sessions::Sessions;
use sinks::Sinks;
use wills::Wills;

use super::history::{CLIENTS_MAX, Entry, Event, Millis};
use super::sink::SinkPromise;

/// How late a timer may be: two ticks of the wheel.
const SLACK: Millis = 128;

/// Guarantees that the settings of a run exclude.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each removes another guarantee"
)]
pub(super) struct Allowances {
    /// Queues are so short that messages do not fit and are dropped by the queue policy.
    pub(super) queues_overflow: bool,
    /// Acknowledged messages make room for later ones.
    pub(super) drops_oldest: bool,
    /// Clients whose version can report that no subscriber takes a message.
    pub(super) sees_refusals: [bool; CLIENTS_MAX],
    /// The disk fails or is full at times: the node may refuse what it would have to store.
    pub(super) disk_refuses: bool,
    /// A PUBLISH may be refused because the disk or a sink has no room for it.
    pub(super) publish_refused: bool,
    /// The messages due to the sink, if there is one.
    pub(super) sink: Option<SinkPromise>,
}

/// A violation of a guarantee, in words.
pub(super) type Violation = String;

/// The knowledge after a part of the history.
#[derive(Debug)]
struct Checker {
    sessions: Sessions,
    deliveries: Deliveries,
    retained: Retained,
    wills: Wills,
    sinks: Sinks,
}

/// Checks a whole history; an error names the position at which the violation became certain.
pub(super) fn check(history: &[Entry], allowances: Allowances) -> Result<(), (usize, Violation)> {
    let mut checker = Checker {
        sessions: Sessions::new(allowances),
        deliveries: Deliveries::new(allowances),
        retained: Retained::new(allowances),
        wills: Wills::new(allowances),
        sinks: Sinks::new(allowances),
    };
    for (place, entry) in history.iter().enumerate() {
        let seen = checker.observe(place, entry);
        seen.map_err(|violation| (place, violation))?;
    }
    Ok(())
}

impl Checker {
    fn observe(&mut self, place: usize, entry: &Entry) -> Result<(), Violation> {
        let at = entry.at;
        // The effect of a CONNECT on the will depends on the earlier knowledge of the session.
        self.wills.observe(at, &entry.event)?;
        self.sessions.observe(at, &entry.event)?;
        self.deliveries.observe(place, entry, &self.sessions)?;
        self.retained.observe(&entry.event, &self.sessions)?;
        self.sinks.observe(&entry.event)?;
        if let Event::Received {
            client,
            number,
            topic,
            retain,
            ..
        } = entry.event
            && !self.wills.is_will(number)
            && !self.deliveries.is_known(number)
        {
            return Err(format!(
                "client {client} received message {number} on {topic} (retain {retain}) that no client sent"
            ));
        }
        Ok(())
    }
}
