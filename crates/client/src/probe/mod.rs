//! `thrum probe`: what a broker supports, found out by using it.

mod checks;
mod checks_5;
mod finding;
mod report;
mod talk;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thrum_codec::Version;
use thrum_protocol::client::ClientOptions;

use crate::clock::Clock;
use crate::target::Target;
use crate::{ConnectionArgs, Defaults, Plan, Stop, finish, print_help};
use finding::{Finding, Findings, Outcome};
use talk::{Agreement, Talk};

const EXAMPLES: &str = "\
Examples:
  thrum probe mqtt://test.example:1883
  thrum probe wss://broker.example/mqtt -u me --password-file pw -o json
  thrum probe -h localhost -p 1883

Clients connect, subscribe and publish below thrum-probe/; the retained message of the probe is removed at its end. A broker that denies these topics is \
reported as denying, not as unable: --prefix names others.";

/// Find out what a broker supports.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct ProbeArgs {
    /// URL of the broker, as -L takes it [default: `mqtt://localhost:1883`]
    #[arg(value_name = "URL", conflicts_with_all = ["url", "host", "port", "unix"])]
    broker: Option<String>,

    /// Form of the findings
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORM",
        value_enum,
        default_value_t
    )]
    form: Form,

    /// Topics of the probe begin so
    #[arg(long, value_name = "TOPIC", default_value = "thrum-probe")]
    prefix: String,

    /// Longest time to wait for one answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Form of the findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A table.
    #[default]
    Table,
    /// One JSON object.
    Json,
}

/// Where the probe goes, and with what.
#[derive(Debug)]
struct Probe {
    target: Target,
    /// Without version.
    options: ClientOptions,
    /// Beginning of the topics: no two probes have the same.
    prefix: String,
    /// Beginning of client identifiers.
    id: String,
    timeout: Duration,
    clock: Clock,
}

/// Probes a broker and prints the findings.
///
/// # Errors
/// Standard output cannot be written; failures of the command itself are its exit code.
pub fn run(mut args: ProbeArgs) -> anyhow::Result<ExitCode> {
    if args.connection.wants_help() {
        return print_help::<ProbeArgs>("thrum probe");
    }
    let is_named = args.broker.is_some();
    if let Some(url) = args.broker.take() {
        args.connection.set_url(url);
    }
    let mut probed = probe(&args);
    if let (Err(stop), true) = (&mut probed, is_named) {
        // The URL was given without the flag that the message names.
        stop.message = stop.message.trim_start_matches("-L: ").to_owned();
    }
    Ok(finish(probed, args.connection.is_quiet()))
}

fn probe(args: &ProbeArgs) -> Result<(), Stop> {
    let defaults = Defaults {
        id_prefix: "thrum-probe-",
        version: Version::V311,
        needs_5: None,
    };
    let plan = Plan::new(&args.connection, defaults)?;
    crate::check_topic(&args.prefix)?;
    let probe = Probe {
        prefix: format!("{}/{}", args.prefix, plan.client_id),
        id: plan.client_id,
        options: ClientOptions {
            clean_start: true,
            will: None,
            ..plan.options
        },
        target: plan.target,
        timeout: Duration::from_secs(args.timeout),
        clock: Clock::start(),
    };
    let findings = probe.look()?;
    report::print(&probe.target.place(), &findings, args.form == Form::Json)
}

impl Probe {
    /// Everything, in the order of the report.
    fn look(&self) -> Result<Findings, Stop> {
        let mut findings = Findings::default();
        let mut best = None;
        let mut refused = None;
        for version in [Version::V5, Version::V311, Version::V31] {
            match self.connect(version, "v") {
                Ok((talk, agreement)) => {
                    talk.end();
                    findings.add(version_finding(version, &agreement));
                    best = best.or(Some((version, agreement)));
                }
                Err(stop) => {
                    let name = version_name(version);
                    findings.add(Finding::new(name, stop.as_outcome(), stop.message()));
                    refused = refused.or(Some(stop));
                }
            }
        }
        let Some((version, agreement)) = best else {
            // All of them: the broker is not there, or it lets nobody in.
            return Err(refused.unwrap_or_else(|| Stop::failed("no version was tried")));
        };
        findings.version = Some(version);
        findings.security.clone_from(&agreement.security);
        checks::run(self, version, &mut findings);
        if version == Version::V5 {
            checks_5::run(self, &agreement, &mut findings);
        }
        Ok(findings)
    }

    /// Options of a client of this version.
    fn options(&self, version: Version) -> ClientOptions {
        ClientOptions {
            version,
            ..self.options.clone()
        }
    }

    /// A client of its own, named by the purpose.
    fn connect(&self, version: Version, purpose: &str) -> Result<(Talk, Agreement), Stop> {
        self.connect_with(&self.options(version), purpose)
    }

    fn connect_with(
        &self,
        options: &ClientOptions,
        purpose: &str,
    ) -> Result<(Talk, Agreement), Stop> {
        // 23 characters are what a broker of 3.1 has to take.
        let id: String = format!("{purpose}{}", self.id).chars().take(23).collect();
        Talk::connect(self, options, &id)
    }

    fn topic(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }
}

const fn version_name(version: Version) -> &'static str {
    match version {
        Version::V31 => "MQTT 3.1",
        Version::V311 => "MQTT 3.1.1",
        Version::V5 => "MQTT 5.0",
    }
}

fn version_finding(version: Version, agreement: &Agreement) -> Finding {
    let micros = agreement.answered_after.as_micros();
    let detail = format!(
        "accepted after {}.{:01} ms",
        micros / 1000,
        micros % 1000 / 100
    );
    Finding::new(version_name(version), Outcome::Yes, &detail)
}
