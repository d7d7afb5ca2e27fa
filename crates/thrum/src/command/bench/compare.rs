//! `thrum bench compare`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use thrum_report::compare;

use super::complaint::THRESHOLDS;
use super::{folders, results};

const EXAMPLES: &str = "\
Examples:
  thrum bench compare runs/before runs/after
  thrum bench compare runs/a runs/b runs/c                   each with the first";

/// Most runs of one comparison.
const RUNS_MAX: usize = 26;

/// Arguments of `thrum bench compare`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct CompareArgs {
    /// The runs: folders, names or `latest`; the first one is what the others are compared with.
    #[arg(value_name = "RUN", num_args = 2..=RUNS_MAX, required = true)]
    runs: Vec<String>,
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
    /// End with exit code 99 if a run lost messages, or got slower or dearer by more than the
    /// noise.
    #[arg(long)]
    fail: bool,
}

/// Compares.
pub(super) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let runs = args.runs.iter().map(|run| folders::find(run, &args.out));
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let comparisons = results::comparison(&runs);
    let text = if args.json {
        compare::json(&comparisons)
    } else {
        compare::text(&comparisons)
    };
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    let has_regressions = comparisons
        .iter()
        .any(|comparison| !comparison.regressions().is_empty());
    Ok(if args.fail && has_regressions {
        THRESHOLDS
    } else {
        0
    })
}
