//! `thrum topics`: the topics that messages have now, as a tree with figures.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::Value;
use thrum_figures::{bytes, count, figure, fraction};
use thrum_storage::WallMillis;

use super::Failure;
use super::listing::{self, Cell, Column, Fetched, ListArgs, Listing, Question};
use super::running::{Broker, Form, Method, Output, Running, encoded};
use super::shown::{NOTHING, json_line, name};

/// Levels of a tree.
const DEPTH_MAX: u8 = 20;
/// Topics of a tree.
const TOPICS_MAX: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  thrum topics ls                          the first levels
  thrum topics ls site/a --top 10          the busiest below a level
  thrum topics watch site/a --sort rate --reverse
  thrum topics tree site --depth 3
  thrum topics get site/a/state

The broker observes topics while somebody looks: figures begin with the first look, and end a while after the last one.";

/// Arguments of `thrum topics`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct TopicsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the topics right below a level.
    Ls(LsArgs),
    /// List them again and again.
    Watch(LsArgs),
    /// Show several levels as a tree.
    Tree(TreeArgs),
    /// Show one topic: its last messages, its publishers, how many subscribe to it.
    Get(GetArgs),
}

/// Arguments of `thrum topics ls`.
#[derive(Debug, Args)]
struct LsArgs {
    /// The level, as site/a; without it the first levels.
    under: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    list: ListArgs,
}

/// Arguments of `thrum topics tree`.
#[derive(Debug, Args)]
struct TreeArgs {
    /// The level, as site/a; without it the first levels.
    under: Option<String>,
    /// Levels that are shown.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(DEPTH_MAX)))]
    depth: u8,
    /// Topics of each level, the busiest first.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    width: u16,
    #[command(flatten)]
    running: Running,
}

/// Arguments of `thrum topics get`.
#[derive(Debug, Args)]
struct GetArgs {
    /// The topic.
    topic: String,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// The observation begins with the first look, and ends a minute after the last.
const NOT_SEEN: &str =
    "no message was seen there since this look or the one before: ask again while messages come";

static TOPICS: Listing = Listing {
    member: "topics",
    columns: &[
        Column::new("name", "LEVEL", Cell::Text(32)),
        Column::new("children", "BELOW", Cell::Count),
        Column::new("messages", "MESSAGES", Cell::Count),
        Column::new("messages_per_second", "RATE", Cell::Own(rate)),
        Column::wide("payload_bytes", "BYTES", Cell::Bytes),
        Column::new("last_at", "LAST", Cell::Text(20)),
        Column::wide("topic", "TOPIC", Cell::Text(0)),
        Column::new("value.payload", "VALUE", Cell::Own(value)),
    ],
    one: "topic",
    many: "topics",
    aliases: &[
        ("level", "name"),
        ("rate", "messages_per_second"),
        ("bytes", "payload_bytes"),
        ("last", "last_at"),
    ],
    identity: "",
    sum: "",
};

/// Runs a command.
pub(crate) fn run(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => list(args, &args.list)?,
        Action::Watch(args) => list(args, &args.list.watching())?,
        Action::Tree(args) => tree(args)?,
        Action::Get(args) => get(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &LsArgs, list: &ListArgs) -> anyhow::Result<()> {
    let usual = if list.has_top() {
        "messages_per_second"
    } else {
        "name"
    };
    let list = list.sorted_by(usual);
    let key = list.sort_key(&TOPICS).unwrap_or_default();
    // The words of the route.
    let key = match &*key {
        "messages_per_second" => "rate",
        "payload_bytes" => "bytes",
        "last_at" => "last",
        key => key,
    };
    let question = Question::new("/topics")
        .with("under", args.under.as_deref())
        .sorted(key, list.is_descending())
        .with_notes(notes);
    listing::run(&args.running, &TOPICS, &question, &list)
}

/// Messages whose topics found no room, and why there may be no topic.
fn notes(fetched: &Fetched) -> Vec<String> {
    let mut notes = Vec::new();
    if fetched.rows.is_empty() {
        notes.push(NOT_SEEN.to_owned());
    }
    let messages = fetched.others.get("others").copied().unwrap_or(0);
    if messages > 0 {
        notes.push(format!(
            "{} messages had topics that found no room in the tree",
            count(messages)
        ));
    }
    notes
}

fn rate(topic: &Value, _now: WallMillis) -> String {
    let rate = topic.get("messages_per_second").and_then(Value::as_f64);
    rate.map_or_else(|| NOTHING.to_owned(), figure)
}

/// The last message, as far as it is text.
fn value(topic: &Value, _now: WallMillis) -> String {
    let Some(message) = topic.get("value").filter(|value| !value.is_null()) else {
        return NOTHING.to_owned();
    };
    if let Some(text) = message.get("payload").and_then(Value::as_str) {
        return listing::cut(text, 40);
    }
    let size = message.get("payload_bytes").and_then(Value::as_u64);
    bytes(fraction(size.unwrap_or(0)))
}

fn tree(args: &TreeArgs) -> anyhow::Result<()> {
    let mut tree = Tree {
        broker: args.running.broker()?,
        depth: args.depth,
        width: args.width,
        printed: 0,
    };
    tree.print(args.under.as_deref(), 0)?;
    if tree.printed == 0 {
        writeln!(std::io::stderr(), "{NOT_SEEN}")?;
    }
    Ok(())
}

struct Tree {
    broker: Broker,
    depth: u8,
    width: u16,
    printed: usize,
}

impl Tree {
    /// Prints the topics below a level, each followed by those below it.
    fn print(&mut self, under: Option<&str>, level: u8) -> anyhow::Result<()> {
        if level >= self.depth || self.printed >= TOPICS_MAX {
            return Ok(());
        }
        let under = under.map(|under| format!("&under={}", encoded(under)));
        let path = format!(
            "/topics?sort=rate&descending=true&limit={}{}",
            self.width,
            under.unwrap_or_default()
        );
        let page: Value = self.broker.call(Method::Get, &path, "")?;
        let topics = page.get("topics").and_then(Value::as_array);
        for topic in topics.into_iter().flatten() {
            self.printed += 1;
            let text = |key: &str| topic.get(key).and_then(Value::as_str).unwrap_or_default();
            let indent = "  ".repeat(level.into());
            let line = format!(
                "{indent}{}  {}/s  {}",
                text("name"),
                rate(topic, 0),
                value(topic, 0)
            );
            writeln!(std::io::stdout(), "{}", name(line.trim_end_matches("  -")))?;
            let children = topic.get("children").and_then(Value::as_u64);
            if children.unwrap_or(0) > 0 {
                // A level with a slash at its end is not taken for the level above.
                let below = format!("{}/", text("topic"));
                self.print(Some(&below), level + 1)?;
            }
        }
        if page.get("next").is_some_and(|next| !next.is_null()) {
            let indent = "  ".repeat(level.into());
            writeln!(std::io::stdout(), "{indent}… (--width shows more)")?;
        }
        Ok(())
    }
}

/// Whether somebody uses a topic, or has used it while it was observed.
fn is_known(topic: &Value) -> bool {
    topic.as_object().into_iter().flatten().any(|(key, value)| {
        let is_something = match value {
            Value::Bool(is_so) => *is_so,
            Value::Number(number) => number.as_u64() != Some(0),
            Value::Array(all) => !all.is_empty(),
            Value::Object(_) => true,
            Value::Null | Value::String(_) => false,
        };
        key != "topic" && is_something
    })
}

fn get(args: &GetArgs) -> anyhow::Result<()> {
    let path = format!("/topics/topic?topic={}", encoded(&args.topic));
    let found: Value = args.running.ask(Method::Get, &path)?;
    if !is_known(&found) {
        let topic = &args.topic;
        return Err(Failure::with_code(
            Failure::NOT_FOUND,
            format!("the topic {topic:?} has no subscriber and no retained message; {NOT_SEEN}"),
        ));
    }
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        writeln!(out, "{}", json_line(&found)?)?;
        return Ok(());
    }
    let number = |key: &str| found.get(key).and_then(Value::as_u64).unwrap_or(0);
    let figures = found.get("figures").filter(|figures| !figures.is_null());
    let messages = figures.and_then(|figures| figures.get("messages")?.as_u64());
    let is_retained = found.get("retained") == Some(&Value::Bool(true));
    for (heading, value) in [
        ("topic", name(&args.topic).into_owned()),
        (
            "messages",
            messages.map_or_else(|| NOTHING.to_owned(), count),
        ),
        (
            "rate",
            figures.map_or_else(|| NOTHING.to_owned(), |one| rate(one, 0)),
        ),
        ("subscribers", count(number("subscribers"))),
        ("groups", count(number("groups"))),
        (
            "retained",
            if is_retained { "yes" } else { "no" }.to_owned(),
        ),
    ] {
        writeln!(out, "{heading:<12} {value}")?;
    }
    for (heading, key, value_key) in [
        ("last messages", "values", "payload"),
        ("publishers", "publishers", "client_id"),
    ] {
        let list = found.get(key).and_then(Value::as_array);
        let list = list.map(Vec::as_slice).unwrap_or_default();
        if !list.is_empty() {
            writeln!(out, "\n{heading}")?;
        }
        for one in list {
            let text = |key: &str| one.get(key).and_then(Value::as_str);
            let left = text("at").map(ToOwned::to_owned);
            let left = left.or_else(|| one.get("messages")?.as_u64().map(count));
            let right = text(value_key).unwrap_or(NOTHING);
            writeln!(out, "  {}  {}", left.unwrap_or_default(), name(right))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_topic_is_known_by_its_messages_subscribers_or_retained_message() {
        let nothing = json!({
            "topic": "a", "figures": null, "values": [], "publishers": [], "subscribers": 0,
            "groups": 0, "retained": false, "observed_since": "2026-11-27T00:00:00Z",
        });
        assert!(!is_known(&nothing));
        for (key, value) in [
            ("figures", json!({ "messages": 0 })),
            ("values", json!([1])),
            ("subscribers", json!(1)),
            ("groups", json!(1)),
            ("retained", json!(true)),
        ] {
            let mut known = nothing.clone();
            known[key] = value;
            assert!(is_known(&known), "{key}");
        }
    }
}
