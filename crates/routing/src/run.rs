//! The levels of a filter as numbers, several consecutive ones together.

use alloc::boxed::Box;

use crate::levels::LevelId;
use crate::slab::Slab;

/// A level of a filter: its text, or `None` for `+`.
pub(crate) type Step = Option<LevelId>;

#[derive(Debug)]
enum ShortRun {
    Two([Step; 2]),
    Three([Step; 3]),
}

/// Runs of two or more steps. Most are short; these need no allocation of their own.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    short: Slab<ShortRun>,
    long: Slab<Box<[Step]>>,
}

impl Runs {
    /// Adds a run and returns its number, which is below 2^31.
    pub(crate) fn insert(&mut self, steps: &[Step]) -> u32 {
        let short = match *steps {
            [first, second] => ShortRun::Two([first, second]),
            [first, second, third] => ShortRun::Three([first, second, third]),
            _ => return self.long.insert(steps.into()) << 1 | 1,
        };
        self.short.insert(short) << 1
    }

    pub(crate) fn steps(&self, number: u32) -> &[Step] {
        if number & 1 == 1 {
            return &self.long[number >> 1];
        }
        match &self.short[number >> 1] {
            ShortRun::Two(steps) => steps,
            ShortRun::Three(steps) => steps,
        }
    }

    /// Removes a run; its number is reused afterwards.
    pub(crate) fn remove(&mut self, number: u32) {
        if number & 1 == 1 {
            self.long.remove(number >> 1);
        } else {
            self.short.remove(number >> 1);
        }
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let heap: usize = self.long.iter().map(|steps| size_of_val(&**steps)).sum();
        heap + self.short.memory_bytes() + self.long.memory_bytes()
    }
}
