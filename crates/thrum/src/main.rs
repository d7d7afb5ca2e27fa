//! thrum: an MQTT broker, a benchmark and command-line clients in one program.
//!
//! This crate wires the parts and holds the command line; what the parts do is in their own crates.

mod assemble;
mod command;
mod config;
mod logging;
mod mqtt_client;
mod panics;
mod tls_args;
mod tui;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use command::{Cli, Failure};

fn main() -> ExitCode {
    panics::end_the_program();
    let cli = Cli::parse();
    match command::run(cli.command) {
        Ok(code) => code,
        // A reader that has seen enough (`thrum config show | head`) is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a standard error there is nobody left to tell.
            writeln!(std::io::stderr(), "error: {error:#}").ok();
            let code = error
                .downcast_ref()
                .map_or(1, |_: &Failure| Failure::EXIT_CODE);
            ExitCode::from(code)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
