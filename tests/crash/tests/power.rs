//! The power fails under load, and nothing that was acknowledged is lost.

use thrum_crash::run::{Plan, run};

#[test]
fn acknowledged_messages_survive_the_loss_of_power() {
    let outcome = run(Plan::new("power", 60, true));
    println!("{:?} {:?}", outcome.counts, outcome.lost);
    outcome.assert_telling();
    assert!(
        outcome.lost.blocks > 0 && outcome.lost.names > 0,
        "nothing was lost: {:?}",
        outcome.lost
    );
}
