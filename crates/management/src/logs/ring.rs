//! The last events of the log within a number of bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{LogEvent, LogLevel};

/// Bytes of an event beside its texts: the struct, its place in the ring, and what the allocator
/// adds.
const EVENT_BYTES: usize = 192;
/// Bytes of a field beside its value.
const FIELD_BYTES: usize = 48;
/// Events that one page looks at: with a filter that matches little a page may be short.
const EVENTS_SEEN_MAX: usize = 20_000;

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFilter {
    /// Only events of this level and more important ones.
    pub(crate) level: Option<LogLevel>,
    /// Only events of a target that begins so.
    pub(crate) target: Option<String>,
    /// Only events with this in their text, in a field, or in the target. It is in lower case, and
    /// stands for both.
    pub(crate) text: Option<String>,
    /// Only events of this time and later, in milliseconds of the Unix epoch.
    pub(crate) since: Option<u64>,
}

impl LogFilter {
    fn matches(&self, event: &LogEvent) -> bool {
        let level = self.level.is_none_or(|level| event.level <= level);
        let target = self.target.as_ref();
        let target = target.is_none_or(|target| event.target.starts_with(target));
        let since = self.since.is_none_or(|since| event.at >= since);
        level && target && since && self.finds_text(event)
    }

    fn finds_text(&self, event: &LogEvent) -> bool {
        let Some(text) = &self.text else {
            return true;
        };
        let has = |place: &str| place.to_lowercase().contains(text);
        let mut fields = event.fields.iter();
        has(&event.text) || has(&event.target) || fields.any(|(_, value)| has(value))
    }
}

/// An event with its number.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) event: Arc<LogEvent>,
}

/// A part of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogSlice {
    pub(crate) events: Vec<Numbered>,
    /// Where the next part begins; none if there is none.
    pub(crate) next: Option<u64>,
    /// Number of the last event that was looked at, or of the last one there is.
    pub(crate) last: u64,
    /// Events behind the place that was asked for, and before the first one that is still here.
    pub(crate) missed: u64,
}

/// Events that were copied out of the ring: nobody who logs waits while they are looked at.
#[derive(Debug)]
pub(super) struct Copied {
    /// In the order in which they are looked at.
    events: Vec<Numbered>,
    /// Number of the first event in the ring, or of the next one if there is none.
    first: u64,
    /// Number of the last one.
    last: u64,
}

impl Copied {
    /// The newest events first, as [`Ring::before`] copies them.
    pub(super) fn back(self, filter: &LogFilter, limit: usize) -> LogSlice {
        let mut slice = LogSlice {
            last: self.last,
            ..LogSlice::default()
        };
        let mut next = None;
        for numbered in self.events {
            if slice.events.len() == limit {
                break;
            }
            next = Some(numbered.number);
            if filter.matches(&numbered.event) {
                slice.events.push(numbered);
            }
        }
        slice.next = next.filter(|next| *next != self.first);
        slice
    }

    /// The events behind a number, as [`Ring::after`] copies them.
    pub(super) fn on(self, after: u64, filter: &LogFilter, limit: usize) -> LogSlice {
        let before_first = self.first - 1;
        let mut slice = LogSlice {
            last: after.min(self.last).max(before_first),
            missed: before_first.saturating_sub(after),
            ..LogSlice::default()
        };
        for numbered in self.events {
            if slice.events.len() == limit {
                break;
            }
            slice.last = numbered.number;
            if filter.matches(&numbered.event) {
                slice.events.push(numbered);
            }
        }
        slice.next = (slice.last < self.last).then_some(slice.last);
        slice
    }
}

/// The last events.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Numbered>,
    bytes: usize,
    bytes_max: usize,
    /// Number of the last event; the first one is 1.
    last: u64,
}

impl Ring {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            bytes_max,
            last: 0,
        }
    }

    /// Returns the number of the event.
    pub(super) fn push(&mut self, event: LogEvent) -> u64 {
        self.last += 1;
        self.bytes += size(&event);
        self.events.push_back(Numbered {
            number: self.last,
            event: Arc::new(event),
        });
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= size(&oldest.event);
        }
        self.last
    }

    /// The events before that of a number, or all, the newest first.
    pub(super) fn before(&self, before: Option<u64>) -> Copied {
        let end = before.map_or(self.events.len(), |before| self.place_of(before));
        let events = self.events.range(..end).rev().take(EVENTS_SEEN_MAX);
        self.copied(events.cloned().collect())
    }

    /// The events behind that of a number, the oldest first.
    pub(super) fn after(&self, after: u64) -> Copied {
        let begin = self.place_of(after.saturating_add(1));
        let events = self.events.range(begin..).take(EVENTS_SEEN_MAX);
        self.copied(events.cloned().collect())
    }

    fn copied(&self, events: Vec<Numbered>) -> Copied {
        let first = self.events.front().map(|first| first.number);
        Copied {
            events,
            first: first.unwrap_or(self.last + 1),
            last: self.last,
        }
    }

    /// The place of the first event of that number or a higher one.
    fn place_of(&self, number: u64) -> usize {
        self.events.partition_point(|one| one.number < number)
    }
}

fn size(event: &LogEvent) -> usize {
    let fields = event.fields.iter();
    let fields: usize = fields.map(|(_, value)| FIELD_BYTES + value.len()).sum();
    EVENT_BYTES + event.target.len() + event.text.len() + fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64, level: LogLevel) -> LogEvent {
        LogEvent {
            at: number * 10,
            level,
            target: format!(
                "thrum_broker::{}",
                if number.is_multiple_of(2) {
                    "even"
                } else {
                    "odd"
                }
            ),
            text: format!("event {number}"),
            fields: vec![("client_id", format!("Pump-{number}"))],
        }
    }

    fn ring(events: u64) -> Ring {
        let mut ring = Ring::new(100_000);
        for number in 1..=events {
            let level = LogLevel::ALL[usize::try_from(number % 5).unwrap()];
            ring.push(event(number, level));
        }
        ring
    }

    fn numbers(slice: &LogSlice) -> Vec<u64> {
        slice.events.iter().map(|one| one.number).collect()
    }

    #[test]
    fn pages_go_back_to_the_first_event_and_end_there() {
        let ring = ring(7);
        let mut before = None;
        let mut seen = Vec::new();
        loop {
            let page = ring.before(before).back(&LogFilter::default(), 3);
            seen.extend(numbers(&page));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, [7, 6, 5, 4, 3, 2, 1]);
        let exact = ring.before(Some(4)).back(&LogFilter::default(), 3);
        assert_eq!((numbers(&exact), exact.next), (vec![3, 2, 1], None));
        assert!(
            Ring::new(10)
                .before(None)
                .back(&LogFilter::default(), 3)
                .next
                .is_none()
        );
    }

    #[test]
    fn each_condition_of_a_filter_counts() {
        let ring = ring(10);
        let find = |filter: LogFilter| numbers(&ring.after(0).on(0, &filter, 100));
        let warn = LogFilter {
            level: Some(LogLevel::Warn),
            ..LogFilter::default()
        };
        // Levels 0 and 1 are error and warn.
        assert_eq!(find(warn), [1, 5, 6, 10]);
        let even = LogFilter {
            target: Some("thrum_broker::even".to_owned()),
            since: Some(60),
            ..LogFilter::default()
        };
        assert_eq!(find(even), [6, 8, 10]);
        let field = LogFilter {
            text: Some("pump-1".to_owned()),
            ..LogFilter::default()
        };
        assert_eq!(find(field), [1, 10]);
    }

    #[test]
    fn a_follower_goes_on_where_it_was_and_is_told_what_it_missed() {
        let mut ring = Ring::new(1000);
        for number in 1..=3 {
            ring.push(event(number, LogLevel::Info));
        }
        let first = ring.after(0).on(0, &LogFilter::default(), 2);
        assert_eq!(
            (numbers(&first), first.next, first.missed),
            (vec![1, 2], Some(2), 0)
        );
        let rest = ring.after(2).on(2, &LogFilter::default(), 2);
        assert_eq!((numbers(&rest), rest.next), (vec![3], None));
        for number in 4..=50 {
            ring.push(event(number, LogLevel::Info));
        }
        assert!(ring.bytes <= 1000 && ring.events.len() < 6);
        let oldest = ring.events.front().unwrap().number;
        let late = ring.after(3).on(3, &LogFilter::default(), 100);
        assert_eq!(late.missed, oldest - 4);
        assert_eq!(numbers(&late).first(), Some(&oldest));
        // Nothing matches, and it does not look at the same events again.
        let none = LogFilter {
            since: Some(u64::MAX),
            ..LogFilter::default()
        };
        assert_eq!(ring.after(3).on(3, &none, 100).last, 50);
        // A place of another run of the broker.
        let ahead = ring.after(1000).on(1000, &LogFilter::default(), 100);
        assert_eq!((ahead.last, ahead.missed), (50, 0));
    }
}
