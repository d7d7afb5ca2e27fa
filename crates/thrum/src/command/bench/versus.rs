//! `thrum bench versus`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use thrum_bench::clock;
use thrum_compare::versus::{self, BUILT_IN, Ended, Entry, Installed, Run, VersusReport};
use thrum_load::scenario::Scenario;

use super::arguments::{OutputArgs, SizeArgs, StageArgs};
use super::complaint::{Complaint, INTERRUPTED};
use super::launched::{self, Launched, Launcher, full_broker};
use super::overall::{After, Series};
use super::{scenario_file, suite};

const EXAMPLES: &str = "\
Examples:
  thrum bench versus --scenario p2p-1K                       all brokers of this machine
  thrum bench versus --suite basic --brokers thrum,mosquitto --rounds 5 --duration 60s
  thrum bench versus --brokers thrum,relay --scenario p2p-1K  a broker and the reference relay
  thrum bench versus --print-brokers > brokers.toml          how they are started, to be changed
  thrum bench versus brokers.toml --scenario fanout-1-1K";

/// Length of the part of each run that counts.
const DURATION: Duration = Duration::from_secs(10);

/// Arguments of `thrum bench versus`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct VersusArgs {
    /// File that defines how each broker is started [default: the built-in one].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the built-in file and exit.
    #[arg(long)]
    print_brokers: bool,
    /// Only these brokers, in this order [default: all except those that run only by name].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    brokers: Vec<String>,
    /// Set of scenarios [default: basic].
    #[arg(long, value_name = "SET", conflicts_with = "scenario")]
    suite: Option<String>,
    /// Scenario; may be repeated.
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Vec<String>,
    /// Runs of each broker in each scenario.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=100),
    )]
    rounds: u32,
    #[command(flatten)]
    stages: StageArgs,
    #[command(flatten)]
    size: SizeArgs,
    /// Threads of the generator [default: half of the cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Compares.
pub(super) fn run(args: &VersusArgs) -> anyhow::Result<u8> {
    if args.print_brokers {
        write!(std::io::stdout(), "{BUILT_IN}")?;
        return Ok(0);
    }
    let brokers = launched::brokers(args.file.as_deref(), &args.brokers)?;
    let (entries, installed) = launched::installed(brokers)?;
    if installed.is_empty() {
        return Err(Complaint::usage("none of these brokers is installed on this machine").into());
    }
    let scenarios = scenarios(args)?;
    let started = thrum_figures::utc_text(clock::unix_seconds()).replace(':', "");
    let folder = args.output.out.join(format!("{started}-versus"));
    let launcher = Launcher::new(scenarios.iter(), args.threads, &args.output, folder)?;
    let comparison = Comparison {
        rounds: args.rounds,
        scenarios: &scenarios,
        installed: &installed,
        entries: &entries,
        launcher: &launcher,
    };
    let runs = comparison.run()?;
    let was_interrupted = launcher.engine.is_interrupted();
    let command: Vec<String> = std::env::args().collect();
    let report = VersusReport::new(command.join(" "), args.rounds, entries, runs);
    publish(&report, args, &scenarios, &launcher.folder)?;
    Ok(exit_code(&report, was_interrupted))
}

fn scenarios(args: &VersusArgs) -> anyhow::Result<Vec<Scenario>> {
    let names: Vec<&str> = match (args.scenario.as_slice(), &args.suite) {
        ([], suite) => suite::members(suite.as_deref().unwrap_or("basic"))?.to_vec(),
        (names, _) => names.iter().map(String::as_str).collect(),
    };
    let changes = short(&args.stages).changes(&args.size);
    let mut scenarios = Vec::new();
    for name in names {
        scenarios.extend(scenario_file::resolve(name, &changes)?);
    }
    Ok(scenarios)
}

/// A comparison takes long: each run is short by default.
pub(super) fn short(stages: &StageArgs) -> StageArgs {
    StageArgs {
        duration: stages.duration.or(Some(DURATION)),
        ..stages.clone()
    }
}

/// All runs of all brokers.
struct Comparison<'a> {
    rounds: u32,
    scenarios: &'a [Scenario],
    installed: &'a [Installed],
    entries: &'a [Entry],
    launcher: &'a Launcher<'a>,
}

impl Comparison<'_> {
    fn run(&self) -> anyhow::Result<Vec<Run>> {
        let orders = versus::rounds(self.installed.len(), self.rounds);
        let turns = (1..).zip(&orders).flat_map(|(round, order)| {
            let scenarios = self.scenarios.iter();
            scenarios.flat_map(move |scenario| {
                order.iter().map(move |broker| (round, scenario, *broker))
            })
        });
        let turns: Vec<_> = turns.collect();
        let (mut runs, mut series) = (Vec::new(), Series::begin());
        for (index, (round, scenario, broker)) in turns.iter().copied().enumerate() {
            let Some(installed) = self
                .installed
                .get(broker)
                .filter(|_| !self.launcher.engine.is_interrupted())
            else {
                break;
            };
            let (broker, rounds) = (&installed.broker.name, self.rounds);
            let name = &scenario.alias;
            let after = [After::of(turns[index + 1..].iter().map(|(_, scenario, _)| *scenario)); 2];
            let head = format!("run {}/{}", index + 1, turns.len());
            let overall = series.next_run(head, scenario, after);
            let place = overall.text(None);
            writeln!(
                std::io::stderr(),
                "round {round}/{rounds} {name}: {broker} · {place}"
            )?;
            runs.push(Run {
                broker: broker.clone(),
                scenario: scenario.name.clone(),
                round,
                ended: self.launcher.run(Launched {
                    installed,
                    version: self.version(broker),
                    scenario,
                    title: format!("{name} on {broker}, round {round} of {rounds}"),
                    overall,
                    on_fault: None,
                })?,
            });
        }
        Ok(runs)
    }

    fn version(&self, broker: &str) -> &str {
        let entry = self.entries.iter().find(|entry| entry.name == broker);
        entry.map_or("", |entry| &entry.version)
    }
}

fn publish(
    report: &VersusReport,
    args: &VersusArgs,
    scenarios: &[Scenario],
    folder: &Path,
) -> anyhow::Result<()> {
    let json =
        serde_json::to_string_pretty(report).context("the comparison cannot be written as JSON")?;
    let full = full_report(report, scenarios, folder)?;
    let files = [
        ("versus.json", format!("{json}\n")),
        ("versus.md", thrum_report::versus::markdown(&full)),
        (
            "versus.html",
            thrum_report::html::versus_page(&full).map_err(Complaint::usage)?,
        ),
    ];
    // What cannot be stored is shown all the same.
    let mut out = std::io::stdout().lock();
    if args.output.json {
        writeln!(out, "{json}")?;
    } else {
        writeln!(out)?;
        for sentence in thrum_report::versus::conclusions(&full) {
            writeln!(out, "  {sentence}")?;
        }
        writeln!(out, "\n{}", versus::table(report))?;
    }
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Complaint::or_not_stored)?;
    }
    if !args.output.json {
        writeln!(out, "  report {}", folder.join("versus.html").display())?;
    }
    Ok(())
}

/// The comparison with every run in full, for the pages.
fn full_report(
    report: &VersusReport,
    scenarios: &[Scenario],
    folder: &Path,
) -> anyhow::Result<thrum_report::versus::VersusReport> {
    let mut full = thrum_report::versus::VersusReport {
        title: "Brokers compared".to_owned(),
        command: report.command.clone(),
        rounds: report.rounds,
        machine: thrum_bench::machine::machine(),
        scenarios: Vec::new(),
    };
    for scenario in scenarios {
        let installed = report.brokers.iter().filter(|entry| entry.installed);
        let brokers = installed.map(|entry| {
            let of_pair = |run: &&Run| run.scenario == scenario.name && run.broker == entry.name;
            let ended = report.runs.iter().filter(of_pair);
            full_broker(entry, ended.map(|run| run.ended.clone()), folder)
        });
        let brokers = brokers.collect::<anyhow::Result<_>>()?;
        full.scenarios.push(thrum_report::versus::VersusScenario {
            name: scenario.name.clone(),
            summary: scenario.summary.clone(),
            toml: scenario.toml.clone(),
            brokers,
        });
    }
    Ok(full)
}

/// 0 if every broker gave figures, 1 if one crashed or gave none.
fn exit_code(report: &VersusReport, was_interrupted: bool) -> u8 {
    if was_interrupted {
        return INTERRUPTED;
    }
    let is_measured = |run: &Run| matches!(run.ended, Ended::Measured { .. });
    u8::from(!report.runs.iter().all(is_measured))
}
