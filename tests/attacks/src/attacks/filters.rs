//! Topic filters: the cost of granting, keeping and searching them.

use std::fmt::Write as _;

use thrum_conformance::packets::{Connect, Publish, subscribe};
use thrum_conformance::{Version, Wire};

use crate::outcome::Outcome;
use crate::requests::{ask, either, publish_until_refused, subscribe_all};
use crate::victim::{MIB, Setup, Site, Victim};
use crate::watch::TOPICS;

/// Most filters that the broker accepts in one packet.
const IN_PACKET: usize = 256;
/// Filters of one client, somewhat below the limit.
const FILTERS: u32 = 9900;
const LIMIT: u64 = 128 * MIB;
const MEMORY: (&str, &str) = ("THRUM_LIMITS__MEMORY", "128MiB");
const RULES: (&str, &str) = ("THRUM_ACL__FILE", "{folder}rules");

/// So many rules about others, then what this client may do.
fn rules(count: u32) -> String {
    let mut rules = String::new();
    for number in 0..count {
        writeln!(rules, "allow all pubsub fleet/{number}/+/state").unwrap_or_default();
    }
    writeln!(rules, "allow all pubsub own/#\nallow all pubsub {TOPICS}#").unwrap_or_default();
    rules
}

fn victim_with_rules(site: &Site, count: u32) -> (Victim, String) {
    let rules = rules(count);
    let setup = Setup {
        settings: &[RULES],
        files: &[("rules", &rules)],
        ..Setup::default()
    };
    (Victim::start(site, &setup), rules)
}

/// As many filters as a packet of 1 MB can hold, against 300 rules.
pub fn large_packet_300(site: &Site) -> Outcome {
    large_packet(site, 300)
}

/// The same against 1,000 rules.
pub fn large_packet_1000(site: &Site) -> Outcome {
    large_packet(site, 1000)
}

fn large_packet(site: &Site, rules: u32) -> Outcome {
    let (mut victim, _) = victim_with_rules(site, rules);
    victim.begin();
    let packet = subscribe(Version::V5, 1, &vec![("x", 0); 255_000]);
    let mut refused = 0;
    ask(&mut victim.client(), [packet], |codes| {
        refused = codes.iter().filter(|code| **code >= 0x80).count();
        true
    });
    victim.end(None, format!("{refused} refused"))
}

/// As many filters as a packet may have, each of which has to be compared with every rule to its
/// end.
pub fn many_packets(site: &Site) -> Outcome {
    let (mut victim, _) = victim_with_rules(site, 1000);
    victim.begin();
    let filter = |number| format!("fleet/+/+/none{number}");
    let numbers = 0..400 * u32::try_from(IN_PACKET).unwrap_or(0);
    let granted = subscribe_all(&mut victim.client(), numbers, (IN_PACKET, false), filter);
    victim.end(None, format!("{granted} granted"))
}

fn own(number: u32) -> String {
    format!("own/{number}")
}

/// A session with many filters is checked whenever its client reconnects.
pub fn returns(site: &Site) -> Outcome {
    let (mut victim, _) = victim_with_rules(site, 1000);
    let (mut wire, _) = victim.resume("back");
    subscribe_all(&mut wire, 0..FILTERS, (IN_PACKET, false), own);
    wire.abandon();
    victim.begin();
    for _ in 0..20 {
        victim.resume("back").0.abandon();
    }
    victim.end(None, String::new())
}

/// Two sessions with many filters are checked when the rules change: one connected, one
/// disconnected with queued messages and a filter that is no longer allowed.
pub fn reload(site: &Site) -> Outcome {
    let (mut victim, rules) = victim_with_rules(site, 1000);
    let (mut connected, _) = victim.resume("connected");
    subscribe_all(&mut connected, 0..FILTERS, (IN_PACKET, false), own);
    let (mut away, _) = victim.resume("away");
    subscribe_all(&mut away, 0..FILTERS, (IN_PACKET, false), own);
    away.subscribe("own/+/waits", 1);
    away.abandon();
    let message = |number| {
        let topic = format!("own/{number}/waits");
        Publish::new(Version::V5, &topic, 1, b"x")
    };
    publish_until_refused(&mut victim.client(), 0..5000, 1, message);
    victim.begin();
    for number in 0..3 {
        let denied = format!("deny client:away sub own/{number}");
        victim.put_rules_first(&denied, &rules);
    }
    let (mut away, _) = victim.resume("away");
    away.publish();
    victim.end(None, String::new())
}

/// Sessions with many filters begin and end.
pub fn ends(site: &Site) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    victim.begin();
    for _ in 0..20 {
        let mut wire = victim.client();
        subscribe_all(&mut wire, 0..FILTERS, (IN_PACKET, false), own);
        wire.abandon();
    }
    victim.end(None, String::new())
}

/// Every topic matches thousands of filters, all of which a broker may cache with it.
pub fn routes(site: &Site) -> Outcome {
    let setup = Setup {
        settings: &[MEMORY],
        ..Setup::default()
    };
    let mut victim = Victim::start(site, &setup);
    let filter = |number| format!("{}/#", either(number, 13));
    let _clients = clients(&victim, 3, 8192, |_, number| filter(number));
    victim.begin();
    let granted = new_topics(&victim, 3000, |number| {
        format!("{}/{number}", either(0, 13))
    });
    victim.end(Some(LIMIT), granted)
}

/// Topics of 4,000 bytes without subscribers.
pub fn long_topics(site: &Site) -> Outcome {
    const GROWTH: u64 = 8 * MIB;
    let mut victim = Victim::start(site, &Setup::default());
    victim.begin();
    let beginning = "x".repeat(4000);
    let sent = new_topics(&victim, 4000, |number| format!("{beginning}/{number}"));
    let mut outcome = victim.end(None, sent);
    outcome.memory_bound = Some(outcome.memory_before + GROWTH);
    outcome
}

/// Half of the levels of each filter are wildcards.
pub fn deep_filters(site: &Site) -> Outcome {
    look_among(site, (1, FILTERS), 40, |number| {
        either(number.wrapping_mul(0x9E37_79B9), 126)
    })
}

/// The same filters, shared among more clients than one.
pub fn deep_filters_of_many(site: &Site) -> Outcome {
    look_among(site, (12, FILTERS / 12), 40, |number| {
        either(number.wrapping_mul(0x9E37_79B9), 126)
    })
}

/// Filters that have all but their last level in common with the topics.
pub fn wide_filters(site: &Site) -> Outcome {
    look_among(site, (12, 4170), 500, |number| {
        format!("{}/z", either(number, 16))
    })
}

/// Filters without wildcards.
pub fn plain_filters(site: &Site) -> Outcome {
    look_among(site, (5, 10_000), 20_000, |number| format!("n{number}"))
}

/// This many clients with this many filters each, and messages to new topics.
fn look_among(
    site: &Site,
    (count, filters): (u32, u32),
    topics: u32,
    filter: impl Fn(u32) -> String,
) -> Outcome {
    let setup = Setup {
        settings: &[MEMORY],
        ..Setup::default()
    };
    let mut victim = Victim::start(site, &setup);
    let of_client = |client: u32, number| filter(client * filters + number);
    let clients = clients(&victim, count, filters, of_client);
    let levels = filter(0).split('/').count() - 1;
    victim.begin();
    let beginning = "a/".repeat(levels);
    let sent = new_topics(&victim, topics, |number| format!("{beginning}t{number}"));
    victim.end(
        Some(LIMIT),
        format!("{} filters granted, {sent}", clients.1),
    )
}

/// Clients with filters, and how many were granted.
fn clients(
    victim: &Victim,
    count: u32,
    filters: u32,
    filter: impl Fn(u32, u32) -> String,
) -> (Vec<Wire>, usize) {
    let mut granted = 0;
    let client = |client| {
        let mut wire = victim.client();
        let of_client = |number| filter(client, number);
        granted += subscribe_all(&mut wire, 0..filters, (IN_PACKET, false), of_client);
        wire
    };
    let clients = (0..count).map(client).collect();
    (clients, granted)
}

fn new_topics(victim: &Victim, count: u32, topic: impl Fn(u32) -> String) -> String {
    let message = |number| Publish::new(Version::V5, &topic(number), 1, b"");
    let (sent, _) = publish_until_refused(&mut victim.client(), 0..count, usize::MAX, message);
    format!("{sent} topics")
}

/// Each message goes to one client many times.
pub fn shared_groups(site: &Site) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    let mut member = victim.client();
    let filter = |number| format!("$share/g{number}/work");
    let granted = subscribe_all(&mut member, 0..FILTERS, (IN_PACKET, false), filter);
    victim.begin();
    let message = |_| Publish::new(Version::V5, "work", 0, b"x");
    let mut publisher = Wire::connect(victim.address(), &Connect::new(Version::V5)).0;
    let packets = (0..300).map(|number| message(number).bytes());
    for packet in packets {
        publisher.send(&packet);
    }
    publisher.expect_nothing_before_pingresp();
    victim.end(None, format!("{granted} groups granted"))
}
