//! Failures of the disk and the power.

use std::time::Duration;

use thrum_storage::disk::sim::{Faults, SimStorage};

use super::history::{Ending, Event};
use super::machine::Machine;
use super::plan;
use super::world::{Failure, World};
use crate::clock::Clock;

/// Short reads and writes, in thousandths: a working disk has them too.
const SHORT: u32 = 100;
/// Calls that change something until the power fails, at most.
const CALLS_MAX: usize = 30;
/// Long enough for the node to look at its wall clock.
const HOUSEKEEPING: Duration = Duration::from_millis(1100);
/// Milliseconds by which the wall clock is ahead of the real time: correct, hours and days wrong in
/// both directions, never set.
const WALL_AHEAD: [i64; 6] = [
    0,
    3 * 3_600_000,
    -3_600_000,
    8 * 86_400_000,
    -8 * 86_400_000,
    -1_767_225_590_000,
];
/// Longest time between a crash and the restart, in milliseconds.
const DOWN_MILLIS_MAX: usize = 8000;

impl World {
    /// Removes all faults of the disk.
    pub(super) fn clear_disk_faults(&mut self) {
        if let Some(disk) = &self.disk {
            disk.set_faults(Faults {
                short: SHORT,
                ..Faults::default()
            });
        }
    }

    /// Adds a fault: the disk fails at times, has little room, or loses its power soon.
    pub(super) fn inject_disk_faults(&mut self) {
        let Some(disk) = &self.disk else { return };
        let random = &mut self.random;
        let may_refuse = self.plan.allowances.disk_refuses;
        let mut faults = Faults {
            short: SHORT,
            ..Faults::default()
        };
        match random.below(4) {
            0 if may_refuse => faults.sync_errors = random.pick(&[200, 1000]),
            1 if may_refuse => faults.write_errors = random.pick(&[200, 1000]),
            2 if may_refuse => faults.space_bytes = used_bytes(disk) + random.next() % 20_000,
            _ => faults.crash_at = Some(1 + random.below(CALLS_MAX) as u64),
        }
        disk.set_faults(faults);
        if may_refuse && self.random.percent(40) {
            // The node notices the fault, and has to report it to new connections.
            self.machine.commit();
            self.mass_reconnect();
        }
    }

    /// Restarts the node if its machine has lost its power.
    pub(super) fn restart_after_power_loss(&mut self) -> Result<(), Failure> {
        let is_dead = self.disk.as_ref().is_some_and(|disk| !disk.has_power());
        if is_dead {
            self.restart(SimStorage::crash)?;
        }
        Ok(())
    }

    /// Sets the wall clock, and lets the node notice it.
    pub(super) fn set_clock(&mut self) -> Result<(), Failure> {
        if self.disk.is_none() {
            return Ok(());
        }
        self.wall_ahead = self.random.pick(&WALL_AHEAD);
        self.machine.node.clock.set_wall_ahead(self.wall_ahead);
        self.settle()?;
        self.advance_time(HOUSEKEEPING)?;
        self.settle()
    }

    /// Kills the node at any moment: its process alone, or the machine.
    pub(super) fn crash(&mut self) -> Result<(), Failure> {
        if self.random.percent(30) {
            self.restart(SimStorage::kill)
        } else {
            self.restart(SimStorage::crash)
        }
    }

    pub(super) fn restart(&mut self, end: impl Fn(&SimStorage)) -> Result<(), Failure> {
        let Some(disk) = self.disk.clone() else {
            return Ok(());
        };
        for client in 0..self.clients.len() {
            // Written bytes of the node arrive or are lost.
            if self.random.percent(70) {
                self.transfer_all_to_client(client)?;
            }
            drop(self.end(client, Ending::ByBroker));
        }
        if self.random.percent(70) {
            self.read_old_connections(usize::MAX)?;
        }
        self.disconnected.clear();
        self.detect_silent();
        end(&disk);
        self.clear_disk_faults();
        let down = self.random.below(DOWN_MILLIS_MAX) as u64;
        self.advance_time(Duration::from_millis(down))?;
        if self.random.percent(30) {
            self.plan.workers = self.random.pick(&plan::WORKERS);
        }
        let identity = self.random.next();
        let clock = Clock::manual(&self.millis, self.wall_ahead);
        self.redispatched += self.machine.redispatched();
        self.trace = None;
        self.machine = Machine::start(&self.plan, clock, identity, Some(&disk));
        let (is, really_is) = (self.machine.node.clock.now().as_millis(), self.now());
        if is != really_is {
            return Err(format!(
                "the node's time is {is} instead of {really_is}; its wall clock is {} ahead",
                self.wall_ahead
            ));
        }
        self.record(Event::Restarted);
        Ok(())
    }
}

fn used_bytes(disk: &SimStorage) -> u64 {
    disk.files().values().map(|file| file.len() as u64).sum()
}
