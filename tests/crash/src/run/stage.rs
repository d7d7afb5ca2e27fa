//! Broker, disk and clients of a run, and the steps that all runs are made of.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs};

use thrum_conformance::clock;

use super::{Outcome, Plan};
use crate::broker::{Broker, Launch};
use crate::client::Phase;
use crate::disk::{Control, LossyDisk, Lost, Memory};
use crate::event::Event;
use crate::random::Random;
use crate::roles::all_roles;
use crate::sink::SinkLog;
use crate::world::World;

/// A quiet moment ends after this time without a packet; it is longer than any will delay.
const PATIENCE: Duration = Duration::from_secs(10);
/// And after this many turns: the machine may have been suspended.
const PATIENCE_TURNS: u32 = 2_000;
/// Its eighth is the size of a segment: with the default none is ever reclaimed in a short run.
const MAX_DISK: [&str; 3] = ["128MiB", "256MiB", "16GiB"];

/// A run.
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) world: World,
    pub(super) scratch: PathBuf,
    pub(super) disk: Option<LossyDisk>,
    pub(super) kills: u64,
    /// More for the broker's environment.
    pub(super) environment: Vec<(String, String)>,
    /// Its configuration file.
    pub(super) config: Option<PathBuf>,
    starts: u64,
    lost: Lost,
    sink: SinkLog,
    max_disk: &'static str,
}

impl Run {
    pub(super) fn new(plan: Plan) -> Self {
        let scratch =
            env::temp_dir().join(format!("thrum-crash-{}-{}", std::process::id(), plan.name));
        fs::create_dir_all(scratch.join("data")).expect("the temporary folder can be written");
        let sink = SinkLog::new(&scratch);
        let mut random = Random::new(plan.seed);
        let max_disk = random.pick(&MAX_DISK);
        Self {
            world: World::new(all_roles(), Random::new(random.number())),
            disk: plan
                .loses_power
                .then(|| LossyDisk::new(&scratch.join("data"), &scratch.join("side"))),
            plan,
            random,
            scratch,
            kills: 0,
            environment: Vec::new(),
            config: None,
            starts: 0,
            lost: Lost::default(),
            sink,
            max_disk,
        }
    }

    pub(super) fn end(mut self) -> Outcome {
        fs::remove_dir_all(&self.scratch).expect("the temporary folder can be removed");
        let journal = self.world.journal();
        Outcome {
            counts: journal.checker().counts(),
            lost: self.lost,
            history: journal.history().cloned().collect(),
        }
    }

    pub(super) fn spawn(&mut self, is_durable: bool) -> Broker {
        self.starts += 1;
        let by_kill = match 3 * self.kills / self.plan.kills.max(1) {
            0 => 1,
            1 => 3,
            _ => self.random.pick(&[1, 3]),
        };
        let workers = self.plan.workers.unwrap_or(by_kill);
        let disk = self.disk.as_ref();
        let mut environment = disk.map(LossyDisk::environment).unwrap_or_default();
        environment.extend(self.environment.iter().cloned());
        environment.extend(self.sink.environment());
        let max_disk = "THRUM_STORAGE__MAX_DISK".to_owned();
        environment.push((max_disk, self.max_disk.to_owned()));
        // The logs of the last few starts stay for a report.
        let log = format!("broker-{}.log", self.starts % 4);
        Broker::spawn(&Launch {
            data: is_durable.then(|| self.scratch.join("data")),
            workers,
            environment,
            config: self.config.clone(),
            log: self.scratch.join(log),
        })
    }

    pub(super) fn slow_down_syncs(&mut self) {
        let sync_micros = self.random.pick(&[0, 300, 3_000]);
        if let Some(disk) = &self.disk {
            disk.control(Control {
                sync_micros,
                ..Control::default()
            });
        }
    }

    /// Waits until it accepts connections; none if it was killed before.
    pub(super) fn wait_until_ready(
        &mut self,
        broker: &Broker,
        may_be_killed: bool,
    ) -> Option<SocketAddr> {
        let address = broker.wait_until_ready(may_be_killed);
        if address.is_some() {
            self.world.journal().note(Event::Started);
        }
        address
    }

    pub(super) fn begin_load(&mut self, address: SocketAddr) {
        if self.random.permille(500) {
            self.sink.goes();
        }
        let looks = self.random.permille(500);
        self.world.begin_round(address, looks);
    }

    pub(super) fn turn(&mut self, address: SocketAddr, phase: Phase) {
        self.world.turn(address, phase);
        self.fail_if_violated();
    }

    pub(super) fn broker_died(
        &mut self,
        broker: &Broker,
        killed_at: Instant,
        address: Option<SocketAddr>,
    ) {
        broker.wait_until_dead();
        self.sink.comes_back();
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

    pub(super) fn lose_power(&mut self) {
        let memory = match self.random.below(4) {
            // Only the process ended.
            0 => return,
            1 => Memory::OnlySynced,
            _ => Memory::Some(&mut self.random),
        };
        if let Some(disk) = &self.disk {
            let lost = disk.lose_power(memory);
            self.lost.blocks += lost.blocks;
            self.lost.names += lost.names;
        }
    }

    pub(super) fn settle(&mut self, address: SocketAddr) {
        let mut last = self.world.journal().checker().outstanding();
        let mut changed = clock::now();
        let mut turns = 0;
        self.turn(address, Phase::Settle);
        while !self.world.is_settled() {
            self.world.journal().checker_mut().expect_waiting_wills();
            self.turn(address, Phase::Settle);
            let now = self.world.journal().checker().outstanding();
            turns += 1;
            if now != last {
                last = now;
                turns = 0;
                changed = clock::now();
            }
            if changed.elapsed() > PATIENCE && turns > PATIENCE_TURNS {
                self.world.journal().checker_mut().close_epoch();
                let unsettled = self.world.unsettled().join("\n");
                self.fail(&format!("the clients wait in vain:\n{unsettled}"));
            }
        }
    }

    /// All clients connect, all owed messages arrive, and nothing is left.
    pub(super) fn quiet(&mut self, address: SocketAddr) {
        self.sink.comes_back();
        self.settle(address);
        self.world.inspect(address);
        self.settle(address);
        self.world.journal().checker_mut().close_epoch();
        self.fail_if_violated();
        self.sink_has_everything();
    }

    /// The sink has written what was accepted, in this start of the broker or in an earlier one.
    fn sink_has_everything(&mut self) {
        let began = clock::now();
        loop {
            let missing = self.sink.missing(self.world.journal().accepted());
            if missing.is_empty() {
                return;
            }
            if began.elapsed() > PATIENCE {
                let count = missing.len();
                let some = &missing[..count.min(10)];
                self.fail(&format!(
                    "{count} accepted messages are not in the file of the sink: {some:?}"
                ));
            }
            clock::sleep(Duration::from_millis(5));
        }
    }
}
