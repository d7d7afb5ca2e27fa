//! `thrum bench suite`.

use clap::Args;
use thrum_load::scenario::sets;

use super::arguments::{MeasureArgs, OutputArgs, ReportArgs, SizeArgs, StageArgs, TargetArgs};
use super::complaint::Complaint;
use super::{scenario_file, session};
use thrum_settings::nearest;

const EXAMPLES: &str = "\
Examples:
  thrum bench suite basic --duration 60s                     the four scenarios of the Basic Set
  thrum bench suite basic --target mqtt://10.0.0.5:1883 --duration 30m
  thrum bench scenarios sets                                 the sets";

/// Arguments of `thrum bench suite`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct SuiteArgs {
    /// Name of the set, as `thrum bench scenarios sets` lists it.
    #[arg(value_name = "SET")]
    set: String,
    #[command(flatten)]
    stages: StageArgs,
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
pub(super) fn run(args: &SuiteArgs) -> anyhow::Result<u8> {
    let changes = args.stages.changes(&SizeArgs::default());
    let mut scenarios = Vec::new();
    for name in members(&args.set)? {
        scenarios.extend(scenario_file::resolve(name, &changes)?);
    }
    session::run_all(
        scenarios,
        &args.target,
        &args.measure,
        &args.output,
        &args.reports,
    )
}

/// Names of the scenarios of a set.
pub(super) fn members(set: &str) -> Result<&'static [&'static str], Complaint> {
    let found = sets().iter().find(|known| known.name == set);
    found.map(|known| known.scenarios).ok_or_else(|| {
        let names: Vec<&str> = sets().iter().map(|set| set.name).collect();
        let hint = nearest(set, names.iter().copied()).map_or_else(
            || format!("the sets are: {}", names.join(", ")),
            |name| format!("did you mean '{name}'?"),
        );
        Complaint::usage(format!("no set named '{set}'; {hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_set_gets_a_hint() {
        let hint = |set| members(set).unwrap_err().to_string();
        assert_eq!(
            hint("basics"),
            "no set named 'basics'; did you mean 'basic'?"
        );
        assert!(hint("x").contains("the sets are: basic"));
    }
}
