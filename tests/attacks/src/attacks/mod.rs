//! Every attack, in the order of what it found.

pub mod crowds;
pub mod filters;
pub mod folders;
pub mod identity;
pub mod logins;
pub mod queues;
pub mod streams;

use crate::outcome::Outcome;
use crate::victim::Site;

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// The finding that it repeats; `–` if it is another one.
    pub finding: &'static str,
    /// The attack.
    pub name: &'static str,
    /// Does it.
    pub run: fn(&Site) -> Outcome,
}

/// All of them.
pub const ATTACKS: &[Attack] = &[
    attack(
        "S1",
        "rights revoked while messages wait",
        identity::revoked_rights,
    ),
    attack(
        "S2",
        "links in the data directory, for root's commands",
        folders::links,
    ),
    attack(
        "S3",
        "SUBSCRIBE of 255,000 filters, 300 rules",
        filters::large_packet_300,
    ),
    attack(
        "S3",
        "SUBSCRIBE of 255,000 filters, 1,000 rules",
        filters::large_packet_1000,
    ),
    attack(
        "S3",
        "400 SUBSCRIBEs of 256 filters, 1,000 rules",
        filters::many_packets,
    ),
    attack(
        "S3",
        "a client with 9,900 filters comes back 20 times, 1,000 rules",
        filters::returns,
    ),
    attack(
        "S3",
        "reload of 1,000 rules, a client with 9,900 filters",
        filters::reload,
    ),
    attack(
        "S3",
        "sessions of 9,900 filters end, 20 times",
        filters::ends,
    ),
    attack(
        "S4",
        "140 kB for 600 disconnected sessions",
        queues::absent_sessions,
    ),
    attack(
        "S4",
        "140 kB for 1,200 disconnected sessions",
        queues::many_absent_sessions,
    ),
    attack(
        "S5",
        "messages with 8,192 subscription identifiers each",
        queues::identifiers,
    ),
    attack(
        "S6",
        "flapping under the identifier of another user",
        identity::flapping,
    ),
    attack(
        "S7",
        "a session is taken over by another user",
        identity::takeover,
    ),
    attack(
        "S8",
        "3,000 topics that 24,000 filters match",
        filters::routes,
    ),
    attack(
        "S8",
        "4,000 topics of 4,000 bytes without subscribers",
        filters::long_topics,
    ),
    attack(
        "S9",
        "9,900 filters of 126 levels, new topics",
        filters::deep_filters,
    ),
    attack(
        "S9",
        "9,900 filters of 126 levels by 12 clients, new topics",
        filters::deep_filters_of_many,
    ),
    attack(
        "S9",
        "50,000 filters of 16 levels by 12 clients, new topics",
        filters::wide_filters,
    ),
    attack(
        "S9",
        "50,000 filters of one level, new topics",
        filters::plain_filters,
    ),
    attack(
        "S10",
        "9,900 shared groups of one client",
        filters::shared_groups,
    ),
    attack(
        "S11",
        "flood of passwords from ever-new networks",
        logins::flood_of_passwords,
    ),
    attack(
        "S12",
        "secrets shown, files open to others",
        folders::secrets,
    ),
    attack(
        "S13",
        "newcomers beside 300 closed windows",
        crowds::closed_windows,
    ),
    attack(
        "S13",
        "retained topics of 128 levels",
        queues::deep_retained,
    ),
    attack(
        "S13",
        "PROXY header without an address",
        identity::nameless_proxy,
    ),
    attack("–", "flood of small messages", streams::small_messages),
    attack("–", "flood of messages to 1,000 clients", crowds::fan_out),
    attack("–", "pings without end", streams::pings),
];

const fn attack(finding: &'static str, name: &'static str, run: fn(&Site) -> Outcome) -> Attack {
    Attack { finding, name, run }
}
