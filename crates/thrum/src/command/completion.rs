//! `thrum completion`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;

const EXAMPLES: &str = "\
Examples:
  thrum completion bash > /etc/bash_completion.d/thrum
  thrum completion zsh > \"${fpath[1]}/_thrum\"
  thrum completion fish > ~/.config/fish/completions/thrum.fish";

/// Arguments of `thrum completion`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionArgs {
    /// The shell that completes.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "thrum", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
