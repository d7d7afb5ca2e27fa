//! One client that sends without a pause.

use std::time::Duration;

use thrum_conformance::Version;
use thrum_conformance::packets::{PINGREQ, Publish};

use crate::flood::flood;
use crate::outcome::Outcome;
use crate::victim::{Setup, Site, Victim};

/// How long it lasts.
pub(super) const FLOOD: Duration = Duration::from_secs(3);

/// The smallest messages, to a topic without subscribers.
pub fn small_messages(site: &Site) -> Outcome {
    stream(site, &Publish::new(Version::V5, "t", 0, b"").bytes())
}

/// Packets of two bytes, with an answer each.
pub fn pings(site: &Site) -> Outcome {
    stream(site, &PINGREQ)
}

fn stream(site: &Site, packet: &[u8]) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    victim.begin();
    let sent = flood(victim.client(), packet, FLOOD);
    victim.end(
        None,
        format!("{} thousand packets", sent / packet.len() / 1000),
    )
}
