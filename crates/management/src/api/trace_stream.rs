//! A trace as server-sent events: its packets while they pass, within the share of a viewer.

use axum::response::Response;
use thrum_broker::{LiveTrace, TraceItem};

use super::stream::{self, Looker, Source, Watcher};
use crate::trace::{Line, line};

/// Packets that are looked at in a tick: more than a share allows.
const ITEMS_MAX: usize = 2048;

struct TraceSource {
    live: LiveTrace,
    payloads: bool,
    /// Packets that the share did not allow since the last one that was sent.
    left_out: u64,
}

/// The events of a trace, up to its end.
pub(super) fn events_of(live: LiveTrace, watcher: Watcher, payloads: bool) -> Response {
    let source = TraceSource {
        live,
        payloads,
        left_out: 0,
    };
    stream::events_of(source, watcher)
}

impl Source for TraceSource {
    const GREETING: Option<&'static str> = Some(": trace of thrum\n\n");
    const QUIET: &'static str = ": nothing new\n\n";

    fn look(&mut self, looker: &mut Looker) -> String {
        let mut text = String::new();
        for _ in 0..ITEMS_MAX {
            match self.live.poll() {
                Some(item @ TraceItem::Packet(_)) => self.tell_packet(looker, &item, &mut text),
                Some(TraceItem::LeftOut(count)) => self.left_out += count,
                Some(item @ TraceItem::Ended(_)) => {
                    self.tell_left_out(looker, &mut text);
                    text.push_str(&self.event(&item));
                    looker.has_ended = true;
                }
                None => break,
            }
        }
        self.tell_left_out(looker, &mut text);
        text
    }
}

impl TraceSource {
    /// Tells a packet, if the share of the viewer allows it.
    fn tell_packet(&mut self, looker: &mut Looker, item: &TraceItem, text: &mut String) {
        let event = self.event(item);
        if looker.share.take(event.len()) {
            self.tell_left_out(looker, text);
            text.push_str(&event);
        } else {
            self.left_out += 1;
        }
    }

    fn tell_left_out(&mut self, looker: &Looker, text: &mut String) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            looker.watcher.skips();
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
