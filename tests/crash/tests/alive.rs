//! Clients and checker agree with a broker that is not killed.

use thrum_crash::run::{Plan, run_without_kills};

#[test]
fn nothing_is_wrong_while_the_broker_lives() {
    let counts = run_without_kills(Plan::new("alive", 1, false), 3).counts;
    println!("{counts:?}");
}
