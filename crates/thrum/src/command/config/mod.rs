//! `thrum config`: write, check and show the configuration of a broker, change that of a running
//! one, and import one of mosquitto.

#[cfg(feature = "management")]
mod change;
#[cfg(not(feature = "management"))]
#[path = "change_left_out.rs"]
mod change;
mod explain;
mod import;
#[cfg(feature = "management")]
mod versions;
#[cfg(not(feature = "management"))]
use change as versions;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Failure;
use super::failure::Lines;
use crate::assemble;
use crate::config::{self, Loaded, Request};

const EXAMPLES: &str = "\
Examples:
  thrum config init thrum.toml             write a file with every key
  thrum config init > thrum.toml           the same
  thrum config check -c thrum.toml         errors, or the keys with other values
  thrum config check --strict              fail also where serve would only warn
  thrum config show --origin               every value in force and its origin
  thrum config explain limits.max_packet   what a key is for, its value, its origin
  thrum config set limits.max_packet 2MB --data-dir /var/lib/thrum
                                           change a running broker, and keep that
  thrum config rollback --data-dir /var/lib/thrum
                                           undo that change
  thrum config import mosquitto /etc/mosquitto/mosquitto.conf -o thrum.toml";

/// Arguments of `thrum config`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write or print a commented file with every key and its default; an existing file is not
    /// touched.
    Init {
        /// The file to write, which must not exist. Without one, or with -, it is printed.
        file: Option<PathBuf>,
    },
    /// Check files and variables, and every file they name, as serve does before it opens a port:
    /// print all errors and exit with 2, or print the differences from the defaults.
    Check {
        /// Treat a warning, such as an expired certificate, as an error.
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Print every value in force.
    Show {
        /// Print the origin of each: default, file and line, variable.
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Print what a key is for, its value and its origin; of a table, its keys.
    Explain(explain::ExplainArgs),
    /// Set a key of a running broker: at once, and for later starts.
    Set(change::SetArgs),
    /// Print what a reload of a running broker would change.
    Diff(change::AskArgs),
    /// Have a running broker read its files again, as SIGHUP does, and print the result.
    Reload(change::AskArgs),
    /// List the versions of the keys that were set on a running broker.
    Versions(versions::VersionsArgs),
    /// Return to a version of the keys that were set on a running broker.
    Rollback(versions::RollbackArgs),
    /// Print the schema of a configuration file, as JSON Schema.
    Schema,
    /// Import the configuration of another broker.
    Import(import::ImportArgs),
}

/// Sources of the configuration.
#[derive(Debug, Args)]
struct SourceArgs {
    /// The file to read, instead of /etc/thrum/thrum.toml; conf.d/*.toml beside it is read after
    /// it.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs one of them.
pub(crate) fn run(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Init { file } => init(file.as_deref())?,
        Action::Check { strict, source } => check(&load(source)?, strict)?,
        Action::Show { origin, source } => {
            let listing = config::listing(&load(source)?, origin);
            std::io::stdout().write_all(listing.as_bytes())?;
        }
        Action::Explain(args) => explain::run(args)?,
        Action::Set(args) => change::set(&args)?,
        Action::Diff(args) => change::diff(&args)?,
        Action::Reload(args) => change::reload(&args)?,
        Action::Versions(args) => versions::list(&args)?,
        Action::Rollback(args) => versions::roll_back(&args)?,
        Action::Schema => explain::schema()?,
        Action::Import(args) => import::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn load(source: SourceArgs) -> anyhow::Result<Loaded> {
    let request = Request {
        file: source.config,
        ..Request::default()
    };
    let loaded = config::load(&request).map_err(Failure::usage)?;
    if let Some(unread) = &loaded.unread {
        writeln!(
            std::io::stderr(),
            "warning: {unread}, so that keys set with thrum config set are missing here; run this as the user of the \
             broker, or as root"
        )?;
    }
    Ok(loaded)
}

fn init(file: Option<&Path>) -> anyhow::Result<()> {
    let text = config::commented_file();
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    };
    let shown = file.display();
    write_new(file, &text)?;
    writeln!(
        std::io::stderr(),
        "wrote {shown}; next: thrum serve -c {shown}"
    )?;
    Ok(())
}

/// Writes a file that is not there yet.
fn write_new(file: &Path, text: &str) -> anyhow::Result<()> {
    let shown = file.display();
    let target = OpenOptions::new().write(true).create_new(true).open(file);
    let mut target = target.map_err(|error| {
        let folder = file.parent().unwrap_or_else(|| Path::new("")).display();
        let reason = match error.kind() {
            ErrorKind::AlreadyExists => {
                "it exists; choose another name, or move it away".to_owned()
            }
            ErrorKind::NotFound => {
                format!("there is no directory {folder}; make it with: mkdir -p {folder}")
            }
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Failure::usage(format!("cannot write {shown}: {reason}"))
    })?;
    target.write_all(text.as_bytes())?;
    Ok(())
}

fn check(loaded: &Loaded, strict: bool) -> anyhow::Result<()> {
    let prepared = assemble::prepare(&loaded.config).map_err(Failure::usage)?;
    let warnings = prepared.warnings();
    if strict && !warnings.is_empty() {
        return Err(Failure::usage(Lines(warnings.to_vec())));
    }
    for warning in warnings {
        writeln!(std::io::stderr(), "warning: {warning}")?;
    }
    let differences = config::differences(loaded);
    let files: Vec<String> = loaded
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let files = if files.is_empty() {
        "no file".to_owned()
    } else {
        files.join(", ")
    };
    let difference = if differences.is_empty() {
        "everything is at its default"
    } else {
        "differences from the defaults:"
    };
    writeln!(std::io::stderr(), "valid ({files} read); {difference}")?;
    std::io::stdout().write_all(differences.as_bytes())?;
    let limits = &loaded.config.limits;
    if limits.session_limits().retain_available
        && limits.packet.max_packet > limits.retained.retained_payload
    {
        writeln!(
            std::io::stderr(),
            "note: limits.max_packet is above limits.retained_payload: a message that is to be retained and longer than that \
             is refused (0x97), or delivered and not retained where its publisher cannot be told"
        )?;
    }
    Ok(())
}
