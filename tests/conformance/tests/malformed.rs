//! Malformed and forbidden input: the one connection ends with the right reason, and a probe
//! that sings after each case never misses a note.

use thrum_conformance::{Broker, case, corpus};

#[test]
fn correct_packets_are_accepted() {
    case::check(&corpus::valid());
}

// [MQTT-4.13.1-1] [MQTT3-4.8.0-1]
#[test]
fn packets_cut_short_are_malformed() {
    case::check(&corpus::truncations());
}

#[test]
fn trailing_bytes_are_malformed() {
    case::check(&corpus::trailing_bytes());
}

// [MQTT-2.1.3-1] [MQTT3-2.2.2-1] [MQTT3-2.2.2-2] [MQTT-3.8.1-1] [MQTT3-3.8.1-1] [MQTT-3.10.1-1]
// [MQTT3-3.10.1-1] [MQTT-3.14.1-1] [MQTT3-3.14.1-1] [MQTT-3.3.1-4] [MQTT3-3.3.1-4]
#[test]
fn wrong_flags_are_malformed() {
    case::check(&corpus::flags());
}

#[test]
fn remaining_length_has_one_form() {
    case::check(&corpus::lengths());
}

// [MQTT-3.1.2-20] [MQTT-3.3.2-4] [MQTT-3.3.2-7] [MQTT-3.3.2-14]
#[test]
fn properties_have_their_place_number_and_range() {
    case::check(&corpus::properties());
}

#[test]
fn strings_are_utf_8_without_nul() {
    case::check(&corpus::strings());
}

// [MQTT-3.1.4-1] [MQTT3-3.1.4-1]
#[test]
fn handshake_is_checked_before_it_is_answered() {
    case::check(&corpus::handshake());
}

#[test]
fn messages_keep_the_rules_of_topics_identifiers_and_aliases() {
    case::check(&corpus::messages());
}

#[test]
fn subscriptions_keep_the_rules_of_filters_options_and_shares() {
    case::check(&corpus::subscriptions());
}

#[test]
fn packets_of_the_wrong_side_or_time_are_protocol_errors() {
    case::check(&corpus::sequence());
}

#[test]
fn the_corpus_is_large_and_names_each_case_once() {
    let all = [
        corpus::valid(),
        corpus::truncations(),
        corpus::trailing_bytes(),
        corpus::flags(),
        corpus::lengths(),
        corpus::properties(),
        corpus::strings(),
        corpus::handshake(),
        corpus::messages(),
        corpus::subscriptions(),
        corpus::sequence(),
    ]
    .concat();
    assert!(all.len() >= 1_500, "{} cases", all.len());
    let mut names: Vec<_> = all
        .iter()
        .map(|case| (format!("{:?}", case.version), &case.name))
        .collect();
    names.sort();
    let doubled: Vec<_> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| &pair[0])
        .collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    Broker::shared().assert_alive();
}
