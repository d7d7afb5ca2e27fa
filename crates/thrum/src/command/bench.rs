//! `thrum bench`: runs load scenarios against any MQTT broker and reports what it held.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use thrum_bench::report::{RunFolder, RunResult, progress_line, summary, table};
use thrum_bench::scenario::{BASIC_SET, Overrides, Rate, catalogue, find};
use thrum_bench::target::Target;
use thrum_bench::units::parse_span;
use thrum_bench::{BrokerProcess, Outcome, RunOptions, Status};
use thrum_codec::{QoS, Version};

/// Between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Wrong usage, as everywhere in the command line.
const USAGE: u8 = 2;

/// Ended by ^C.
const INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  thrum bench run p2p-1K                                     against a broker on this machine
  thrum bench run fanout-1-1K --target mqtt://10.0.0.5:1883 --duration 30m
  thrum bench run p2p-1K --publishers 5000 --rate 2/s --qos 2 --mqtt 5
  thrum bench suite basic --duration 60s                     the four scenarios of the Basic Set
  thrum bench scenarios                                      what can be run

Exit codes: 0 kept its promises, 1 did not, 2 wrong usage, 5 unreachable, 7 INVALID (the generator
was the limit), 130 interrupted";

/// Arguments of `thrum bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Run one scenario.
    Run {
        /// Name of the scenario, as `thrum bench scenarios` lists it.
        name: String,
        #[command(flatten)]
        options: RunArgs,
        #[command(flatten)]
        scale: ScaleArgs,
    },
    /// Run a set of scenarios one after the other.
    Suite {
        /// Name of the set.
        set: Set,
        #[command(flatten)]
        options: RunArgs,
    },
    /// List the scenarios.
    Scenarios,
}

/// Sets of scenarios.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Set {
    /// The Basic Set of the open MQTT benchmarks: connections, fan-out, one-to-one, shared subscription.
    Basic,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The broker.
    #[arg(
        long,
        value_name = "mqtt://HOST:PORT",
        default_value = "mqtt://127.0.0.1:1883"
    )]
    target: String,
    /// Length of the part that counts (30s, 5m); the published runs take 30m [default: 60s].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    duration: Option<Duration>,
    /// Load before that, which does not count [default: 5s; none for connections only].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    warmup: Option<Duration>,
    /// Longest wait for the last messages [default: 5s].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    drain: Option<Duration>,
    /// The broker's process, to measure its CPU and memory with its children; `none` to leave it
    /// [default: who listens on the target's port on this machine].
    #[arg(long, value_name = "PID", value_parser = broker_process)]
    pid: Option<BrokerProcess>,
    /// Threads of the generator [default: half of the cores; one more for the publishers of a fan-out].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    /// MQTT version [default: the scenario's].
    #[arg(long, value_name = "3.1.1|5", value_parser = version)]
    mqtt: Option<Version>,
    /// Where the run folders go.
    #[arg(long, value_name = "DIR", default_value = "./runs")]
    out: PathBuf,
    /// Print the result as JSON instead of the summary.
    #[arg(long)]
    json: bool,
}

/// Changes of the scenario's scale.
#[derive(Debug, Args)]
struct ScaleArgs {
    /// Publishers.
    #[arg(long, value_name = "N")]
    publishers: Option<u32>,
    /// Subscribers.
    #[arg(long, value_name = "N")]
    subscribers: Option<u32>,
    /// Connections, where the scenario has nothing else.
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Messages of each publisher: 50, 50/s, 0.5, 6/m.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<Rate>,
    /// Size of a message in bytes, at least 16.
    #[arg(long, value_name = "BYTES")]
    payload: Option<u32>,
    /// Quality of service of publishing and subscribing.
    #[arg(long, value_name = "0|1|2", value_parser = qos)]
    qos: Option<QoS>,
    /// Connections opened per second.
    #[arg(long, value_name = "N")]
    connect_rate: Option<u32>,
}

/// Runs `thrum bench`.
///
/// # Errors
/// The terminal or the run folder cannot be written. A run that fails is no error but an exit code.
pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let code = match args.command {
        BenchCommand::Scenarios => list_scenarios()?,
        BenchCommand::Run {
            name,
            options,
            scale,
        } => run_all(&[&name], &options, Some(&scale))?,
        BenchCommand::Suite {
            set: Set::Basic,
            options,
        } => run_all(&BASIC_SET, &options, None)?,
    };
    Ok(ExitCode::from(code))
}

fn list_scenarios() -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let scenarios = catalogue();
    let width = scenarios
        .iter()
        .map(|scenario| scenario.alias.len())
        .max()
        .unwrap_or(0);
    for scenario in &scenarios {
        writeln!(out, "  {:<width$}  {}", scenario.alias, scenario.summary)?;
        writeln!(out, "  {:<width$}  full name {}", "", scenario.name)?;
    }
    writeln!(
        out,
        "\nRun one: thrum bench run {}",
        scenarios.first().map_or("", |s| &s.alias)
    )?;
    Ok(0)
}

/// Runs scenarios one after the other; returns the most serious exit code.
fn run_all(names: &[&str], args: &RunArgs, scale: Option<&ScaleArgs>) -> anyhow::Result<u8> {
    let overrides = overrides(args, scale);
    let mut scenarios = Vec::new();
    for name in names {
        let scenario = find(name).map_err(|error| error.to_string());
        match scenario.and_then(|found| found.with(&overrides).map_err(|error| error.to_string())) {
            Ok(scenario) => scenarios.push(scenario),
            Err(message) => return complain(&message, USAGE),
        }
    }
    let target = match Target::parse(&args.target) {
        Ok(target) => target,
        Err(error) => return complain(&error.to_string(), USAGE),
    };
    let options = RunOptions {
        target,
        broker: args.pid.unwrap_or(BrokerProcess::Detect),
        threads: args.threads,
        interrupt: interrupt_flag()?,
    };
    let mut outcomes = Vec::new();
    for scenario in scenarios {
        let outcome = thrum_bench::run(scenario, &options, &mut print_progress());
        match outcome {
            Ok(outcome) => {
                report(&outcome, args)?;
                outcomes.push(outcome);
            }
            Err(error) => return complain(&error.to_string(), error.exit_code()),
        }
        if outcomes
            .last()
            .is_some_and(|outcome| outcome.was_interrupted)
        {
            break;
        }
    }
    if outcomes.len() > 1 && !args.json {
        writeln!(std::io::stdout(), "\n{}", table(&outcomes))?;
    }
    Ok(most_serious(&outcomes))
}

fn report(outcome: &Outcome, args: &RunArgs) -> anyhow::Result<()> {
    let command: Vec<String> = std::env::args().collect();
    let result = RunResult::new(outcome, &command.join(" "));
    let folder = RunFolder::create(&args.out, outcome.started_unix, &outcome.scenario.name)?;
    folder.write(outcome, &result)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let json =
            serde_json::to_string(&result).context("the result cannot be written as JSON")?;
        writeln!(out, "{json}")?;
        return Ok(());
    }
    let file = folder.path().join("result.json");
    write!(out, "{}", summary(outcome))?;
    writeln!(
        out,
        "  result {}          exit {}",
        file.display(),
        outcome.exit_code()
    )?;
    Ok(())
}

/// One line every few seconds on standard error.
fn print_progress() -> impl FnMut(&Status) {
    let mut shown: Option<Status> = None;
    let mut since = Duration::ZERO;
    move |status| {
        let stage_began = shown.is_none_or(|shown| shown.stage != status.stage);
        if stage_began {
            since = status.elapsed;
        }
        if !stage_began && status.elapsed.saturating_sub(since) < PROGRESS_INTERVAL {
            return;
        }
        // Nobody may be reading; the run goes on.
        writeln!(
            std::io::stderr(),
            "{}",
            progress_line(shown.as_ref(), status)
        )
        .ok();
        since = status.elapsed;
        shown = Some(*status);
    }
}

/// Set by the first ^C; the second one ends the program at once.
fn interrupt_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let code = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

fn most_serious(outcomes: &[Outcome]) -> u8 {
    let codes = outcomes.iter().map(Outcome::exit_code);
    codes.max().unwrap_or(0)
}

fn complain(message: &str, code: u8) -> anyhow::Result<u8> {
    writeln!(std::io::stderr(), "error: {message}")?;
    Ok(code)
}

fn overrides(args: &RunArgs, scale: Option<&ScaleArgs>) -> Overrides {
    let stages = Overrides {
        version: args.mqtt,
        hold: args.duration,
        warm_up: args.warmup,
        drain: args.drain,
        ..Overrides::default()
    };
    match scale {
        None => stages,
        Some(scale) => Overrides {
            publishers: scale.publishers,
            subscribers: scale.subscribers,
            connections: scale.connections,
            rate: scale.rate,
            payload_bytes: scale.payload,
            qos: scale.qos,
            connect_rate: scale.connect_rate,
            ..stages
        },
    }
}

fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "write a span like 30s, 5m or 1h".to_owned())
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text)
        .ok_or_else(|| "write messages per second like 50, 50/s, 0.5 or 6/m".to_owned())
}

fn qos(text: &str) -> Result<QoS, String> {
    match text {
        "0" => Ok(QoS::AtMostOnce),
        "1" => Ok(QoS::AtLeastOnce),
        "2" => Ok(QoS::ExactlyOnce),
        _ => Err("write 0, 1 or 2".to_owned()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "3.1" => Ok(Version::V31),
        "3.1.1" | "4" => Ok(Version::V311),
        "5" | "5.0" => Ok(Version::V5),
        _ => Err("write 3.1.1 or 5".to_owned()),
    }
}

fn broker_process(text: &str) -> Result<BrokerProcess, String> {
    match text {
        "none" => Ok(BrokerProcess::Unknown),
        "auto" => Ok(BrokerProcess::Detect),
        _ => text
            .parse()
            .map(BrokerProcess::Pid)
            .map_err(|_| "write the number of a process, `auto` or `none`".to_owned()),
    }
}
