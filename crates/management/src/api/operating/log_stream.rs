//! The log as server-sent events: its lines as they come, within the share of a viewer.
//!
//! A viewer has no queue: what it has not got yet is in the ring, or was forgotten there, and then
//! it is told how much. So a log of the stream itself, at a level that is raised for the server,
//! does not grow without end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::logs::{LogLine, lines};
use crate::api::stream::{Live, Share, Watcher, answer};
use crate::logs::{LogFilter, Logs};

/// A stream ends after this time: browsers go on by themselves.
const FOLLOW_TIME: Duration = Duration::from_mins(10);
/// The log is looked at at this interval.
const TICK: Duration = Duration::from_millis(100);
/// The right to watch is checked, and a comment sent if nothing comes, after so many ticks.
const CHECK_TICKS: u32 = 10;
const KEEP_ALIVE_TICKS: u32 = 150;
/// Events of one piece of a stream.
const EVENTS_OF_PIECE: usize = 100;

struct LogViewer {
    logs: Arc<Logs>,
    filter: LogFilter,
    watcher: Watcher,
    share: Share,
    ticks: Interval,
    /// Ticks so far, and since the last event.
    ticked: u32,
    silent: u32,
    ends: Instant,
    /// Number of the last event that was looked at.
    after: u64,
    has_ended: bool,
}

/// The events of the log behind that of a number, or from now on.
pub(super) fn events_of(
    logs: Arc<Logs>,
    watcher: Watcher,
    filter: LogFilter,
    after: Option<u64>,
) -> Response {
    let newest = logs.newest();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let viewer = LogViewer {
        logs,
        filter,
        watcher,
        share: Share::default(),
        ticks,
        ticked: 0,
        silent: 0,
        ends: Instant::now() + FOLLOW_TIME,
        // A higher number is one of another run of the broker.
        after: after.unwrap_or(newest).min(newest),
        has_ended: false,
    };
    answer(viewer)
}

impl Live for LogViewer {
    async fn next(&mut self) -> Option<Bytes> {
        let slow = self.watcher.took();
        if self.has_ended {
            return None;
        }
        self.share.grow(slow);
        loop {
            let at = self.ticks.tick().await;
            self.share.grow(TICK);
            if at >= self.ends {
                return None;
            }
            self.ticked = self.ticked.wrapping_add(1);
            if self.ticked.is_multiple_of(CHECK_TICKS)
                && let Some(end) = self.watcher.end()
            {
                self.has_ended = true;
                return Some(end.into());
            }
            let events = self.coming();
            if !events.is_empty() {
                self.silent = 0;
                return Some(events.into());
            }
            self.silent += 1;
            if self.silent >= KEEP_ALIVE_TICKS {
                self.silent = 0;
                return Some(Bytes::from_static(b":\n\n"));
            }
        }
    }

    fn watcher(&mut self) -> &mut Watcher {
        &mut self.watcher
    }
}

impl LogViewer {
    /// The events that have come, as far as the share allows.
    fn coming(&mut self) -> String {
        let mut text = String::new();
        if self.after >= self.logs.newest() {
            return text;
        }
        let slice = self.logs.after(self.after, &self.filter, EVENTS_OF_PIECE);
        if slice.missed > 0 {
            self.watcher.skips();
            self.after = self.after.saturating_add(slice.missed);
            text.push_str(&missed(slice.missed));
        }
        for line in lines(&slice) {
            let event = event(&line);
            if !self.share.take(event.len()) {
                return text;
            }
            self.after = line.number;
            text.push_str(&event);
        }
        self.after = slice.last;
        text
    }
}

fn missed(events: u64) -> String {
    let data = json!({ "events": events });
    format!("event: missed\ndata: {data}\n\n")
}

fn event(line: &LogLine) -> String {
    let data = serde_json::to_string(line).unwrap_or_default();
    format!("id: {}\nevent: log\ndata: {data}\n\n", line.number)
}
