//! `thrum backup`: what a broker has stored as one file, and back.

mod archive;
mod check;
mod create;
mod files;
#[cfg(feature = "management")]
mod kept;
#[cfg(feature = "management")]
mod remote;
mod restore;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

#[cfg(feature = "management")]
pub(crate) use kept::KeptBackups;
pub(super) use restore::finish as finish_restore;

const EXAMPLES: &str = "\
Examples:
  thrum backup create --data-dir /var/lib/thrum thrum.tar
  thrum backup create --url https://broker.example:8080 --token-file admin.key thrum.tar
  thrum backup check thrum.tar
  thrum backup restore thrum.tar --data-dir /var/lib/thrum

create reads the data directory, also while a broker uses it, without blocking it; with --url or --context that broker \
makes the backup, which is fetched and then removed there. restore needs the broker stopped.";

/// Arguments of `thrum backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write what a broker has stored to a file, as it is at one moment.
    Create(create::CreateArgs),
    /// Read a complete backup, check it and print its contents.
    Check(CheckArgs),
    /// Create a data directory from a backup.
    Restore(restore::RestoreArgs),
    /// List the backups that a running broker keeps.
    #[cfg(feature = "management")]
    Ls(remote::LsArgs),
    /// Fetch a backup that a running broker keeps.
    #[cfg(feature = "management")]
    Get(remote::GetArgs),
    /// Remove a backup that a running broker keeps, or end the one that it makes.
    #[cfg(feature = "management")]
    Rm(remote::RmArgs),
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
        #[cfg(feature = "management")]
        Action::Ls(args) => remote::list(args)?,
        #[cfg(feature = "management")]
        Action::Get(args) => remote::get(args)?,
        #[cfg(feature = "management")]
        Action::Rm(args) => remote::remove(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
