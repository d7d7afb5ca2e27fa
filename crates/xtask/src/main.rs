//! `cargo xtask`: the checks that keep the repository in shape, the same at the desk and in CI.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool answers on the terminal"
)]

mod check;
mod counts;
mod items;
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
  tidy                        sizes of files and types, dependency direction, files and functions that nothing uses
  spec [--list [STATEMENT]]   every normative statement of docs/spec is enforced and tested, and where
  counts                      instructions per operation, against docs/performance (needs valgrind)
  test [--list] [NAME…]       builds all tests and runs them side by side, or those named so";

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

/// Runs one command and tells whether the repository passed.
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
        "test" => suites::run(&Workspace::open()?, &suites::Options::parse(options)?),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => bail!("do not understand `{}`\n{USAGE}", arguments.join(" ")),
    }
}
