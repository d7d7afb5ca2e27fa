//! The commands: one file each, and the tree that leads to them.

mod acl;
#[cfg(feature = "management")]
mod admin;
#[cfg(feature = "management")]
mod audit;
mod backup;
mod bans;
#[cfg(feature = "bench")]
mod bench;
#[cfg(not(feature = "bench"))]
#[path = "bench_left_out.rs"]
mod bench;
#[cfg(feature = "management")]
mod clients;
mod completion;
mod config;
mod data_dir;
pub(crate) mod failure;
#[cfg(feature = "management")]
mod keys;
#[cfg(not(all(feature = "bench", feature = "management")))]
mod left_out;
mod man;
#[cfg(not(feature = "management"))]
#[path = "management_left_out.rs"]
mod management;
mod retained;
mod root_alone;
#[cfg(feature = "management")]
mod running;
mod serve;
mod sessions;
mod shown;
#[cfg(feature = "management")]
mod status;
#[cfg(test)]
mod tests;
mod users;
mod version;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use thrum_client::{publish, request, subscribe};

pub(crate) use failure::Failure;
#[cfg(not(feature = "management"))]
use management::{self as admin, self as audit, self as clients, self as keys, self as status};

/// Examples come first: most people look for a line to copy.
const EXAMPLES: &str = "\
Examples:
  thrum serve --dev                        a broker for experiments
  thrum sub -t '#' -v                      print every message
  thrum pub -t hello -m world              send one
  thrum bench run p2p-1K                   measure the broker
  thrum config init thrum.toml             write a commented configuration
  thrum serve -c thrum.toml                a broker with that configuration";

/// MQTT broker, benchmark and command-line clients in one program.
#[derive(Debug, Parser)]
#[command(name = "thrum", version, long_version = version::long(), after_help = EXAMPLES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a broker.
    Serve(serve::ServeArgs),
    /// Publish messages, with the options of Mosquitto's client.
    #[command(name = "pub")]
    Publish(publish::PublishArgs),
    /// Subscribe and print messages, with the options of Mosquitto's client.
    #[command(name = "sub")]
    Subscribe(subscribe::SubscribeArgs),
    /// Send a request and print the response, with the options of Mosquitto's client.
    #[command(name = "rr")]
    Request(request::RequestArgs),
    /// Measure a broker, this one or any other.
    Bench(bench::BenchArgs),
    /// Write, check and show the configuration of a broker.
    Config(config::ConfigArgs),
    /// Show a summary of a running broker.
    Status(status::StatusArgs),
    /// List, show and disconnect the clients of a running broker.
    Clients(clients::ClientsArgs),
    /// List the administrators of a running broker, reset a password, make a setup link.
    Admin(admin::AdminArgs),
    /// List, add and remove API keys of programs.
    Keys(keys::KeysArgs),
    /// Show who changed what in a running broker.
    Audit(audit::AuditArgs),
    /// List, add and lift bans of clients, users and addresses.
    Bans(bans::BansArgs),
    /// List, show and remove the sessions in a data directory.
    Sessions(sessions::SessionsArgs),
    /// List, export and import the retained messages in a data directory.
    Retained(retained::RetainedArgs),
    /// Add, change, list, remove and import users, roles and groups.
    Users(users::UsersArgs),
    /// Test what a client may publish and subscribe to, and show the deciding rule.
    Acl(acl::AclArgs),
    /// Copy a data directory while its broker runs, and restore it.
    Backup(backup::BackupArgs),
    /// Print a completion script for a shell.
    Completion(completion::CompletionArgs),
    /// Print the manual page, in the format of man.
    Man,
    /// Print the version.
    Version,
}

/// Runs a command.
///
/// # Errors
/// The failure of the command; a [`Failure`] has its own exit code, everything else is 1.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Publish(args) => publish::run(&args),
        Command::Subscribe(args) => subscribe::run(&args),
        Command::Request(args) => request::run(&args),
        Command::Config(args) => config::run(args),
        Command::Acl(args) => acl::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Clients(args) => clients::run(&args),
        Command::Admin(args) => admin::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Bans(args) => bans::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Retained(args) => retained::run(&args),
        Command::Users(args) => users::run(args),
        Command::Backup(args) => backup::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Man => man::run(),
        Command::Version => version::run(),
    }
}
