//! The wall clock of the machine is set, and the node stores something before it looks at it again.

use thrum_storage::disk::sim::SimStorage;

use super::history::RETAINED;
use super::replay_tests::{retain, world};

const HOUR_MILLIS: i64 = 3_600_000;

#[test]
fn a_stored_change_is_accompanied_by_the_wall_clock_of_its_moment() {
    for ahead in [3 * HOUR_MILLIS, -HOUR_MILLIS] {
        let mut world = world(1, true);
        world.wall_ahead = ahead;
        world.machine.node.clock.set_wall_ahead(ahead);
        let [topic, ..] = RETAINED[0];
        retain(&mut world, 1, topic);
        world.settle().unwrap();
        // It compares the time of the node with the real one.
        world.restart(SimStorage::crash).unwrap();
        world.settle().unwrap();
    }
}
