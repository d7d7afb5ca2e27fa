//! Backups of a running broker: `create` from elsewhere, `ls`, `get` and `rm`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thrum_figures::{bytes, fraction};
use thrum_management::api::{Backup, BackupPage};

use super::create::Target;
use super::summary::Summary;
use crate::command::Failure;
use crate::command::running::{Broker, Form, Method, Output, Request, Running, encoded};
use crate::command::shown::{json_line, table};

/// The progress of a backup is asked for so often.
const INTERVAL: Duration = Duration::from_millis(200);
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Media type of a backup.
const TAR: &str = "application/x-tar";
const HEADINGS: [&str; 4] = ["NAME", "BEGAN", "SIZE", "STATE"];

/// Arguments of `thrum backup ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum backup get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Its name, as ls prints it.
    name: String,
    /// The file to write; while it is written it is called FILE.part.
    file: PathBuf,
    #[command(flatten)]
    running: Running,
    /// Write over a file that exists.
    #[arg(long)]
    force: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Arguments of `thrum backup rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// Its name, as ls prints it.
    name: String,
    #[command(flatten)]
    running: Running,
}

/// Lists the complete ones, and the one that is made.
pub(super) fn list(args: &LsArgs) -> anyhow::Result<()> {
    let page: BackupPage = args.running.ask(Method::Get, "/backups?limit=1000")?;
    let all = page.running.into_iter().chain(page.backups);
    let mut out = io::stdout().lock();
    if args.output.form == Form::Json {
        for backup in all {
            writeln!(out, "{}", json_line(&backup)?)?;
        }
        return Ok(());
    }
    let rows: Vec<Vec<String>> = all
        .map(|backup| {
            vec![
                backup.name,
                backup.began_at,
                bytes(fraction(backup.bytes)),
                backup.state,
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(writeln!(io::stderr(), "there are no backups")?);
    }
    Ok(write!(out, "{}", table(&HEADINGS, &rows))?)
}

/// Fetches one that is kept, checks it and prints what is in it.
pub(super) fn get(args: &GetArgs) -> anyhow::Result<()> {
    let target = Target::new(&args.file, args.force)?;
    let broker = args.running.broker()?;
    let summary = fetch(&broker, &args.name, &target)?;
    Ok(summary.print("was fetched", args.json)?)
}

/// Removes one.
pub(super) fn remove(args: &RmArgs) -> anyhow::Result<()> {
    remove_at(&args.running.broker()?, &args.name)?;
    Ok(writeln!(io::stderr(), "removed {}", args.name)?)
}

fn remove_at(broker: &Broker, name: &str) -> anyhow::Result<()> {
    broker.call(Method::Delete, &format!("/backups/{}", encoded(name)), "")
}

/// Has a backup made, fetches it, and removes it there.
pub(super) fn create(broker: &Broker, target: &Target) -> anyhow::Result<Summary> {
    let backup: Backup = broker.call(Method::Post, "/backups", "")?;
    let made = wait(broker, backup)?;
    let name = &made.name;
    let fetched = fetch(broker, name, target).map_err(|error| {
        let code = error.downcast_ref().map_or(1, Failure::code);
        Failure::with_code(
            code,
            format!(
                "{error:#}; the broker keeps the backup: thrum backup get {name} FILE fetches it, thrum backup rm \
                 {name} removes it"
            ),
        )
    })?;
    // The backup is here. It may be gone there, or the connection.
    if let Err(error) = remove_at(broker, name) {
        writeln!(
            io::stderr(),
            "warning: the broker may keep the backup, which is fetched: {error:#}; thrum backup rm {name} removes it"
        )?;
    }
    Ok(fetched)
}

/// Waits until a backup is done.
fn wait(broker: &Broker, backup: Backup) -> anyhow::Result<Backup> {
    let path = format!("/backups/{}", encoded(&backup.name));
    let mut progress = Progress::new("the broker writes the backup");
    let backup = ended(backup, || {
        pause();
        let backup: Backup = broker.call(Method::Get, &path, "")?;
        progress.show(backup.bytes, backup.expected_bytes)?;
        Ok(backup)
    })?;
    progress.end()?;
    match &backup.failure {
        Some(failure) => Err(anyhow::anyhow!(
            "the broker {} cannot make the backup {}: {failure}; its log says more",
            broker.place(),
            backup.name
        )),
        None => Ok(backup),
    }
}

/// The backup when it has ended; `next` waits, and asks for its state. One that is ending is not
/// complete yet.
fn ended(
    mut backup: Backup,
    mut next: impl FnMut() -> anyhow::Result<Backup>,
) -> anyhow::Result<Backup> {
    while ["running", "ending"].contains(&&*backup.state) {
        backup = next()?;
    }
    Ok(backup)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command has nothing else to do until then"
)]
fn pause() {
    std::thread::sleep(INTERVAL);
}

fn fetch(broker: &Broker, name: &str, target: &Target) -> anyhow::Result<Summary> {
    let path = format!("/backups/{}/file", encoded(name));
    let answer = broker.open(&Request {
        method: Method::Get,
        path: &path,
        accept: TAR,
        body: b"",
        body_type: "",
    })?;
    let mut body = answer.body;
    target.fill(|mut file: File| {
        let mut progress = Progress::new("fetching the backup");
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut count = 0;
        loop {
            let read = body.read(&mut chunk);
            let read = read.map_err(|error| broker.unanswered(&error))?;
            if read == 0 {
                break;
            }
            file.write_all(&chunk[..read])?;
            count += read as u64;
            progress.show(count, None)?;
        }
        progress.end()?;
        Ok(file.sync_all()?)
    })
}

/// A line on a terminal that says how far it is; elsewhere nothing.
struct Progress {
    what: &'static str,
    is_terminal: bool,
    /// Bytes of the last line: a line for each chunk would be slower than the chunks.
    shown: u64,
}

/// Bytes between two lines.
const PROGRESS_BYTES: u64 = 1024 * 1024;

impl Progress {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            is_terminal: io::stderr().is_terminal(),
            shown: 0,
        }
    }

    fn show(&mut self, count: u64, most: Option<u64>) -> io::Result<()> {
        if !self.is_terminal || count < self.shown + PROGRESS_BYTES {
            return Ok(());
        }
        self.shown = count;
        let mut line = format!("{}: {}", self.what, bytes(fraction(count)));
        if let Some(most) = most {
            line.extend([" of at most ", &bytes(fraction(most))]);
        }
        write!(io::stderr(), "\r\x1b[K{line}")
    }

    fn end(&self) -> io::Result<()> {
        if self.shown > 0 {
            write!(io::stderr(), "\r\x1b[K")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(state: &str) -> Backup {
        Backup {
            name: "20261127T101500Z".to_owned(),
            state: state.to_owned(),
            began_at: String::new(),
            bytes: 0,
            expected_bytes: None,
            failure: None,
        }
    }

    #[test]
    fn a_backup_is_waited_for_while_it_runs_and_while_it_is_ended() {
        for (first, states, last) in [
            ("running", &["running", "done"][..], "done"),
            ("running", &["ending", "ending", "failed"], "failed"),
            ("ending", &["failed"], "failed"),
            ("done", &[], "done"),
        ] {
            let mut left = states.iter();
            let next = || Ok(backup(left.next().expect("it has ended before")));
            let found = ended(backup(first), next).unwrap();
            assert_eq!(found.state, last, "{first} {states:?}");
            assert_eq!(left.len(), 0, "{first} {states:?}");
        }
        let gone = || Err(anyhow::anyhow!("it is gone"));
        assert!(ended(backup("ending"), gone).is_err());
    }
}
