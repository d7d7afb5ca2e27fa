//! A command of a part that this program was built without.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use thrum_settings::LeftOut;

use super::Failure;

/// Arguments of the command: anything.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AnyArgs {
    /// The arguments of a complete program.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

/// Refuses, and names the part.
///
/// # Errors
/// Always.
pub(super) fn refuse(part: &'static str) -> anyhow::Result<ExitCode> {
    Err(Failure::usage(LeftOut(part)))
}
