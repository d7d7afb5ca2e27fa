//! Who looks at payloads: once for each thing that somebody looks at, so that a page that connects
//! again adds no line, and at a bounded rate, so that nobody pushes changes out of the log.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::flood::Flood;

/// Whoever looks at the same thing again within this time adds no line.
const AGAIN: Duration = Duration::from_mins(10);
/// Things of a caller that are remembered: more than it may look at, at the rate of [`Flood`].
const SUBJECTS_MAX: usize = 128;
/// Callers that are remembered; the one that has looked longest ago makes room.
const CALLERS_MAX: usize = 256;

/// A look at payloads of messages that pass.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The route.
    pub(crate) by: &'static str,
    /// Whose payloads: `client meter-1`, `topic a/b`; at least one.
    pub(crate) subjects: Vec<String>,
}

impl Look {
    /// Its subjects in short.
    pub(super) fn target(&self) -> String {
        match &self.subjects[..] {
            [] => String::new(),
            [only] => only.clone(),
            [first, others @ ..] => format!("{first} and {} more", others.len()),
        }
    }
}

/// What is written down about a look at payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// A line.
    New,
    /// Nothing: there is a line already.
    Known,
    /// Nothing, as there were too many, so that the look is refused.
    TooMany,
}

/// The looks of late.
#[derive(Debug, Default)]
pub(super) struct Watches(BTreeMap<Box<str>, Looks>);

/// Those of one caller.
#[derive(Debug, Default)]
struct Looks {
    flood: Flood,
    /// Digests of what it looks at, with the time of their lines, the oldest in front.
    lines: VecDeque<(u64, Duration)>,
    last: Duration,
}

impl Watches {
    /// A caller looks at these things. A new look is known when its line is written: nobody is
    /// shown payloads because of a line that may still fail.
    pub(super) fn watch(&mut self, who: &str, subjects: &[u64], now: Duration) -> Watch {
        if self.0.len() >= CALLERS_MAX && !self.0.contains_key(who) {
            let oldest = self.0.iter().min_by_key(|(_, looks)| looks.last);
            if let Some(oldest) = oldest.map(|(who, _)| who.clone()) {
                self.0.remove(&oldest);
            }
        }
        let looks = self.0.entry(who.into()).or_default();
        looks.last = now;
        let is_old = |at: Duration| now.saturating_sub(at) >= AGAIN;
        while looks.lines.front().is_some_and(|(_, at)| is_old(*at)) {
            looks.lines.pop_front();
        }
        let is_known = |subject: &u64| looks.lines.iter().any(|(other, _)| other == subject);
        if subjects.iter().all(is_known) {
            return Watch::Known;
        }
        if looks.flood.admit(now).is_none() {
            return Watch::TooMany;
        }
        Watch::New
    }

    /// The line of a look that began at this time is written.
    pub(super) fn note_written(&mut self, who: &str, subjects: &[u64], began: Duration) {
        // Another caller may have taken its room.
        let Some(looks) = self.0.get_mut(who) else {
            return;
        };
        // The line has all of them.
        looks.lines.retain(|(other, _)| !subjects.contains(other));
        let written = subjects.iter().map(|subject| (*subject, began));
        looks.lines.extend(written);
        while looks.lines.len() > SUBJECTS_MAX {
            looks.lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// A look whose line is written at once.
    fn look(watches: &mut Watches, who: &str, subjects: &[u64], now: Duration) -> Watch {
        let watch = watches.watch(who, subjects, now);
        if watch == Watch::New {
            watches.note_written(who, subjects, now);
        }
        watch
    }

    #[test]
    fn a_look_is_known_when_its_line_is_written_and_not_before() {
        let mut watches = Watches::default();
        assert_eq!(watches.watch("alice", &[1], at(0)), Watch::New);
        // The line of the first one may fail.
        assert_eq!(watches.watch("alice", &[1], at(1)), Watch::New);
        watches.note_written("alice", &[1], at(0));
        assert_eq!(watches.watch("alice", &[1], at(2)), Watch::Known);
        assert_eq!(watches.watch("alice", &[1], at(600)), Watch::New);
    }

    #[test]
    fn a_caller_that_connects_again_adds_a_line_after_ten_minutes() {
        let mut watches = Watches::default();
        assert_eq!(look(&mut watches, "alice", &[1, 2], at(0)), Watch::New);
        assert_eq!(look(&mut watches, "alice", &[1], at(599)), Watch::Known);
        assert_eq!(look(&mut watches, "bob", &[1], at(599)), Watch::New);
        assert_eq!(look(&mut watches, "alice", &[2, 3], at(599)), Watch::New);
        assert_eq!(look(&mut watches, "alice", &[2], at(600)), Watch::Known);
        assert_eq!(look(&mut watches, "alice", &[1], at(600)), Watch::New);
    }

    #[test]
    fn a_caller_that_looks_at_everything_adds_lines_at_a_rate() {
        let mut watches = Watches::default();
        let lines = |watches: &mut Watches, secs: std::ops::Range<u64>| {
            let looks = secs.map(|second| look(watches, "alice", &[second], at(second)));
            looks.filter(|watch| *watch == Watch::New).count()
        };
        assert_eq!(lines(&mut watches, 0..100), 60 + 9);
        assert_eq!(lines(&mut watches, 100..1000), 90);
        assert_eq!(look(&mut watches, "bob", &[1], at(1000)), Watch::New);
        assert!(watches.0["alice"].lines.len() <= SUBJECTS_MAX);
    }

    #[test]
    fn callers_that_have_not_looked_for_long_make_room() {
        let mut watches = Watches::default();
        for number in 0..2 * CALLERS_MAX as u64 {
            look(&mut watches, &format!("key-{number}"), &[1], at(number));
        }
        assert_eq!(watches.0.len(), CALLERS_MAX);
        assert!(!watches.0.contains_key("key-0"));
        assert!(watches.0.contains_key("key-256"));
    }
}
