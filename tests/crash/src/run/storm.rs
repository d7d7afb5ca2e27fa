//! Storms: the wall clock is set, the configuration reloaded and the broker ended and started, all
//! the time and at once.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thrum_conformance::clock;

use super::stage::Run;
use super::{Outcome, Plan};
use crate::broker::Broker;
use crate::client::Phase;
use crate::shifted_clock::ShiftedClock;

/// Time that a broker runs.
const LIFE: Duration = Duration::from_secs(2);
/// Reloads are so far apart.
const RELOAD_PAUSE: Duration = Duration::from_millis(50);
/// Settings of the clock are so far apart.
const CLOCK_PAUSE: Duration = Duration::from_millis(150);
/// The clock is not set in the last part of a round: a broker that is killed before it has looked
/// at its clock takes what that was set by for time that has passed.
const CLOCK_QUIET: Duration = Duration::from_millis(1300);
/// Seconds by which the wall clock may be ahead: right, hours and days off, never set.
const AHEAD: [i64; 6] = [0, 3600, -3600, 8 * 86_400, -8 * 86_400, -1_700_000_000];
/// Lives between two quiet moments.
const LIVES_PER_EPOCH: u64 = 5;

/// Events besides the load and the kills.
#[derive(Clone, Copy, Debug, Default)]
pub struct Storm {
    /// The wall clock is set back and forward.
    pub sets_clock: bool,
    /// The configuration changes and is reloaded twenty times a second.
    pub reloads: bool,
}

/// Runs brokers that end every two seconds, half of them by a kill, half by a stop.
///
/// # Panics
/// As [`run`](super::run()).
pub fn run_in_storm(plan: Plan, storm: Storm) -> Outcome {
    let mut run = Run::new(plan);
    let config = run.scratch.join("thrum.toml");
    let clock = storm.sets_clock.then(|| ShiftedClock::new(&run.scratch));
    if let Some(clock) = &clock {
        run.environment = clock.environment();
        // Otherwise no session would ever expire.
        let expiry = ("THRUM_LIMITS__SESSION_EXPIRY", "1d");
        run.environment
            .push((expiry.0.to_owned(), expiry.1.to_owned()));
    }
    if storm.reloads {
        write_config(&config, 0);
        run.config = Some(config);
    }
    while run.kills < run.plan.kills {
        let broker = run.spawn(true);
        let address = run
            .wait_until_ready(&broker, false)
            .expect("a running broker");
        run.live(&broker, address, clock.as_ref());
        if run.kills % LIVES_PER_EPOCH == LIVES_PER_EPOCH - 1 {
            run.quiet(address);
        }
        run.finish(&broker, address);
    }
    let broker = run.spawn(true);
    let address = run
        .wait_until_ready(&broker, false)
        .expect("a running broker");
    run.quiet(address);
    run.finish(&broker, address);
    run.end()
}

impl Run {
    /// Runs the load and the storm for the time of a round.
    fn live(&mut self, broker: &Broker, address: SocketAddr, clock: Option<&ShiftedClock>) {
        self.begin_load(address);
        let began = clock::now();
        let (mut reloaded, mut set) = (began, began);
        let mut reloads = 0;
        while began.elapsed() < LIFE {
            if self.config.is_some() && is_due(&mut reloaded, RELOAD_PAUSE) {
                reloads += 1;
                self.reload(broker, reloads);
            }
            let may_set = began.elapsed() + CLOCK_QUIET < LIFE;
            if let Some(clock) = clock.filter(|_| may_set && is_due(&mut set, CLOCK_PAUSE)) {
                clock.set_ahead(self.random.pick(&AHEAD));
            }
            self.turn(address, Phase::Load);
        }
        if !broker.process().is_alive() {
            let tail = broker.log_tail();
            self.fail(&format!("the broker ended unexpectedly:\n{tail}"));
        }
    }

    fn reload(&mut self, broker: &Broker, number: u64) {
        if let Some(config) = &self.config {
            write_config(config, number);
            broker.process().reload();
        }
    }

    /// Half are killed, half are asked to stop.
    fn finish(&mut self, broker: &Broker, address: SocketAddr) {
        let ended_at = clock::now();
        if self.random.permille(500) {
            broker.process().kill();
        } else {
            self.world.journal().checker_mut().stops();
            broker.process().stop();
        }
        self.broker_died(broker, ended_at, Some(address));
        self.world.journal().checker_mut().stopped();
    }
}

fn is_due(last: &mut Instant, pause: Duration) -> bool {
    let is_due = last.elapsed() >= pause;
    if is_due {
        *last = clock::now();
    }
    is_due
}

/// Settings that differ from one reload to the next.
fn write_config(path: &std::path::Path, number: u64) {
    let text = format!(
        "[sys]\ninterval = \"{}s\"\n[limits]\nretained_payload = \"{}KiB\"\n",
        1 + number % 5,
        512 + number % 7
    );
    // In one step, so that no half of it is ever read.
    let new = path.with_extension("new");
    fs::write(&new, text).expect("the folder can be written");
    fs::rename(&new, path).expect("the folder can be written");
}
