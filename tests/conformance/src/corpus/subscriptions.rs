//! SUBSCRIBE and UNSUBSCRIBE: filters, options, shares.

use crate::bytes::{block, frame, join, text, two};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{Version, first, subscribe, subscribe_with, unsubscribe};

/// Filter not valid, as a SUBACK or as the end; the specification leaves the choice.
const FILTER: &[u8] = &[0x80, 0x81, 0x82, 0x8F];

/// Filters that are against 4.7.1. [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT3-4.7.1-2] [MQTT3-4.7.1-3]
const BAD_FILTERS: [&str; 16] = [
    "a#", "#/a", "a/#/b", "a/b#", "##", "a/##", "/#/", "#a", "a+", "+a", "a/+b", "a/b+", "++",
    "a/++/b", "+#", "#+",
];

/// All cases about subscriptions.
pub fn subscriptions() -> Vec<Case> {
    let mut cases: Vec<_> = Version::ALL.into_iter().flat_map(filters).collect();
    cases.extend(shares());
    cases.extend(Version::ALL.into_iter().flat_map(options));
    cases.extend(Version::ALL.into_iter().flat_map(packets));
    cases
}

fn filters(version: Version) -> Vec<Case> {
    let mut cases = Vec::new();
    for filter in BAD_FILTERS.into_iter().chain([""]) {
        cases.push(Case::connected(
            format!("SUBSCRIBE to {filter:?}"),
            version,
            subscribe(version, 7, &[(filter, 0)]),
            Expect::FilterRefused(FILTER),
        ));
        cases.push(Case::connected(
            format!("UNSUBSCRIBE from {filter:?}"),
            version,
            unsubscribe(version, 7, &[filter]),
            // A filter that cannot be subscribed to is unknown, if it is not refused.
            Expect::LivesOrRefused(FILTER),
        ));
    }
    for filter in [
        "#", "+", "+/#", "/", "//", "a//b", "+/+/+", "/+", "a/+/#", "$x/+", "ü/+",
    ] {
        cases.push(Case::connected(
            format!("SUBSCRIBE to {filter:?}"),
            version,
            subscribe(version, 7, &[(filter, 1)]),
            Expect::Answer(0x90, join(&[&two(7), &version.properties(&[]), &[1]])),
        ));
    }
    cases
}

/// [MQTT-4.8.2-1] [MQTT-4.8.2-2] the form of a shared subscription.
fn shares() -> Vec<Case> {
    let mut cases = Vec::new();
    let v5 = Version::V5;
    for filter in [
        "$share/",
        "$share//",
        "$share//a",
        "$share/g",
        "$share/g/",
        "$share/+/a",
        "$share/#",
        "$share/#/a",
        "$share/g+/a",
        "$share/+g/a",
        "$share/g#/a",
        "$share/g/a#",
        "$share/g/#/a",
        "$share/g/a+",
    ] {
        cases.push(Case::connected(
            format!("SUBSCRIBE to {filter:?}"),
            v5,
            subscribe(v5, 7, &[(filter, 0)]),
            Expect::FilterRefused(FILTER),
        ));
    }
    for filter in [
        "$share/g/a",
        "$share/g/+",
        "$share/g/#",
        "$share/ü/a/b",
        "$share/g//",
    ] {
        cases.push(Case::connected(
            format!("SUBSCRIBE to {filter:?}"),
            v5,
            subscribe(v5, 7, &[(filter, 2)]),
            Expect::Answer(0x90, vec![0, 7, 0, 2]),
        ));
    }
    // [MQTT-3.8.3-4] no local is not allowed for a shared subscription
    cases.push(Case::connected(
        "no local on a shared subscription",
        v5,
        subscribe(v5, 7, &[("$share/g/a", 0x04)]),
        Expect::Refused(PROTOCOL),
    ));
    cases
}

fn options(version: Version) -> Vec<Case> {
    let mut cases = Vec::new();
    for options in 0..=255_u8 {
        let expect = match version {
            // [MQTT3-3.8.3-4] [MQTT-3.8.3-5] reserved bits, and a QoS that does not exist
            Version::V5 if options & 0xC0 != 0 => Expect::Refused(MALFORMED_OR_PROTOCOL),
            Version::V5 if options & 3 == 3 || options & 0x30 == 0x30 => {
                Expect::Refused(MALFORMED_OR_PROTOCOL)
            }
            Version::V5 => Expect::Answer(0x90, vec![0, 7, 0, options & 3]),
            Version::V311 if options > 2 => Expect::Refused(MALFORMED),
            // 3.1 does not specify the upper bits.
            Version::V31 if options > 2 => Expect::Anything,
            _ => Expect::Answer(0x90, vec![0, 7, options]),
        };
        // All values in 5.0, where they mean something; the borders before.
        if version == Version::V5 || options < 8 || options.is_power_of_two() || options == 255 {
            cases.push(Case::connected(
                format!("SUBSCRIBE with options {options:08b}"),
                version,
                subscribe(version, 7, &[("spoiled/o", options)]),
                expect,
            ));
        }
    }
    cases
}

fn packets(version: Version) -> Vec<Case> {
    let empty = join(&[&two(7), &version.properties(&[])]);
    let mut cases = vec![
        // [MQTT-3.8.3-2] [MQTT3-3.8.3-3]
        Case::connected(
            "SUBSCRIBE without filters",
            version,
            frame(first::SUBSCRIBE, &empty),
            Expect::Refused(PROTOCOL),
        ),
        // [MQTT-3.10.3-2] [MQTT3-3.10.3-2]
        Case::connected(
            "UNSUBSCRIBE without filters",
            version,
            frame(first::UNSUBSCRIBE, &empty),
            Expect::Refused(PROTOCOL),
        ),
        Case::connected(
            "SUBSCRIBE with packet identifier 0",
            version,
            subscribe(version, 0, &[("spoiled/s", 0)]),
            Expect::Refused(MALFORMED_OR_PROTOCOL),
        ),
        Case::connected(
            "UNSUBSCRIBE with packet identifier 0",
            version,
            unsubscribe(version, 0, &["spoiled/s"]),
            Expect::Refused(MALFORMED_OR_PROTOCOL),
        ),
        Case::connected(
            "filter that says it has 65,535 bytes",
            version,
            frame(
                first::SUBSCRIBE,
                &join(&[&empty, &two(65_535), b"short", &[0]]),
            ),
            Expect::Refused(MALFORMED),
        ),
    ];
    if version == Version::V5 {
        cases.extend(identifiers());
    }
    cases
}

fn identifiers() -> Vec<Case> {
    let v5 = Version::V5;
    vec![
        Case::connected(
            "the largest subscription identifier",
            v5,
            subscribe_with(v5, 7, &[0x0B, 0xFF, 0xFF, 0xFF, 0x7F], &[("spoiled/s", 0)]),
            Expect::Answer(0x90, vec![0, 7, 0, 0]),
        ),
        Case::connected(
            "property length past the end",
            v5,
            frame(
                first::SUBSCRIBE,
                &join(&[&two(7), &[50], &text("spoiled/s"), &[0]]),
            ),
            Expect::Refused(MALFORMED),
        ),
        Case::connected(
            "property length of five bytes",
            v5,
            frame(
                first::SUBSCRIBE,
                &join(&[&two(7), &[0xFF, 0xFF, 0xFF, 0xFF, 0x01], &[0; 40]]),
            ),
            Expect::Refused(MALFORMED),
        ),
        Case::connected(
            "subscription identifier in UNSUBSCRIBE",
            v5,
            frame(
                first::UNSUBSCRIBE,
                &join(&[&two(7), &block(&[0x0B, 1]), &text("spoiled/s")]),
            ),
            Expect::Refused(MALFORMED),
        ),
    ]
}
