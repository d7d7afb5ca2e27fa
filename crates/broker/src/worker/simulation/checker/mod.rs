//! Judges the history of a run: was every promise kept?
//!
//! It knows what clients did and saw, and for how long the node may not have known better: what is
//! certain is demanded, what is possible is allowed, everything else is a complaint.

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

/// Promises that the settings of a run exclude.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each takes another promise away"
)]
pub(super) struct Allowances {
    /// Queues are so short that messages do not fit: what does not is dropped, as the policy says.
    pub(super) queues_overflow: bool,
    /// Acknowledged messages make room for later ones.
    pub(super) drops_oldest: bool,
    /// Clients whose version can report that no subscriber takes a message.
    pub(super) are_told: [bool; CLIENTS_MAX],
    /// The disk fails at times and has no room at others: the node may refuse what it would have to
    /// keep.
    pub(super) disk_refuses: bool,
    /// A PUBLISH may be refused because the disk or a sink has no room for it.
    pub(super) publish_refused: bool,
    /// The messages due to the sink, if there is one.
    pub(super) sink: Option<SinkPromise>,
}

/// Why a history is not one of a node that keeps its promises.
pub(super) type Complaint = String;

/// The knowledge after a part of the history.
#[derive(Debug)]
struct Checker {
    sessions: Sessions,
    deliveries: Deliveries,
    retained: Retained,
    wills: Wills,
    sinks: Sinks,
}

/// Checks a whole history; a complaint names the place where it became certain.
pub(super) fn check(history: &[Entry], allowances: Allowances) -> Result<(), (usize, Complaint)> {
    let mut checker = Checker {
        sessions: Sessions::new(allowances),
        deliveries: Deliveries::new(allowances),
        retained: Retained::new(allowances),
        wills: Wills::new(allowances),
        sinks: Sinks::new(allowances),
    };
    for (place, entry) in history.iter().enumerate() {
        let seen = checker.see(place, entry);
        seen.map_err(|complaint| (place, complaint))?;
    }
    Ok(())
}

impl Checker {
    fn see(&mut self, place: usize, entry: &Entry) -> Result<(), Complaint> {
        let at = entry.at;
        // The effect of a CONNECT on the will depends on the earlier knowledge of the session.
        self.wills.see(at, &entry.event)?;
        self.sessions.see(at, &entry.event)?;
        self.deliveries.see(place, entry, &self.sessions)?;
        self.retained.see(&entry.event, &self.sessions)?;
        self.sinks.see(&entry.event)?;
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
                "client {client} got message {number} on {topic} (retain {retain}) that no client sent"
            ));
        }
        Ok(())
    }
}
