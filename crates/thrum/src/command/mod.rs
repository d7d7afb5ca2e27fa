//! The commands: one file each, and the tree that leads to them.

mod acl;
#[cfg(feature = "management")]
mod admin;
#[cfg(feature = "management")]
mod alarms;
#[cfg(feature = "management")]
mod api;
#[cfg(feature = "management")]
mod audit;
mod backup;
mod bans;
#[cfg(feature = "bench")]
mod bench;
#[cfg(not(feature = "bench"))]
#[path = "bench_left_out.rs"]
mod bench;
mod cheat;
#[cfg(feature = "management")]
mod clients;
mod completion;
mod config;
#[cfg(feature = "management")]
mod context;
mod data_dir;
mod doctor;
#[cfg(feature = "management")]
mod explain;
pub(crate) mod failure;
#[cfg(feature = "management")]
mod keys;
#[cfg(not(all(feature = "bench", feature = "management")))]
mod left_out;
#[cfg(feature = "management")]
mod listeners;
#[cfg_attr(
    not(feature = "management"),
    allow(dead_code, reason = "the rest is for lists of a running broker")
)]
mod listing;
#[cfg(feature = "management")]
mod lists;
#[cfg(feature = "management")]
mod logs;
mod man;
#[cfg(not(feature = "management"))]
#[path = "management_left_out.rs"]
mod management;
mod output;
mod retained;
mod root_alone;
#[cfg(feature = "management")]
mod running;
#[cfg(not(feature = "management"))]
#[path = "running_left_out.rs"]
mod running;
mod serve;
mod sessions;
mod shown;
#[cfg(feature = "management")]
mod status;
#[cfg(feature = "management")]
mod stored;
#[cfg(not(feature = "management"))]
#[path = "stored_left_out.rs"]
mod stored;
#[cfg(test)]
mod tests;
#[cfg(feature = "management")]
mod top;
#[cfg(feature = "management")]
mod topics;
#[cfg(feature = "management")]
mod trace;
mod users;
mod version;
#[cfg(feature = "management")]
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use thrum_client::{probe, publish, request, subscribe};

#[cfg(feature = "management")]
pub(crate) use backup::KeptBackups;
#[cfg(all(feature = "bench", feature = "management"))]
use bench::{ChangeLine, PARENT as BENCH_PARENT};
pub(crate) use failure::Failure;
#[cfg(not(feature = "management"))]
use management::{
    self as admin, self as alarms, self as api, self as audit, self as clients, self as context,
    self as explain, self as keys, self as listeners, self as lists, self as logs, self as status,
    self as top, self as topics, self as trace, self as why,
};
pub(crate) use serve::Around;
#[cfg(feature = "management")]
pub(crate) use serve::{HostedBenchmarks, Operated};

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
    /// Measure a running broker: what makes messages slow, and what drops them.
    Why(why::WhyArgs),
    /// Watch a running broker: its load, and its busiest clients.
    Top(top::TopArgs),
    /// List, show, trace and disconnect the clients of a running broker.
    Clients(clients::ClientsArgs),
    /// List the subscriptions of a running broker.
    Subs(lists::SubsArgs),
    /// Show the topics that messages have now, as a list or a tree.
    Topics(topics::TopicsArgs),
    /// List the shared groups of a running broker with their lag.
    Groups(lists::GroupsArgs),
    /// List messages that a running broker dropped, by reason, client and topic.
    Drops(lists::DropsArgs),
    /// List clients that do not take their messages as fast as they come.
    Slow(lists::SlowArgs),
    /// Explain what would happen to a message or a subscription.
    Explain(explain::ExplainArgs),
    /// Show packets of a client, an address or a topic while they pass.
    Trace(trace::TraceArgs),
    /// Send any request to the management interface of a broker.
    Api(api::ApiArgs),
    /// Give brokers elsewhere names.
    Context(context::ContextArgs),
    /// Check this machine and a configuration, and say how to cure what is wrong.
    Doctor(doctor::DoctorArgs),
    /// Find out what a broker supports, this one or any other.
    Probe(probe::ProbeArgs),
    /// List, add, change and remove administrators, reset a password, make a setup link.
    Admin(admin::AdminArgs),
    /// List, add and remove API keys of programs.
    Keys(keys::KeysArgs),
    /// Show who changed what in a running broker.
    Audit(audit::AuditArgs),
    /// List, stop and start the listeners of a running broker.
    Listeners(listeners::ListenersArgs),
    /// List the certificates of a running broker, and have them read again.
    Certs(listeners::CertsArgs),
    /// Print the last lines of the log of a running broker, set its level for a time.
    Logs(logs::LogsArgs),
    /// List what somebody has to do something about in a running broker.
    Alarms(alarms::AlarmsArgs),
    /// List, add and lift bans of clients, users and addresses.
    Bans(bans::BansArgs),
    /// List, show and remove the sessions in a data directory.
    Sessions(sessions::SessionsArgs),
    /// List, show, remove, export and import retained messages.
    Retained(retained::RetainedArgs),
    /// Add, change, list, remove and import users, roles and groups.
    Users(users::UsersArgs),
    /// List, set and remove roles of users: short for thrum users roles.
    Roles(users::RolesArgs),
    /// List the rules, test what a client may do, and show the deciding rule.
    Acl(acl::AclArgs),
    /// Copy what a broker has stored while it runs, and restore it.
    Backup(backup::BackupArgs),
    /// Show examples for a topic, or the topics.
    Cheat(cheat::CheatArgs),
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
        Command::Why(args) => why::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Clients(args) => clients::run(&args),
        Command::Subs(args) => lists::subs(&args),
        Command::Topics(args) => topics::run(&args),
        Command::Groups(args) => lists::groups(&args),
        Command::Drops(args) => lists::drops(&args),
        Command::Slow(args) => lists::slow(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Api(args) => api::run(&args),
        Command::Context(args) => context::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Probe(args) => probe::run(args),
        Command::Admin(args) => admin::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Listeners(args) => listeners::run(&args),
        Command::Certs(args) => listeners::run_certs(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Alarms(args) => alarms::run(&args),
        Command::Bans(args) => bans::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Retained(args) => retained::run(&args),
        Command::Users(args) => users::run(args),
        Command::Roles(args) => users::run_roles(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Cheat(args) => cheat::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Man => man::run(),
        Command::Version => version::run(),
    }
}
