//! `thrum bans add`.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use thrum_protection::Ban;

use super::place::{BanFiles, Bans, Place, failure};
#[cfg(feature = "management")]
use super::remote;
use super::subject::{SubjectArgs, shown};
use crate::command::Failure;
use crate::command::shown::{now, parse_span, time};

/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 1024;

/// Arguments of `thrum bans add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    place: Place,
    /// Duration, such as 1h or 7d; permanent without it.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_span)]
    span: Option<Duration>,
    /// Reason, for readers of the list; the client does not see it.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    /// Keep clients that are connected now; keep out those that connect later.
    #[arg(long)]
    keep_connected: bool,
}

/// Adds a ban and prints the ban in force.
pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    if args.span.is_some_and(|span| span.as_secs() == 0) {
        return Err(Failure::usage("--for: a ban takes at least a second"));
    }
    if args.reason.len() > REASON_BYTES_MAX {
        return Err(Failure::usage(format!(
            "--reason: at most {REASON_BYTES_MAX} bytes"
        )));
    }
    let since = now() / 1000;
    let is_endless = |span: &Duration| span.as_secs() >= u64::from(u32::MAX);
    let span = args.span.filter(|span| !is_endless(span));
    let ban = Ban {
        subject: args.subject.subject()?,
        reason: args.reason.as_str().into(),
        by: whoami().into(),
        since,
        until: span.map(|span| since + span.as_secs()),
        disconnects: !args.keep_connected,
    };
    let until = ban.until.map_or_else(
        || "for good".to_owned(),
        |until| format!("until {}", time(until * 1000)),
    );
    let subject = shown(&ban.subject);
    let (is_replaced, warning) = match args.place.bans()? {
        Bans::Files(files) => {
            let warning = files.for_root_alone();
            (add_to_file(ban, &files)?, warning)
        }
        #[cfg(feature = "management")]
        Bans::Broker(broker) => (remote::add(&broker, &ban)?, None),
    };
    let before = if is_replaced {
        ", in place of an earlier ban"
    } else {
        ""
    };
    let mut errors = std::io::stderr();
    writeln!(errors, "{subject} is banned {until}{before}")?;
    if let Some(warning) = warning {
        writeln!(errors, "{warning}")?;
    }
    Ok(())
}

/// True if it takes the place of another one.
fn add_to_file(ban: Ban, files: &BanFiles) -> anyhow::Result<bool> {
    let since = ban.since;
    let replaced = files.listed.edit(|list| {
        list.remove_ended(since);
        (true, list.insert(ban).is_some())
    });
    replaced.map_err(failure)
}

/// The current user of this machine, according to the environment.
fn whoami() -> String {
    let names = ["SUDO_USER", "USER", "LOGNAME"];
    let mut found = names.iter().filter_map(|name| std::env::var(name).ok());
    found.find(|name| !name.is_empty()).unwrap_or_default()
}
