//! `cargo xtask`: the checks of the repository, the same on a developer's machine and in CI.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints to the terminal"
)]

mod check;
mod counts;
mod items;
mod mutants;
mod source;
mod spec;
mod suites;
mod tidy;
mod violation;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask <command>

  check                       fmt, clippy, tidy, spec, and cargo-deny if it is installed: what CI runs
  tidy                        sizes of files and types, dependency direction, unused files and functions
  spec [--list [STATEMENT]]   coverage of the normative statements in docs/spec, and the lines that enforce and test them
  counts                      instructions per operation, compared with docs/performance (needs valgrind)
  mutants --sample N --seed N CRATE…
                              changes N places of each crate, one at a time: do its tests notice?
  test [--list] [NAME…]       builds all tests and runs them at the same time, or only the named ones";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command and returns whether the repository passed.
fn run(arguments: &[String]) -> Result<bool> {
    let (command, options) = match arguments.split_first() {
        Some((command, options)) => (command.as_str(), options),
        None => bail!("no command given\n{USAGE}"),
    };
    match command {
        "check" if options.is_empty() => check::run(&Workspace::open()?),
        "tidy" if options.is_empty() => tidy::run(&Workspace::open()?),
        "spec" => spec::run(&Workspace::open()?, &spec::View::parse(options)?),
        "counts" if options.is_empty() => counts::run(&Workspace::open()?),
        "mutants" => mutants::run(&Workspace::open()?, &mutants::Options::parse(options)?),
        "test" => suites::run(&Workspace::open()?, &suites::Options::parse(options)?),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => bail!("unknown command `{}`\n{USAGE}", arguments.join(" ")),
    }
}
