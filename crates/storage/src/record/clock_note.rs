//! What the wall clock showed at moments of the log's own time, and how the next start goes on from
//! that.

/// Milliseconds of the log's own time, which is what is stored: it begins as the wall clock at the
/// first start, goes on with the monotonic clock of each process, and no setting of the wall clock
/// moves it.
pub type LogMillis = u64;

/// Milliseconds of wall-clock time since the Unix epoch.
pub type WallMillis = u64;

/// A wall clock before this (the first of January 2024) was never set: machines without a battery
/// begin in 1970, or when their system was built.
const WALL_CLOCK_UNSET_BEFORE: WallMillis = 1_704_067_200_000;

/// What the wall clock showed at a moment of the log's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockNote {
    /// The moment.
    pub at: LogMillis,
    /// What the wall clock showed then.
    pub wall: WallMillis,
    /// The moment up to then at which the wall clock showed the latest time.
    pub latest_at: LogMillis,
    /// That time.
    pub latest_wall: WallMillis,
}

impl ClockNote {
    /// A note is written at least so often, in milliseconds: by so much the log's time may stand
    /// still at a start whose wall clock is behind.
    pub const INTERVAL_MILLIS: u64 = 3_600_000;
    /// A wall clock that moved by less against the log's time was only trimmed: no note is needed.
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

    /// The log's time at a start whose wall clock shows this: never before the note. How long
    /// nobody ran is what the wall clock has moved since, if it can be believed.
    pub fn resume(self, wall: WallMillis) -> LogMillis {
        // A clock that was behind when the node ended, and is not any more, was set meanwhile: only
        // what it showed before it fell behind can be compared.
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
    /// A right time.
    const NOW: u64 = 1_795_000_000_000;

    /// The log's time when the node starts again with that wall clock, after notes of (moment, wall
    /// clock).
    fn resumed(notes: &[(u64, u64)], wall: u64) -> u64 {
        let mut note = None;
        for &(at, wall) in notes {
            note = Some(ClockNote::next(note, at, wall));
        }
        note.unwrap().resume(wall)
    }

    #[test]
    fn time_goes_on_by_what_the_wall_clock_moved() {
        assert_eq!(resumed(&[(NOW, NOW)], NOW + HOUR), NOW + HOUR);
    }

    #[test]
    fn a_clock_that_was_behind_and_was_set_right_costs_nothing() {
        let behind = NOW - 8 * DAY;
        let notes = [(behind, behind), (behind + MINUTE, NOW + MINUTE)];
        assert_eq!(resumed(&notes, NOW + 2 * MINUTE), behind + 2 * MINUTE);
    }

    #[test]
    fn a_clock_that_was_ahead_and_was_set_back_is_followed() {
        let notes = [
            (NOW + HOUR, NOW + HOUR),
            (NOW + HOUR + MINUTE, NOW + MINUTE),
        ];
        let at = resumed(&notes, NOW + 3 * MINUTE);
        assert_eq!(at, NOW + HOUR + 3 * MINUTE);
        // Beyond what it showed at first nobody can tell; time is then counted late, never early.
        let at = resumed(&notes, NOW + 5 * HOUR);
        assert_eq!(at, NOW + 5 * HOUR);
    }

    #[test]
    fn a_start_with_a_clock_that_is_behind_does_not_go_back() {
        for wall in [NOW - HOUR, NOW - 8 * DAY, 5000, 0] {
            assert_eq!(resumed(&[(NOW, NOW)], wall), NOW);
        }
    }

    #[test]
    fn a_clock_set_right_between_two_starts_counts_from_when_it_was_right_before() {
        for behind in [5000, NOW - 8 * DAY] {
            let notes = [(NOW, NOW), (NOW, behind), (NOW + MINUTE, behind + MINUTE)];
            assert_eq!(resumed(&notes, NOW + HOUR), NOW + HOUR, "{behind}");
            assert_eq!(resumed(&notes, NOW + 10), NOW + MINUTE, "{behind}");
            let still_behind = behind + 2 * MINUTE;
            assert_eq!(resumed(&notes, still_behind), NOW + 2 * MINUTE, "{behind}");
        }
    }

    #[test]
    fn a_clock_that_was_never_set_says_nothing_about_how_long_the_node_was_away() {
        assert_eq!(resumed(&[(5000, 5000)], NOW), 5000);
        assert_eq!(resumed(&[(5000, 5000)], 7000), 7000);
    }

    proptest! {
        /// Whatever is done to the wall clock, between starts and while the node runs: the log's
        /// time never goes back.
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

        /// A wall clock that is always right counts all the time, running or not.
        #[test]
        fn a_right_clock_is_followed(spans in prop::collection::vec((0..DAY, 0..DAY), 1..20)) {
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
