//! The log as server-sent events: its lines as they come, within the share of a viewer.
//!
//! A viewer has no queue: what it has not got yet is in the ring, or was forgotten there, and then
//! it is told how much. So a log of the stream itself, at a level that is raised for the server,
//! does not grow without end.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde_json::json;

use super::logs::{LogLine, lines};
use crate::api::stream::{self, Looker, Source, Watcher};
use crate::logs::{LogFilter, Logs};

/// Events of one piece of a stream.
const EVENTS_OF_PIECE: usize = 100;

struct LogSource {
    logs: Arc<Logs>,
    filter: LogFilter,
    /// Number of the last event that was looked at.
    after: u64,
}

/// The events of the log behind that of a number, or from now on.
pub(super) fn events_of(
    logs: Arc<Logs>,
    watcher: Watcher,
    filter: LogFilter,
    after: Option<u64>,
) -> Response {
    let newest = logs.newest();
    let source = LogSource {
        logs,
        filter,
        // A higher number is one of another run of the broker.
        after: after.unwrap_or(newest).min(newest),
    };
    stream::events_of(source, watcher)
}

impl Source for LogSource {
    // Browsers go on by themselves.
    const TIME_MAX: Option<Duration> = Some(Duration::from_mins(10));
    const QUIET: &'static str = ":\n\n";

    fn look(&mut self, looker: &mut Looker) -> String {
        let mut text = String::new();
        if self.after >= self.logs.newest() {
            return text;
        }
        let slice = self.logs.after(self.after, &self.filter, EVENTS_OF_PIECE);
        if slice.missed > 0 {
            looker.watcher.skips();
            self.after = self.after.saturating_add(slice.missed);
            text.push_str(&missed(slice.missed));
        }
        for line in lines(&slice) {
            let event = event(&line);
            if !looker.share.take(event.len()) {
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
