//! Timelines in the order of their last changes, linked through themselves.

use slab::Slab;

use super::story::Story;

/// The stories of one kind, the one that has not changed for the longest time first.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) first: Option<u32>,
    last: Option<u32>,
    /// Memory of the stories in bytes.
    pub(super) bytes: usize,
}

/// The orders of both kinds of stories.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Of clients that have been admitted.
    known: Order,
    /// Of clients of which only refused CONNECTs are known.
    strangers: Order,
}

impl Orders {
    pub(super) const fn of(&mut self, is_of_stranger: bool) -> &mut Order {
        if is_of_stranger {
            &mut self.strangers
        } else {
            &mut self.known
        }
    }

    /// Memory of all stories in bytes.
    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.known.bytes + self.strangers.bytes
    }
}

impl Order {
    /// Adds a story as the last one.
    pub(super) fn push(&mut self, stories: &mut Slab<Story>, number: u32) {
        let before = self.last.replace(number);
        if let Some(before) = before {
            stories[before as usize].behind = Some(number);
        } else {
            self.first = Some(number);
        }
        let story = &mut stories[number as usize];
        (story.before, story.behind) = (before, None);
    }

    /// Removes a story.
    pub(super) fn remove(&mut self, stories: &mut Slab<Story>, number: u32) {
        let story = &stories[number as usize];
        let (before, behind) = (story.before, story.behind);
        match before {
            Some(before) => stories[before as usize].behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => stories[behind as usize].before = before,
            None => self.last = before,
        }
    }
}
