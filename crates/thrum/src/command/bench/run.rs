//! `thrum bench run`.

use clap::Args;

use super::arguments::{MeasureArgs, OutputArgs, ReportArgs, SizeArgs, StageArgs, TargetArgs};
use super::scenario_file;
use super::session;

const EXAMPLES: &str = "\
Examples:
  thrum bench run p2p-1K                                     against a broker on this machine
  thrum bench run fanout-1-1K --target mqtt://10.0.0.5:1883 --duration 30m
  thrum bench run p2p-1K --publishers 5000 --rate 2/s --qos 2 --mqtt 5
  thrum bench run p2p-1K --scale 0.1 --baseline latest       a tenth of it, compared with the last run";

/// Arguments of `thrum bench run`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct RunCommand {
    /// Name of the scenario, as `thrum bench scenarios` lists it, a file, or - for standard input.
    #[arg(value_name = "NAME|FILE|-")]
    scenario: String,
    #[command(flatten)]
    stages: StageArgs,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    reports: ReportArgs,
}

/// Runs it.
pub(super) fn run(args: &RunCommand) -> anyhow::Result<u8> {
    let changes = args.stages.changes(&args.size);
    let scenarios = scenario_file::resolve(&args.scenario, &changes)?;
    session::run_all(
        scenarios,
        &args.target,
        &args.measure,
        &args.output,
        &args.reports,
    )
}
