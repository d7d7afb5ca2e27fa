//! `thrum bench` of a program that was built without it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use thrum_settings::LeftOut;

use super::Failure;

/// Arguments of `thrum bench`: anything.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// The arguments of a complete program.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn run(_args: BenchArgs) -> anyhow::Result<ExitCode> {
    Err(Failure::usage(LeftOut("bench")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::command::{Cli, run};

    #[test]
    fn every_use_of_the_benchmark_is_refused_with_how_to_get_it() {
        for line in [
            "thrum bench",
            "thrum bench run p2p-1K --png",
            "thrum bench --help",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let error = run(cli.command).unwrap_err().to_string();
            assert!(error.contains("built without `bench`"), "{line}: {error}");
        }
    }
}
