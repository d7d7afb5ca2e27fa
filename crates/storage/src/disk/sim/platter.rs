//! Content of the simulated disk: the content that reads return, the content that survives, and the
//! random decisions about the rest.

use std::collections::BTreeMap;

use super::{Faults, SECTOR};

#[derive(Debug, Default)]
pub(super) struct Content {
    /// The content that survives a crash.
    pub(super) safe: Vec<u8>,
    /// The content that reads return.
    pub(super) seen: Vec<u8>,
    /// Offset and bytes of each write since the last sync.
    pub(super) dirty: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug)]
pub(super) enum NameChange {
    Set(String, u64),
    Remove(String),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) random: u64,
    pub(super) faults: Faults,
    pub(super) crashed: bool,
    pub(super) is_open: bool,
    pub(super) is_moved: bool,
    pub(super) epoch: u64,
    pub(super) next_file: u64,
    pub(super) files: BTreeMap<u64, Content>,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) safe_names: BTreeMap<String, u64>,
    pub(super) name_changes: Vec<NameChange>,
    pub(super) changes: u64,
    pub(super) micros: u64,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: seed,
            faults: Faults::default(),
            crashed: false,
            is_open: false,
            is_moved: false,
            epoch: 0,
            next_file: 0,
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            safe_names: BTreeMap::new(),
            name_changes: Vec::new(),
            changes: 0,
            micros: 0,
        }
    }

    /// Simulates a power failure: each unsynced change is lost or kept.
    pub(super) fn lose_power(&mut self) {
        self.lose_names();
        let mood = self.below(4);
        let mut files = std::mem::take(&mut self.files);
        for content in files.values_mut() {
            self.save_some(content, mood);
            content.seen.clone_from(&content.safe);
        }
        self.files = files;
    }

    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub(super) fn below_len(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap_or(0)
    }

    pub(super) fn happens(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.below(1000) < u64::from(thousandths)
    }

    pub(super) fn new_file(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file
    }

    pub(super) fn restart(&mut self) {
        self.crashed = false;
        self.is_open = false;
        self.epoch += 1;
        self.faults = Faults::default();
    }

    /// The file system journals changes of names in order: the first ones are durable, the rest is
    /// lost.
    pub(super) fn lose_names(&mut self) {
        let kept = self.below_len(self.name_changes.len() + 1);
        let changes = std::mem::take(&mut self.name_changes);
        apply_names(&mut self.safe_names, changes.into_iter().take(kept));
        self.names = self.safe_names.clone();
    }

    /// Saves a part of the writes that depends on `mood`: none (0), all (1), or a selection of
    /// sectors, some of them torn.
    ///
    /// A sector gets the content of some moment: the first writes to it, in order, and none or a
    /// part of the next one.
    pub(super) fn save_some(&mut self, content: &mut Content, mood: u64) {
        let mut sectors: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for (offset, bytes) in std::mem::take(&mut content.dirty) {
            for (at, piece) in pieces(offset, &bytes) {
                let list = sectors.entry(at / SECTOR).or_default();
                list.push((at, piece.to_vec()));
            }
        }
        for list in sectors.into_values() {
            let whole = match mood {
                0 => 0,
                1 => list.len(),
                _ => self.below_len(list.len() + 1),
            };
            let tears = mood > 1 && self.below(2) == 0;
            for (number, (at, piece)) in list.into_iter().enumerate() {
                let kept = match number {
                    number if number < whole => piece.len(),
                    number if number == whole && tears => self.below_len(piece.len() + 1),
                    _ => 0,
                };
                put(&mut content.safe, at, piece.get(..kept).unwrap_or_default());
            }
        }
    }

    pub(super) fn used(&self) -> u64 {
        let named = self.names.values().filter_map(|id| self.files.get(id));
        named.map(|content| content.seen.len() as u64).sum()
    }
}

/// Offset and bytes of a write within one sector.
type Piece = (usize, Vec<u8>);

/// Splits a write at the sector boundaries.
fn pieces(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let start = offset + at;
        let len = rest.len().min(SECTOR - start % SECTOR);
        at += len;
        rest.get(..len).map(|piece| (start, piece))
    })
}

pub(super) fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    if let Some(place) = file.get_mut(offset..end) {
        place.copy_from_slice(bytes);
    }
}

pub(super) fn apply_names(
    names: &mut BTreeMap<String, u64>,
    changes: impl Iterator<Item = NameChange>,
) {
    for change in changes {
        match change {
            NameChange::Set(name, id) => names.insert(name, id),
            NameChange::Remove(name) => names.remove(&name),
        };
    }
}
