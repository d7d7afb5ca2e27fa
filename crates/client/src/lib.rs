//! The client commands, `thrum pub`, `thrum sub`, `thrum rr` and `thrum probe`: a small MQTT client
//! with one connection, one thread, poll(2).
//!
//! ```text
//!   arguments -> Plan -> run: Link (socket, buffers) <-> protocol's Client
//!             -> Event -> Application (a command)
//! ```
//!
//! Invariant: standard output has only what the user asked for; everything else is on standard
//! error, and the exit code tells why a command ended.
#![forbid(unsafe_code)]

mod application;
mod arguments;
mod clock;
mod console;
mod dial;
mod format;
mod link;
mod payload;
mod plan;
mod print;
pub mod probe;
mod property;
pub mod publish;
mod quic;
pub mod request;
mod retry;
mod run;
mod stop;
pub mod subscribe;
mod target;
mod tls_args;
mod url;

pub use tls_args::TlsArgs;

pub(crate) use application::{Application, Outbox, Progress};
pub(crate) use arguments::{ConnectionArgs, parse_qos};
pub(crate) use format::Received;
pub(crate) use payload::{Lines, PayloadArgs};
pub(crate) use plan::{Defaults, Plan, check_filter, check_topic};
pub(crate) use print::{PrintArgs, Printer};
pub(crate) use property::{PropertyValues, PublishValues};
pub(crate) use run::run;
pub(crate) use stop::{Stop, finish, words};

use console::Console;
use format::Format;

use std::process::ExitCode;

/// Prints the help of a command and ends well.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print_help<A: clap::Args>(name: &'static str) -> anyhow::Result<ExitCode> {
    use std::io::Write as _;

    let mut command = A::augment_args(clap::Command::new(name));
    write!(std::io::stdout(), "{}", command.render_help())?;
    Ok(ExitCode::SUCCESS)
}
