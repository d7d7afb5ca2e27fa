//! `thrum man`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::Cli;

/// Prints the pages of all commands, one after the other.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut root = Cli::command();
    root.build();
    let mut pages = Vec::new();
    render(&root, &mut pages)?;
    std::io::stdout().write_all(&pages)?;
    Ok(ExitCode::SUCCESS)
}

fn render(command: &clap::Command, pages: &mut Vec<u8>) -> std::io::Result<()> {
    clap_mangen::Man::new(command.clone()).render(pages)?;
    for child in command
        .get_subcommands()
        .filter(|child| !child.is_hide_set())
    {
        render(child, pages)?;
    }
    Ok(())
}
