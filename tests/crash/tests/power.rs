//! The power fails under load, and nothing that was acknowledged is lost.

use thrum_crash::run::{Plan, run};

#[test]
fn what_was_acknowledged_survives_the_loss_of_power() {
    let counts = run(Plan::new("power", 60, true)).counts;
    println!("{counts:?}");
}
