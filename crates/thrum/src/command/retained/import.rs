//! `thrum retained import`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use thrum_storage::{Batch, Change, Message, Recovered, Retained, WallMillis};

use super::line::{Line, Read};
use crate::command::Failure;
use crate::command::data_dir::Opened;
use crate::command::shown::{counted, now};
use crate::command::stored::{Place, Stored};

/// Bytes of changes after which they are committed.
const COMMIT_BYTES: usize = 1 << 20;

/// Arguments of `thrum retained import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file to read, as export writes it; - is standard input. Nothing is changed if a line of
    /// it is wrong.
    file: PathBuf,
    #[command(flatten)]
    stored: Stored,
    /// Remove the retained messages of all topics that are not in the file.
    #[arg(long)]
    replace_all: bool,
}

/// The messages of a file, by topic: the last one of a topic counts.
type Messages = BTreeMap<String, Read>;

/// The result.
#[derive(Debug, Default)]
struct Done {
    imported: usize,
    replaced: usize,
    removed: usize,
}

/// Imports.
#[cfg_attr(
    not(feature = "management"),
    expect(
        clippy::infallible_destructuring_match,
        reason = "a complete program has brokers elsewhere"
    )
)]
pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let data_dir = match args.stored.place_to_change()? {
        Place::Directory(data_dir) => data_dir,
        #[cfg(feature = "management")]
        Place::Broker(_) if args.replace_all => {
            return Err(Failure::usage(
                "--replace-all works on the data directory of a broker that is stopped; remove the others with thrum \
                 retained rm",
            ));
        }
        #[cfg(feature = "management")]
        Place::Broker(broker) => return super::remote::import(&broker, &args.file),
    };
    let (messages, expired) = if args.file == Path::new("-") {
        read("standard input", std::io::stdin().lock(), now())?
    } else {
        let name = args.file.display().to_string();
        let file = File::open(&args.file)
            .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
        read(&name, BufReader::new(file), now())?
    };
    let opened = data_dir.open()?;
    let done = Writing::new(opened).write(&messages, args.replace_all)?;
    let mut errors = std::io::stderr().lock();
    write!(
        errors,
        "imported {}, {} of them in the place of others",
        counted(done.imported, "retained message", "retained messages"),
        done.replaced
    )?;
    if args.replace_all {
        write!(errors, ", removed {}", done.removed)?;
    }
    if expired > 0 {
        write!(errors, ", left out {expired} that have expired")?;
    }
    writeln!(errors)?;
    Ok(())
}

/// Reads all lines before anything is changed; expired ones are only counted.
fn read(name: &str, lines: impl BufRead, now: WallMillis) -> anyhow::Result<(Messages, usize)> {
    let mut messages = Messages::new();
    let mut expired = 0;
    each(name, lines, now, |read| {
        if read.expires_at.is_some_and(|at| at <= now) {
            expired += 1;
        } else {
            messages.insert(read.message.topic().to_owned(), read);
        }
    })?;
    Ok((messages, expired))
}

/// Looks for a line that is wrong.
#[cfg(feature = "management")]
pub(super) fn check(name: &str, lines: impl BufRead, now: WallMillis) -> anyhow::Result<()> {
    each(name, lines, now, drop)
}

/// Reads all lines.
fn each(
    name: &str,
    lines: impl BufRead,
    now: WallMillis,
    mut take: impl FnMut(Read),
) -> anyhow::Result<()> {
    for (number, line) in lines.lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {name}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let read = serde_json::from_str::<Line>(&line)
            .map_err(|error| error.to_string())
            .and_then(|line| line.read(now));
        let read = read.map_err(|why| {
            Failure::usage(format!("{name}:{}: {why}; nothing was changed", number + 1))
        })?;
        take(read);
    }
    Ok(())
}

/// The store while messages go into it.
struct Writing {
    opened: Opened,
    batch: Batch,
    message_id: u64,
    change: u64,
}

impl Writing {
    fn new(opened: Opened) -> Self {
        Self {
            batch: Batch::default(),
            message_id: opened.state.message_id_max,
            change: opened.state.retained_change_max,
            opened,
        }
    }

    /// New messages come first: an interruption leaves too many messages, never too few.
    fn write(mut self, messages: &Messages, replace_all: bool) -> anyhow::Result<Done> {
        let mut done = Done::default();
        let before: Vec<Box<str>> = topics(&self.opened.state);
        for (topic, read) in messages {
            self.add(topic, read)?;
            done.imported += 1;
            done.replaced += usize::from(before.binary_search_by(|one| (**one).cmp(topic)).is_ok());
        }
        for topic in before.iter().filter(|_| replace_all) {
            if !messages.contains_key(&**topic) {
                self.change += 1;
                let change = self.change;
                self.batch.push(&Change::RetainedRemoved { change, topic });
                self.end_unit()?;
                done.removed += 1;
            }
        }
        self.opened.store.apply(&self.batch)?;
        self.opened.store.close()?;
        Ok(done)
    }

    fn add(&mut self, topic: &str, read: &Read) -> anyhow::Result<()> {
        self.message_id += 1;
        self.change += 1;
        let message = &read.message;
        let to_log = self.opened.wall_ahead.saturating_neg();
        self.batch.push(&Change::Message(Message {
            id: self.message_id,
            publisher: 0,
            published_at: read.published_at.saturating_add_signed(to_log),
            expires_at: read.expires_at.map(|at| at.saturating_add_signed(to_log)),
            qos: message.qos(),
            retain: true,
            topic,
            properties: message.properties_block(),
            payload: message.payload(),
        }));
        self.batch.push(&Change::Retained(Retained {
            change: self.change,
            topic,
            message: self.message_id,
            source: None,
        }));
        self.end_unit()
    }

    fn end_unit(&mut self) -> anyhow::Result<()> {
        self.batch.end_unit();
        if self.batch.bytes_len() > COMMIT_BYTES {
            self.opened.store.apply(&self.batch)?;
            self.opened.store.commit()?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// In order, as the state has them.
fn topics(state: &Recovered) -> Vec<Box<str>> {
    let retained = state.retained.iter();
    retained.map(|retained| retained.topic.clone()).collect()
}

#[cfg(all(test, feature = "management"))]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_found_before_one_is_sent() {
        let good = r#"{"topic": "a", "text": "x"}"#;
        assert!(check("f", format!("{good}\n\n{good}").as_bytes(), 1).is_ok());
        for wrong in ["{", r#"{"topic": "a/#", "text": "x"}"#, r#"{"topic": "a"}"#] {
            let lines = format!("{good}\n\n{wrong}\n");
            let why = check("f", lines.as_bytes(), 1).unwrap_err().to_string();
            assert!(
                why.starts_with("f:3: ") && why.ends_with("nothing was changed"),
                "{why}"
            );
        }
    }
}
