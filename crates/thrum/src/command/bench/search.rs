//! `thrum bench search`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use thrum_bench::clock;
use thrum_compare::search::{
    CPU_UNMEASURED, Goal, Grade, Limits, Rounds, SearchReport, Step, Subject, Trial, Vary, load_of,
    markdown, scaled, table,
};
use thrum_figures::{figure, nanos};
use thrum_load::scenario::Scenario;
use thrum_report::RunResult;

use super::arguments::{MeasureArgs, OutputArgs, SizeArgs, StageArgs, TargetArgs};
use super::complaint::{Complaint, INTERRUPTED, NOT_STORED};
use super::engine::Engine;
use super::overall::{After, Series};
use super::results::Place;
use super::values;
use super::{interrupt, results, scenario_file};

const EXAMPLES: &str = "\
Examples:
  thrum bench search p2p-1K --p99 5ms                        highest rate with p99 up to 5 ms and no loss
  thrum bench search fanout-1-1K --p99 20ms --cpu 75% --hold 30s
  thrum bench search p2p-1K --p99 5ms --rounds 6             the same six times: a median with an interval
  thrum bench search p2p-1K --p99 5ms --from 5K --to 50K     messages per second of all publishers
  thrum bench search conn-tcp-10K-100 --p99 50ms --vary clients --from 500";

/// Load before each trial that does not count.
const WARM_UP: Duration = Duration::from_secs(2);

/// Rest between two trials: the broker tidies up after the clients.
const REST: Duration = Duration::from_secs(1);

/// Without `--to` the search ends at this multiple of the first load.
const RANGE: f64 = 10_000.0;

/// Latencies that a 99th percentile takes: ten beyond it.
const P99_VALUES: f64 = 1_010.0;

/// A hold is made longer by this factor at most to have so many.
const HOLD_FACTOR_MAX: u32 = 10;

/// Arguments of `thrum bench search`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct SearchArgs {
    /// Name of the scenario, or a file.
    #[arg(value_name = "NAME|FILE")]
    scenario: String,
    /// Highest 99th percentile of the response time; of connecting, without publishers.
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    p99: Duration,
    /// Highest part of the messages that may be lost.
    #[arg(long, value_name = "PART", value_parser = values::part, default_value = "0")]
    loss: f64,
    /// Highest part of the machine's CPU that the broker may use; its process must be on this
    /// machine.
    #[arg(long, value_name = "PART", value_parser = values::part)]
    cpu: Option<f64>,
    /// First load [default: that of the scenario].
    #[arg(long, value_name = "LOAD", value_parser = values::load)]
    from: Option<f64>,
    /// Highest load to try.
    #[arg(long, value_name = "LOAD", value_parser = values::load)]
    to: Option<f64>,
    /// Length of the part of each trial that counts.
    #[arg(long, value_name = "SPAN", value_parser = values::span, default_value = "10s")]
    hold: Duration,
    /// Further trials at both ends of the answer, all of which must agree.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=20),
    )]
    repeat: u32,
    /// Distance of the loads at the end of the search.
    #[arg(long, value_name = "PART", value_parser = values::part, default_value = "5%")]
    resolution: f64,
    /// Most trials of a round.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=1000),
    )]
    trials: u32,
    /// Searches, each with its own trials: the answer is their median with an interval, of 95 %
    /// from 6 on.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=100),
    )]
    rounds: u32,
    /// The quantity that changes from trial to trial.
    #[arg(long, value_enum, default_value_t = Varied::Rate)]
    vary: Varied,
    #[command(flatten)]
    size: SizeArgs,
    /// MQTT version [default: the scenario's].
    #[arg(long, value_name = "3.1.1|5", value_parser = values::version)]
    mqtt: Option<thrum_codec::Version>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The quantity that a search changes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Varied {
    /// Messages per second of every publisher.
    Rate,
    /// Clients of every group.
    Clients,
}

/// Searches.
pub(super) fn run(args: &SearchArgs) -> anyhow::Result<u8> {
    let (scenario, vary) = (scenario(args)?, args.vary.vary());
    let base = load_of(&scenario, vary);
    if base <= 0.0 {
        let message = "this scenario has no publishers; search for its clients with --vary clients";
        return Err(Complaint::usage(message).into());
    }
    let limits = limits(args, base);
    let goal = Goal {
        p99_ns: nanos(args.p99),
        lost_part: args.loss,
        cpu_part: args.cpu,
    };
    let engine = Engine::new(&args.target, &args.measure, interrupt::flag()?)?;
    let mut search = Rounds::new(limits, args.rounds).map_err(Complaint::usage)?;
    let started = thrum_figures::utc_text(clock::unix_seconds()).replace(':', "");
    let folder = args
        .output
        .out
        .join(format!("{started}-search-{}", scenario.alias));
    let name = scenario.name.clone();
    let mut trials = Trials {
        args,
        series: Series::begin(),
        scenario,
        vary,
        base,
        goal,
        engine,
        folder: &folder,
        is_stored: true,
        values_per_load: None,
    };
    let target = trials.engine.target();
    let subject = Subject {
        scenario: &name,
        target: &target,
        unit: args.vary.unit(),
    };
    let mut was_interrupted = false;
    while let Some(Step::Try { load, why }) = search.next() {
        let next = Next {
            round: search.ended().len() + 1,
            number: search.present().len() + 1,
            load,
            why,
            left: search.trials_left(),
        };
        let Some(trial) = trials.make(&next)? else {
            was_interrupted = true;
            break;
        };
        search.record(trial);
        if let Some(lowest) = trials.lowest() {
            search.raise_lowest(lowest);
        }
        if args.rounds > 1 && search.ended().len() == next.round {
            let report = SearchReport::new(subject, goal, &search);
            let found = report.rounds.last().map_or("", |round| &round.text);
            writeln!(std::io::stderr(), "round {}: {found}", next.round)?;
        }
    }
    let report = SearchReport::new(subject, goal, &search);
    publish(&report, args, &folder)?;
    Ok(match (was_interrupted, trials.is_stored) {
        (true, _) => INTERRUPTED,
        (false, false) => NOT_STORED,
        (false, true) => report.exit_code(),
    })
}

/// Shows the answer, then stores it: on a full disk it is shown all the same.
fn publish(report: &SearchReport, args: &SearchArgs, folder: &Path) -> anyhow::Result<()> {
    show(report, args)?;
    store(report, folder).map_err(Complaint::or_not_stored)?;
    if !args.output.json {
        let path = folder.join("search.md");
        writeln!(std::io::stdout(), "  result {}", path.display())?;
    }
    Ok(())
}

/// Makes trials.
struct Trials<'a> {
    args: &'a SearchArgs,
    scenario: Scenario,
    vary: Vary,
    base: f64,
    goal: Goal,
    engine: Engine,
    folder: &'a Path,
    series: Series,
    /// Every trial could be stored.
    is_stored: bool,
    /// Latencies that a load of one gives, of messages in a second, seen in a trial that had too
    /// few.
    values_per_load: Option<f64>,
}

/// The next trial.
struct Next {
    /// From 1.
    round: usize,
    /// In the round, from 1.
    number: usize,
    load: f64,
    /// The reason for it.
    why: &'static str,
    /// The fewest and the most trials that are left, with this one.
    left: [u32; 2],
}

impl Trials<'_> {
    /// Runs the scenario with a load and judges it; none if ^C ended it.
    fn make(&mut self, next: &Next) -> anyhow::Result<Option<Trial>> {
        let (number, load) = (next.number, next.load);
        let is_first = (next.round, number) == (1, 1);
        if !is_first {
            clock::rest(REST);
        }
        if self.engine.is_interrupted() {
            return Ok(None);
        }
        let unit = self.args.vary.unit();
        let mut scenario = scaled(&self.scenario, self.vary, load / self.base);
        scenario.stages.hold = self.hold(load);
        let after = next
            .left
            .map(|left| After::times(&scenario, left.saturating_sub(1)));
        let mut head = format!("trial {number} of at most {}", self.args.trials);
        if self.args.rounds > 1 {
            head = format!("round {} of {}, {head}", next.round, self.args.rounds);
        }
        let overall = self.series.next_run(head, &scenario, after);
        let mut messages = std::io::stderr();
        let (shown, why, place) = (figure(load), next.why, overall.text(None));
        writeln!(messages, "trial {number}: {shown} {unit} ({why}) · {place}")?;
        let target = self.engine.target();
        let title = format!("{} at {shown} {unit} → {target}", scenario.alias);
        let output = &self.args.output;
        let mut observer = self.engine.observer(output, "  ", &title, Some(overall));
        let finished = self.engine.run(scenario, self.folder, &mut *observer);
        drop(observer);
        if self.engine.is_interrupted() {
            // Half of a trial says nothing about its load.
            return Ok(None);
        }
        let trial = match finished {
            Ok(finished) => {
                if is_first {
                    require_cpu(&self.goal, &finished.result)?;
                }
                let kept = results::keep(&finished, &Place::under(&self.folder.join("runs")));
                if let Err(error) = kept {
                    // The search goes on: its answer is shown.
                    writeln!(messages, "error: {}", Complaint::not_stored(error)?)?;
                    self.is_stored = false;
                }
                let trial = Trial::judge(load, &finished.result, &self.goal);
                self.note_values(&trial, &finished.result);
                trial
            }
            // The first trial shows basic failures.
            Err(complaint) if is_first => return Err(complaint.into()),
            Err(complaint) => failed(load, &complaint),
        };
        let outcome = match trial.grade {
            Grade::Held => "held",
            Grade::Failed => "failed",
            Grade::Limited => "INVALID",
        };
        writeln!(messages, "  {outcome} {}", trial.reasons.join("; "))?;
        Ok(Some(trial))
    }

    /// Clients connect once, however long the hold is.
    fn hold(&self, load: f64) -> Duration {
        match (self.vary, self.values_per_load) {
            (Vary::Rate, Some(per_load)) => long_enough(self.args.hold, per_load * load),
            (Vary::Clients, _) | (_, None) => self.args.hold,
        }
    }

    /// The lowest load with enough messages for a p99 in the longest hold; none if it is not known.
    fn lowest(&self) -> Option<f64> {
        let most = self.args.hold * HOLD_FACTOR_MAX;
        let per_load = self.values_per_load?;
        Some(match self.vary {
            Vary::Rate => P99_VALUES / per_load / most.as_secs_f64(),
            Vary::Clients => P99_VALUES / per_load,
        })
    }

    fn note_values(&mut self, trial: &Trial, result: &RunResult) {
        let values = result.latency_ns.main();
        let values = values.map_or(0, |(_, of)| of.quantiles.count);
        let is_of_hold = !trial.figures.is_of_connecting;
        if is_of_hold != (self.vary == Vary::Rate) {
            // Clients that publish: how many messages they send depends on the hold.
            return;
        }
        let is_of_few = trial.grade == Grade::Limited && trial.figures.max_of_few_ns.is_some();
        if is_of_few && values > 0 && !result.interrupted {
            let seconds = if is_of_hold {
                result.scenario.stages.hold
            } else {
                1.0
            };
            self.values_per_load = Some(thrum_figures::fraction(values) / seconds / trial.load);
        }
    }
}

/// Refuses a goal for the CPU of a broker whose process is not seen: no trial could meet it.
fn require_cpu(goal: &Goal, result: &RunResult) -> Result<(), Complaint> {
    let is_seen = result.brokers.iter().any(|broker| broker.host.is_empty());
    if goal.cpu_part.is_none() || is_seen || result.interrupted {
        return Ok(());
    }
    let message = format!(
        "{CPU_UNMEASURED}, and --cpu needs it: name its process on this machine with --pid, or leave out --cpu"
    );
    Err(Complaint::usage(message))
}

/// The hold, or a longer one if that has too few latencies for a p99.
fn long_enough(hold: Duration, per_second: f64) -> Duration {
    let most = hold * HOLD_FACTOR_MAX;
    let needed = Duration::try_from_secs_f64((P99_VALUES / per_second).ceil());
    needed.unwrap_or(most).clamp(hold, most)
}

/// A run without figures: the broker did not take its clients, or the generator failed.
fn failed(load: f64, complaint: &Complaint) -> Trial {
    let mut trial = Trial::refused(load, complaint.to_string());
    if complaint.code() != super::complaint::UNREACHABLE {
        trial.grade = Grade::Limited;
    }
    trial
}

fn scenario(args: &SearchArgs) -> anyhow::Result<Scenario> {
    let stages = StageArgs {
        duration: Some(args.hold),
        warmup: Some(WARM_UP),
        mqtt: args.mqtt,
        ..StageArgs::default()
    };
    let mut scenarios = scenario_file::resolve(&args.scenario, &stages.changes(&args.size))?;
    match (scenarios.pop(), scenarios.len()) {
        (Some(scenario), 0) => Ok(scenario),
        _ => Err(Complaint::usage("a sweep cannot be searched; give one scenario").into()),
    }
}

fn limits(args: &SearchArgs, base: f64) -> Limits {
    let from = args.from.unwrap_or(base);
    Limits {
        from,
        to: args.to.unwrap_or(from * RANGE),
        resolution: args.resolution,
        repeats: args.repeat,
        trials_max: args.trials,
        ..Limits::default()
    }
}

/// Prints the answer, before it is stored: the disk may be full.
fn show(report: &SearchReport, args: &SearchArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.output.json {
        writeln!(out, "{}", json(report)?)?;
        return Ok(());
    }
    writeln!(out, "\n{}", table(report))?;
    writeln!(out, "  {} {}", report.target, report.text)?;
    Ok(())
}

fn json(report: &SearchReport) -> anyhow::Result<String> {
    serde_json::to_string_pretty(report).context("the search cannot be written as JSON")
}

fn store(report: &SearchReport, folder: &Path) -> anyhow::Result<()> {
    let files = [
        ("search.json", format!("{}\n", json(report)?)),
        ("search.md", markdown(report)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

impl Varied {
    const fn vary(self) -> Vary {
        match self {
            Self::Rate => Vary::Rate,
            Self::Clients => Vary::Clients,
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "messages/s",
            Self::Clients => "clients",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_lacks_files_is_a_limit_and_refused_clients_are_a_failure() {
        let lacking = failed(5.0, &Complaint::usage("open files"));
        assert_eq!(lacking.grade, Grade::Limited);
        let died = failed(5.0, &Complaint::new("an agent was lost", 1));
        assert_eq!(died.grade, Grade::Limited);
        let refused = failed(5.0, &Complaint::new("no client was accepted", 5));
        assert_eq!(refused.grade, Grade::Failed);
    }

    #[test]
    fn a_goal_for_the_cpu_of_a_broker_that_is_not_seen_is_refused() {
        let goal = |cpu_part| Goal {
            p99_ns: 1,
            lost_part: 0.0,
            cpu_part,
        };
        let mut result = RunResult::default();
        let refusal = require_cpu(&goal(Some(0.5)), &result).unwrap_err();
        assert!(refusal.to_string().contains("--pid"), "{refusal}");
        assert!(require_cpu(&goal(None), &result).is_ok());
        let mut broker = thrum_report::result::Broker::default();
        result.brokers.push(broker.clone());
        assert!(require_cpu(&goal(Some(0.5)), &result).is_ok());
        broker.host = "10.0.0.5".to_owned();
        result.brokers = vec![broker];
        assert!(require_cpu(&goal(Some(0.5)), &result).is_err());
    }

    #[test]
    fn a_load_is_held_until_a_p99_has_enough_messages_but_not_for_ever() {
        let seconds = |per_second| long_enough(Duration::from_secs(10), per_second).as_secs();
        for (per_second, held) in [
            (5_000.0, 10),
            (101.0, 10),
            (50.0, 21),
            (1.0, 100),
            (0.0, 100),
        ] {
            assert_eq!(seconds(per_second), held, "{per_second}");
        }
    }
}
