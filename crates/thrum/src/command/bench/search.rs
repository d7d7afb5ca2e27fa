//! `thrum bench search`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use thrum_bench::clock;
use thrum_compare::search::{
    Answer, Goal, Grade, Limits, Search, SearchReport, Step, Subject, Trial, Vary, load_of,
    markdown, scaled, table,
};
use thrum_figures::{figure, nanos};
use thrum_load::scenario::Scenario;

use super::arguments::{MeasureArgs, OutputArgs, SizeArgs, StageArgs, TargetArgs};
use super::complaint::{Complaint, INTERRUPTED, INVALID};
use super::engine::Engine;
use super::overall::{After, Series};
use super::results::Place;
use super::values;
use super::{interrupt, results, scenario_file};

const EXAMPLES: &str = "\
Examples:
  thrum bench search p2p-1K --p99 5ms                        highest rate with p99 up to 5 ms and no loss
  thrum bench search fanout-1-1K --p99 20ms --cpu 75% --hold 30s
  thrum bench search p2p-1K --p99 5ms --from 5K --to 50K     messages per second of all publishers
  thrum bench search conn-tcp-10K-100 --p99 50ms --vary clients --from 500";

/// Load before each trial that does not count.
const WARM_UP: Duration = Duration::from_secs(2);

/// Rest between two trials: the broker tidies up after the clients.
const REST: Duration = Duration::from_secs(1);

/// Without `--to` the search ends at this multiple of the first load.
const RANGE: f64 = 10_000.0;

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
    /// Highest part of the machine's CPU that the broker may use, where that is known.
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
    /// Most trials.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=1000),
    )]
    trials: u32,
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
    let mut search = Search::new(limits).map_err(Complaint::usage)?;
    let started = thrum_figures::utc_text(clock::unix_seconds()).replace(':', "");
    let folder = args
        .output
        .out
        .join(format!("{started}-search-{}", scenario.alias));
    let mut trials = Trials {
        args,
        series: Series::begin(),
        scenario,
        vary,
        base,
        goal,
        engine,
        folder: &folder,
    };
    let answer = loop {
        match search.next() {
            Step::Done(answer) => break answer,
            Step::Try { load, why } => {
                let number = search.trials().len() + 1;
                let next = Next {
                    number,
                    load,
                    why,
                    left: search.trials_left(),
                };
                match trials.make(&next)? {
                    Some(trial) => search.record(trial),
                    None => return interrupted(&search, args, &folder),
                }
            }
        }
    };
    let subject = Subject {
        scenario: &trials.scenario.name,
        target: &trials.engine.target(),
        unit: args.vary.unit(),
    };
    let report = SearchReport::new(subject, goal, limits, answer, search.trials());
    publish(&report, args, &folder)?;
    Ok(exit_code(&answer))
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
}

/// The next trial.
struct Next {
    /// From 1.
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
        if number > 1 {
            clock::rest(REST);
        }
        if self.engine.is_interrupted() {
            return Ok(None);
        }
        let unit = self.args.vary.unit();
        let scenario = scaled(&self.scenario, self.vary, load / self.base);
        let after = next
            .left
            .map(|left| After::times(&scenario, left.saturating_sub(1)));
        let head = format!("trial {number} of at most {}", self.args.trials);
        let overall = self.series.next_run(head, &scenario, after);
        let mut messages = std::io::stderr();
        let (shown, why, place) = (figure(load), next.why, overall.text(None));
        writeln!(messages, "trial {number}: {shown} {unit} ({why}) · {place}")?;
        let title = format!(
            "{} → {}: trial {number}",
            scenario.name,
            self.engine.target()
        );
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
                results::keep(&finished, &Place::under(&self.folder.join("runs")))?;
                Trial::judge(load, &finished.result, &self.goal)
            }
            // The first trial shows basic failures.
            Err(complaint) if number == 1 => return Err(complaint.into()),
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
}

/// Reports the trials that were made.
fn interrupted(search: &Search, args: &SearchArgs, folder: &Path) -> anyhow::Result<u8> {
    let trials = search.trials();
    if !trials.is_empty() {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{}", table(trials, args.vary.unit()))?;
        writeln!(out, "  runs {}", folder.join("runs").display())?;
    }
    let made = trials.len();
    writeln!(
        std::io::stderr(),
        "interrupted after {made} trials, before there was an answer"
    )?;
    Ok(INTERRUPTED)
}

/// A run without figures: the broker did not take its clients, or this machine could not have them.
fn failed(load: f64, complaint: &Complaint) -> Trial {
    let mut trial = Trial::refused(load, complaint.to_string());
    if complaint.code() == super::complaint::USAGE {
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

fn publish(report: &SearchReport, args: &SearchArgs, folder: &Path) -> anyhow::Result<()> {
    let json =
        serde_json::to_string_pretty(report).context("the search cannot be written as JSON")?;
    let files = [
        ("search.json", format!("{json}\n")),
        ("search.md", markdown(report)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.output.json {
        writeln!(out, "{json}")?;
        return Ok(());
    }
    writeln!(out, "\n{}", table(&report.trials, report.unit))?;
    writeln!(out, "  {} {}", report.target, report.text)?;
    writeln!(out, "  result {}", folder.join("search.md").display())?;
    Ok(())
}

/// 0 with an answer, 7 if the generator did not get that far, 1 if the broker holds nothing or it
/// is not sure.
const fn exit_code(answer: &Answer) -> u8 {
    match answer {
        Answer::Between { .. } | Answer::AtLeast { .. } => 0,
        Answer::NoTrial => INVALID,
        Answer::Below { .. } | Answer::Unsure { .. } => 1,
    }
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
        let refused = failed(5.0, &Complaint::new("no client was accepted", 5));
        assert_eq!(refused.grade, Grade::Failed);
    }

    #[test]
    fn only_an_answer_exits_with_0() {
        assert_eq!(
            exit_code(&Answer::Between {
                low: 1.0,
                high: 2.0
            }),
            0
        );
        assert_eq!(exit_code(&Answer::NoTrial), 7);
        assert_eq!(exit_code(&Answer::Below { high: 1.0 }), 1);
    }
}
