//! Wall-clock times recorded at moments of the log time, from which the next start derives the log
//! time.

/// Milliseconds of log time, which all stored times use. It starts with the wall clock at the first
/// start and continues with the monotonic clock of each process; setting the wall clock does not
/// affect it.
pub type LogMillis = u64;

/// Milliseconds of wall-clock time since the Unix epoch.
pub type WallMillis = u64;

/// A wall clock before this time (1 January 2024) was never set: machines without a battery start
/// in 1970, or at the build time of their system.
const WALL_CLOCK_UNSET_BEFORE: WallMillis = 1_704_067_200_000;

/// The wall-clock time at a moment of the log time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockNote {
    /// Log time of the moment.
    pub at: LogMillis,
    /// Wall-clock time of the moment.
    pub wall: WallMillis,
    /// Log time of the moment, up to this one, with the latest wall-clock time.
    pub latest_at: LogMillis,
    /// That wall-clock time.
    pub latest_wall: WallMillis,
}

impl ClockNote {
    /// Longest time between two notes, in milliseconds: the log time may lose at most that much at
    /// a start with a wall clock that is behind.
    pub const INTERVAL_MILLIS: u64 = 3_600_000;
    /// Wall-clock deviations from the log time below this come from clock adjustment and need no
    /// note.
    pub const TRIMMED_MILLIS: u64 = 1000;

    /// The next note after `before`.
    pub fn next(before: Option<Self>, at: LogMillis, wall: WallMillis) -> Self {
        let (latest_at, latest_wall) = match before {
            Some(before) if before.latest_wall > wall => (before.latest_at, before.latest_wall),
            Some(_) | None => (at, wall),
        };
        Self {
            at,
            wall,
            latest_at,
            latest_wall,
        }
    }

    /// The log time at a start with the given wall-clock time; never before the note. The time
    /// without a running process is the change of the wall clock since the note, if that is
    /// plausible.
    pub fn resume(self, wall: WallMillis) -> LogMillis {
        // A clock that was behind when the node ended, and is not any more, was set meanwhile: only
        // its time before it fell behind can be compared.
        let (since_at, since_wall) = if wall >= self.latest_wall {
            (self.latest_at, self.latest_wall)
        } else {
            (self.at, self.wall)
        };
        let was_set = since_wall < WALL_CLOCK_UNSET_BEFORE && wall >= WALL_CLOCK_UNSET_BEFORE;
        let passed = if was_set {
            0
        } else {
            wall.saturating_sub(since_wall)
        };
        since_at.saturating_add(passed).max(self.at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    /// A correct wall-clock time.
    const NOW: u64 = 1_795_000_000_000;

    /// The log time at a start with that wall clock, after notes of (moment, wall clock).
    fn resumed(notes: &[(u64, u64)], wall: u64) -> u64 {
        let mut note = None;
        for &(at, wall) in notes {
            note = Some(ClockNote::next(note, at, wall));
        }
        note.unwrap().resume(wall)
    }

    #[test]
    fn log_time_advances_with_the_wall_clock() {
        assert_eq!(resumed(&[(NOW, NOW)], NOW + HOUR), NOW + HOUR);
    }

    #[test]
    fn a_corrected_clock_that_was_behind_loses_no_time() {
        let behind = NOW - 8 * DAY;
        let notes = [(behind, behind), (behind + MINUTE, NOW + MINUTE)];
        assert_eq!(resumed(&notes, NOW + 2 * MINUTE), behind + 2 * MINUTE);
    }

    #[test]
    fn a_corrected_clock_that_was_ahead_is_followed() {
        let notes = [
            (NOW + HOUR, NOW + HOUR),
            (NOW + HOUR + MINUTE, NOW + MINUTE),
        ];
        let at = resumed(&notes, NOW + 3 * MINUTE);
        assert_eq!(at, NOW + HOUR + 3 * MINUTE);
        // Beyond its first value the time without a process is unknown; it then counts too little,
        // never too much.
        let at = resumed(&notes, NOW + 5 * HOUR);
        assert_eq!(at, NOW + 5 * HOUR);
    }

    #[test]
    fn log_time_does_not_go_back_at_a_start_with_a_clock_that_is_behind() {
        for wall in [NOW - HOUR, NOW - 8 * DAY, 5000, 0] {
            assert_eq!(resumed(&[(NOW, NOW)], wall), NOW);
        }
    }

    #[test]
    fn a_clock_corrected_between_two_starts_counts_from_its_last_correct_time() {
        for behind in [5000, NOW - 8 * DAY] {
            let notes = [(NOW, NOW), (NOW, behind), (NOW + MINUTE, behind + MINUTE)];
            assert_eq!(resumed(&notes, NOW + HOUR), NOW + HOUR, "{behind}");
            assert_eq!(resumed(&notes, NOW + 10), NOW + MINUTE, "{behind}");
            let still_behind = behind + 2 * MINUTE;
            assert_eq!(resumed(&notes, still_behind), NOW + 2 * MINUTE, "{behind}");
        }
    }

    #[test]
    fn a_clock_that_was_never_set_does_not_advance_log_time() {
        assert_eq!(resumed(&[(5000, 5000)], NOW), 5000);
        assert_eq!(resumed(&[(5000, 5000)], 7000), 7000);
    }

    #[test]
    fn the_wall_clock_counts_as_set_from_2024_on() {
        let first = WALL_CLOCK_UNSET_BEFORE;
        assert_eq!(resumed(&[(first, first)], NOW), NOW);
        assert_eq!(resumed(&[(first - 1, first - 1)], NOW), first - 1);
        assert_eq!(resumed(&[(5000, 5000)], first - 1), first - 1);
        assert_eq!(resumed(&[(5000, 5000)], first), 5000);
    }

    #[test]
    fn a_note_keeps_the_latest_wall_clock_and_its_moment() {
        let first = ClockNote::next(None, 10, 100);
        let latest = |note: ClockNote| (note.latest_at, note.latest_wall);
        assert_eq!((first.at, first.wall, latest(first)), (10, 100, (10, 100)));
        let behind = ClockNote::next(Some(first), 20, 99);
        assert_eq!(
            (behind.at, behind.wall, latest(behind)),
            (20, 99, (10, 100))
        );
        assert_eq!(latest(ClockNote::next(Some(first), 20, 100)), (20, 100));
    }

    proptest! {
        /// For all changes of the wall clock, between starts and while the node runs, the log time
        /// never goes back.
        #[test]
        fn time_never_goes_back(walls in prop::collection::vec((0..2 * NOW, 0..DAY), 1..20)) {
            let mut note: Option<ClockNote> = None;
            let mut at = 0;
            for (wall, runs) in walls {
                let resumed = note.map_or(wall, |note| note.resume(wall));
                prop_assert!(resumed >= at);
                at = resumed + runs;
                note = Some(ClockNote::next(note, at, wall + runs));
            }
        }

        /// A wall clock that is always correct counts all time, with or without a running node.
        #[test]
        fn a_correct_clock_is_followed(spans in prop::collection::vec((0..DAY, 0..DAY), 1..20)) {
            let mut now = NOW;
            let mut note = ClockNote::next(None, now, now);
            for (runs, rests) in spans {
                now += runs;
                note = ClockNote::next(Some(note), now, now);
                now += rests;
                prop_assert_eq!(note.resume(now), now);
            }
        }
    }
}
