//! Rounds of load that end with a kill.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use thrum_conformance::clock;

use super::stage::Run;
use super::{Outcome, Plan};
use crate::broker::{Broker, Process};
use crate::client::Phase;
use crate::disk::{Control, KillWhen};

/// Kills between two quiet moments.
const KILLS_PER_EPOCH: u64 = 10;
/// Longest round.
const ROUND_MAX: Duration = Duration::from_secs(2);

/// When the broker is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its process began: while it reads its state, or before.
    InStart(Duration),
    /// So long after it was ready.
    UnderLoad(Duration),
    /// At one of its disk operations, counted from its start or from when it was ready.
    AtOperation {
        is_from_start: bool,
        number: u64,
        when: KillWhen,
    },
}

/// Runs the plan.
///
/// # Panics
/// A client saw a violation; the message describes it and how to repeat the run.
pub fn run(plan: Plan) -> Outcome {
    let mut run = Run::new(plan);
    while run.kills < run.plan.kills {
        run.round();
        if run.kills.is_multiple_of(KILLS_PER_EPOCH) {
            run.quiet_moment();
        }
    }
    run.quiet_moment();
    run.end()
}

/// Runs a broker that keeps everything in memory and is not killed, with pauses in which every owed
/// message has to arrive.
///
/// # Panics
/// As [`run`].
pub fn run_without_kills(plan: Plan, loads: u32) -> Outcome {
    let mut run = Run::new(plan);
    let broker = run.spawn(false);
    let address = run
        .wait_until_ready(&broker, false)
        .expect("a running broker");
    for _ in 0..loads {
        run.load(ROUND_MAX, address);
        run.quiet(address);
    }
    run.end()
}

impl Run {
    /// Runs the load for this time.
    pub(super) fn load(&mut self, length: Duration, address: SocketAddr) {
        self.begin_load(address);
        let began = clock::now();
        while began.elapsed() < length {
            self.turn(address, Phase::Load);
        }
    }

    fn round(&mut self) {
        let moment = self.moment();
        self.slow_down_syncs();
        if let Moment::AtOperation {
            is_from_start: true,
            number,
            when,
        } = moment
        {
            self.kill_at(number, when);
        }
        let broker = self.spawn(true);
        if let Moment::InStart(after) = moment {
            clock::sleep(after);
            broker.process().kill();
        }
        let began = clock::now();
        let address = self.wait_until_ready(&broker, true);
        let killed_at = match (address, moment) {
            (Some(address), Moment::UnderLoad(after)) => self.load_for(after, &broker, address),
            (
                Some(address),
                Moment::AtOperation {
                    is_from_start,
                    number,
                    when,
                },
            ) => {
                if !is_from_start {
                    let done = self.disk.as_ref().map_or(0, |disk| disk.seen().operations);
                    self.kill_at(done + number, when);
                }
                self.load_until_dead(&broker, address)
            }
            // It was killed after it reported to be ready.
            (Some(_), Moment::InStart(_)) | (None, _) => began,
        };
        self.broker_died(&broker, killed_at, address);
        self.lose_power();
    }

    fn moment(&mut self) -> Moment {
        let millis = self.random.pick(&[50, 200, 500, 900]);
        let micros = self.random.below(millis * 1_000);
        let is_from_start = self.random.permille(300);
        let operations = if is_from_start { 40 } else { 600 };
        let number = 1 + self.random.below(operations);
        let when = self
            .random
            .pick(&[KillWhen::Before, KillWhen::Middle, KillWhen::After]);
        match self.random.below(10) {
            0 => Moment::InStart(Duration::from_micros(micros / 8)),
            1..=5 if self.disk.is_some() => Moment::AtOperation {
                is_from_start,
                number,
                when,
            },
            _ => Moment::UnderLoad(Duration::from_micros(micros)),
        }
    }

    fn kill_at(&self, operation: u64, when: KillWhen) {
        if let Some(disk) = &self.disk {
            disk.control(Control {
                kill: Some((operation, when)),
                ..Control::default()
            });
        }
    }

    /// Load until another thread has killed the broker; returns a time before that.
    fn load_for(&mut self, after: Duration, broker: &Broker, address: SocketAddr) -> Instant {
        self.begin_load(address);
        let process = broker.process();
        let killer = thread::spawn(move || {
            clock::sleep(after);
            let now = clock::now();
            process.kill();
            now
        });
        while !killer.is_finished() {
            self.turn(address, Phase::Load);
        }
        killer.join().expect("the killer does not fail")
    }

    /// Load until a disk operation has killed the broker; returns a time before that.
    fn load_until_dead(&mut self, broker: &Broker, address: SocketAddr) -> Instant {
        let began = clock::now();
        let mut last_alive = began;
        self.begin_load(address);
        while is_alive(broker.process(), &mut last_alive) {
            if began.elapsed() > ROUND_MAX {
                broker.process().kill();
            }
            self.turn(address, Phase::Load);
        }
        last_alive
    }

    /// Every owed message arrives; then the broker is killed.
    fn quiet_moment(&mut self) {
        self.slow_down_syncs();
        let broker = self.spawn(true);
        let address = self
            .wait_until_ready(&broker, false)
            .expect("a running broker");
        self.quiet(address);
        let killed_at = clock::now();
        broker.process().kill();
        self.broker_died(&broker, killed_at, Some(address));
        self.lose_power();
    }
}

/// Whether the process runs; if so, the current time.
fn is_alive(process: Process, last: &mut Instant) -> bool {
    let now = clock::now();
    let is_alive = process.is_alive();
    if is_alive {
        *last = now;
    }
    is_alive
}
