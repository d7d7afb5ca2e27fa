//! `thrum bench agent`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use thrum_bench::agents::{self, AgentError, AgentOptions, ControlError, Watch};
use thrum_transport::Endpoint;

use super::complaint::{Complaint, FAILED, UNREACHABLE, USAGE};
use super::control::{given_secret, log_in};
use super::interrupt;

const EXAMPLES: &str = "\
Examples, where the run is started:
  thrum bench run p2p-1K --target mqtt://10.0.0.5 --agents 2
It waits for two agents and prints their command and its secret:
  export THRUM_AGENT_SECRET=…
  thrum bench agent --control mqtt://10.0.0.9:18830                 makes load
  thrum bench agent --control mqtt://10.0.0.9:18830 --watch 1883    on the broker's host: measures it";

/// Arguments of `thrum bench agent`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct AgentArgs {
    /// The MQTT 5.0 control broker of coordinator and agents; not the one under test.
    #[arg(long, value_name = "URL")]
    control: String,
    /// File whose first line is the secret that the coordinator prints or was given
    /// [default: `THRUM_AGENT_SECRET`].
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Name of this agent, unique in a run [default: that of the machine].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Threads that make load [default: one per core; none with --watch].
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Measure the broker that listens on this port, or has this process number; may be repeated.
    #[arg(long, value_name = "[TARGET=]PORT|PID", value_parser = watch)]
    watch: Vec<Watch>,
    /// End after one run.
    #[arg(long)]
    once: bool,
}

fn watch(text: &str) -> Result<Watch, String> {
    Watch::parse(text)
        .ok_or_else(|| "write a port or a process number, like 1883 or left=1883".to_owned())
}

/// Takes part in runs until ^C.
pub(super) fn run(args: &AgentArgs) -> anyhow::Result<u8> {
    let mut control = Endpoint::parse(&args.control).map_err(Complaint::usage)?;
    if let Some(secret) = given_secret(args.secret_file.as_deref())? {
        log_in(&mut control, &secret);
    }
    let options = AgentOptions {
        control,
        name: args.name.clone(),
        threads: args.threads,
        watches: args.watch.clone(),
        once: args.once,
        interrupt: interrupt::flag()?,
    };
    let mut log = |text: &str| {
        // Standard error may be closed; the agent continues.
        writeln!(std::io::stderr(), "{text}").ok();
    };
    agents::serve(&options, &mut log).map_err(|error| {
        let code = match error {
            AgentError::Control(ControlError::Unreachable { .. }) => UNREACHABLE,
            AgentError::Control(_) | AgentError::Run(_) => FAILED,
            _ => USAGE,
        };
        Complaint::new(error, code)
    })?;
    Ok(0)
}
