//! Clients and checker agree with a broker that is not killed.

use thrum_crash::run::{Plan, run_without_kills};

#[test]
fn nothing_is_wrong_while_the_broker_lives() {
    let outcome = run_without_kills(Plan::new("alive", 1, false), 3);
    println!("{:?}", outcome.counts);
    assert!(outcome.counts.paid > 1_000, "{:?}", outcome.counts);
}
