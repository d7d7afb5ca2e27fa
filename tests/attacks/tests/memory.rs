//! Memory of the broker under clients that try to use it up.

use std::time::Duration;

use thrum_attacks::{QUOTA_EXCEEDED, Victim, either, publish_all, subscribe};
use thrum_conformance::packets::{Connect, Version};
use thrum_conformance::{Wire, clock};

const MIB: u64 = 1024 * 1024;
/// What the broker may take: beside what the program itself takes that is little.
const LIMIT: u64 = 128 * MIB;
const SETTINGS: [(&str, &str); 2] = [
    ("THRUM_LIMITS__MEMORY", "128MiB"),
    ("THRUM_SYS__INTERVAL", "0"),
];
/// No attack lasts longer.
const TIME_MAX: Duration = Duration::from_secs(15);

/// The bound that the memory has to keep to.
fn check_memory(victim: &Victim) {
    let (peak, bound) = (victim.memory_peak / MIB, (LIMIT + LIMIT / 5) / MIB);
    assert!(
        peak <= bound,
        "{peak} MiB resident, over {bound} MiB; the log:\n{}",
        victim.broker.log_tail()
    );
}

#[test]
fn queues_of_absent_clients_keep_to_the_limit_and_their_owners_get_them() {
    const SESSIONS: u32 = 600;
    let mut victim = Victim::start(&SETTINGS);
    for number in 0..SESSIONS {
        let (mut wire, _) = victim.resume(&format!("away{number}"));
        wire.subscribe("queue", 1);
    }
    let mut attacker = Wire::fresh(victim.broker.address(), Version::V5);
    let start = clock::now();
    let mut refused = 0;
    // What is sent is small; what is kept of it is not.
    while refused < 200 && start.elapsed() < TIME_MAX {
        refused += publish_all(&mut attacker, 0..50, "queue", b"fourteen bytes");
        victim.look();
    }
    check_memory(&victim);
    assert!(refused > 0, "nothing was refused");
    // Nobody who has nothing to do with it is turned away, and who has a queue gets it.
    Wire::fresh(victim.broker.address(), Version::V311).subscribe("other", 1);
    for number in 0..SESSIONS {
        let (mut wire, is_present) = victim.resume(&format!("away{number}"));
        assert!(is_present);
        assert_eq!(wire.publish().payload, b"fourteen bytes");
        if number % 50 == 0 {
            victim.look();
        }
    }
    check_memory(&victim);
}

#[test]
fn messages_with_thousands_of_subscription_identifiers_fill_a_queue_with_all_they_take() {
    let queue = ("THRUM_LIMITS__CLIENT__QUEUE_BYTES", "1MiB");
    let mut victim = Victim::start(&[SETTINGS[0], SETTINGS[1], queue]);
    let (mut wire, _) = victim.resume("overlapping");
    for number in 0..2048 {
        assert_eq!(subscribe(&mut wire, &either(number, 11), number + 1), 1);
    }
    drop(wire);
    let mut attacker = Wire::fresh(victim.broker.address(), Version::V5);
    let mut refused = 0;
    for _ in 0..20 {
        refused += publish_all(&mut attacker, 0..50, &either(0, 11), &[b'x'; 1000]);
        victim.look();
    }
    // Text for a thousand of them would fit, their 8 KiB of identifiers do not.
    assert!(refused > 500, "{refused} of 1000 were refused");
    check_memory(&victim);
    let (mut wire, is_present) = victim.resume("overlapping");
    assert!(is_present && wire.publish().payload.len() == 1000);
}

#[test]
fn long_topics_that_nobody_wants_leave_nothing_behind() {
    let mut victim = Victim::start(&SETTINGS);
    victim.look();
    let before = victim.broker.resident_bytes();
    let mut attacker = Wire::fresh(victim.broker.address(), Version::V5);
    for number in 0..80 {
        for last in 0..50 {
            let topic = format!("{}/{number}/{last}", "x".repeat(4000));
            publish_all(&mut attacker, 0..1, &topic, b"");
        }
        victim.look();
    }
    let grown = victim.broker.resident_bytes().saturating_sub(before) / MIB;
    assert!(grown < 8, "{grown} MiB more for 16 MB sent");
}

#[test]
fn filters_of_a_hundred_levels_are_a_share_of_one_client_and_hold_nobody_up() {
    let mut victim = Victim::start(&SETTINGS);
    let mut wire = Wire::fresh(victim.broker.address(), Version::V5);
    let hashed = |number: u32| either(number.wrapping_mul(0x9E37_79B9), 126);
    let granted = (0..9900)
        .take_while(|number| subscribe(&mut wire, &hashed(*number), 1) != QUOTA_EXCEEDED)
        .count();
    assert!((100..5000).contains(&granted), "{granted} filters");
    let mut attacker = Wire::fresh(victim.broker.address(), Version::V5);
    let start = clock::now();
    let mut number = 0;
    while number < 20 && start.elapsed() < TIME_MAX {
        let topic = format!("{}/{number}", either(0, 125));
        publish_all(&mut attacker, 0..1, &topic, b"");
        victim.look();
        number += 1;
    }
    check_memory(&victim);
    let longest = victim.round_longest;
    assert!(
        longest < Duration::from_millis(500),
        "the canary waited for {longest:?}"
    );
}

#[test]
fn sessions_of_one_address_have_a_limit() {
    let victim = Victim::start(&[("THRUM_LIMITS__ADDRESS__SESSIONS", "100")]);
    for number in 0..100 {
        victim.resume(&format!("one{number}"));
    }
    let mut wire = Wire::open(victim.broker.address(), Version::V5);
    let connect = Connect::new(Version::V5).client_id("onemore").persistent();
    wire.send(&connect.bytes());
    assert_eq!(
        wire.packet("CONNACK").connack(Version::V5).code,
        QUOTA_EXCEEDED
    );
    assert!(victim.resume("one7").1);
}
