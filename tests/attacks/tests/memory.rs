//! Memory of the broker under clients that try to use it up.

use std::time::Duration;

use thrum_attacks::attacks::{filters, queues};
use thrum_attacks::requests::QUOTA_EXCEEDED;
use thrum_attacks::{Outcome, Setup, Site, Victim};
use thrum_conformance::Wire;
use thrum_conformance::packets::{Connect, Version};

/// Longest acceptable wait of the probe, for a broker that may be a debug build, on a machine that
/// may be busy.
const ROUND_MAX: Duration = Duration::from_secs(2);

#[track_caller]
fn check(outcome: &Outcome) {
    assert_eq!(outcome.wrong, None);
    assert!(outcome.has_memory(), "too much memory: {outcome:?}");
    let rounds = outcome.rounds;
    assert!(
        !rounds.is_lost && rounds.longest < ROUND_MAX,
        "others wait: {outcome:?}"
    );
}

#[test]
fn queues_of_absent_clients_keep_to_the_limit_and_their_owners_get_them() {
    check(&queues::absent_sessions(&Site::of_tests()));
}

#[test]
fn messages_with_thousands_of_subscription_identifiers_fill_a_queue_with_all_they_take() {
    // Text for a thousand of them would fit, their 8 KiB of identifiers do not.
    check(&queues::fill_with_identifiers(
        &Site::of_tests(),
        (11, "1MiB"),
        1000,
    ));
}

#[test]
fn long_topics_without_subscribers_leave_nothing_behind() {
    check(&filters::long_topics(&Site::of_tests()));
}

#[test]
fn filters_of_a_hundred_levels_delay_no_other_client() {
    check(&filters::deep_filters(&Site::of_tests()));
}

#[test]
fn sessions_of_one_address_have_a_limit() {
    let setup = Setup {
        settings: &[("THRUM_LIMITS__ADDRESS__SESSIONS", "100")],
        ..Setup::default()
    };
    let victim = Victim::start(&Site::of_tests(), &setup);
    for number in 0..100 {
        victim.resume(&format!("one{number}"));
    }
    let mut wire = Wire::open(victim.address(), Version::V5);
    let connect = Connect::new(Version::V5).client_id("onemore").persistent();
    wire.send(&connect.bytes());
    assert_eq!(
        wire.packet("CONNACK").connack(Version::V5).code,
        QUOTA_EXCEEDED
    );
    assert!(victim.resume("one7").1);
}
