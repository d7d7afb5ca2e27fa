//! `thrum config import`: a configuration of another broker.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use thrum_migrate::mosquitto;

use super::super::Failure;
use super::write_new;
use crate::config::Source;

const EXAMPLES: &str = "\
Examples:
  thrum config import mosquitto /etc/mosquitto/mosquitto.conf -o thrum.toml
  thrum config import mosquitto mosquitto.conf             print it, and report the result for each line";

/// Arguments of `thrum config import`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// A mosquitto.conf of mosquitto 1.5 to 2.1, with its included files. Files that it names are
    /// kept where they are.
    Mosquitto(FileArgs),
}

#[derive(Debug, Args)]
struct FileArgs {
    /// The file to read.
    file: PathBuf,
    /// The file to write, which must not be there yet, instead of standard output (-).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what became of each line as one JSON object, and the new file in it unless it is
    /// written.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    match &args.from {
        From::Mosquitto(args) => configuration(args),
    }
}

fn read(path: &Path) -> anyhow::Result<Source> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Source::new(path.to_owned(), text)),
        Err(error) => {
            let path = path.display();
            Err(Failure::usage(format!("cannot read {path}: {error}")))
        }
    }
}

fn configuration(args: &FileArgs) -> anyhow::Result<()> {
    let source = read(&args.file)?;
    let output = args
        .output
        .as_deref()
        .filter(|file| *file != Path::new("-"));
    let imported = mosquitto::import(&source, &mosquitto::Disk).map_err(Failure::usage)?;
    if let Some(output) = output {
        write_new(output, &imported.toml)?;
    }
    if args.json {
        let mut report = imported.report.json();
        match output {
            Some(output) => report["output"] = json!(output),
            None => report["toml"] = json!(imported.toml),
        }
        writeln!(std::io::stdout(), "{report}")?;
        return Ok(());
    }
    if output.is_none() {
        std::io::stdout().write_all(imported.toml.as_bytes())?;
    }
    let mut errors = std::io::stderr().lock();
    write!(errors, "{}", imported.report)?;
    if let Some(output) = output {
        let output = output.display();
        writeln!(
            errors,
            "wrote {output}; next: thrum config check -c {output}"
        )?;
    }
    Ok(())
}
