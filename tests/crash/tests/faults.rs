//! The disk fails under load: nothing is acknowledged meanwhile, nothing that was acknowledged is
//! lost, and the broker continues when the disk works again.

use thrum_crash::run::{Plan, run_with_faults};

#[test]
fn broker_keeps_its_word_while_the_disk_fails() {
    let counts = run_with_faults(Plan::new("faults", 1, true), 12).counts;
    println!("{counts:?}");
    assert_eq!(counts.faults, 12);
}
