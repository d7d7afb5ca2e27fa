//! Reads a backup from its beginning to its end and compares all of it with its manifest.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use thrum_storage::Contents;

use super::archive::{FILES, FORMAT, FORMAT_BEFORE, MANIFEST, Manifest, STATE, Segment};
use super::files::{Copied, is_known};
use super::summary::{Counts, Summary};
use crate::command::Failure;

/// A part of a backup.
pub(super) enum Part<'a> {
    /// A segment of the log.
    Segment {
        /// Its name.
        name: &'a str,
        /// Its contents.
        bytes: &'a [u8],
    },
    /// Another file.
    File(&'a Copied),
}

/// Gets each part; its check against the manifest follows only at the end.
pub(super) type Visit<'a> = dyn FnMut(Part<'_>) -> anyhow::Result<()> + 'a;

/// The remedy for an unusable backup.
const DAMAGED: &str = "the backup is damaged or was never finished; use another copy of it";

/// Reads it wholly. Memory: one segment, and about 150 bytes for each queued message.
pub(super) fn check(file: &Path, visit: &mut Visit<'_>) -> anyhow::Result<Summary> {
    let name = file.display().to_string();
    let opened =
        File::open(file).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    read(&name, opened, visit).with_context(|| name)
}

fn read(name: &str, file: File, visit: &mut Visit<'_>) -> anyhow::Result<Summary> {
    let mut contents = Contents::counted();
    let mut segments: Vec<Segment> = Vec::new();
    let mut files: Vec<Segment> = Vec::new();
    let mut manifest = None;
    let mut archive = tar::Archive::new(BufReader::new(file));
    let mut bytes = Vec::new();
    for entry in archive.entries().context(DAMAGED)? {
        let mut entry = entry.context(DAMAGED)?;
        let path = entry.path().context(DAMAGED)?.display().to_string();
        bytes.clear();
        entry.read_to_end(&mut bytes).context(DAMAGED)?;
        if path == MANIFEST {
            manifest = Some(serde_json::from_slice(&bytes).context(DAMAGED)?);
            break;
        }
        if let Some(name) = path.strip_prefix(FILES).filter(|name| is_known(name)) {
            files.push(Segment::of(name, &bytes));
            let (name, bytes) = (name.to_owned(), std::mem::take(&mut bytes));
            visit(Part::File(&Copied { name, bytes }))?;
            continue;
        }
        let Some(segment) = path.strip_prefix(STATE) else {
            bail!("{path} is in it, which no backup of thrum has");
        };
        if segments
            .last()
            .is_some_and(|before| *before.name >= *segment)
        {
            bail!("{path} is not in its place; {DAMAGED}");
        }
        contents
            .read(segment, &bytes)
            .with_context(|| format!("{path} cannot be read"))?;
        visit(Part::Segment {
            name: segment,
            bytes: &bytes,
        })?;
        segments.push(Segment::of(segment, &bytes));
    }
    let manifest: Manifest = manifest
        .context("it has no manifest at its end")
        .context(DAMAGED)?;
    compare(&manifest, &segments, &files)?;
    let (state, report) = contents.finish();
    Ok(Summary {
        name: name.to_owned(),
        taken_at: manifest.taken_at,
        bytes: segments.iter().map(|segment| segment.bytes).sum(),
        counts: Counts::of(&state),
        files: files.into_iter().map(|file| file.name).collect(),
        report,
    })
}

fn compare(manifest: &Manifest, segments: &[Segment], files: &[Segment]) -> anyhow::Result<()> {
    if ![FORMAT, FORMAT_BEFORE].contains(&&*manifest.format) {
        bail!(
            "it has the form {:?} and this version reads {FORMAT:?}; use the version that wrote it, thrum {}",
            manifest.format,
            manifest.thrum
        );
    }
    let differs = |(wanted, found): &(&Segment, &Segment)| wanted != found;
    let wrong = manifest.segments.iter().zip(segments).find(differs);
    if let Some((wanted, _)) = wrong {
        bail!("{STATE}{} does not pass its check; {DAMAGED}", wanted.name);
    }
    if manifest.files != files {
        bail!("the files beside the log do not pass their check; {DAMAGED}");
    }
    if manifest.segments.len() != segments.len() {
        bail!(
            "it has {} segments and should have {}; {DAMAGED}",
            segments.len(),
            manifest.segments.len()
        );
    }
    Ok(())
}
