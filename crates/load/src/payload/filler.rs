//! Values for placeholders: one set for each thread, so that no state is shared.

use thrum_figures::utc_text;

/// The last millisecond of the year 9999: later ones have no text of four digits for the year.
const UNIX_MS_MAX: u64 = 253_402_300_799_999;

/// Client, time and random numbers for the places of a text.
#[derive(Clone, Debug)]
pub struct Filler {
    client: u32,
    unix_ms: u64,
    random: u64,
    /// The text of a second, kept because the next message is most likely sent in the same one.
    second: u64,
    second_text: String,
}

impl Filler {
    /// Random numbers follow from the seed alone; each thread needs its own.
    pub const fn new(seed: u64) -> Self {
        Self {
            client: 0,
            unix_ms: 0,
            random: seed,
            second: u64::MAX,
            second_text: String::new(),
        }
    }

    /// Sets the client of the next message, and the time in milliseconds since 1970.
    pub fn set(&mut self, client: u32, unix_ms: u64) {
        self.client = client;
        self.unix_ms = unix_ms.min(UNIX_MS_MAX);
    }

    pub(super) const fn client(&self) -> u32 {
        self.client
    }

    pub(super) const fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    /// The time to the second, without its time zone: `2026-11-21T09:12:03`.
    pub(super) fn second_text(&mut self) -> &str {
        let second = self.unix_ms / 1_000;
        if second != self.second {
            self.second = second;
            self.second_text = utc_text(second);
            self.second_text.pop();
        }
        &self.second_text
    }

    /// The next random number (SplitMix64).
    pub(super) const fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_published_generator() {
        let mut filler = Filler::new(1_234_567);
        let numbers = [filler.random(), filler.random(), filler.random()];
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn the_text_of_a_time_follows_the_time() {
        let mut filler = Filler::new(0);
        for (unix_ms, text) in [
            (1_795_252_323_250, "2026-11-21T09:12:03"),
            (1_795_252_323_999, "2026-11-21T09:12:03"),
            (1_795_252_324_000, "2026-11-21T09:12:04"),
            (u64::MAX, "9999-12-31T23:59:59"),
        ] {
            filler.set(1, unix_ms);
            assert_eq!(filler.second_text(), text);
        }
    }
}
