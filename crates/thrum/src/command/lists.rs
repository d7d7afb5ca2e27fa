//! `thrum subs`, `groups`, `drops` and `slow`: lists of a running broker that need no more than
//! their columns.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::clients::CLIENTS;
use super::listing::{self, Cell, Column, Fetched, FilterArgs, ListArgs, Listing, Question};
use super::running::Running;

/// Arguments of a command whose only action is a list.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct SubsArgs {
    #[command(subcommand)]
    action: SubsAction,
}

#[derive(Debug, Subcommand)]
enum SubsAction {
    /// List subscriptions, by client identifier and filter.
    Ls(SubsLsArgs),
}

/// Arguments of `thrum subs ls`.
#[derive(Debug, Args)]
struct SubsLsArgs {
    /// Only subscriptions to exactly this topic filter.
    #[arg(long, value_name = "FILTER")]
    exactly: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static SUBSCRIPTIONS: Listing = Listing {
    member: "subscriptions",
    columns: &[
        Column::new("client_id", "CLIENT ID", Cell::Text(32)),
        Column::new("qos", "QOS", Cell::Text(0)),
        Column::wide("no_local", "NO LOCAL", Cell::Text(0)),
        Column::wide("retain_as_published", "RETAIN AS PUBLISHED", Cell::Text(0)),
        Column::wide("retain_handling", "RETAIN HANDLING", Cell::Text(0)),
        Column::wide("identifier", "IDENTIFIER", Cell::Text(0)),
        Column::new("filter", "FILTER", Cell::Text(0)),
    ],
    one: "subscription",
    many: "subscriptions",
    aliases: &[
        ("client", "client_id"),
        ("id", "client_id"),
        ("topic", "filter"),
    ],
    identity: "",
    sum: "",
};

/// Lists subscriptions.
pub(crate) fn subs(args: &SubsArgs) -> anyhow::Result<ExitCode> {
    let SubsAction::Ls(args) = &args.action;
    let question = Question::new("/subscriptions").with("filter", args.exactly.as_deref());
    listing::run_filtered(
        &args.running,
        &SUBSCRIPTIONS,
        &question,
        &args.list,
        &args.filter,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Arguments of `thrum groups`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    action: GroupsAction,
}

#[derive(Debug, Subcommand)]
enum GroupsAction {
    /// List shared groups with their lag.
    Ls(GroupsLsArgs),
}

/// Arguments of `thrum groups ls`.
#[derive(Debug, Args)]
struct GroupsLsArgs {
    /// Only groups of this name; * stands for any characters.
    #[arg(long, value_name = "PATTERN")]
    group: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static GROUPS: Listing = Listing {
    member: "groups",
    columns: &[
        Column::new("group", "GROUP", Cell::Text(32)),
        Column::new("strategy", "STRATEGY", Cell::Text(0)),
        Column::new("members", "MEMBERS", Cell::Count),
        Column::new("connected", "CONNECTED", Cell::Count),
        Column::new("queued_messages", "QUEUED", Cell::Count),
        Column::new("inflight", "INFLIGHT", Cell::Count),
        Column::new("filter", "FILTER", Cell::Text(0)),
    ],
    one: "group",
    many: "groups",
    aliases: &[("queue", "queued_messages"), ("lag", "queued_messages")],
    identity: "",
    sum: "",
};

/// Lists shared groups.
pub(crate) fn groups(args: &GroupsArgs) -> anyhow::Result<ExitCode> {
    let GroupsAction::Ls(args) = &args.action;
    let question = Question::new("/groups").with("group", args.group.as_deref());
    listing::run_filtered(&args.running, &GROUPS, &question, &args.list, &args.filter)?;
    Ok(ExitCode::SUCCESS)
}

const DROPS_NOTES: &str = "\
The most frequent come first. docs/guide/sys-topics.md lists the reasons; thrum explain drops CLIENT says what would happen to the next message.";

/// Arguments of `thrum drops`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, after_help = DROPS_NOTES)]
pub(crate) struct DropsArgs {
    #[command(subcommand)]
    action: DropsAction,
}

#[derive(Debug, Subcommand)]
enum DropsAction {
    /// List dropped messages by reason, client and topic.
    Ls(DropsLsArgs),
    /// List them again and again.
    Watch(DropsLsArgs),
}

/// Arguments of `thrum drops ls`.
#[derive(Debug, Args)]
struct DropsLsArgs {
    /// Only messages that were dropped for this reason.
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Only messages for this client; * stands for any characters.
    #[arg(long, value_name = "PATTERN")]
    client: Option<String>,
    /// Only messages whose topic matches this filter.
    #[arg(long, value_name = "FILTER")]
    topic: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static DROPS: Listing = Listing {
    member: "drops",
    columns: &[
        Column::new("messages", "MESSAGES", Cell::Count),
        Column::new("reason", "REASON", Cell::Text(0)),
        Column::new("client_id", "CLIENT ID", Cell::Text(32)),
        Column::new("last_at", "LAST", Cell::Text(20)),
        Column::wide("at_most_less", "AT MOST LESS", Cell::Count),
        Column::new("topic", "TOPIC", Cell::Text(0)),
    ],
    one: "row",
    many: "rows",
    aliases: &[("client", "client_id"), ("last", "last_at")],
    identity: "",
    sum: "",
};

/// Lists dropped messages.
pub(crate) fn drops(args: &DropsArgs) -> anyhow::Result<ExitCode> {
    let (args, list) = match &args.action {
        DropsAction::Ls(args) => (args, args.list.clone()),
        DropsAction::Watch(args) => (args, args.list.watching()),
    };
    let question = Question::new("/drops")
        .with("reason", args.reason.as_deref())
        .with("client", args.client.as_deref())
        .with("topic", args.topic.as_deref())
        .with_notes(left_out);
    listing::run_filtered(&args.running, &DROPS, &question, &list, &args.filter)?;
    Ok(ExitCode::SUCCESS)
}

/// Counters that made room for others.
fn left_out(fetched: &Fetched) -> Vec<String> {
    let count = fetched.others.get("left_out").copied().unwrap_or(0);
    if fetched.rows.is_empty() && count == 0 {
        return vec!["no message that this asks for was dropped since the start".to_owned()];
    }
    let note = format!(
        "{count} rarer combinations had to make room; MESSAGES may be too high by AT MOST LESS (-o wide)"
    );
    if count > 0 { vec![note] } else { Vec::new() }
}

const SLOW_NOTES: &str = "\
A client is slow if it does not take its messages as fast as they come: its output is congested, or messages wait because it has not acknowledged \
others. The worst comes first.";

/// Arguments of `thrum slow`.
#[derive(Debug, Args)]
#[command(after_help = SLOW_NOTES)]
pub(crate) struct SlowArgs {
    /// What the worst is ranked by.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    by: Ranking,
    /// Only clients for which all of these terms hold too, as 'user=alice'.
    #[arg(long, value_name = "TERMS")]
    filter: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Ranking {
    /// Messages in the queue.
    #[default]
    Queue,
    /// Bytes in the queue.
    Bytes,
    /// Age of the oldest message in the queue.
    Oldest,
    /// Age of the oldest message that was not acknowledged.
    Unacknowledged,
}

/// Lists slow clients.
pub(crate) fn slow(args: &SlowArgs) -> anyhow::Result<ExitCode> {
    let by = match args.by {
        Ranking::Queue => "queue",
        Ranking::Bytes => "bytes",
        Ranking::Oldest => "oldest",
        Ranking::Unacknowledged => "unacknowledged",
    };
    let question = Question::new("/slow")
        .with("by", Some(by))
        .with("filter", args.filter.as_deref());
    listing::run(&args.running, &CLIENTS, &question, &args.list)?;
    Ok(ExitCode::SUCCESS)
}
