//! `thrum bench` of a program that was built without it.

use std::process::ExitCode;

use super::left_out::{self, AnyArgs};

/// Arguments of `thrum bench`: anything.
pub(crate) type BenchArgs = AnyArgs;

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn run(_args: BenchArgs) -> anyhow::Result<ExitCode> {
    left_out::refuse("bench")
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
