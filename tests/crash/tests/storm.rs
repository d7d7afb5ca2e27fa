//! Storms under load: the clock set back and forward, twenty reloads a second, an end every two
//! seconds, half of them kills. Nothing that was acknowledged is lost. `make night` runs them for
//! hours (`THRUM_CRASH_KILLS`).

use thrum_crash::run::{Plan, Storm, run_in_storm};

#[test]
fn acknowledged_messages_survive_clock_changes() {
    let storm = Storm {
        sets_clock: true,
        reloads: false,
    };
    let counts = run_in_storm(Plan::new("storm-clock", 6, false), storm).counts;
    println!("{counts:?}");
    assert!(counts.resumed > 50 && counts.accepted > 500, "{counts:?}");
}

#[test]
fn acknowledged_messages_survive_reloads_and_restarts() {
    let storm = Storm {
        sets_clock: false,
        reloads: true,
    };
    let counts = run_in_storm(Plan::new("storm-reload", 4, false), storm).counts;
    println!("{counts:?}");
    assert!(counts.resumed > 30 && counts.accepted > 300, "{counts:?}");
}
