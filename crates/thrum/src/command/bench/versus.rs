//! `thrum bench versus`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use thrum_bench::{clock, preflight};
use thrum_compare::versus::{
    self, BUILT_IN, BrokerFile, Ended, Entry, Installed, Run, Running, VersusReport,
};
use thrum_load::scenario::Scenario;

use super::arguments::{MeasureArgs, OutputArgs, SizeArgs, StageArgs, TargetArgs};
use super::complaint::{Complaint, INTERRUPTED, USAGE};
use super::engine::Engine;
use super::overall::{After, Overall, Series};
use super::results::Place;
use super::{folders, suite};
use super::{interrupt, results, scenario_file};

const EXAMPLES: &str = "\
Examples:
  thrum bench versus --scenario p2p-1K                       all brokers of this machine
  thrum bench versus --suite basic --brokers thrum,mosquitto --rounds 5 --duration 60s
  thrum bench versus --brokers thrum,relay --scenario p2p-1K  a broker and the reference relay
  thrum bench versus --print-brokers > brokers.toml          how they are started, to be changed
  thrum bench versus brokers.toml --scenario fanout-1-1K";

/// Length of the part of each run that counts.
const DURATION: Duration = Duration::from_secs(10);

/// Name of the built-in file in messages.
const BUILT_IN_NAME: &str = "the built-in list";

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
    let brokers = brokers(args)?;
    let own = std::env::current_exe().context("this program cannot be found")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut entries = Vec::new();
    let mut installed = Vec::new();
    for broker in brokers {
        let found = broker.find(&path, &own).map(|program| Installed {
            broker: broker.clone(),
            program,
        });
        entries.push(entry(&broker.name, &broker, found.as_ref()));
        installed.extend(found);
    }
    if installed.is_empty() {
        return Err(Complaint::usage("none of these brokers is installed on this machine").into());
    }
    let scenarios = scenarios(args)?;
    let comparison = Comparison::new(args, &scenarios, &installed)?;
    let runs = comparison.run()?;
    let was_interrupted = comparison.engine.is_interrupted();
    let command: Vec<String> = std::env::args().collect();
    let report = VersusReport::new(command.join(" "), args.rounds, entries, runs);
    publish(&report, args, &scenarios, &comparison.folder)?;
    Ok(exit_code(&report, was_interrupted))
}

fn brokers(args: &VersusArgs) -> anyhow::Result<Vec<versus::Broker>> {
    let (text, origin) = match &args.file {
        None => (BUILT_IN.to_owned(), BUILT_IN_NAME.to_owned()),
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            (text, path.display().to_string())
        }
    };
    let mut file = BrokerFile::parse(&text, &origin).map_err(Complaint::usage)?;
    file = if args.brokers.is_empty() {
        file.by_default()
    } else {
        file.only(&args.brokers, &origin)
            .map_err(Complaint::usage)?
    };
    Ok(file.brokers)
}

fn entry(name: &str, broker: &versus::Broker, installed: Option<&Installed>) -> Entry {
    Entry {
        name: name.to_owned(),
        version: installed.map_or_else(String::new, Installed::version),
        installed: installed.is_some(),
        obtain: broker.obtain.clone(),
        license: broker.license.clone(),
        note: broker.note.clone(),
    }
}

fn scenarios(args: &VersusArgs) -> anyhow::Result<Vec<Scenario>> {
    let names: Vec<&str> = match (args.scenario.as_slice(), &args.suite) {
        ([], suite) => suite::members(suite.as_deref().unwrap_or("basic"))?.to_vec(),
        (names, _) => names.iter().map(String::as_str).collect(),
    };
    let stages = StageArgs {
        // A comparison takes long: each run is short by default.
        duration: args.stages.duration.or(Some(DURATION)),
        ..args.stages.clone()
    };
    let changes = stages.changes(&args.size);
    let mut scenarios = Vec::new();
    for name in names {
        scenarios.extend(scenario_file::resolve(name, &changes)?);
    }
    Ok(scenarios)
}

/// All runs of all brokers.
struct Comparison<'a> {
    args: &'a VersusArgs,
    scenarios: &'a [Scenario],
    installed: &'a [Installed],
    engine: Engine,
    folder: PathBuf,
}

impl<'a> Comparison<'a> {
    fn new(
        args: &'a VersusArgs,
        scenarios: &'a [Scenario],
        installed: &'a [Installed],
    ) -> anyhow::Result<Self> {
        // The brokers inherit the limit of open files, so it is raised before they start.
        let clients = scenarios.iter().map(Scenario::clients).max().unwrap_or(0);
        preflight::raise_open_files(clients).map_err(|error| Complaint::new(error, USAGE))?;
        let measure = MeasureArgs {
            threads: args.threads,
            ..MeasureArgs::default()
        };
        let started = thrum_figures::utc_text(clock::unix_seconds()).replace(':', "");
        Ok(Self {
            args,
            scenarios,
            installed,
            engine: Engine::new(&TargetArgs::default(), &measure, interrupt::flag()?)?,
            folder: args.output.out.join(format!("{started}-versus")),
        })
    }

    fn run(&self) -> anyhow::Result<Vec<Run>> {
        let orders = versus::rounds(self.installed.len(), self.args.rounds);
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
                .filter(|_| !self.engine.is_interrupted())
            else {
                break;
            };
            let (broker, rounds) = (&installed.broker.name, self.args.rounds);
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
                ended: self.run_one(installed, scenario, overall)?,
            });
        }
        Ok(runs)
    }

    /// Starts a broker, runs a scenario, stops it.
    fn run_one(
        &self,
        installed: &Installed,
        scenario: &Scenario,
        overall: Overall,
    ) -> anyhow::Result<Ended> {
        let mut running = match Running::start(installed, scenario.clients()) {
            Ok(running) => running,
            Err(error) => {
                return Ok(Ended::Failed {
                    why: error.to_string(),
                });
            }
        };
        let configuration = running.configuration().to_owned();
        let engine = self.engine.against(
            &running.target(),
            running.pid(),
            installed.version(),
            configuration,
        )?;
        let title = format!("{} on {}", scenario.name, installed.broker.name);
        let mut observer = engine.observer(&self.args.output, "  ", &title, Some(overall));
        let finished = engine.run(scenario.clone(), &self.folder, &mut *observer);
        drop(observer);
        if let Some(how) = running.crash() {
            return Ok(Ended::Crashed { how });
        }
        running.stop();
        let finished = match finished {
            Ok(finished) => finished,
            Err(complaint) => {
                return Ok(Ended::Failed {
                    why: complaint.to_string(),
                });
            }
        };
        if finished.result.interrupted {
            let why = "interrupted".to_owned();
            return Ok(Ended::Failed { why });
        }
        let parent = self.folder.join("runs").join(&installed.broker.name);
        let folder = results::keep(&finished, &Place::under(&parent))?;
        let relative = folder.strip_prefix(&self.folder).unwrap_or(&folder);
        Ok(Ended::Measured {
            pass: finished.result.verdict.pass,
            valid: finished.result.validity.valid,
            figures: finished.result.metrics,
            folder: relative.display().to_string(),
        })
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
    writeln!(out)?;
    for sentence in thrum_report::versus::conclusions(&full) {
        writeln!(out, "  {sentence}")?;
    }
    writeln!(out, "\n{}", versus::table(report))?;
    writeln!(out, "  report {}", folder.join("versus.html").display())?;
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
        let brokers = installed.map(|entry| full_broker(report, scenario, entry, folder));
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

/// A broker with its runs of a scenario in full.
fn full_broker(
    report: &VersusReport,
    scenario: &Scenario,
    entry: &Entry,
    folder: &Path,
) -> anyhow::Result<thrum_report::versus::VersusBroker> {
    let of_pair = |run: &&Run| run.scenario == scenario.name && run.broker == entry.name;
    let folders = report
        .runs
        .iter()
        .filter(of_pair)
        .filter_map(|run| match &run.ended {
            Ended::Measured { folder, .. } => Some(folder),
            Ended::Crashed { .. } | Ended::Failed { .. } => None,
        });
    let runs = folders.map(|run| Ok(folders::read(&folder.join(run))?.result));
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let seen = runs.first().and_then(|run| run.brokers.first());
    Ok(thrum_report::versus::VersusBroker {
        name: entry.name.clone(),
        version: entry.version.clone(),
        configuration: seen.map_or_else(String::new, |broker| broker.configuration.clone()),
        note: entry.note.clone(),
        runs,
    })
}

/// 0 if every broker gave figures, 1 if one crashed or gave none.
fn exit_code(report: &VersusReport, was_interrupted: bool) -> u8 {
    if was_interrupted {
        return INTERRUPTED;
    }
    let is_measured = |run: &Run| matches!(run.ended, Ended::Measured { .. });
    u8::from(!report.runs.iter().all(is_measured))
}
