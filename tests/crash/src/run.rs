//! A run: rounds of load that end with a kill, quiet moments in between, and a report when something is wrong.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, thread};

use thrum_conformance::clock;

use crate::broker::{Broker, Launch, Process};
use crate::cast::cast;
use crate::checker::Counts;
use crate::client::Phase;
use crate::disk::{Control, KillWhen, LossyDisk, Memory};
use crate::event::{Event, Millis, Observed};
use crate::random::Random;
use crate::world::World;

/// Kills between two quiet moments.
const KILLS_PER_EPOCH: u64 = 10;
/// A quiet moment in which nothing comes any more for so long is over; longer than any delay of a will.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest round.
const ROUND_MAX: Duration = Duration::from_secs(2);
const VIOLATIONS_SHOWN: usize = 6;

/// What a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Part of the names of its files.
    pub name: &'static str,
    /// All choices follow from it; the moments of the kills follow from the machine too.
    pub seed: u64,
    /// How often the broker is killed.
    pub kills: u64,
    /// Whether what was not synced is taken back after most kills.
    pub loses_power: bool,
    /// Worker threads; none is one in the first third, three in the second, and either in the last.
    pub workers: Option<u32>,
}

impl Plan {
    /// A plan with this number of kills, unless `THRUM_CRASH_KILLS` says another; its seed is `THRUM_CRASH_SEED` or new,
    /// and `THRUM_CRASH_WORKERS` fixes the number of workers.
    ///
    /// # Panics
    /// A variable is no number.
    pub fn new(name: &'static str, kills: u64, loses_power: bool) -> Self {
        let number = |name: &str| {
            let text = env::var(name).ok()?;
            let number = text.parse::<u64>();
            Some(number.unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
        };
        let new_seed = || u64::from(std::process::id()) << 20 | clock_bits();
        Self {
            name,
            seed: number("THRUM_CRASH_SEED").unwrap_or_else(new_seed),
            kills: number("THRUM_CRASH_KILLS").unwrap_or(kills),
            loses_power,
            workers: number("THRUM_CRASH_WORKERS").and_then(|workers| u32::try_from(workers).ok()),
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How often what was checked.
    pub counts: Counts,
    /// The end of what clients did and saw.
    pub history: Vec<Observed>,
}

/// Runs the plan.
///
/// # Panics
/// A client saw what no correct broker does; the message says what, and how to run it again.
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

/// Runs a broker that keeps everything in memory and is not killed, with pauses in which everything has to come.
///
/// # Panics
/// As [`run`].
pub fn run_without_kills(plan: Plan, loads: u32) -> Outcome {
    let mut run = Run::new(plan);
    let broker = run.spawn(None);
    let address = run.wait_until_ready(&broker).expect("nobody kills it");
    for _ in 0..loads {
        run.begin_load(address);
        let began = clock::now();
        while began.elapsed() < ROUND_MAX {
            run.turn(address, Phase::Load);
        }
        run.settle(address);
        run.world.inspect(address);
        run.settle(address);
        run.world.journal().checker_mut().close_epoch();
        run.fail_if_violated();
    }
    run.end()
}

struct Run {
    plan: Plan,
    random: Random,
    world: World,
    scratch: PathBuf,
    disk: Option<LossyDisk>,
    kills: u64,
    starts: u64,
}

/// When the broker is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its process began: while it reads its state, or before.
    InStart(Duration),
    /// So long after it was ready.
    UnderLoad(Duration),
    /// At one of its disk operations under load.
    AtOperation(u64, KillWhen),
}

impl Run {
    fn new(plan: Plan) -> Self {
        let scratch =
            env::temp_dir().join(format!("thrum-crash-{}-{}", std::process::id(), plan.name));
        fs::create_dir_all(scratch.join("data")).expect("the temporary folder can be written");
        let mut random = Random::new(plan.seed);
        Self {
            world: World::new(cast(), Random::new(random.number())),
            disk: plan
                .loses_power
                .then(|| LossyDisk::new(&scratch.join("data"), &scratch.join("side"))),
            plan,
            random,
            scratch,
            kills: 0,
            starts: 0,
        }
    }

    fn end(mut self) -> Outcome {
        fs::remove_dir_all(&self.scratch).expect("the temporary folder can be removed");
        let journal = self.world.journal();
        Outcome {
            counts: journal.checker().counts(),
            history: journal.history().cloned().collect(),
        }
    }

    fn round(&mut self) {
        let moment = self.moment();
        self.slow_down_syncs();
        let broker = self.spawn(Some(self.scratch.join("data")));
        let address = match moment {
            Moment::InStart(after) => {
                clock::sleep(after);
                broker.process().kill();
                None
            }
            _ => self.wait_until_ready(&broker),
        };
        let killed_at = match (address, moment) {
            (Some(address), Moment::UnderLoad(after)) => self.load_for(after, &broker, address),
            (Some(address), Moment::AtOperation(after, when)) => {
                self.load_until_operation(after, when, &broker, address)
            }
            _ => clock::now(),
        };
        self.broker_died(&broker, killed_at, address);
        self.lose_power();
    }

    fn moment(&mut self) -> Moment {
        let millis = self.random.pick(&[50, 200, 500, 900]);
        let micros = self.random.below(millis * 1_000);
        let when = self
            .random
            .pick(&[KillWhen::Before, KillWhen::Middle, KillWhen::After]);
        match self.random.below(10) {
            0 => Moment::InStart(Duration::from_micros(micros / 8)),
            1..=5 if self.disk.is_some() => Moment::AtOperation(1 + self.random.below(600), when),
            _ => Moment::UnderLoad(Duration::from_micros(micros)),
        }
    }

    fn slow_down_syncs(&mut self) {
        let sync_micros = self.random.pick(&[0, 300, 3_000]);
        if let Some(disk) = &self.disk {
            disk.control(Control {
                sync_micros,
                ..Control::default()
            });
        }
    }

    fn spawn(&mut self, data: Option<PathBuf>) -> Broker {
        self.starts += 1;
        let random = self.random.pick(&[1, 3]);
        let workers = self
            .plan
            .workers
            .unwrap_or(match 3 * self.kills / self.plan.kills.max(1) {
                0 => 1,
                1 => 3,
                _ => random,
            });
        let disk = self.disk.as_ref();
        // The logs of the last few starts stay for a report.
        let log = format!("broker-{}.log", self.starts % 4);
        Broker::spawn(&Launch {
            data,
            workers,
            environment: disk.map(LossyDisk::environment).unwrap_or_default(),
            log: self.scratch.join(log),
        })
    }

    fn wait_until_ready(&mut self, broker: &Broker) -> Option<SocketAddr> {
        let address = broker.wait_until_ready(false);
        self.world.journal().note(Event::Started);
        address
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
    fn load_until_operation(
        &mut self,
        after: u64,
        when: KillWhen,
        broker: &Broker,
        address: SocketAddr,
    ) -> Instant {
        self.begin_load(address);
        let disk = self.disk.as_ref().expect("the broker is followed");
        let began = clock::now();
        disk.control(Control {
            kill: Some((disk.seen().operations + after, when)),
            ..Control::default()
        });
        let process = broker.process();
        let mut last_alive = began;
        while is_alive(process, &mut last_alive) {
            if began.elapsed() > ROUND_MAX {
                process.kill();
            }
            self.turn(address, Phase::Load);
        }
        last_alive
    }

    fn begin_load(&mut self, address: SocketAddr) {
        let looks = self.random.permille(500);
        self.world.begin_round(address, looks);
    }

    fn turn(&mut self, address: SocketAddr, phase: Phase) {
        self.world.turn(address, phase);
        self.fail_if_violated();
    }

    fn broker_died(&mut self, broker: &Broker, killed_at: Instant, address: Option<SocketAddr>) {
        broker.wait_until_dead();
        self.kills += 1;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let at = self.world.journal().at(killed_at);
        self.world.broker_died(at, address.unwrap_or(nowhere));
        self.fail_if_violated();
        let log = broker.log_text();
        if log.contains("panicked") {
            self.fail(&format!("the broker panicked:\n{}", broker.log_tail()));
        }
    }

    fn lose_power(&mut self) {
        let memory = match self.random.below(4) {
            // Only the process ended.
            0 => return,
            1 => Memory::OnlySynced,
            _ => Memory::Some(&mut self.random),
        };
        if let Some(disk) = &self.disk {
            disk.lose_power(memory);
        }
    }

    /// Everyone connects, everything that is owed comes, and nothing is left; then the broker is killed.
    fn quiet_moment(&mut self) {
        self.slow_down_syncs();
        let broker = self.spawn(Some(self.scratch.join("data")));
        let address = self.wait_until_ready(&broker).expect("nobody kills it");
        self.settle(address);
        self.world.inspect(address);
        self.settle(address);
        self.world.journal().checker_mut().close_epoch();
        self.fail_if_violated();
        let killed_at = clock::now();
        broker.process().kill();
        self.broker_died(&broker, killed_at, Some(address));
        self.lose_power();
    }

    fn settle(&mut self, address: SocketAddr) {
        let mut last = self.world.journal().checker().outstanding();
        let mut changed = clock::now();
        self.turn(address, Phase::Settle);
        while !self.world.is_settled() {
            self.world.journal().checker_mut().expect_waiting_wills();
            self.turn(address, Phase::Settle);
            let now = self.world.journal().checker().outstanding();
            if now != last {
                last = now;
                changed = clock::now();
            }
            if changed.elapsed() > PATIENCE {
                self.world.journal().checker_mut().close_epoch();
                let unsettled = self.world.unsettled().join("\n");
                self.fail(&format!("the clients wait in vain:\n{unsettled}"));
            }
        }
    }

    fn fail_if_violated(&mut self) {
        if !self.world.journal().checker().violations().is_empty() {
            self.fail("the broker broke its word");
        }
    }

    fn fail(&mut self, what: &str) -> ! {
        let names = self.world.names();
        let journal = self.world.journal();
        let violations = journal.checker().violations();
        let shown: Vec<_> = violations
            .iter()
            .take(VIOLATIONS_SHOWN)
            .map(|violation| {
                let name = violation.client.and_then(|client| names.get(client));
                format!(
                    "{} {}",
                    name.map_or("", String::as_str),
                    journal.explain(violation)
                )
            })
            .collect();
        let history: Vec<_> = journal
            .history()
            .map(|observed| format!("{} {:?}\n", observed.at, observed.event))
            .collect();
        let path = self.scratch.join("history");
        let written = fs::write(&path, history.concat());
        panic!(
            "{what}\n{} violations after {} kills (again with THRUM_CRASH_SEED={}; files and history ({written:?}) \
             in {}):\n{}\n{:?}",
            violations.len(),
            self.kills,
            self.plan.seed,
            self.scratch.display(),
            shown.join("\n"),
            journal.checker().counts(),
        );
    }
}

/// Whether the process lives; if so, now is a time at which it did.
fn is_alive(process: Process, last: &mut Instant) -> bool {
    let now = clock::now();
    let is_alive = process.is_alive();
    if is_alive {
        *last = now;
    }
    is_alive
}

/// Some bits that differ from run to run.
fn clock_bits() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_digit).take(12).collect();
    digits.parse::<Millis>().unwrap_or(0)
}
