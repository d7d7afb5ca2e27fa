//! Changes to be logged: encoded by their origin, in units that are recovered completely or not at
//! all.

use super::encode::encode;
use super::{Change, Malformed};

/// Length of the word before each record, which contains its length and whether it ends a unit.
pub(crate) const WORD_LEN: usize = 4;
/// Set in the word of a unit's last record.
pub(crate) const UNIT_END: u32 = 1 << 31;

/// Encoded changes of one worker, in order, divided into units.
///
/// After a crash all changes of a unit are recovered or none, so related changes belong into one:
/// the message and the deliveries of a PUBLISH, the old and the new retained message. A reused
/// buffer needs no allocation.
#[derive(Debug, Default)]
pub struct Batch {
    /// Word and payload of each record.
    bytes: Vec<u8>,
    /// Offset of the last record's word while its unit is open.
    open: Option<usize>,
    records: u32,
}

impl Batch {
    /// Appends a change to the open unit, or opens one. The variable parts must be below 2³¹ bytes
    /// in total.
    pub fn push(&mut self, change: &Change<'_>) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; WORD_LEN]);
        encode(change, &mut self.bytes);
        let len = self.bytes.len() - at - WORD_LEN;
        // A change that cannot be written must not be acknowledged; only a bug in this program
        // produces one.
        assert!(len < UNIT_END as usize, "a change of {len} bytes");
        self.set_word(at, u32::try_from(len).unwrap_or(0));
        self.open = Some(at);
        self.records += 1;
    }

    /// Ends the open unit, if there is one.
    pub fn end_unit(&mut self) {
        if let Some(at) = self.open.take() {
            let word = word_at(&self.bytes, at).unwrap_or(0);
            self.set_word(at, word | UNIT_END);
        }
    }

    /// Whether it has no changes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Length of the encoded changes in bytes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Number of changes.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Allocated bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.open = None;
        self.records = 0;
    }

    /// The records; the caller must have ended the last unit.
    pub(crate) fn units(&self) -> Units<'_> {
        Units(&self.bytes)
    }

    fn set_word(&mut self, at: usize, word: u32) {
        if let Some(place) = self.bytes.get_mut(at..at + WORD_LEN) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Iterates over consecutive records, each a word and a payload.
#[derive(Debug)]
pub(crate) struct Units<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Units<'a> {
    /// The payload, and whether it ends a unit.
    type Item = (&'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let word = word_at(self.0, 0)?;
        let len = (word & !UNIT_END) as usize;
        let (payload, rest) = self.0.get(WORD_LEN..)?.split_at_checked(len)?;
        self.0 = rest;
        Some((payload, word & UNIT_END != 0))
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    let (word, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

impl Batch {
    /// Decodes the changes, each with whether it ends a unit.
    ///
    /// # Errors
    ///
    /// [`Malformed`] never occurs for changes that [`Batch::push`] wrote.
    pub fn changes(&self) -> impl Iterator<Item = Result<(Change<'_>, bool), Malformed>> {
        self.units()
            .map(|(payload, is_end)| Ok((super::decode(payload)?, is_end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(session: u64) -> Change<'static> {
        Change::SessionRemoved { session }
    }

    #[test]
    fn changes_are_decoded_in_order_and_in_their_units() {
        let mut batch = Batch::default();
        batch.push(&removed(1));
        batch.push(&removed(2));
        batch.end_unit();
        batch.end_unit();
        batch.push(&removed(3));
        batch.end_unit();
        let all: Vec<_> = batch.changes().map(Result::unwrap).collect();
        assert_eq!(
            all,
            [(removed(1), false), (removed(2), true), (removed(3), true)]
        );
        assert_eq!(batch.records(), 3);
        // A word of 4 bytes, the tag and the number of the session.
        assert_eq!(batch.bytes_len(), 3 * 13);
        assert!(batch.capacity() >= batch.bytes_len());
    }

    #[test]
    fn a_cleared_batch_equals_a_new_one() {
        let mut batch = Batch::default();
        batch.push(&removed(1));
        let capacity = batch.capacity();
        batch.clear();
        assert_eq!((batch.bytes_len(), batch.records()), (0, 0));
        assert_eq!(batch.capacity(), capacity, "its memory stays");
        batch.end_unit();
        assert!(batch.is_empty());
        assert_eq!(batch.changes().count(), 0);
    }
}
