//! `thrum bench import`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use thrum_load::import;

use super::complaint::Complaint;

const EXAMPLES: &str = "\
Examples:
  thrum bench import emqtt-bench 'emqtt_bench pub -h 10.0.0.5 -c 1000 -I 10 -t bench/%i -q 1' -o pub.toml
  thrum bench import emqtt-bench 'emqtt_bench sub -c 500 -t bench/%i' 'emqtt_bench pub -c 500 -t bench/%i'
  thrum bench import emqtt-bench < run.sh                    all lines of a script as one scenario";

/// Most bytes that are read from standard input.
const INPUT_MAX: u64 = 1 << 20;

/// Arguments of `thrum bench import`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE, disable_help_subcommand = true)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Command lines of `emqtt_bench conn`, `sub` and `pub`; those given together run at the same
    /// time.
    #[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
    EmqttBench {
        /// The command lines; read from standard input by default.
        #[arg(value_name = "LINE")]
        lines: Vec<String>,
        /// Write the scenario here instead of to standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Imports.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<u8> {
    let From::EmqttBench { lines, output } = &args.from;
    let text = if lines.is_empty() {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .take(INPUT_MAX)
            .read_to_string(&mut text)?;
        text
    } else {
        lines.join("\n")
    };
    let imported = import::import(&text).map_err(Complaint::usage)?;
    let Some(path) = output else {
        write!(std::io::stdout(), "{}", imported.toml)?;
        return Ok(0);
    };
    fs::write(path, &imported.toml).with_context(|| format!("cannot write {}", path.display()))?;
    let mut messages = std::io::stderr().lock();
    for note in &imported.notes {
        writeln!(messages, "note: {note}")?;
    }
    writeln!(messages, "Next: thrum bench check {}", path.display())?;
    Ok(0)
}
