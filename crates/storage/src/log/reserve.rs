//! A small file that is kept for the time when the disk is full: changes that remove state need
//! room in the log before they free space.

use std::io;

use super::LogOptions;
use crate::disk::{Disk, File as _, write_all};

const READY: &str = "reserve";
const UNFINISHED: &str = "reserve.new";

/// Its size in bytes, or that of a segment if that is smaller: room for the acknowledgements of
/// about twenty thousand messages, by which whole segments become free.
const BYTES_MAX: u64 = 1024 * 1024;

/// The size of the file, if it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserve(Option<u64>);

impl Reserve {
    /// Finds the file of an earlier process.
    pub(super) fn find(disk: &impl Disk, names: &[String]) -> io::Result<Self> {
        if names.iter().any(|name| name == UNFINISHED) {
            disk.remove(UNFINISHED)?;
        }
        if !names.iter().any(|name| name == READY) {
            return Ok(Self(None));
        }
        Ok(Self(Some(disk.open(READY)?.size()?)))
    }

    /// Bytes that it occupies.
    pub(super) fn bytes(self) -> u64 {
        self.0.unwrap_or(0)
    }

    /// Bytes that it occupies when it exists.
    pub(super) fn wanted(options: &LogOptions) -> u64 {
        options.segment_bytes.min(BYTES_MAX)
    }

    /// Writes it completely: its blocks must be allocated before they are needed.
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

    /// Renames the file and returns it with its size, if it exists and has room for `bytes_min`.
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

    /// Removes the file.
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
