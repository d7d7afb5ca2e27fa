//! A place in a topic that moves level by level, down and up.

use crate::levels::{LevelId, Levels};

/// Ids of so many first levels are remembered, so that coming back to a level costs nothing. Deeper
/// levels are looked up at each visit.
const REMEMBERED: usize = 16;

/// The current level of a topic, or the end after the last one.
pub(crate) struct TopicWalk<'a> {
    topic: &'a [u8],
    levels: &'a Levels,
    depth: usize,
    /// First byte of the current level; past the topic's length at the end.
    start: usize,
    /// Byte after the current level; meaningless at the end.
    stop: usize,
    remembered: [Remembered; REMEMBERED],
    remembered_count: usize,
}

#[derive(Clone, Copy)]
struct Remembered {
    start: usize,
    stop: usize,
    known: Known,
}

#[derive(Clone, Copy)]
enum Known {
    NotYet,
    As(Option<LevelId>),
}

impl<'a> TopicWalk<'a> {
    pub(crate) fn new(topic: &'a str, levels: &'a Levels) -> Self {
        let mut walk = Self {
            topic: topic.as_bytes(),
            levels,
            depth: 0,
            start: 0,
            stop: 0,
            remembered: [Remembered {
                start: 0,
                stop: 0,
                known: Known::NotYet,
            }; REMEMBERED],
            remembered_count: 0,
        };
        walk.arrive_from_above();
        walk
    }

    /// After the last level.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.start > self.topic.len()
    }

    /// To the next level or the end. Must not be called at the end.
    pub(crate) fn down(&mut self) {
        self.depth += 1;
        self.start = self.stop + 1;
        if !self.is_at_end() {
            self.arrive_from_above();
        }
    }

    fn arrive_from_above(&mut self) {
        if self.depth < self.remembered_count {
            self.stop = self.remembered[self.depth].stop;
            return;
        }
        let rest = &self.topic[self.start..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'/')
            .unwrap_or(rest.len());
        self.stop = self.start + length;
        if self.depth < REMEMBERED {
            self.remembered[self.depth] = Remembered {
                start: self.start,
                stop: self.stop,
                known: Known::NotYet,
            };
            self.remembered_count = self.depth + 1;
        }
    }

    /// To the previous level. Must not be called at the first level.
    pub(crate) fn up(&mut self) {
        self.depth -= 1;
        if let Some(level) = self.remembered.get(self.depth) {
            self.start = level.start;
            self.stop = level.stop;
            return;
        }
        self.stop = self.start - 1;
        let before = &self.topic[..self.stop];
        self.start = before
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
    }

    /// The id of the current level, if any filter uses its text. Must not be called at the end.
    pub(crate) fn level(&mut self) -> Option<LevelId> {
        let text = &self.topic[self.start..self.stop];
        match self.remembered.get_mut(self.depth) {
            None => self.levels.find(text),
            Some(Remembered {
                known: Known::As(id),
                ..
            }) => *id,
            Some(level) => {
                let found = self.levels.find(text);
                level.known = Known::As(found);
                found
            }
        }
    }
}
