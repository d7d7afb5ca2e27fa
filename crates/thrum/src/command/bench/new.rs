//! `thrum bench new`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::complaint::Complaint;

const EXAMPLES: &str = "\
Examples:
  thrum bench new mine.toml                a commented scenario to start from
  thrum bench new -                        the same on standard output";

/// A scenario in which every part is explained.
const SCENARIO: &str = include_str!("scenario.toml");

/// Arguments of `thrum bench new`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct NewArgs {
    /// The file, which must not exist; `-` is standard output.
    file: PathBuf,
}

/// Writes the file.
pub(super) fn run(args: &NewArgs) -> anyhow::Result<u8> {
    let path = &args.file;
    if path.as_os_str() == "-" {
        write!(io::stdout(), "{SCENARIO}")?;
        return Ok(0);
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("{} exists; choose another name", path.display());
            return Err(Complaint::usage(message).into());
        }
        file => file.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(SCENARIO.as_bytes())?;
    let file = path.display();
    writeln!(io::stdout(), "Wrote {file}. Next: thrum bench check {file}")?;
    Ok(0)
}
