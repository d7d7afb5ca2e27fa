//! `thrum retained export`.

use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use thrum_storage::Recovered;

use super::Topics;
use super::line::Line;
use crate::command::Failure;
#[cfg(feature = "management")]
use crate::command::running::Broker;
use crate::command::shown::counted;
use crate::command::stored::{Place, Stored};

/// Arguments of `thrum retained export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The file to write; - is standard output.
    file: PathBuf,
    #[command(flatten)]
    stored: Stored,
    #[command(flatten)]
    topics: Topics,
}

/// Exports.
pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let messages = match args.stored.place()? {
        Place::Directory(data_dir) => Messages::Stored(Box::new(data_dir.read()?)),
        #[cfg(feature = "management")]
        Place::Broker(broker) => Messages::At(broker),
    };
    let count = if args.file == Path::new("-") {
        messages.write(&args.topics, std::io::stdout().lock())?
    } else {
        to_file(&messages, args)?
    };
    let count = counted(count, "retained message", "retained messages");
    writeln!(std::io::stderr(), "exported {count}")?;
    Ok(())
}

fn to_file(messages: &Messages, args: &ExportArgs) -> anyhow::Result<usize> {
    let shown = args.file.display();
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.file);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "cannot write {shown}: it exists; choose another name, or move it away"
        )),
        _ => anyhow::Error::new(error).context(format!("cannot write {shown}")),
    })?;
    let written = messages.write(&args.topics, &file).and_then(|count| {
        file.sync_all()?;
        Ok(count)
    });
    if written.is_err() {
        // A partial file would look complete.
        std::fs::remove_file(&args.file).ok();
    }
    // What the broker refuses is no matter of the file.
    written.map_err(|error| {
        if error.is::<Failure>() {
            return error;
        }
        error.context(format!("cannot write {shown}"))
    })
}

/// Where the messages come from.
enum Messages {
    Stored(Box<Recovered>),
    #[cfg(feature = "management")]
    At(Broker),
}

impl Messages {
    fn write(&self, topics: &Topics, out: impl Write) -> anyhow::Result<usize> {
        match self {
            Self::Stored(state) => Ok(write(state, topics, out)?),
            #[cfg(feature = "management")]
            Self::At(broker) => {
                let mut out = BufWriter::new(out);
                let count = super::remote::export(broker, topics.filter.as_deref(), &mut out)?;
                out.flush()?;
                Ok(count)
            }
        }
    }
}

fn write(state: &Recovered, topics: &Topics, out: impl Write) -> std::io::Result<usize> {
    let mut out = BufWriter::new(out);
    let mut count = 0;
    for retained in &state.retained {
        let Some(message) = state.messages.get(retained.message) else {
            continue;
        };
        if topics.fit(&retained.topic) {
            serde_json::to_writer(&mut out, &Line::new(message))?;
            out.write_all(b"\n")?;
            count += 1;
        }
    }
    out.flush()?;
    Ok(count)
}
