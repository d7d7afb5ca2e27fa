//! `thrum clients ls`.

use std::io::Write as _;

use clap::{Args, ValueEnum};
use thrum_figures::count;
use thrum_management::api::{Client, ClientPage};

use super::row::{HEADINGS, columns};
use super::whole::Whole;
use crate::command::running::{Form, Method, Output, Running, encoded};
use crate::command::shown::{json_line, now, table};

/// Clients of a page: the limit of the broker.
const PAGE: usize = 1000;

const NOTES: &str = "\
IN and OUT are messages from and to the client on its connection, or the last one. -o json also has the protocol version, the expiry, bytes in the \
queue and messages in flight.";

/// Arguments of `thrum clients ls`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    /// Only clients for which all of these terms hold, as 'user=alice queue>100 state=connected'.
    #[arg(long, value_name = "TERMS")]
    filter: Option<String>,
    /// Only this client identifier; * stands for any characters.
    #[arg(long, value_name = "PATTERN")]
    client: Option<String>,
    /// Only clients of this user; * stands for any characters.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only clients at this address or in this network.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Only clients that are connected.
    #[arg(long, conflicts_with = "away")]
    connected: bool,
    /// Only clients that are away.
    #[arg(long)]
    away: bool,
    /// Only clients with a subscription to exactly this filter.
    #[arg(long, value_name = "FILTER")]
    subscribed: Option<String>,
    /// Order of the list.
    #[arg(long, value_name = "KEY", value_enum, default_value_t)]
    sort: Sort,
    /// From the highest to the lowest.
    #[arg(long)]
    reverse: bool,
    /// Most clients that are listed.
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "all",
          value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// List all of them.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: Output,
}

/// Order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// Client identifier.
    #[default]
    ClientId,
    /// When the connection began; clients that are away come last.
    ConnectedAt,
    /// Messages in the queue.
    QueuedMessages,
    /// Bytes in the queue.
    QueuedBytes,
    /// Subscriptions.
    Subscriptions,
    /// Messages from the client.
    MessagesReceived,
    /// Messages to the client.
    MessagesSent,
}

impl Sort {
    const fn parameter(self) -> &'static str {
        match self {
            Self::ClientId => "client_id",
            Self::ConnectedAt => "connected_at",
            Self::QueuedMessages => "queued_messages",
            Self::QueuedBytes => "queued_bytes",
            Self::Subscriptions => "subscriptions",
            Self::MessagesReceived => "messages_received",
            Self::MessagesSent => "messages_sent",
        }
    }
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut rows = Vec::new();
    let now = now();
    let (listed, matching) = args.clients(|client| {
        match args.output.form {
            Form::Table => rows.push(columns(client, now)),
            Form::Json => writeln!(out, "{}", json_line(client)?)?,
        }
        Ok(())
    })?;
    if args.output.form == Form::Json {
        return Ok(());
    }
    if !rows.is_empty() {
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    writeln!(out, "{}", summary(listed, matching))?;
    Ok(())
}

fn summary(listed: u64, matching: u64) -> String {
    let clients = if matching == 1 { "client" } else { "clients" };
    // New clients may be on the pages.
    if listed >= matching {
        return format!("{} {clients}", count(listed));
    }
    let (listed, matching) = (count(listed), count(matching));
    format!("{listed} of {matching} {clients}; --all lists all, --limit N lists N")
}

impl LsArgs {
    /// Lists the clients in their order; returns their number, and that of all matching clients.
    fn clients(
        &self,
        each: impl FnMut(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<(u64, u64)> {
        if self.all {
            self.all_clients(each)
        } else {
            self.first_clients(each)
        }
    }

    /// Sorted here: with sorted pages the broker would visit all sessions for each page.
    fn all_clients(
        &self,
        mut each: impl FnMut(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<(u64, u64)> {
        let mut whole = Whole::default();
        let mut cursor = None;
        loop {
            let path = self.path(PAGE, "none", cursor.as_deref());
            let page: ClientPage = self.running.ask(Method::Get, &path)?;
            whole.add(page.clients);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let clients = whole.sorted(self.sort, self.reverse);
        clients.iter().try_for_each(&mut each)?;
        let listed = clients.len() as u64;
        Ok((listed, listed))
    }

    fn first_clients(
        &self,
        mut each: impl FnMut(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<(u64, u64)> {
        let (mut listed, mut cursor) = (0, None);
        loop {
            let rows = self.limit - listed;
            let rows = usize::try_from(rows).unwrap_or(PAGE).min(PAGE);
            let path = self.path(rows, self.sort.parameter(), cursor.as_deref());
            let page: ClientPage = self.running.ask(Method::Get, &path)?;
            page.clients.iter().try_for_each(&mut each)?;
            listed += page.clients.len() as u64;
            cursor = page.next;
            if cursor.is_none() || listed >= self.limit {
                return Ok((listed, page.matching.unwrap_or(listed)));
            }
        }
    }

    fn path(&self, rows: usize, sort: &str, cursor: Option<&str>) -> String {
        let mut path = format!("/clients?limit={rows}&sort={sort}");
        let is_connected = match (self.connected, self.away) {
            (true, _) => Some("true"),
            (false, true) => Some("false"),
            (false, false) => None,
        };
        for (name, value) in [
            ("descending", (self.reverse && !self.all).then_some("true")),
            ("filter", self.filter.as_deref()),
            ("client", self.client.as_deref()),
            ("user", self.user.as_deref()),
            ("address", self.address.as_deref()),
            ("connected", is_connected),
            ("subscribed", self.subscribed.as_deref()),
            ("cursor", cursor),
        ] {
            if let Some(value) = value {
                path.extend(["&", name, "=", &encoded(value)]);
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_whether_the_list_is_complete() {
        assert_eq!(summary(1, 1), "1 client");
        assert_eq!(summary(0, 0), "0 clients");
        assert!(summary(100, 1204).starts_with("100 of 1 204 clients; --all"));
    }
}
