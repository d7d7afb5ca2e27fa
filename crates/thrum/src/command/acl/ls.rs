//! `thrum acl ls`.

use std::io::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use thrum_access::Identity;
use thrum_auth::AuthService;

use super::place::{Place, Rules, admission};
use crate::command::listing::{self, Cell, Column, FilterArgs, ListArgs, Listing, Row, View};
#[cfg(feature = "management")]
use crate::command::listing::{Fetched, Question};

const NOTES: &str = "\
The first rule that matches a topic decides. OF is rules for those of all clients, and client for the client's own, and those of its groups and roles. \
A client that has a session has the rights of its session, unless --username is given.";

/// Arguments of `thrum acl ls`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct LsArgs {
    /// The rules about this client, too.
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// The rules about this user of the user store, too.
    #[arg(short, long, value_name = "NAME")]
    username: Option<String>,
    /// Address of the client.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Name of the client's listener [default: mqtt].
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static RULES: Listing = Listing {
    member: "rules",
    columns: &[
        Column::new("position", "NUMBER", Cell::Text(0)),
        Column::new("of", "OF", Cell::Text(0)),
        Column::new("rule", "RULE", Cell::Text(0)),
        Column::new("source", "WHERE", Cell::Text(0)),
    ],
    one: "rule",
    many: "rules",
    aliases: &[("number", "position"), ("where", "source")],
    identity: "",
    sum: "",
};

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let list = args.list.unlimited();
    let view = View::filtered(&RULES, &list, &args.filter);
    match args.place.rules()? {
        Rules::Files(auth) => listing::run_rows(&view, || args.rows(&auth))?,
        #[cfg(feature = "management")]
        Rules::Broker(broker) => {
            let address = args.address.map(|address| address.to_string());
            let question = Question::new("/access/rules")
                .with("client_id", args.client.as_deref())
                .with("user", args.username.as_deref())
                .with("address", address)
                .with("listener", args.listener.as_deref())
                .with_notes(otherwise);
            listing::run_at(&broker, &view, &question)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl LsArgs {
    fn rows(&self, auth: &AuthService) -> anyhow::Result<Vec<Row>> {
        let identity = Identity {
            client_id: self.client.as_deref().unwrap_or_default().into(),
            username: self.username.as_deref().map(Into::into),
            address: self.address,
            listener: self.listener.as_deref().unwrap_or(super::LISTENER).into(),
            ..Identity::default()
        };
        let is_of_all = self.client.is_none() && self.username.is_none();
        let client = if is_of_all {
            None
        } else {
            Some(admission(auth, identity)?.0)
        };
        let (rules, _) = auth.rules_in_order(client.as_ref(), 0, usize::MAX);
        let rows = rules.iter().enumerate().map(|(place, rule)| {
            Row::of(&json!({
                "position": place + 1,
                "rule": rule.text,
                "of": rule.of,
                "source": rule.source,
            }))
        });
        let rows = rows.collect::<serde_json::Result<_>>()?;
        let is_allowed = auth.policy().allows_by_default;
        let otherwise = if is_allowed { "allowed" } else { "denied" };
        writeln!(std::io::stderr(), "{}", words(otherwise))?;
        Ok(rows)
    }
}

#[cfg(feature = "management")]
fn otherwise(fetched: &Fetched) -> Vec<String> {
    let decision = fetched.texts.get("otherwise");
    decision
        .map(|decision| words(decision))
        .into_iter()
        .collect()
}

fn words(decision: &str) -> String {
    format!("what no rule matches is {decision}")
}
