//! A file written in advance: a sync of overwritten bytes changes no metadata of the file system
//! and takes half the time.

use std::io;

use super::LogOptions;
use crate::disk::{Disk, File, write_all};

pub(super) const READY: &str = "spare";
pub(super) const UNFINISHED: &str = "spare.new";

/// Number of steps in which it is written.
const STEPS: u64 = 64;

/// The file of the next segment.
#[derive(Debug)]
pub(super) enum Spare<F> {
    None,
    /// The file, and the number of bytes written.
    Unfinished(F, u64),
    Ready,
}

impl<F: File> Spare<F> {
    /// Bytes that it occupies.
    pub(super) fn size(&self, options: &LogOptions) -> u64 {
        match self {
            Self::None => 0,
            Self::Unfinished(_, written) => *written,
            Self::Ready => options.segment_bytes,
        }
    }

    /// Bytes that it occupies in addition if it is not used for a new segment of that size.
    pub(super) fn size_beside(&self, size: u64, options: &LogOptions) -> u64 {
        match self {
            Self::Ready if size == options.segment_bytes => 0,
            other => other.size(options),
        }
    }

    /// Removes the file.
    pub(super) fn discard<D: Disk<File = F>>(&mut self, disk: &D) -> io::Result<()> {
        match std::mem::replace(self, Self::None) {
            Self::None => Ok(()),
            Self::Unfinished(..) => disk.remove(UNFINISHED),
            Self::Ready => disk.remove(READY),
        }
    }

    /// Writes and syncs at least `bytes` more of it; returns whether it is complete.
    pub(super) fn prepare<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        options: &LogOptions,
        bytes: u64,
    ) -> io::Result<bool> {
        let result = self.prepare_step(disk, options.segment_bytes, bytes);
        if result.is_err() {
            // Its space is worth more than the written part of it.
            *self = Self::None;
            disk.remove(UNFINISHED).unwrap_or_default();
        }
        result
    }

    /// Renames the file and returns it, if it is complete.
    pub(super) fn take<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        name: &str,
    ) -> io::Result<Option<F>> {
        if !matches!(self, Self::Ready) {
            return Ok(None);
        }
        *self = Self::None;
        disk.rename(READY, name)?;
        disk.open(name).map(Some)
    }

    /// Turns a segment's file into the spare one, or removes it if there is one.
    pub(super) fn put<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        name: &str,
        fits: bool,
    ) -> io::Result<()> {
        if !fits || matches!(self, Self::Ready) {
            return disk.remove(name);
        }
        disk.rename(name, READY)?;
        if let Self::Unfinished(..) = std::mem::replace(self, Self::Ready) {
            // The next start removes the rest of it.
            disk.remove(UNFINISHED).unwrap_or_default();
        }
        Ok(())
    }

    fn prepare_step<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        size: u64,
        bytes: u64,
    ) -> io::Result<bool> {
        if let Self::None = self {
            *self = Self::Unfinished(disk.create(UNFINISHED)?, 0);
        }
        let Self::Unfinished(file, written) = self else {
            return Ok(true);
        };
        let step = size.div_ceil(STEPS).max(bytes).min(size - *written);
        let zeros = vec![0; usize::try_from(step).unwrap_or(0)];
        write_all(file, &zeros, *written)?;
        file.sync()?;
        *written += step;
        if *written < size {
            return Ok(false);
        }
        disk.rename(UNFINISHED, READY)?;
        *self = Self::Ready;
        Ok(true)
    }
}
