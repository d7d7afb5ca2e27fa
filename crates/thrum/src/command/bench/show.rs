//! `thrum bench show`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use thrum_report::compat::WithCompat;
use thrum_report::summary_styled;

use super::arguments::CompatTool;
use super::{folders, results, session};

const EXAMPLES: &str = "\
Examples:
  thrum bench show latest                  the summary of the last run
  thrum bench show runs/2026-11-21T091203Z-singlenode-p2p-1K-1K-1K-1K --json";

/// Arguments of `thrum bench show`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct ShowArgs {
    /// The run: its folder, its name or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Show what another tool would have shown of this run.
    #[arg(long, value_enum, value_name = "TOOL")]
    compat: Option<CompatTool>,
}

/// Shows.
pub(super) fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    let kept = folders::find(&args.run, &args.out)?;
    let compat = session::compat(args.compat, &kept.result)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let with = WithCompat {
            run: &kept.result,
            compat: compat.as_ref(),
        };
        let json = serde_json::to_string(&with).context("the result cannot be written as JSON")?;
        writeln!(out, "{json}")?;
    } else {
        let summary = summary_styled(&kept.result, None, results::style());
        write!(out, "{summary}")?;
        if let Some(compat) = &compat {
            write!(out, "{}", compat.xmeter.text(&kept.result))?;
        }
    }
    Ok(0)
}
