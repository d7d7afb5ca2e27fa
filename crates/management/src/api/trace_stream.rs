//! A trace as server-sent events: its packets while they pass, within the share of a viewer.

use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use thrum_broker::{LiveTrace, TraceItem};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::stream::{Live, Share, Watcher, answer};
use crate::trace::{Line, line};

/// The trace is looked at at this interval.
const TICK: Duration = Duration::from_millis(100);
/// The right to watch is checked, and a comment sent if nothing passes, after so many ticks.
const CHECK_TICKS: u32 = 10;
const KEEP_ALIVE_TICKS: u32 = 150;
/// Packets that are looked at in a tick: more than a share allows.
const ITEMS_MAX: usize = 2048;

struct TraceViewer {
    live: LiveTrace,
    watcher: Watcher,
    payloads: bool,
    share: Share,
    ticks: Interval,
    /// Ticks so far, and since the last event.
    ticked: u32,
    silent: u32,
    /// Packets that the share did not allow since the last one that was sent.
    left_out: u64,
    is_first: bool,
    has_ended: bool,
}

/// The events of a trace, up to its end.
pub(super) fn events_of(live: LiveTrace, watcher: Watcher, payloads: bool) -> Response {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let viewer = TraceViewer {
        live,
        watcher,
        payloads,
        share: Share::default(),
        ticks,
        ticked: 0,
        silent: 0,
        left_out: 0,
        is_first: true,
        has_ended: false,
    };
    answer(viewer)
}

impl Live for TraceViewer {
    async fn next(&mut self) -> Option<Bytes> {
        let slow = self.watcher.took();
        if self.has_ended {
            return None;
        }
        if std::mem::take(&mut self.is_first) {
            return Some(Bytes::from_static(b": trace of thrum\n\n"));
        }
        self.share.grow(slow);
        loop {
            self.ticks.tick().await;
            self.share.grow(TICK);
            self.ticked = self.ticked.wrapping_add(1);
            if self.ticked.is_multiple_of(CHECK_TICKS)
                && let Some(end) = self.watcher.end()
            {
                self.has_ended = true;
                return Some(end.into());
            }
            let events = self.passing();
            if !events.is_empty() {
                self.silent = 0;
                return Some(events.into());
            }
            self.silent += 1;
            if self.silent >= KEEP_ALIVE_TICKS {
                self.silent = 0;
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
        }
    }

    fn watcher(&mut self) -> &mut Watcher {
        &mut self.watcher
    }
}

impl TraceViewer {
    /// The events of what has passed.
    fn passing(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..ITEMS_MAX {
            match self.live.poll() {
                Some(item @ TraceItem::Packet(_)) => self.tell_packet(&item, &mut text),
                Some(TraceItem::LeftOut(count)) => self.left_out += count,
                Some(item @ TraceItem::Ended(_)) => {
                    self.tell_left_out(&mut text);
                    text.push_str(&self.event(&item));
                    self.has_ended = true;
                }
                None => break,
            }
        }
        self.tell_left_out(&mut text);
        text
    }

    /// Tells a packet, if the share of the viewer allows it.
    fn tell_packet(&mut self, item: &TraceItem, text: &mut String) {
        let event = self.event(item);
        if self.share.take(event.len()) {
            self.tell_left_out(text);
            text.push_str(&event);
        } else {
            self.left_out += 1;
        }
    }

    fn tell_left_out(&mut self, text: &mut String) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            self.watcher.skips();
            text.push_str(&self.event(&TraceItem::LeftOut(left_out)));
        }
    }

    fn event(&self, item: &TraceItem) -> String {
        let line = line(item, self.payloads);
        let name = match &line {
            Line::Packet(_) => "packet",
            Line::LeftOut(_) => "left_out",
            Line::Ended(_) => "end",
        };
        let data = serde_json::to_string(&line).unwrap_or_default();
        format!("event: {name}\ndata: {data}\n\n")
    }
}
