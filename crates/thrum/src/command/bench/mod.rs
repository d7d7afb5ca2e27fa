//! `thrum bench`: runs load scenarios against any MQTT broker and reports what it held.

mod agent;
mod arguments;
mod bundle;
mod bundle_verdict;
mod changes;
mod check;
mod compare;
mod complaint;
mod control;
mod engine;
mod folders;
mod import;
mod interrupt;
mod launched;
mod live_lines;
mod live_view;
mod ls;
mod new;
mod overall;
mod page;
mod parent;
mod planned;
mod progress;
mod relay;
mod report;
mod rerun;
mod results;
mod run;
mod scenario_file;
mod scenarios;
mod search;
mod session;
mod shortcut;
mod show;
mod suite;
#[cfg(test)]
mod tests;
mod values;
mod versus;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};

#[cfg(feature = "management")]
pub(crate) use changes::ChangeLine;
use complaint::Complaint;
pub(crate) use parent::PARENT;

/// Examples stand before the options: most people look for a line to copy.
const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const EXAMPLES: &str = "\
Examples:
  thrum bench run p2p-1K                                     against a broker on this machine
  thrum bench run fanout-1-1K --target mqtt://10.0.0.5:1883 --duration 30m
  thrum bench p2p --pairs 200 --rate 10/s --qos 2 --mqtt 5   a scenario made of flags
  thrum bench suite basic --duration 60s                     the four scenarios of the Basic Set
  thrum bench search p2p-1K --p99 5ms                        the highest rate that the broker holds
  thrum bench versus --scenario p2p-1K                       all brokers of this machine compared
  thrum bench scenarios                                      all scenarios";

const EXIT_CODES: &str = "\
Exit codes: 0 kept its promises, 1 did not, 2 wrong usage, 5 unreachable, 6 not stored (disk full),
7 INVALID (the generator was the limit), 8 a bundle is not intact, 99 a threshold was missed, 130 interrupted";

/// Arguments of `thrum bench`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = EXIT_CODES, help_template = TEMPLATE)]
#[command(disable_help_subcommand = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Run one scenario: a name, or a file.
    Run(Box<run::RunCommand>),
    /// Run a set of scenarios one after the other.
    Suite(Box<suite::SuiteArgs>),
    /// Only connections: how fast they are accepted, and their cost.
    Conn(Box<shortcut::ShortcutArgs>),
    /// Only publishers, without subscribers.
    Pub(Box<shortcut::ShortcutArgs>),
    /// Only subscribers, without publishers.
    Sub(Box<shortcut::ShortcutArgs>),
    /// Few publishers, each message to every subscriber.
    Fanout(Box<shortcut::ShortcutArgs>),
    /// Many publishers, every message to every one of few subscribers.
    Fanin(Box<shortcut::ShortcutArgs>),
    /// Pairs of one publisher and one subscriber.
    P2p(Box<shortcut::ShortcutArgs>),
    /// Many publishers, each message to one member of a shared subscription.
    Shared(Box<shortcut::ShortcutArgs>),
    /// Search the highest load that the broker holds.
    Search(Box<search::SearchArgs>),
    /// Start the brokers of this machine in turns and compare them.
    Versus(Box<versus::VersusArgs>),
    /// Measure everything that a page of results shows, and write the page.
    Page(Box<page::PageArgs>),
    /// Start the reference relay: the socket work of a broker and nothing else, to compare with.
    #[command(alias = "limit")]
    Relay(relay::RelayArgs),
    /// Generate load, or measure a broker, for a run that is started on another machine.
    Agent(agent::AgentArgs),
    /// List the scenarios, or show one.
    Scenarios(scenarios::ScenariosArgs),
    /// Write a commented scenario to start from.
    New(new::NewArgs),
    /// Check a scenario and show what it would do, without running it.
    Check(check::CheckArgs),
    /// List the runs that were kept.
    Ls(ls::LsArgs),
    /// Show the summary of a run.
    Show(show::ShowArgs),
    /// Write reports of a run.
    Report(report::ReportArgs),
    /// Compare runs with the first of them.
    Compare(compare::CompareArgs),
    /// Pack a run into one file that can be verified, compared and run again elsewhere.
    Bundle(bundle::BundleArgs),
    /// Check that the parts of a bundle follow from each other: figures, verdict, series, log.
    Verify(bundle::VerifyArgs),
    /// Run the scenario of a bundle again and compare.
    Rerun(Box<rerun::RerunArgs>),
    /// Compare two bundles.
    Diff(bundle::DiffArgs),
    /// Turn the command lines of another tool into a scenario.
    Import(import::ImportArgs),
}

/// Runs `thrum bench`.
///
/// # Errors
/// The terminal or the run folder cannot be written. A failed run is not an error but an exit code.
pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let ended = parent::end_with_parent().map_err(anyhow::Error::from);
    let ended = ended.and_then(|()| dispatch(args.command));
    match ended {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => match error.downcast::<Complaint>() {
            Ok(complaint) => {
                writeln!(std::io::stderr(), "error: {complaint}")?;
                Ok(ExitCode::from(complaint.code()))
            }
            Err(error) => Err(error),
        },
    }
}

fn dispatch(command: BenchCommand) -> anyhow::Result<u8> {
    use shortcut::Form;
    match command {
        BenchCommand::Run(args) => run::run(&args),
        BenchCommand::Suite(args) => suite::run(&args),
        BenchCommand::Conn(args) => shortcut::run(Form::Connections, &args),
        BenchCommand::Pub(args) => shortcut::run(Form::Publishers, &args),
        BenchCommand::Sub(args) => shortcut::run(Form::Subscribers, &args),
        BenchCommand::Fanout(args) => shortcut::run(Form::FanOut, &args),
        BenchCommand::Fanin(args) => shortcut::run(Form::FanIn, &args),
        BenchCommand::P2p(args) => shortcut::run(Form::Pairs, &args),
        BenchCommand::Shared(args) => shortcut::run(Form::Shared, &args),
        BenchCommand::Search(args) => search::run(&args),
        BenchCommand::Versus(args) => versus::run(&args),
        BenchCommand::Page(args) => page::run(&args),
        BenchCommand::Relay(args) => relay::run(&args),
        BenchCommand::Agent(args) => agent::run(&args),
        BenchCommand::Scenarios(args) => scenarios::run(&args),
        BenchCommand::New(args) => new::run(&args),
        BenchCommand::Check(args) => check::run(&args),
        BenchCommand::Ls(args) => ls::run(&args),
        BenchCommand::Show(args) => show::run(&args),
        BenchCommand::Report(args) => report::run(&args),
        BenchCommand::Compare(args) => compare::run(&args),
        BenchCommand::Bundle(args) => bundle::run(&args),
        BenchCommand::Verify(args) => bundle::verify(&args),
        BenchCommand::Rerun(args) => rerun::run(&args),
        BenchCommand::Diff(args) => bundle::diff(&args),
        BenchCommand::Import(args) => import::run(&args),
    }
}
