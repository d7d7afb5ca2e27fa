//! A disk that fails for a while under load.

use std::net::SocketAddr;
use std::time::Duration;

use thrum_conformance::clock;

use super::stage::Run;
use super::{Outcome, Plan};
use crate::broker::Broker;
use crate::client::Phase;
use crate::disk::Control;
use crate::event::Event;

const EIO: u64 = 5;
const ENOSPC: u64 = 28;
/// Longest wait for something that must happen soon.
const SOON: Duration = Duration::from_secs(20);
/// Faults between two quiet moments.
const FAULTS_PER_EPOCH: u32 = 3;

/// Runs a broker whose disk fails this many times: it must not acknowledge meanwhile, not end, and
/// continue afterwards. In some cases it is killed while the disk fails, or soon after, and loses
/// unsynced data.
///
/// # Panics
/// As [`run`](super::run()).
pub fn run_with_faults(plan: Plan, faults: u32) -> Outcome {
    let mut run = Run::new(plan);
    let (mut broker, mut address) = run.start();
    for number in 1..=faults {
        let length = run.length();
        run.load(length, address);
        run.break_disk(&broker, address);
        let length = run.length();
        run.load(length, address);
        run.assert_alive(&broker);
        if run.random.permille(250) {
            run.end_of_fault();
            (broker, address) = run.restart(&broker, address);
            continue;
        }
        run.end_of_fault();
        run.wait_for_acknowledgements(&broker, address);
        if run.random.permille(250) {
            (broker, address) = run.restart(&broker, address);
        } else if number.is_multiple_of(FAULTS_PER_EPOCH) {
            run.quiet(address);
        }
    }
    run.quiet(address);
    run.assert_alive(&broker);
    drop(broker);
    run.end()
}

impl Run {
    fn start(&mut self) -> (Broker, SocketAddr) {
        let broker = self.spawn(true);
        let address = self.wait_until_ready(&broker, false);
        (broker, address.expect("a running broker"))
    }

    fn restart(&mut self, broker: &Broker, address: SocketAddr) -> (Broker, SocketAddr) {
        let killed_at = clock::now();
        broker.process().kill();
        self.broker_died(broker, killed_at, Some(address));
        self.lose_power();
        self.start()
    }

    fn length(&mut self) -> Duration {
        Duration::from_millis(self.random.below(800))
    }

    /// The disk fails from its next operation on, or soon.
    fn break_disk(&mut self, broker: &Broker, address: SocketAddr) {
        let kind = self.random.below(3);
        let room = self.random.below(50_000);
        let disk = self.disk.as_ref().expect("the broker is followed");
        let before = disk.seen();
        disk.control(match kind {
            0 => Control {
                sync_errno: EIO,
                ..Control::default()
            },
            1 => Control {
                write_errno: (EIO, before.write_bytes),
                ..Control::default()
            },
            _ => Control {
                write_errno: (ENOSPC, before.write_bytes + room),
                ..Control::default()
            },
        });
        let began = clock::now();
        while self.failures() == before.failures {
            self.turn(address, Phase::Load);
            self.assert_alive(broker);
            assert!(began.elapsed() < SOON, "the broker does not write");
        }
        self.world.journal().note(Event::Faulty);
    }

    fn failures(&self) -> u64 {
        self.disk.as_ref().map_or(0, |disk| disk.seen().failures)
    }

    fn end_of_fault(&mut self) {
        self.world.journal().note(Event::Healed);
        if let Some(disk) = &self.disk {
            disk.control(Control::default());
        }
    }

    fn wait_for_acknowledgements(&mut self, broker: &Broker, address: SocketAddr) {
        let before = self.world.journal().checker().counts().accepted;
        let began = clock::now();
        while self.world.journal().checker().counts().accepted == before {
            self.turn(address, Phase::Load);
            self.assert_alive(broker);
            if began.elapsed() > SOON {
                let tail = broker.log_tail();
                self.fail(&format!(
                    "nothing is acknowledged after the disk works again:\n{tail}"
                ));
            }
        }
    }

    fn assert_alive(&mut self, broker: &Broker) {
        if !broker.process().is_alive() {
            self.fail(&format!(
                "the broker ended because of a failing disk:\n{}",
                broker.log_tail()
            ));
        }
    }
}
