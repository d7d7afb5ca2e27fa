//! The contents of a backup, for people and programs.

use std::io::Write as _;

use serde_json::json;
use thrum_figures::{bytes, count, fraction};
use thrum_storage::{LogReport, Recovered};

use super::files::AUDIT;
use crate::command::data_dir::warn_of_damage;
use crate::command::shown::counted;
use crate::config::managed;

/// Counts of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    sessions: usize,
    subscriptions: usize,
    queued: usize,
    inflight: usize,
    messages: usize,
    retained: usize,
}

/// A backup that was read to its end.
#[derive(Debug)]
pub(super) struct Summary {
    /// The file.
    pub(super) name: String,
    /// Start of the copy.
    pub(super) taken_at: String,
    /// Bytes of its segments.
    pub(super) bytes: u64,
    pub(super) counts: Counts,
    /// Names of the files beside the log.
    pub(super) files: Vec<String>,
    /// Its format has files beside the log.
    pub(super) has_files: bool,
    pub(super) report: LogReport,
}

impl Counts {
    pub(super) fn of(state: &Recovered) -> Self {
        let sessions = &state.sessions;
        let deliveries = || sessions.iter().flat_map(|session| &session.deliveries);
        let inflight = deliveries().filter(|one| one.inflight.is_some()).count();
        Self {
            sessions: sessions.iter().filter(|one| !one.is_of_node()).count(),
            subscriptions: sessions.iter().map(|one| one.subscriptions.len()).sum(),
            queued: deliveries().count() - inflight,
            inflight,
            messages: state.messages.len(),
            retained: state.retained.len(),
        }
    }
}

impl Summary {
    /// Prints what is inside; `what` was done with it.
    pub(super) fn print(&self, what: &str, json: bool) -> std::io::Result<()> {
        warn_of_damage(&self.name, &self.report)?;
        let counts = self.counts;
        let mut out = std::io::stdout().lock();
        if json {
            let line = json!({
                "file": self.name,
                "taken_at": self.taken_at,
                "bytes": self.bytes,
                "sessions": counts.sessions,
                "subscriptions": counts.subscriptions,
                "queued": counts.queued,
                "inflight": counts.inflight,
                "messages": counts.messages,
                "retained": counts.retained,
                "files": self.files,
                "damaged_places": self.report.damaged_count,
                "gone_parts": self.report.gone_count,
            });
            return writeln!(out, "{line}");
        }
        let number = |value: usize| count(value as u64);
        writeln!(
            out,
            "{} {what}: taken at {}, {}\n  sessions       {}\n  subscriptions  {}\n  queued         {}\n  \
             inflight       {}\n  messages       {}\n  retained       {}",
            self.name,
            self.taken_at,
            bytes(fraction(self.bytes)),
            number(counts.sessions),
            number(counts.subscriptions),
            number(counts.queued),
            number(counts.inflight),
            number(counts.messages),
            number(counts.retained),
        )?;
        let others = self.files.iter().filter(|name| !name.contains('/'));
        let mut files: Vec<String> = others.cloned().collect();
        for (folder, one, many) in [
            (
                managed::VERSIONS,
                "version of managed.toml",
                "versions of managed.toml",
            ),
            (AUDIT, "file of the audit log", "files of the audit log"),
        ] {
            let of_folder =
                |name: &&String| name.split_once('/').is_some_and(|(of, _)| of == folder);
            match self.files.iter().filter(of_folder).count() {
                0 => {}
                count => files.push(counted(count, one, many)),
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        writeln!(out, "  files          {}", files.join(", "))
    }
}
