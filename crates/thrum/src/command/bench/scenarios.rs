//! `thrum bench scenarios`.

use std::io::Write as _;

use clap::{Args, Subcommand};
use thrum_load::scenario;

use super::complaint::Complaint;
use super::planned::ListedScenario;

const EXAMPLES: &str = "\
Examples:
  thrum bench scenarios                    all scenarios
  thrum bench scenarios show p2p-1K        one of them in full
  thrum bench scenarios sets               the sets that `thrum bench suite` runs";

/// Arguments of `thrum bench scenarios`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE, disable_help_subcommand = true)]
pub(super) struct ScenariosArgs {
    #[command(subcommand)]
    command: Option<ScenariosCommand>,
}

#[derive(Debug, Subcommand)]
enum ScenariosCommand {
    /// List all scenarios.
    List {
        /// Print them as JSON, a line each, with their plans; those that need several brokers or a
        /// command, and sweeps, are left out.
        #[arg(long)]
        json: bool,
    },
    /// Show one scenario.
    Show {
        /// Its name.
        name: String,
    },
    /// List the sets.
    Sets,
}

/// Lists or shows.
pub(super) fn run(args: &ScenariosArgs) -> anyhow::Result<u8> {
    match &args.command {
        Some(ScenariosCommand::List { json: true }) => list_plans(),
        None | Some(ScenariosCommand::List { json: false }) => list(),
        Some(ScenariosCommand::Show { name }) => show(name),
        Some(ScenariosCommand::Sets) => sets(),
    }
}

fn list() -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let scenarios = scenario::catalogue();
    let widths = scenarios.iter().map(|entry| entry.alias.len());
    let width = widths.max().unwrap_or(0);
    for entry in &scenarios {
        let steps = match entry.steps.len() {
            0 => String::new(),
            steps => format!(" ({steps} steps)"),
        };
        writeln!(out, "  {:<width$}  {}{steps}", entry.alias, entry.summary)?;
        if entry.name != entry.alias {
            writeln!(out, "  {:<width$}  full name {}", "", entry.name)?;
        }
    }
    writeln!(
        out,
        "\nRun one:   thrum bench run p2p-1K\nAny size:  thrum bench run p2p-200-200-200-200\n\
         Make one:  thrum bench scenarios show p2p-1K > mine.toml; thrum bench run mine.toml"
    )?;
    Ok(0)
}

fn list_plans() -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    for entry in scenario::catalogue() {
        let Some(listed) = ListedScenario::new(&entry)? else {
            continue;
        };
        writeln!(out, "{}", serde_json::to_string(&listed)?)?;
    }
    Ok(0)
}

fn show(name: &str) -> anyhow::Result<u8> {
    let file = scenario::find_toml(name).map_err(Complaint::usage)?;
    write!(std::io::stdout(), "{file}")?;
    Ok(0)
}

fn sets() -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    for set in scenario::sets() {
        writeln!(out, "  {:<12}  {}", set.name, set.summary)?;
        writeln!(out, "  {:<12}  {}", "", set.scenarios.join(" "))?;
    }
    writeln!(out, "\nRun one: thrum bench suite basic")?;
    Ok(0)
}
