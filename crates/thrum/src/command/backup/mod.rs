//! `thrum backup`: a data directory as one file, and back.

mod archive;
mod check;
mod create;
mod files;
mod restore;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  thrum backup create --data-dir /var/lib/thrum thrum.tar
  thrum backup check thrum.tar
  thrum backup restore thrum.tar --data-dir /var/lib/thrum

create works while a broker uses the directory, without blocking it; restore needs it stopped.";

/// Arguments of `thrum backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write a data directory to a file, as it is at one moment.
    Create(create::CreateArgs),
    /// Read a complete backup, check it and print its contents.
    Check(CheckArgs),
    /// Create a data directory from a backup.
    Restore(restore::RestoreArgs),
}

/// Arguments of `thrum backup check`.
#[derive(Debug, Args)]
struct CheckArgs {
    /// The backup.
    file: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs one of them.
pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Create(args) => create::run(args)?,
        Action::Check(args) => {
            let summary = check::check(&args.file, &mut |_| Ok(()))?;
            let is_damaged = summary.report.is_damaged();
            let what = if is_damaged {
                "is a true copy of a log that is damaged"
            } else {
                "is whole"
            };
            summary.print(what, args.json)?;
            if is_damaged {
                return Ok(ExitCode::FAILURE);
            }
        }
        Action::Restore(args) => restore::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
