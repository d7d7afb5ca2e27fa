//! A small file that is kept for the time when the disk is full: what takes away needs a place in
//! the log first.

use std::io;

use super::LogOptions;
use crate::disk::{Disk, File as _, write_all};

const READY: &str = "reserve";
const UNFINISHED: &str = "reserve.new";

/// Its size in bytes, or that of a segment if that is smaller: room for the acknowledgements of
/// some twenty thousand messages, by which whole segments become free.
const BYTES_MAX: u64 = 1024 * 1024;

/// The file, if it is there: its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserve(Option<u64>);

impl Reserve {
    /// What an earlier process left.
    pub(super) fn find(disk: &impl Disk, names: &[String]) -> io::Result<Self> {
        if names.iter().any(|name| name == UNFINISHED) {
            disk.remove(UNFINISHED)?;
        }
        if !names.iter().any(|name| name == READY) {
            return Ok(Self(None));
        }
        Ok(Self(Some(disk.open(READY)?.size()?)))
    }

    /// Bytes it takes.
    pub(super) fn bytes(self) -> u64 {
        self.0.unwrap_or(0)
    }

    /// Bytes that it takes when it is there.
    pub(super) fn wanted(options: &LogOptions) -> u64 {
        options.segment_bytes.min(BYTES_MAX)
    }

    /// Writes it, all at once: its bytes must be the disk's own before they are needed.
    pub(super) fn prepare(&mut self, disk: &impl Disk, options: &LogOptions) -> io::Result<()> {
        if self.0.is_some() {
            return Ok(());
        }
        let size = Self::wanted(options);
        let written = write(disk, size);
        if written.is_err() {
            disk.remove(UNFINISHED).unwrap_or_default();
        } else {
            self.0 = Some(size);
        }
        written
    }

    /// The file under its new name, and its size, if it is there and has room for so much.
    pub(super) fn take<D: Disk>(
        &mut self,
        disk: &D,
        name: &str,
        bytes_min: u64,
    ) -> io::Result<Option<(D::File, u64)>> {
        let Some(size) = self.0.take_if(|size| *size >= bytes_min) else {
            return Ok(None);
        };
        disk.rename(READY, name)?;
        Ok(Some((disk.open(name)?, size)))
    }

    /// Gives its space back.
    pub(super) fn discard(&mut self, disk: &impl Disk) -> io::Result<()> {
        match self.0.take() {
            Some(_) => disk.remove(READY),
            None => Ok(()),
        }
    }
}

fn write(disk: &impl Disk, size: u64) -> io::Result<()> {
    let file = disk.create(UNFINISHED)?;
    let zeros = vec![0; usize::try_from(size).unwrap_or(0)];
    write_all(&file, &zeros, 0)?;
    file.sync()?;
    disk.rename(UNFINISHED, READY)
}
