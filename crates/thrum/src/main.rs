//! thrum: an MQTT broker, a benchmark and command-line clients in one program.
//!
//! This crate wires the parts and contains the command line; the functions of the parts are in
//! their own crates.

mod assemble;
mod built;
mod command;
mod config;
mod logging;
#[cfg(feature = "management")]
mod management;
#[cfg(not(feature = "management"))]
#[path = "management_left_out.rs"]
mod management;
mod panics;
#[cfg(all(feature = "bench", not(feature = "tui")))]
#[path = "tui_left_out.rs"]
mod tui;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
#[cfg(feature = "tui")]
use thrum_view as tui;

use command::failure::with_causes;
use command::{Cli, Failure};

fn main() -> ExitCode {
    panics::end_the_program();
    let cli = Cli::parse_from(arguments(std::env::args_os()));
    match command::run(cli.command) {
        Ok(code) => code,
        // A reader that has seen enough (`thrum config show | head`) is not a failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a standard error the message cannot be shown.
            let said = with_causes(error.as_ref());
            writeln!(std::io::stderr(), "error: {said}").ok();
            let code = error.downcast_ref().map_or(1, Failure::code);
            ExitCode::from(code)
        }
    }
}

/// The command line. Called by the name of one of Mosquitto's clients, as through a link, the
/// program is that client.
fn arguments(mut given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let called = given.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(OsStr::to_str);
    let command = match name {
        Some("mosquitto_pub") => Some("pub"),
        Some("mosquitto_sub") => Some("sub"),
        Some("mosquitto_rr") => Some("rr"),
        _ => None,
    };
    let command = command.map(OsString::from);
    [called].into_iter().chain(command).chain(given).collect()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
