//! A byte string as a source of decisions.

use alloc::string::String;
use alloc::vec::Vec;

/// Draws decisions from bytes; after the last byte, every decision is the simplest one.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

/// Strings that often expose faults in decoders.
const TEXTS: [&str; 14] = [
    "a",
    "bc",
    "sensor",
    "",
    "ü",
    "€",
    "😀",
    "\u{FEFF}",
    "\u{FEFF}a",
    "\u{1}",
    "\u{7F}",
    "\u{FFFF}",
    "\u{10FFFF}",
    "with space",
];

const LEVELS: [&str; 10] = ["a", "b", "sport", "", "$SYS", "$", "ü", " ", "A", "a b"];

/// Lengths on both sides of each step of a variable byte integer, up to three bytes.
const LENGTHS: [usize; 8] = [0, 1, 3, 20, 121, 127, 128, 16_384];

impl<'a> Choices<'a> {
    /// Creates a source of decisions from these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte, or 0.
    pub fn byte(&mut self) -> u8 {
        self.rest.split_off_first().copied().unwrap_or(0)
    }

    /// A number below `count`, which is not 0 and at most 256.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// A boolean; `false` is the simpler value.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Any 16-bit number.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Any 32-bit number.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// One of the values; the first is the simplest.
    ///
    /// # Panics
    /// If `values` is empty.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        let index = self.below(values.len());
        values
            .get(index)
            .copied()
            .expect("the index is below the length")
    }

    /// A value or `None`, which is simpler.
    pub fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(draw(self)) } else { None }
    }

    /// Text without U+0000, sometimes empty, at times over 255 bytes.
    pub fn text(&mut self) -> String {
        let text = self.one_of(&TEXTS);
        let times = if self.byte() == 255 { 300 } else { 1 };
        text.repeat(times)
    }

    /// Bytes, up to 16 KiB.
    pub fn blob(&mut self) -> Vec<u8> {
        let len = self.one_of(&LENGTHS);
        let first = self.byte();
        (0..len)
            .map(|_| 0)
            .scan(first, |byte, _: u8| {
                *byte = byte.wrapping_mul(5).wrapping_add(3);
                Some(*byte)
            })
            .collect()
    }

    /// A valid topic name.
    pub fn topic(&mut self) -> String {
        let topic = self.levels(&LEVELS);
        if topic.is_empty() {
            String::from("/")
        } else {
            topic
        }
    }

    /// A valid topic filter without share prefix.
    pub fn filter(&mut self) -> String {
        let mut filter = self.levels(&["a", "+", "b", "sport", "", "$SYS", "+", "ü", "+", "A"]);
        if self.byte() & 0b11 == 0b11 {
            filter = if filter.is_empty() {
                String::from("#")
            } else {
                filter + "/#"
            };
        }
        if filter.is_empty() {
            String::from("/")
        } else {
            filter
        }
    }

    /// The share prefix of a filter, usually empty.
    pub fn share_prefix(&mut self) -> &'static str {
        self.one_of(&[
            "",
            "",
            "",
            "",
            "$share/g/",
            "$share/$share/",
            "$share/ü/",
            "$queue/",
        ])
    }

    fn levels(&mut self, levels: &[&str]) -> String {
        let count = 1 + self.below(5);
        let drawn: Vec<&str> = (0..count).map(|_| self.one_of(levels)).collect();
        drawn.join("/")
    }
}
