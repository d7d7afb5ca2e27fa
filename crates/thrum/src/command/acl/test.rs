//! `thrum acl test`: the decision of the rules about one client, and the rules that make it.

use std::io::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use thrum_access::{Admission, Identity};
use thrum_auth::{AccessQuestion, AccessTested};
use thrum_codec::QoS;

use super::place::{Place, Rules, admission};
use crate::command::Failure;
use crate::command::output::{Form, Output};
#[cfg(feature = "management")]
use crate::command::running::{Broker, Method};
use crate::command::shown::{json_line, name};

/// Exit code of what is not allowed.
const DENIED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  thrum acl test meter-7 pub meters/meter-7/power -u meter
  thrum acl test dashboard sub 'meters/#' -u ops -c thrum.toml
  thrum acl test meter-7 pub meters/meter-7/power -u meter --qos 1 --retain --json

Exit code: 0 allowed (all of it or, for a subscription, a part), 1 denied, 2 wrong usage or configuration.";

/// Arguments of `thrum acl test`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TestArgs {
    /// Client identifier. The rights of a client that has a session are those of its session,
    /// unless --username is given.
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
    /// Name of the client's listener [default: mqtt].
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
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
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
    /// The same as -o json.
    #[arg(long, conflicts_with = "form")]
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
pub(super) fn run(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let question = args.question();
    question.check().map_err(Failure::usage)?;
    let found = match args.place.rules()? {
        Rules::Files(auth) => {
            let (admission, rights_of) = admission(&auth, args.identity())?;
            let tested = auth.test_access(&admission, &question);
            decision(&tested, &admission, rights_of)
        }
        #[cfg(feature = "management")]
        Rules::Broker(broker) => args.ask(&broker)?,
    };
    let text = if args.json || args.output.form == Form::Json {
        format!("{}\n", json_line(&found)?)
    } else {
        text(&found, args.username.as_deref())
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let is_allowed = found.get("allowed") == Some(&Value::Bool(true));
    Ok(ExitCode::from(if is_allowed { 0 } else { DENIED }))
}

impl TestArgs {
    #[cfg(feature = "management")]
    fn ask(&self, broker: &Broker) -> anyhow::Result<Value> {
        let action = match self.action {
            Action::Pub => "publish",
            Action::Sub => "subscribe",
        };
        let question = json!({
            "client_id": self.client_id,
            "user": self.username,
            "address": self.address,
            "listener": self.listener,
            "action": action,
            "topic": self.topic,
            "qos": self.qos,
            "retain": self.retain,
        });
        broker.call(Method::Post, "/access/test", &question.to_string())
    }

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
            listener: self.listener.as_deref().unwrap_or(super::LISTENER).into(),
            ..Identity::default()
        }
    }
}

/// The decision as a running broker tells it.
fn decision(found: &AccessTested, admission: &Admission, rights_of: &str) -> Value {
    let rules = found.rules.iter();
    let rules = rules.map(|rule| json!({ "rule": rule.text, "source": rule.source }));
    json!({
        "allowed": found.is_allowed,
        "verdict": found.verdict,
        "rules": rules.collect::<Vec<_>>(),
        "otherwise": found.otherwise,
        "asks_others": found.asks_others,
        "rights_of": rights_of,
        "roles": admission.identity.roles,
        "groups": admission.identity.groups,
    })
}

/// The verdict, the rules that decided with their places or why none did, and whose rights these
/// are.
fn text(found: &Value, username: Option<&str>) -> String {
    let text = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        name(text.unwrap_or_default()).into_owned()
    };
    let mut lines = vec![text(found, "verdict")];
    let rules = found.get("rules").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        lines.push(format!(
            "  {}   ({})",
            text(rule, "rule"),
            text(rule, "source")
        ));
    }
    let otherwise = text(found, "otherwise");
    if !otherwise.is_empty() {
        lines.push(format!("  {otherwise}"));
    }
    if text(found, "rights_of") == "session" {
        lines.push("  these are the rights of its session".to_owned());
    }
    if let Some(username) = username.filter(|_| text(found, "rights_of") == "name") {
        lines.push(format!(
            "  the user store has no user {username:?}: only rules for that name, and for all, count"
        ));
    }
    if found.get("asks_others") == Some(&Value::Bool(true)) {
        let others =
            "  the broker also asks the services of auth.http, which this command does not";
        lines.push(others.to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}
