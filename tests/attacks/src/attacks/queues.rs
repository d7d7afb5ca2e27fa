//! Messages that wait, and messages that stay.

use std::thread;

use thrum_conformance::packets::{Connect, Publish, subscribe_with};
use thrum_conformance::{Version, Wire, bytes::variable};

use crate::outcome::Outcome;
use crate::requests::{ask, either, publish_until_refused};
use crate::victim::{MIB, Setup, Site, Victim};

const LIMIT: u64 = 128 * MIB;
const SETTINGS: [(&str, &str); 2] = [
    ("THRUM_LIMITS__MEMORY", "128MiB"),
    ("THRUM_SYS__INTERVAL", "0"),
];
/// The broker slows each of them down while memory is low.
const PUBLISHERS: u32 = 8;
/// Refusals after which it is plain that the limit holds.
const REFUSALS: usize = 200;
/// Unserved clients after which the test gives up: each waits for a while.
const TURNED_AWAY_MAX: usize = 3;

fn setup() -> Setup<'static> {
    Setup {
        settings: &SETTINGS,
        ..Setup::default()
    }
}

/// The sent messages are small, the queued ones are not: 4,700 messages, each for 600 queues.
pub fn absent_sessions(site: &Site) -> Outcome {
    fill_queues(site, 600, 4700)
}

/// The same for twice as many.
pub fn many_absent_sessions(site: &Site) -> Outcome {
    fill_queues(site, 1200, 4700)
}

/// This many messages for this many absent clients: until the limit the broker takes them, and
/// gives each client what it took.
fn fill_queues(site: &Site, sessions: u32, messages: u32) -> Outcome {
    const PAYLOAD: &[u8] = b"fourteen bytes";
    let mut victim = Victim::start(site, &setup());
    for number in 0..sessions {
        let (mut wire, _) = victim.resume(&format!("away{number}"));
        wire.subscribe("queue", 1);
    }
    victim.begin();
    let message = |_| Publish::new(Version::V5, "queue", 1, PAYLOAD);
    let publish = || {
        let numbers = 0..messages / PUBLISHERS;
        publish_until_refused(&mut victim.client(), numbers, REFUSALS, message)
    };
    let counts = thread::scope(|scope| {
        let publishers: Vec<_> = (0..PUBLISHERS).map(|_| scope.spawn(publish)).collect();
        let counts = publishers
            .into_iter()
            .map(|publisher| publisher.join().expect("publishes"));
        counts.collect::<Vec<_>>()
    });
    let sent: usize = counts.iter().map(|(sent, _)| sent).sum();
    let refused: usize = counts.iter().map(|(_, refused)| refused).sum();
    let mut wrong = (refused == 0).then(|| format!("none of {sent} messages was refused"));
    // Uninvolved clients are not refused, and the owners of queues get them.
    let mut turned_away = usize::from(victim.try_connect(&Connect::new(Version::V5)).is_none());
    for number in 0..sessions {
        let gets_it =
            |(mut wire, is_present): (Wire, bool)| is_present && wire.publish().payload == PAYLOAD;
        let owner = Connect::new(Version::V5).client_id(&format!("away{number}"));
        let owner = victim.try_connect(&owner.persistent());
        let is_served = owner.is_some_and(gets_it);
        turned_away += usize::from(!is_served);
        if turned_away > TURNED_AWAY_MAX {
            break;
        }
    }
    if turned_away > 0 {
        wrong = Some(format!(
            "{sent} messages, {refused} refused; owners of queues are not admitted"
        ));
    }
    let seen = format!("{sent} messages, {refused} refused, all owners served");
    let mut outcome = victim.end(Some(LIMIT), seen);
    outcome.wrong = outcome.wrong.or(wrong);
    outcome
}

/// Overlapping filters with an identifier each make each message that waits a large one.
pub fn identifiers(site: &Site) -> Outcome {
    fill_with_identifiers(site, (13, "64MiB"), 4000)
}

/// The same with two to this power filters, queues of this size, and this many messages.
pub fn fill_with_identifiers(
    site: &Site,
    (levels, queue_bytes): (u32, &str),
    messages: u32,
) -> Outcome {
    const SESSIONS: [&str; 2] = ["one", "two"];
    const PAYLOAD: &[u8] = &[b'x'; 1000];
    let queue = ("THRUM_LIMITS__CLIENT__QUEUE_BYTES", queue_bytes);
    let setup = Setup {
        settings: &[SETTINGS[0], SETTINGS[1], queue],
        ..Setup::default()
    };
    let mut victim = Victim::start(site, &setup);
    for session in SESSIONS {
        let (mut wire, _) = victim.resume(session);
        let requests = (0..1_u32 << levels).map(|number| {
            let identifier = [vec![0x0B], variable(u64::from(number + 1))].concat();
            subscribe_with(Version::V5, 1, &identifier, &[(&either(number, levels), 1)])
        });
        ask(&mut wire, requests, |_| true);
    }
    victim.begin();
    let mut attacker = victim.client();
    let topic = either(0, levels);
    let message = |_| Publish::new(Version::V5, &topic, 1, PAYLOAD);
    let (sent, refused) = publish_until_refused(&mut attacker, 0..messages, REFUSALS, message);
    let owner = Connect::new(Version::V5).client_id(SESSIONS[0]);
    let owner = victim.try_connect(&owner.persistent());
    let gets_it = |(mut wire, is_present): (Wire, bool)| {
        is_present && wire.publish().payload.len() == PAYLOAD.len()
    };
    let is_served = owner.is_some_and(gets_it);
    let mut outcome = victim.end(Some(LIMIT), format!("{sent} messages, {refused} refused"));
    let wrong = match (is_served, refused) {
        (false, _) => Some("the owner of the queue does not get it".to_owned()),
        (true, 0) => Some(format!("none of {sent} messages was refused")),
        (true, _) => None,
    };
    outcome.wrong = outcome.wrong.or(wrong);
    outcome
}

/// Each retained message has 128 levels of its own.
pub fn deep_retained(site: &Site) -> Outcome {
    const TOPICS: u32 = 40_000;
    let mut victim = Victim::start(site, &setup());
    victim.begin();
    let mut attacker = victim.client();
    let deep = "/a".repeat(127);
    let message = |number: u32| {
        let topic = format!("{number}{deep}");
        Publish::new(Version::V5, &topic, 1, b"x").retain()
    };
    let (sent, refused) = publish_until_refused(&mut attacker, 0..TOPICS, REFUSALS, message);
    victim.end(Some(LIMIT), format!("{sent} messages, {refused} refused"))
}
