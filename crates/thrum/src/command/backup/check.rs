//! Reads a backup from its beginning to its end and compares all of it with its manifest.

use std::fs::File;
#[cfg(feature = "management")]
use std::io::Seek as _;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use thrum_storage::Contents;

#[cfg(feature = "management")]
use super::archive::CHUNK_BYTES;
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
        has_files: manifest.format != FORMAT_BEFORE,
        report,
    })
}

/// Reads a file that was just written, and compares it with its manifest. `watch` is asked before
/// each chunk, and may end it. Memory: a chunk.
#[cfg(feature = "management")]
pub(super) fn verify(
    mut file: &File,
    watch: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    file.rewind()?;
    let (mut segments, mut files) = (Vec::new(), Vec::new());
    let mut archive = tar::Archive::new(BufReader::new(file));
    for entry in archive.entries().context(DAMAGED)? {
        let mut entry = entry.context(DAMAGED)?;
        let path = entry.path().context(DAMAGED)?.display().to_string();
        if path == MANIFEST {
            let manifest = serde_json::from_reader(entry).context(DAMAGED)?;
            return compare(&manifest, &segments, &files);
        }
        let (name, list) = match (path.strip_prefix(STATE), path.strip_prefix(FILES)) {
            (Some(name), _) => (name, &mut segments),
            (None, Some(name)) => (name, &mut files),
            (None, None) => bail!("{path} is in it, which no backup of thrum has"),
        };
        list.push(measured(name, &mut entry, watch)?);
    }
    bail!("it has no manifest at its end; {DAMAGED}");
}

#[cfg(feature = "management")]
fn measured(
    name: &str,
    from: &mut impl Read,
    watch: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Segment> {
    let mut found = Segment::of(name, &[]);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        watch()?;
        let count = from.read(&mut chunk).context(DAMAGED)?;
        if count == 0 {
            return Ok(found);
        }
        found.bytes += count as u64;
        found.crc32c = crc32c::crc32c_append(found.crc32c, &chunk[..count]);
    }
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

#[cfg(all(test, feature = "management"))]
mod tests {
    use std::sync::Arc;

    use thrum_storage::SnapshotTarget as _;

    use super::super::archive::Archive;
    use super::*;

    #[test]
    fn a_written_file_is_as_its_manifest_says_or_it_is_refused() {
        let path = std::env::temp_dir().join(format!("thrum-verify-{}", std::process::id()));
        let create = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let file = create.unwrap();
        let watch = Arc::new(|_| Ok(()));
        let mut archive = Archive::new(file.try_clone().unwrap(), 0, watch).unwrap();
        archive
            .segment("00000000000000000001.log", &vec![7; 100_000])
            .unwrap();
        archive.finish("now".to_owned()).unwrap();
        verify(&file, &|| Ok(())).unwrap();
        let ended = verify(&file, &|| bail!("it was removed")).unwrap_err();
        assert_eq!(format!("{ended:#}"), "it was removed");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[90_000] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let refused = verify(&file, &|| Ok(())).unwrap_err().to_string();
        assert!(refused.contains("does not pass its check"), "{refused}");
        std::fs::write(&path, &bytes[..50_000]).unwrap();
        assert!(verify(&file, &|| Ok(())).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
