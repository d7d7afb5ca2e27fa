//! A cursor on the levels of a topic that moves down and up.

use crate::levels::{LevelId, Levels};
use crate::run::Step;

/// The current level of a topic, or the end after the last one.
///
/// Offsets and ids of the first `LEVELS` levels are cached, so that returning to a level costs
/// nothing. Deeper levels are looked up at each visit.
pub(crate) struct TopicWalk<'a, const LEVELS: usize> {
    topic: &'a [u8],
    levels: &'a Levels,
    depth: usize,
    /// First byte of the current level; past the topic's length at the end.
    start: usize,
    /// Byte after the current level; undefined at the end.
    stop: usize,
    stops: [usize; LEVELS],
    /// `None` until the first lookup; then [`LevelId::LAST`] for a text that no filter has.
    ids: [Option<LevelId>; LEVELS],
    remembered: usize,
}

impl<'a, const LEVELS: usize> TopicWalk<'a, LEVELS> {
    pub(crate) fn new(topic: &'a str, levels: &'a Levels) -> Self {
        let mut walk = Self {
            topic: topic.as_bytes(),
            levels,
            depth: 0,
            start: 0,
            stop: 0,
            stops: [0; LEVELS],
            ids: [None; LEVELS],
            remembered: 0,
        };
        walk.arrive();
        walk
    }

    /// The same position in a walk that caches more levels.
    pub(crate) fn with_more_memory<const MORE: usize>(&self) -> TopicWalk<'a, MORE> {
        let mut walk = TopicWalk {
            topic: self.topic,
            levels: self.levels,
            depth: self.depth,
            start: self.start,
            stop: self.stop,
            stops: [0; MORE],
            ids: [None; MORE],
            remembered: self.remembered,
        };
        walk.stops[..LEVELS].copy_from_slice(&self.stops);
        walk.ids[..LEVELS].copy_from_slice(&self.ids);
        if !walk.is_at_end() {
            // The current level may be the first one that the other walk could not cache.
            walk.arrive();
        }
        walk
    }

    /// Number of levels above the current one.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the walk is after the last level.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.start > self.topic.len()
    }

    /// Moves to the next level or the end. Must not be called at the end.
    pub(crate) fn down(&mut self) {
        self.depth += 1;
        self.start = self.stop + 1;
        if !self.is_at_end() {
            self.arrive();
        }
    }

    /// Finds the end of the level that starts here.
    fn arrive(&mut self) {
        if self.depth < self.remembered {
            self.stop = self.stops[self.depth];
            return;
        }
        let rest = &self.topic[self.start..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'/')
            .unwrap_or(rest.len());
        self.stop = self.start + length;
        if let Some(stop) = self.stops.get_mut(self.depth) {
            *stop = self.stop;
            self.remembered = self.depth + 1;
        }
    }

    /// Moves down while the levels equal the given ones, and returns the number of equal levels.
    #[inline(never)]
    pub(crate) fn follow(&mut self, wanted: &[Step]) -> usize {
        let ids = self.ids.get(self.depth..self.remembered).unwrap_or(&[]);
        let is_same = |(step, id): &(&Step, &Option<LevelId>)| step.is_none() || step == id;
        let same = wanted.iter().zip(ids).take_while(is_same).count();
        if same > 0 {
            // Moves down from the last of them, which may be the last level of the topic.
            self.depth += same - 1;
            self.stop = self.stops[self.depth];
            self.down();
        }
        let rest = wanted[same..].iter();
        same + rest.take_while(|step| self.down_if(**step)).count()
    }

    /// Moves down if the level equals the given one.
    fn down_if(&mut self, wanted: Step) -> bool {
        let is_wanted = !self.is_at_end() && (wanted.is_none() || self.level() == wanted);
        if is_wanted {
            self.down();
        }
        is_wanted
    }

    /// Moves up by this number of levels, which must not exceed the number above.
    pub(crate) fn up(&mut self, levels: usize) {
        self.depth -= levels;
        if let Some(stop) = self.stops.get(self.depth) {
            self.stop = *stop;
            let before = self.stops.get(self.depth.wrapping_sub(1));
            self.start = before.map_or(0, |stop| stop + 1);
            return;
        }
        for _ in 0..levels {
            self.stop = self.start - 1;
            let before = &self.topic[..self.stop];
            self.start = before
                .iter()
                .rposition(|&byte| byte == b'/')
                .map_or(0, |slash| slash + 1);
        }
    }

    /// The id of the current level, if any filter uses its text. Must not be called at the end.
    #[inline]
    pub(crate) fn level(&mut self) -> Option<LevelId> {
        let known = self.ids.get(self.depth).copied().flatten();
        let id = known.unwrap_or_else(|| self.look_up());
        Some(id).filter(|id| *id != LevelId::LAST)
    }

    #[inline(never)]
    fn look_up(&mut self) -> LevelId {
        let text = &self.topic[self.start..self.stop];
        let id = self.levels.find(text).unwrap_or(LevelId::LAST);
        if let Some(place) = self.ids.get_mut(self.depth) {
            *place = Some(id);
        }
        id
    }
}
