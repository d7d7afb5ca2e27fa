//! The broker is killed under load, and nothing that was acknowledged is lost.

use thrum_crash::run::{Plan, run};

#[test]
fn acknowledged_messages_survive_a_kill() {
    let outcome = run(Plan::new("kill", 60, false));
    println!("{:?}", outcome.counts);
    outcome.assert_telling();
}
