//! Reads one segment and distinguishes valid records, damage and the torn end of the last commit.

use super::format::{GROUP_ALIGN, Group, RECORD_HEADER_LEN, record_at, seed};

/// The valid part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A later segment records its end: everything before is durable.
    Sealed(u64),
    /// A later segment exists, but does not record this end: every group found is durable.
    SealedSomewhere,
    /// The segment was being written: its last commit may be torn.
    Open,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A record.
    Record {
        /// Its offset, including its header.
        offset: usize,
        /// Its content.
        payload: &'a [u8],
    },
    /// Bytes that are not valid records.
    Damaged {
        /// Their offset.
        offset: usize,
        /// Their number.
        len: usize,
    },
}

/// Result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    /// End of the last valid group.
    pub(super) end: usize,
    /// Offset up to which everything was durable when the next group was written.
    pub(super) safe_until: usize,
    /// Number of bytes of the torn commit that were cut.
    pub(super) torn_bytes: usize,
}

/// Limit of the bytes that a search for records after damage checks, as a multiple of the damaged
/// bytes: bytes that look like long records must not delay the start indefinitely.
const SEARCH_FACTOR: usize = 64;

/// Reads the groups of a segment from `start`, the offset of a group, on.
pub(super) fn scan<'a>(
    segment: &'a [u8],
    number: u64,
    start: usize,
    extent: Extent,
    found: &mut dyn FnMut(Found<'a>),
) -> Scanned {
    let limit = match extent {
        Extent::Sealed(len) => usize::try_from(len).unwrap_or(usize::MAX),
        Extent::SealedSomewhere | Extent::Open => segment.len(),
    };
    let bytes = segment.get(..limit.min(segment.len())).unwrap_or_default();
    let groups = groups(bytes, number, start);
    let safe_until = match extent {
        Extent::Sealed(_) => bytes.len(),
        Extent::SealedSomewhere => groups.last().map_or(start, Group::next),
        Extent::Open => {
            let last_safe = groups.iter().rfind(|group| group.safe_before);
            last_safe.map_or(start, |group| group.offset)
        }
    };
    let mut reader = Reader {
        bytes,
        seed: seed(number),
        found,
    };
    let mut scanned = Scanned {
        end: start,
        safe_until,
        torn_bytes: 0,
    };
    for group in &groups {
        if group.offset > scanned.end {
            if scanned.end >= safe_until {
                break;
            }
            reader.search(scanned.end, group.offset);
        }
        if group.offset < safe_until {
            reader.safe_group(group);
        } else if !reader.last_group(group) {
            break;
        }
        scanned.end = group.next();
    }
    if scanned.end < safe_until {
        reader.search(scanned.end, safe_until);
        scanned.end = safe_until;
    }
    let last = groups.last().map_or(start, Group::next);
    scanned.torn_bytes = last.saturating_sub(scanned.end);
    scanned
}

/// Every group, including those after damage.
fn groups(bytes: &[u8], number: u64, start: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        match Group::at(bytes, at, number, bytes.len()) {
            Some(group) => {
                at = group.next();
                groups.push(group);
            }
            None => at += GROUP_ALIGN,
        }
    }
    groups
}

struct Reader<'a, 'f> {
    bytes: &'a [u8],
    seed: u32,
    found: &'f mut dyn FnMut(Found<'a>),
}

impl<'a> Reader<'a, '_> {
    /// Reports the valid records of a group, and the rest as damage.
    fn safe_group(&mut self, group: &Group) {
        let mut at = group.start();
        let end = group.end();
        while at < end {
            match self.record(at, end) {
                Some(record) => {
                    self.give(at, record.payload);
                    at += record.framed_len();
                }
                None => at = self.skip(at, end),
            }
        }
    }

    /// Reports a group of the last commit, or nothing of it if it is torn; returns whether it was
    /// complete.
    fn last_group(&mut self, group: &Group) -> bool {
        let mut records = Vec::new();
        let mut at = group.start();
        while at < group.end() {
            let Some(record) = self.record(at, group.end()) else {
                return false;
            };
            records.push((at, record.payload));
            at += record.framed_len();
        }
        for (offset, payload) in records {
            self.give(offset, payload);
        }
        true
    }

    /// Searches a region without group header, which may contain valid records.
    fn search(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            at = self.skip(at, end);
            while let Some(record) = self.record(at, end) {
                self.give(at, record.payload);
                at += record.framed_len();
            }
        }
    }

    /// Reports damage up to the next valid record and returns the offset of that record.
    fn skip(&mut self, start: usize, end: usize) -> usize {
        let mut budget = (end - start).saturating_mul(SEARCH_FACTOR);
        let mut at = start + 1;
        while at < end && self.record(at, end).is_none() {
            let tried = self.length_at(at).filter(|len| at + len <= end);
            budget = budget.saturating_sub(1 + tried.unwrap_or(0));
            at = if budget == 0 { end } else { at + 1 };
        }
        (self.found)(Found::Damaged {
            offset: start,
            len: at - start,
        });
        at
    }

    fn give(&mut self, offset: usize, payload: &'a [u8]) {
        (self.found)(Found::Record { offset, payload });
    }

    fn record(&self, at: usize, end: usize) -> Option<super::format::Record<'a>> {
        // An empty record is never written, and a run of zeros must not look like many of them.
        record_at(self.bytes.get(at..end)?, self.seed).filter(|record| !record.payload.is_empty())
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        let word = self.bytes.get(at..)?.first_chunk().copied()?;
        (u32::from_le_bytes(word) as usize).checked_add(RECORD_HEADER_LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{GROUP_HEADER_LEN, append_group};
    use super::*;

    const NUMBER: u64 = 3;
    /// A record whose content is damaged.
    const LONG: usize = 40_000;

    /// A group of a long record and a short one. From the start of the long one on, `word` repeats
    /// instead of its bytes.
    fn damaged(word: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let long = vec![1; LONG];
        let records = [&*long, b"short"];
        append_group(records.into_iter(), NUMBER, 0, true, &mut bytes);
        let lost = GROUP_HEADER_LEN..GROUP_HEADER_LEN + RECORD_HEADER_LEN + LONG;
        for place in bytes[lost].chunks_mut(4) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Numbers of records and of damaged bytes.
    fn found(bytes: &[u8]) -> (usize, usize) {
        let (mut records, mut damage) = (0, 0);
        let extent = Extent::Sealed(bytes.len() as u64);
        scan(bytes, NUMBER, 0, extent, &mut |part| match part {
            Found::Record { payload, .. } => {
                assert_eq!(payload, b"short");
                records += 1;
            }
            Found::Damaged { len, .. } => damage += len,
        });
        (records, damage)
    }

    #[test]
    fn the_record_behind_a_damaged_one_is_found() {
        let lost = RECORD_HEADER_LEN + LONG;
        assert_eq!(found(&damaged(0)), (1, lost));
        // Lengths beyond the end of the group cost no check.
        assert_eq!(found(&damaged(0xFFFF_FFFF)), (1, lost));
    }

    #[test]
    fn damage_that_looks_like_many_long_records_is_searched_up_to_a_limit() {
        let all = 2 * RECORD_HEADER_LEN + LONG + b"short".len();
        // Each of the words is the length of a record that ends within the group.
        assert_eq!(found(&damaged(10_000)), (0, all));
        let lost = RECORD_HEADER_LEN + LONG;
        assert_eq!(found(&damaged(200)), (1, lost));
    }
}
