//! The container: a tar archive of plain files, of which the same files give the same bytes.

use std::io::{self, Write};

use tar::{Builder, EntryType, Header};

use super::BundleError;

/// Files of a bundle of any version.
const FILES_MAX: usize = 16;

/// Longest name of a file.
const NAME_BYTES_MAX: usize = 64;

/// A tar archive consists of blocks of this size.
const BLOCK_BYTES: usize = 512;

/// Permissions of every file.
const MODE: u32 = 0o644;

/// A file in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

/// The archive of these files, in their order, without times and owners.
pub(super) fn pack(entries: &[Entry<'_>]) -> io::Result<Vec<u8>> {
    write(Vec::new(), entries)
}

fn write<W: Write>(out: W, entries: &[Entry<'_>]) -> io::Result<W> {
    let mut builder = Builder::new(out);
    for entry in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(entry.bytes.len()).unwrap_or(u64::MAX));
        header.set_mode(MODE);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        builder.append_data(&mut header, entry.name, entry.bytes)?;
    }
    builder.into_inner()
}

/// The files of an archive that is exactly what [`pack`] makes of them; they stay in its bytes.
///
/// # Errors
/// It is cut off, names something other than plain files, or differs from that form.
pub(super) fn unpack(archive: &[u8]) -> Result<Vec<Entry<'_>>, BundleError> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut rest = archive;
    loop {
        let (block, after) = rest
            .split_at_checked(BLOCK_BYTES)
            .ok_or(BundleError::Truncated)?;
        if block.iter().all(|byte| *byte == 0) {
            break;
        }
        let header = Header::from_byte_slice(block);
        let name = name(block, header)?;
        if entries.len() == FILES_MAX {
            return Err(BundleError::TooManyFiles);
        }
        if entries.last().is_some_and(|last| last.name >= name) {
            return Err(BundleError::Order {
                name: name.to_owned(),
            });
        }
        let (bytes, after) = content(name, header, after)?;
        entries.push(Entry { name, bytes });
        rest = after;
    }
    check_form(archive, &entries)?;
    Ok(entries)
}

/// A name without folders: a bundle never says where its files go.
fn name<'a>(block: &'a [u8], header: &Header) -> Result<&'a str, BundleError> {
    let refused = |name: &[u8]| BundleError::Name {
        name: String::from_utf8_lossy(name).escape_debug().to_string(),
    };
    let whole = header.path_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'.';
    let name = block.get(..whole.len()).unwrap_or_default();
    let fits = !whole.is_empty() && whole.len() <= NAME_BYTES_MAX && name == &*whole;
    if !fits || !name.iter().all(is_plain) || name.starts_with(b".") {
        return Err(refused(&whole));
    }
    let name = std::str::from_utf8(name).map_err(|_| refused(&whole))?;
    if header.entry_type() == EntryType::Regular {
        Ok(name)
    } else {
        Err(BundleError::Kind {
            name: name.to_owned(),
        })
    }
}

/// The bytes of a file, and those after its last block.
fn content<'a>(
    name: &str,
    header: &Header,
    after: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), BundleError> {
    let bytes = header.size().map_err(|_| BundleError::Size {
        name: name.to_owned(),
    })?;
    let too_long = || BundleError::FileTooLong {
        name: name.to_owned(),
        bytes,
    };
    if bytes > super::FILE_BYTES_MAX {
        return Err(too_long());
    }
    let length = usize::try_from(bytes).map_err(|_| too_long())?;
    let padded = length.next_multiple_of(BLOCK_BYTES);
    let (blocks, after) = after
        .split_at_checked(padded)
        .ok_or(BundleError::Truncated)?;
    Ok((&blocks[..length], after))
}

/// Refuses bytes outside the files that this version would not write: a bundle hides nothing. The
/// archive is compared as it is written, since a copy may have a GiB.
fn check_form(archive: &[u8], entries: &[Entry<'_>]) -> Result<(), BundleError> {
    let mut same = Same {
        archive,
        bytes: 0,
        has_ended: false,
    };
    let is_written = write(&mut same, entries).is_ok();
    if is_written && same.bytes == archive.len() {
        return Ok(());
    }
    Err(BundleError::Form { at: same.bytes })
}

/// Counts the bytes that are written as they are in the archive, up to the first that differs.
struct Same<'a> {
    archive: &'a [u8],
    bytes: usize,
    has_ended: bool,
}

impl Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.archive.get(self.bytes..).unwrap_or_default();
        if !self.has_ended && rest.starts_with(bytes) {
            self.bytes += bytes.len();
            return Ok(bytes.len());
        }
        if !self.has_ended {
            let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b);
            self.bytes += same.count();
            self.has_ended = true;
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
