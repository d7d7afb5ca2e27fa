//! The operator lists, adds and lifts bans. Workers are told of a new ban at once, as they look at
//! the list once a second only.

use std::sync::Arc;

use thrum_files::is_no_room;
use thrum_protection::{Ban, BanChanges, BanList, Subject};

use super::QueryError;
use super::sender::QuerySender;
use crate::control::Settling;
use crate::mailbox::Mail;
use crate::protection::BanFileError;

/// Bans that the operator may add: more belong into a firewall, and the file is rewritten with each
/// change.
const BANS_MAX: usize = 1_000_000;

/// The bans in force, each part ordered by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BansInForce {
    /// Of the list, which outlives the broker.
    pub listed: Vec<Ban>,
    /// Made by the broker for a time.
    pub temporary: Vec<Ban>,
}

/// A ban to add; it begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBan {
    /// Whom it keeps out.
    pub subject: Subject,
    /// The reason as a text; may be empty.
    pub reason: Box<str>,
    /// Its author.
    pub by: Box<str>,
    /// Seconds until it ends; none if it never does.
    pub secs: Option<u64>,
    /// Connected clients that it names are disconnected.
    pub disconnects: bool,
}

/// A ban that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedBan {
    /// As it is listed.
    pub ban: Ban,
    /// An earlier one of the same subject, whose place it takes.
    pub replaced: Option<Ban>,
    /// Busy workers that have not yet disconnected its clients.
    pub late_workers: Vec<String>,
}

/// See [`Queries::bans`](super::Queries::bans).
pub(super) fn bans(sender: &QuerySender) -> BansInForce {
    let now = sender.node().clock.now();
    let [listed, temporary] = sender.control.bans.all(now);
    BansInForce { listed, temporary }
}

/// See [`Queries::ban`](super::Queries::ban).
pub(super) fn ban(sender: &QuerySender, new: NewBan) -> Result<AddedBan, QueryError> {
    refuse_at_the_end(sender)?;
    let now = sender.node().clock.now();
    let since = sender.control.bans.wall_seconds(now);
    let ban = Ban {
        subject: new.subject,
        reason: new.reason,
        by: new.by,
        since,
        until: new.secs.map(|secs| since.saturating_add(secs)),
        disconnects: new.disconnects,
    };
    let added = ban.clone();
    let insert = move |list: &mut BanList| {
        list.remove_ended(since);
        let is_there = list.find(ban.subject.as_ref(), since).is_some();
        if list.len() >= BANS_MAX && !is_there {
            return (false, None);
        }
        (true, Some(list.insert(ban)))
    };
    let replaced = sender.control.bans.edit(now, insert).map_err(failed)?;
    let replaced = replaced.ok_or_else(|| {
        let what = format!("there are {BANS_MAX} bans already; lift some, or ban networks");
        QueryError::Invalid(what)
    })?;
    let late_workers = if added.disconnects {
        disconnect(sender, &added.subject)
    } else {
        Vec::new()
    };
    Ok(AddedBan {
        ban: added,
        replaced,
        late_workers,
    })
}

/// See [`Queries::lift_ban`](super::Queries::lift_ban).
pub(super) fn lift(sender: &QuerySender, subject: &Subject) -> Result<bool, QueryError> {
    refuse_at_the_end(sender)?;
    let now = sender.node().clock.now();
    let since = sender.control.bans.wall_seconds(now);
    let lifted = sender.control.bans.edit(now, |list| {
        let ended = list.remove_ended(since);
        let is_lifted = list.remove(subject).is_some();
        (is_lifted || ended > 0, is_lifted)
    });
    let was_temporary = sender.control.bans.lift_temporary(subject);
    Ok(lifted.map_err(failed)? || was_temporary)
}

fn refuse_at_the_end(sender: &QuerySender) -> Result<(), QueryError> {
    if sender.control.is_stopping() {
        return Err(QueryError::Stopped);
    }
    Ok(())
}

fn failed(error: BanFileError) -> QueryError {
    let what = error.to_string();
    match error {
        BanFileError::Write { source, .. } if is_no_room(&source) => QueryError::NotSaved(what),
        _ => QueryError::Failed(what),
    }
}

/// Has the workers disconnect the clients that a new ban names; returns when they have done it, or
/// when that takes too long: the ban is made, and a late worker carries it out with its mail. Tells
/// the late ones.
fn disconnect(sender: &QuerySender, subject: &Subject) -> Vec<String> {
    let added: Arc<[Subject]> = [subject.clone()].into();
    let node = sender.node();
    node.send_all(|| Mail::Banned(BanChanges::Added(Arc::clone(&added))));
    let settled = Settling::begin(node).wait(sender.timeout);
    let Err(late) = settled else {
        return Vec::new();
    };
    tracing::warn!(
        ban = subject.to_string(),
        workers = late.join(", "),
        seconds = sender.timeout.as_secs(),
        "a ban is made, but busy workers have not yet disconnected its clients"
    );
    late
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_other_errors() {
        let error = |kind: ErrorKind| {
            failed(BanFileError::Write {
                path: "bans.jsonl".into(),
                source: kind.into(),
            })
        };
        let full = error(ErrorKind::QuotaExceeded);
        assert!(matches!(full, QueryError::NotSaved(_)), "{full:?}");
        let denied = error(ErrorKind::PermissionDenied);
        assert!(matches!(denied, QueryError::Failed(_)), "{denied:?}");
    }
}
