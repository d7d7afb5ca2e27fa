//! `thrum acl test`: the decision of the rules about one client, and the rules that make it.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use thrum_access::rules::Part;
use thrum_access::{
    Admission, Answer, Coverage, Gatekeeper as _, Identity, Resolved, RuleId, Rules,
};
use thrum_auth::AuthService;
use thrum_auth::config::RuleOrder;
use thrum_codec::{QoS, TopicFilter, topic};

use super::Failure;
use crate::config::{self, Request};

/// Exit code of what is not allowed.
const DENIED: u8 = 1;
/// Longest time for reading the user store.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

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

/// The result.
#[derive(Debug)]
struct Found {
    verdict: &'static str,
    is_allowed: bool,
    /// The rules that decided, with their places.
    rules: Vec<String>,
    /// Another system may make the decision.
    asks_others: bool,
}

/// Runs the command.
pub(crate) fn run(args: &AclArgs) -> anyhow::Result<ExitCode> {
    let AclCommand::Test(args) = &args.command;
    args.check()?;
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
    let admission = args.admission(&auth)?;
    let found = args.decide(&auth, &admission);
    let text = if args.json {
        let object = json!({
            "verdict": found.verdict,
            "allowed": found.is_allowed,
            "rules": found.rules,
            "asks_others": found.asks_others,
        });
        format!("{object}\n")
    } else {
        found.text()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(if found.is_allowed { 0 } else { DENIED }))
}

impl TestArgs {
    fn check(&self) -> anyhow::Result<()> {
        let is_good = match self.action {
            Action::Pub => topic::is_valid_name(&self.topic),
            Action::Sub => TopicFilter::parse(&self.topic).is_ok(),
        };
        let kind = match self.action {
            Action::Pub => "topic name (without + and #)",
            Action::Sub => "topic filter",
        };
        let refused = || Failure::usage(format!("{:?} is not a {kind}", self.topic));
        is_good.then_some(()).ok_or_else(refused)
    }

    /// The client's identity in the user store.
    fn admission(&self, auth: &Arc<AuthService>) -> anyhow::Result<Admission> {
        let identity = Identity {
            client_id: self.client_id.as_str().into(),
            username: self.username.as_deref().map(Into::into),
            address: self.address,
            listener: self.listener.as_str().into(),
            ..Identity::default()
        };
        let alone = Admission {
            identity: identity.clone(),
            ..Admission::default()
        };
        let (sender, answers) = mpsc::channel();
        let reply = Box::new(move |answer| drop(sender.send(answer)));
        auth.refresh(Arc::new(identity), reply);
        Ok(match answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(Answer::Admit(admission)) => *admission,
            Ok(Answer::Deny(denial)) => return Err(Failure::usage(denial.detail)),
            // A user of another backend: only its name is known here.
            Ok(Answer::Unchanged | Answer::Challenge { .. }) | Err(_) => alone,
        })
    }

    fn decide(&self, auth: &AuthService, admission: &Admission) -> Found {
        let policy = auth.policy();
        let none = Rules::new();
        let sets: Vec<&Rules> = policy
            .order
            .iter()
            .filter_map(|order| match order {
                RuleOrder::Rules => Some(&*policy.rules),
                RuleOrder::Client => Some(admission.rules.as_deref().unwrap_or(&none)),
                RuleOrder::Remote => None,
            })
            .collect();
        let mut resolved = if admission.identity.is_superuser {
            Resolved::everything()
        } else {
            Resolved::default()
        };
        for rules in &sets {
            // Too many rules deny everything, which is then what is found.
            resolved.add_set(rules, &admission.identity).ok();
        }
        resolved.set_default(Some(policy.allows_by_default));
        let name = |id: RuleId| {
            let rule = sets.get(usize::from(id.set))?.get(id.rule as usize)?;
            Some(format!("{rule}   ({})", rule.source()))
        };
        let asks_others = auth.has_authorizers() && policy.order.contains(&RuleOrder::Remote);
        let qos = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        };
        let otherwise = if admission.identity.is_superuser {
            "superusers may do everything"
        } else if policy.allows_by_default {
            "no rule decides: allowed by default (acl.default)"
        } else {
            "no rule decides: denied by default (acl.default)"
        };
        let (verdict, is_allowed, mut rules) = match self.action {
            Action::Pub => {
                let decision = resolved.publish(&self.topic, qos, self.retain);
                let is_allowed = decision.allowed == Some(true);
                let verdict = if is_allowed { "allowed" } else { "denied" };
                let rules: Vec<String> = decision.rule.and_then(name).into_iter().collect();
                (verdict, is_allowed, rules)
            }
            Action::Sub => {
                let filter = TopicFilter::parse(&self.topic);
                let matched = filter.map_or(self.topic.as_str(), |filter| filter.matched_part());
                let mut rules = Vec::new();
                let record = |part: Part| rules.extend(part.rule.and_then(name));
                let verdict = match resolved.explain_subscribe(matched, qos, record) {
                    Coverage::Allowed => "allowed",
                    Coverage::Denied | Coverage::Undecided => "denied",
                    Coverage::Mixed => "allowed in part",
                };
                (verdict, verdict != "denied", rules)
            }
        };
        if rules.is_empty() {
            rules.push(otherwise.to_owned());
        }
        Found {
            verdict,
            is_allowed,
            rules,
            asks_others,
        }
    }
}

impl Found {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.verdict);
        for rule in &self.rules {
            text.push_str("  ");
            text.push_str(rule);
            text.push('\n');
        }
        if self.asks_others {
            text.push_str(
                "  the broker also asks the services of auth.http, which this command does not\n",
            );
        }
        text
    }
}
