//! `thrum version`.

use std::io::Write as _;
use std::process::ExitCode;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints version and platform.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    writeln!(std::io::stdout(), "thrum {VERSION} ({os} {architecture})")?;
    Ok(ExitCode::SUCCESS)
}
