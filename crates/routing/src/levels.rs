//! Topic levels as small numbers: equal texts have one id while they are in use.

use core::num::NonZeroU32;

use crate::hashing::{Hashing, IdTable};
use crate::slab::Slab;
use crate::text::Text;

/// Identifies the text of one topic level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LevelId(NonZeroU32);

impl LevelId {
    pub(crate) const FIRST: Self = Self(NonZeroU32::MIN);
    /// An id without text: a slab has fewer than 2^30 values.
    pub(crate) const LAST: Self = Self(NonZeroU32::MAX);

    const fn from_index(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    const fn index(self) -> u32 {
        self.0.get() - 1
    }

    /// `None` for 0; any other number must come from [`Self::number`].
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0.get()
    }
}

/// The texts in use, each stored once with a reference count.
#[derive(Debug)]
pub(crate) struct Levels {
    hashing: Hashing,
    ids: IdTable,
    texts: Slab<Level>,
}

#[derive(Debug)]
struct Level {
    text: Text,
    users: u32,
    hash: u32,
}

impl Levels {
    pub(crate) fn new(hashing: Hashing) -> Self {
        Self {
            hashing,
            ids: IdTable::default(),
            texts: Slab::new(),
        }
    }

    pub(crate) fn find(&self, text: &[u8]) -> Option<LevelId> {
        let index = self.find_hashed(text, self.hashing.text(text))?;
        Some(LevelId::from_index(index))
    }

    fn find_hashed(&self, text: &[u8], hash: u32) -> Option<u32> {
        self.ids
            .find(hash, |index| self.texts[index].text.as_bytes() == text)
    }

    /// Adds a reference to a text; [`Self::release`] removes it.
    pub(crate) fn acquire(&mut self, text: &str) -> LevelId {
        let hash = self.hashing.text(text.as_bytes());
        let index = self.find_hashed(text.as_bytes(), hash).unwrap_or_else(|| {
            let index = self.texts.insert(Level {
                text: Text::new(text),
                users: 0,
                hash,
            });
            self.ids.insert(hash, index);
            index
        });
        self.texts[index].users += 1;
        LevelId::from_index(index)
    }

    /// Removes a reference; the text is removed with its last one.
    pub(crate) fn release(&mut self, id: LevelId) {
        let level = &mut self.texts[id.index()];
        level.users -= 1;
        if level.users == 0 {
            let hash = level.hash;
            self.ids.remove(hash, id.index());
            self.texts.remove(id.index());
        }
    }

    /// Releases several levels; those without a text have no id.
    pub(crate) fn release_all(&mut self, levels: &[Option<LevelId>]) {
        for level in levels.iter().flatten() {
            self.release(*level);
        }
    }

    pub(crate) fn text(&self, id: LevelId) -> &str {
        self.texts[id.index()].text.as_str()
    }

    /// Number of texts in use.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.texts.len()
    }

    /// Number of references to a text.
    #[cfg(test)]
    pub(crate) fn users(&self, id: LevelId) -> u32 {
        self.texts[id.index()].users
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let heap: usize = self.texts.iter().map(|level| level.text.heap_bytes()).sum();
        heap + self.texts.memory_bytes() + self.ids.memory_bytes()
    }
}
