//! `thrum acl test`: the decision of the rules about one client, and the rules that make it.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use thrum_access::Identity;
use thrum_auth::{AccessQuestion, AccessTested, AuthService};
use thrum_codec::QoS;

use super::Failure;
use crate::config::{self, Request};

/// Exit code of what is not allowed.
const DENIED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  thrum acl test meter-7 pub meters/meter-7/power -u meter
  thrum acl test dashboard sub 'meters/#' -u ops -c thrum.toml
  thrum acl test meter-7 pub meters/meter-7/power -u meter --qos 1 --retain --json

Exit code: 0 allowed (all of it or, for a subscription, a part), 1 denied, 2 wrong usage or configuration.";

/// Arguments of `thrum acl`.
#[derive(Debug, Args)]
pub(crate) struct AclArgs {
    #[command(subcommand)]
    command: AclCommand,
}

#[derive(Debug, Subcommand)]
enum AclCommand {
    /// Test what a client may publish and subscribe to, and show the deciding rule.
    Test(TestArgs),
}

/// Arguments of `thrum acl test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct TestArgs {
    /// Client identifier.
    #[arg(value_name = "CLIENT")]
    client_id: String,
    /// The action to test.
    #[arg(value_enum)]
    action: Action,
    /// Topic name, or for sub a topic filter.
    topic: String,
    /// User name; its roles, groups and rules are taken from the user store. Without one the client
    /// is anonymous.
    #[arg(short, long, value_name = "NAME")]
    username: Option<String>,
    /// Address of the client.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Name of the client's listener.
    #[arg(long, value_name = "NAME", default_value = "mqtt")]
    listener: String,
    /// Quality of service.
    #[arg(
        long,
        value_name = "0|1|2",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=2),
    )]
    qos: u8,
    /// The message has the retain flag.
    #[arg(long)]
    retain: bool,
    /// Configuration of the broker; without it /etc/thrum/thrum.toml.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory of the broker with the user store, in place of the one that the configuration
    /// names.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Publish to a topic.
    Pub,
    /// Subscribe to a filter.
    Sub,
}

/// Runs the command.
pub(crate) fn run(args: &AclArgs) -> anyhow::Result<ExitCode> {
    let AclCommand::Test(args) = &args.command;
    let question = args.question();
    question.check().map_err(Failure::usage)?;
    let data_dir = args.data_dir.iter();
    let request = Request {
        file: args.config.clone(),
        flags: data_dir
            .map(|folder| {
                let folder = folder.to_string_lossy().into_owned();
                ("node.data_dir", folder, "--data-dir")
            })
            .collect(),
        ..Request::default()
    };
    let loaded = config::load(&request).map_err(Failure::usage)?;
    let auth = AuthService::start(&loaded.config.access()).map_err(Failure::usage)?;
    let admission = auth.admission_of(args.identity());
    let admission = admission.map_err(Failure::usage)?;
    let found = auth.test_access(&admission, &question);
    let text = if args.json {
        let object = json!({
            "verdict": found.verdict,
            "allowed": found.is_allowed,
            "rules": rules(&found),
            "asks_others": found.asks_others,
        });
        format!("{object}\n")
    } else {
        text(&found)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(if found.is_allowed { 0 } else { DENIED }))
}

impl TestArgs {
    fn question(&self) -> AccessQuestion {
        let qos = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        };
        match self.action {
            Action::Pub => AccessQuestion::Publish {
                topic: self.topic.clone(),
                qos,
                retain: self.retain,
            },
            Action::Sub => AccessQuestion::Subscribe {
                filter: self.topic.clone(),
                qos,
            },
        }
    }

    fn identity(&self) -> Identity {
        Identity {
            client_id: self.client_id.as_str().into(),
            username: self.username.as_deref().map(Into::into),
            address: self.address,
            listener: self.listener.as_str().into(),
            ..Identity::default()
        }
    }
}

/// The rules that decided with their places, or why none did.
fn rules(found: &AccessTested) -> Vec<String> {
    let rules = found.rules.iter();
    let rules = rules.map(|rule| format!("{}   ({})", rule.text, rule.source));
    rules
        .chain(found.otherwise.map(ToOwned::to_owned))
        .collect()
}

fn text(found: &AccessTested) -> String {
    let mut text = format!("{}\n", found.verdict);
    for rule in rules(found) {
        text.push_str("  ");
        text.push_str(&rule);
        text.push('\n');
    }
    if found.asks_others {
        text.push_str(
            "  the broker also asks the services of auth.http, which this command does not\n",
        );
    }
    text
}
