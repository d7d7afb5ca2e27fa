//! The events of one client.

use std::collections::VecDeque;
use std::time::Duration;

use thrum_protocol::Time;

use super::ClientEvent;

/// Events of one client; the oldest one is forgotten for another. They tell some days of a device
/// that reconnects every hour.
pub const EVENTS_MAX: usize = 200;
/// Of a series of subscriptions, or of refusals of one kind, no more are listed: a client that
/// subscribes to a thousand filters, or is refused on as many topics, does not fill its timeline
/// with them. The first refusal behind a series of subscriptions is listed.
const SERIES_MAX: usize = 8;
/// Events that are searched for one to count another with: those of eight such series.
const SEARCHED_MAX: usize = 8 * SERIES_MAX;
/// Bytes of a story in the table of stories, which grows by an eighth, and in the index, whose
/// entries of five bytes are less than half of it right after it has grown.
pub(super) const PLACE_BYTES: usize = size_of::<Story>() + size_of::<Story>() / 8 + 12;
/// Repetitions are counted together while no more time passes between two of them.
pub(crate) const REPEAT_TIME: Duration = Duration::from_mins(1);

/// An event, or several that repeat each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// When it happened, or began to happen.
    pub at: Time,
    /// Number above those of earlier events of the node.
    pub order: u64,
    /// When it happened last.
    pub last: Time,
    /// How often it happened.
    pub count: u64,
    /// How many events of such kinds happened beside it that have no entry of their own.
    pub others: u32,
    /// The event.
    pub event: ClientEvent,
}

impl TimelineEntry {
    /// An event that happens now.
    pub(super) fn new(event: ClientEvent, now: Time, order: u64) -> Self {
        Self {
            at: now,
            order,
            last: now,
            count: 1,
            others: 0,
            event,
        }
    }

    fn is_recent(&self, now: Time) -> bool {
        now.since(self.last) <= REPEAT_TIME
    }
}

/// The events of one client, and its place in the order of the timelines.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) client_id: Box<str>,
    pub(super) events: VecDeque<TimelineEntry>,
    /// Bytes of the texts of the events.
    text_bytes: usize,
    /// Events that were forgotten for later ones.
    pub(super) forgotten: u32,
    /// Every event is a CONNECT that was refused: the client may not exist.
    pub(super) is_of_stranger: bool,
    pub(super) before: Option<u32>,
    pub(super) behind: Option<u32>,
}

impl Story {
    pub(super) fn new(client_id: &str, is_of_stranger: bool) -> Self {
        Self {
            client_id: client_id.into(),
            events: VecDeque::new(),
            text_bytes: 0,
            forgotten: 0,
            is_of_stranger,
            before: None,
            behind: None,
        }
    }

    /// Memory in bytes, with its part of the tables that it is in.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.events.capacity() * size_of::<TimelineEntry>();
        PLACE_BYTES + self.client_id.len() + entries + self.text_bytes
    }

    /// Counts an event with the last ones: with the one that it repeats, or with the last of a
    /// series of its kind; false if it needs an entry.
    pub(super) fn count(
        &mut self,
        now: Time,
        is_same: impl Fn(&ClientEvent) -> bool,
        is_of_kind: impl Fn(&ClientEvent) -> bool,
    ) -> bool {
        let mut last = self.events.iter_mut().rev().take(SEARCHED_MAX);
        if let Some(same) = last.find(|entry| entry.is_recent(now) && is_same(&entry.event)) {
            same.count += 1;
            same.last = now;
            return true;
        }
        let last = self.events.iter().enumerate().rev().take(SEARCHED_MAX);
        let recent =
            last.take_while(|(_, entry)| entry.is_recent(now) && entry.event.may_be_counted());
        let mut series = recent.filter(|(_, entry)| is_of_kind(&entry.event));
        let Some((newest, _)) = series.next() else {
            return false;
        };
        if 1 + series.count() < SERIES_MAX {
            return false;
        }
        let newest = &mut self.events[newest];
        newest.others = newest.others.saturating_add(1);
        newest.last = now;
        true
    }

    /// Adds an event; returns the number of events that are forgotten for it.
    pub(super) fn push(&mut self, entry: TimelineEntry) -> u64 {
        let mut forgotten = 0;
        if self.events.len() == EVENTS_MAX
            && let Some(first) = self.events.pop_front()
        {
            self.text_bytes -= first.event.text_bytes();
            self.forgotten = self.forgotten.saturating_add(1);
            forgotten = 1;
        }
        if self.events.len() == self.events.capacity() {
            // Most clients have few events: no room is taken for four at once.
            self.events.reserve_exact((self.events.len() / 2).max(1));
        }
        self.text_bytes += entry.event.text_bytes();
        self.events.push_back(entry);
        forgotten
    }
}
