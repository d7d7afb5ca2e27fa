//! `thrum version`, and the texts of `-V` and `--version`.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::LazyLock;

use crate::built;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints version and platform, and what was left out.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = format!("{VERSION} ({os} {architecture})");
    writeln!(std::io::stdout(), "thrum {}", with_left_out(version))?;
    Ok(ExitCode::SUCCESS)
}

/// The text of `--version`.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| with_left_out(VERSION.to_owned()));
    &LONG
}

fn with_left_out(version: String) -> String {
    match built::left_out() {
        Some(left_out) => format!("{version}\n{left_out}"),
        None => version,
    }
}
