//! Timer wheel of a worker, for keep alive, delayed wills, session expiry and slow handshakes.
//!
//! Entries are never cancelled: when one fires, its owner checks whether a deadline has passed and
//! arms the next one. So activity on a connection needs no timer work.

use std::time::Duration;

use thrum_protocol::Time;

/// Length of a tick. Deadlines have a resolution of seconds, for which a delay of a sixteenth is
/// negligible.
const TICK_MILLIS: u64 = 64;
const SLOT_BITS: u64 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 4;
const TOP_LEVEL: usize = 3;
/// Ticks that the wheel covers, 64^4 (12 days); entries with later deadlines are placed at its end
/// and inserted again from there.
const REACH_TICKS: u64 = 1 << (SLOT_BITS * LEVELS as u64);

/// Greatest distance of an entry in ticks, 4 years; an entry with a later deadline fires then.
const AHEAD_TICKS_MAX: u64 = 1 << 31;

/// An armed timer, which is small as every connection has one.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// The lower half of the tick, which is sufficient as the tick is less than [`AHEAD_TICKS_MAX`]
    /// ahead.
    tick: u32,
    target: T,
}

/// A hierarchical wheel of four levels with 64 slots each.
#[derive(Debug)]
pub struct TimerWheel<T> {
    levels: [[Vec<Entry<T>>; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    tick: u64,
    len: usize,
}

impl<T: Copy> TimerWheel<T> {
    /// Creates a wheel without entries.
    pub fn new(now: Time) -> Self {
        Self {
            levels: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            occupied: [0; LEVELS],
            tick: now.as_millis() / TICK_MILLIS,
            len: 0,
        }
    }

    /// Arms an entry; it fires at the deadline or up to one tick after it, never before.
    pub fn insert(&mut self, deadline: Time, target: T) {
        let due = deadline
            .as_millis()
            .div_ceil(TICK_MILLIS)
            .clamp(self.tick + 1, self.tick + AHEAD_TICKS_MAX - 1);
        self.len += 1;
        let tick = lower_half(due);
        self.place(Entry { tick, target });
    }

    /// Number of armed entries.
    #[cfg(any(test, feature = "testing"))]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry is armed.
    #[cfg(any(test, feature = "testing"))]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Time until the next call of [`TimerWheel::advance`] is due; none if the wheel is empty.
    pub fn next_wait(&self, now: Time) -> Option<Duration> {
        if self.len == 0 {
            return None;
        }
        let due = (0..LEVELS)
            .filter_map(|level| self.next_tick_of(level))
            .min()?;
        Some(Time::from_millis(due * TICK_MILLIS).since(now))
    }

    /// Advances to `now` and appends the entries that are due to `fired`.
    pub fn advance(&mut self, now: Time, fired: &mut Vec<T>) {
        let end = now.as_millis() / TICK_MILLIS;
        while self.tick < end {
            let Some(next) = (0..LEVELS)
                .filter_map(|level| self.next_tick_of(level))
                .min()
            else {
                self.tick = end;
                return;
            };
            if next > end {
                self.tick = end;
                return;
            }
            self.tick = next;
            self.turn(fired);
        }
    }

    fn turn(&mut self, fired: &mut Vec<T>) {
        for level in (0..LEVELS).rev() {
            let span = SLOT_BITS * level as u64;
            if self.tick & ((1 << span) - 1) != 0 {
                continue;
            }
            let slot = slot_of(self.tick, level);
            if self.occupied[level] & (1 << slot) == 0 {
                continue;
            }
            self.occupied[level] &= !(1 << slot);
            for entry in std::mem::take(&mut self.levels[level][slot]) {
                self.fire_or_place(entry, fired);
            }
        }
    }

    fn fire_or_place(&mut self, entry: Entry<T>, fired: &mut Vec<T>) {
        if self.ticks_until(entry) == 0 {
            self.len -= 1;
            fired.push(entry.target);
        } else {
            self.place(entry);
        }
    }

    fn place(&mut self, entry: Entry<T>) {
        let distance = self.ticks_until(entry).min(REACH_TICKS - 1);
        let tick = self.tick + distance;
        let level = (0..TOP_LEVEL)
            .find(|level| distance < 1 << (SLOT_BITS * (*level as u64 + 1)))
            .unwrap_or(TOP_LEVEL);
        let slot = slot_of(tick, level);
        self.levels[level][slot].push(entry);
        self.occupied[level] |= 1 << slot;
    }

    /// Ticks until an entry is due; 0 if it is due.
    fn ticks_until(&self, entry: Entry<T>) -> u64 {
        let ahead = entry.tick.wrapping_sub(lower_half(self.tick)).into();
        if ahead < AHEAD_TICKS_MAX { ahead } else { 0 }
    }

    /// The next tick at which a slot of this level has to be processed.
    fn next_tick_of(&self, level: usize) -> Option<u64> {
        if self.occupied[level] == 0 {
            return None;
        }
        let span = SLOT_BITS * level as u64;
        let current = self.tick >> span;
        let shift = u32::try_from((current + 1) % SLOTS as u64).unwrap_or(0);
        let ahead = self.occupied[level].rotate_right(shift).trailing_zeros();
        Some((current + 1 + u64::from(ahead)) << span)
    }
}

/// The lower 32 bits of a number.
pub fn lower_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn slot_of(tick: u64, level: usize) -> usize {
    let shifted = (tick >> (SLOT_BITS * level as u64)) % SLOTS as u64;
    usize::try_from(shifted).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired_between(
        wheel: &mut TimerWheel<u32>,
        from: u64,
        to: u64,
        step: u64,
    ) -> Vec<(u64, u32)> {
        let mut result = Vec::new();
        let mut at = from;
        while at <= to {
            let mut fired = Vec::new();
            wheel.advance(Time::from_millis(at), &mut fired);
            result.extend(fired.into_iter().map(|target| (at, target)));
            at += step;
        }
        result
    }

    #[test]
    fn every_entry_fires_once_and_never_early() {
        let start = 987_654;
        let mut wheel = TimerWheel::new(Time::from_millis(start));
        let delays = [
            0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 60_000, 262_143, 262_144, 300_000, 5_000_000,
        ];
        for (number, delay) in delays.iter().enumerate() {
            wheel.insert(
                Time::from_millis(start + delay),
                u32::try_from(number).unwrap(),
            );
        }
        let fired = fired_between(&mut wheel, start, start + 5_100_000, 10);
        assert_eq!(fired.len(), delays.len());
        for (at, number) in fired {
            let due = start + delays[number as usize];
            assert!(at >= due, "{number} fired {} ms early", due - at);
            assert!(
                at - due <= 2 * TICK_MILLIS + 10,
                "{number} fired {} ms late",
                at - due
            );
        }
        assert!(wheel.next_wait(Time::from_millis(start)).is_none());
    }

    #[test]
    fn one_long_jump_fires_everything_due() {
        let mut wheel = TimerWheel::new(Time::from_millis(0));
        for number in 0..1000_u32 {
            wheel.insert(Time::from_millis(u64::from(number) * 977), number);
        }
        let mut fired = Vec::new();
        wheel.advance(Time::from_millis(1_000_000), &mut fired);
        fired.sort_unstable();
        assert_eq!(fired, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn the_wait_never_passes_the_deadline_by_more_than_a_tick() {
        let mut wheel = TimerWheel::new(Time::from_millis(0));
        wheel.insert(Time::from_millis(450_000), 7);
        let mut now = Time::from_millis(0);
        let mut turns = 0;
        let mut fired = Vec::new();
        while fired.is_empty() {
            now = now.plus(wheel.next_wait(now).expect("an entry is armed"));
            wheel.advance(now, &mut fired);
            turns += 1;
            assert!(turns < 10, "the wheel must sleep, not spin");
        }
        assert!((450_000..450_000 + 2 * TICK_MILLIS).contains(&now.as_millis()));
    }

    /// Checks that an entry fires at its deadline, that many ticks after the start.
    fn fires_after_ticks(start: u64, ticks: u64) {
        let mut wheel = TimerWheel::new(Time::from_millis(start * TICK_MILLIS));
        let due = (start + ticks) * TICK_MILLIS;
        wheel.insert(Time::from_millis(due), 1);
        let mut fired = Vec::new();
        wheel.advance(Time::from_millis(due - 1000), &mut fired);
        assert!(fired.is_empty());
        wheel.advance(Time::from_millis(due + TICK_MILLIS), &mut fired);
        assert_eq!(fired, [1]);
    }

    #[test]
    fn a_deadline_beyond_the_reach_is_kept() {
        fires_after_ticks(0, REACH_TICKS + 5);
    }

    #[test]
    fn a_deadline_beyond_the_end_of_the_counted_ticks_is_kept() {
        let end = u64::from(u32::MAX);
        for start in [end - 70, end, 5 * end + 17] {
            for ticks in [100, 5000, REACH_TICKS + 5] {
                fires_after_ticks(start, ticks);
            }
        }
    }

    #[test]
    fn a_deadline_that_is_years_away_does_not_fire_at_once() {
        for deadline in [u64::MAX, (AHEAD_TICKS_MAX + 1) * TICK_MILLIS] {
            let mut wheel = TimerWheel::new(Time::from_millis(0));
            wheel.insert(Time::from_millis(deadline), 1);
            assert_eq!((wheel.len(), wheel.is_empty()), (1, false));
            let mut fired = Vec::new();
            wheel.advance(Time::from_millis(REACH_TICKS * TICK_MILLIS * 3), &mut fired);
            assert_eq!(fired, Vec::<u32>::new());
            wheel.advance(
                Time::from_millis((AHEAD_TICKS_MAX + 2) * TICK_MILLIS),
                &mut fired,
            );
            assert_eq!(fired, [1]);
            assert!(wheel.is_empty());
        }
    }

    #[test]
    fn an_entry_adds_four_bytes_to_its_target() {
        assert_eq!(size_of::<Entry<[u32; 3]>>(), 16);
    }
}
