//! Many connections at a time.

use std::thread;
use std::time::Duration;

use thrum_conformance::packets::{Connect, Publish};
use thrum_conformance::{Version, Wire, clock};

use super::identity::connack;
use super::streams::FLOOD;
use crate::flood::flood;
use crate::outcome::Outcome;
use crate::victim::{Setup, Site, Victim};

/// Longest acceptable wait of a new client for its CONNACK.
const NEWCOMER_MAX: Duration = Duration::from_secs(1);
/// Between two newcomers.
const NEWCOMER_PAUSE: Duration = Duration::from_millis(50);

/// Each message goes to 1,000 clients.
pub fn fan_out(site: &Site) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    let receivers = receivers(&victim, 1000);
    victim.begin();
    let packet = Publish::new(Version::V5, "many", 0, b"x").bytes();
    let sent = flood(victim.client(), &packet, FLOOD);
    drop(receivers);
    victim.end(None, format!("{} messages", sent / packet.len()))
}

/// Clients that have subscribed. They read nothing: their messages wait in their sockets.
fn receivers(victim: &Victim, count: usize) -> Vec<Wire> {
    let receiver = |_| {
        let mut wire = victim.client();
        wire.subscribe("many", 0);
        wire
    };
    (0..count).map(receiver).collect()
}

/// Receivers whose windows are closed, four publishers that continue to send, and new clients that
/// try to connect.
pub fn closed_windows(site: &Site) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    let receivers = receivers(&victim, 300);
    victim.begin();
    let packet = Publish::new(Version::V5, "many", 0, &[b'x'; 1000]).bytes();
    let address = victim.address();
    let waits = thread::scope(|scope| {
        for _ in 0..4 {
            let publisher = victim.client();
            let packet = &packet;
            scope.spawn(move || flood(publisher, packet, 2 * FLOOD));
        }
        let start = clock::now();
        let mut waits = Vec::new();
        while start.elapsed() < 2 * FLOOD {
            let came = clock::now();
            let mut wire = Wire::open(address, Version::V5);
            wire.send(&Connect::new(Version::V5).bytes());
            let is_in = connack(&mut wire) == Some(0);
            waits.push((came.elapsed(), is_in));
            clock::sleep(NEWCOMER_PAUSE);
        }
        waits
    });
    drop(receivers);
    let longest = waits
        .iter()
        .map(|(wait, _)| *wait)
        .max()
        .unwrap_or_default();
    let refused = waits.iter().filter(|(_, is_in)| !is_in).count();
    let told = format!(
        "{} newcomers, {refused} not admitted, longest wait {} ms",
        waits.len(),
        longest.as_millis()
    );
    let is_wrong = refused > 0 || longest > NEWCOMER_MAX;
    victim.end_with(is_wrong.then(|| told.clone()), told)
}
