//! A stream of events that no other viewer shares: its source is looked at ten times a second.

use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::watcher::{Live, Share, Watcher, answer};

/// The source is looked at at this interval.
const TICK: Duration = Duration::from_millis(100);
/// The right to watch is checked, and a comment sent if nothing comes, after so many ticks.
const CHECK_TICKS: u32 = 10;
const KEEP_ALIVE_TICKS: u32 = 150;

/// Where the events come from.
pub(in crate::api) trait Source: Send + 'static {
    /// A stream ends after this time.
    const TIME_MAX: Option<Duration> = None;
    /// The first piece.
    const GREETING: Option<&'static str> = None;
    /// The comment that is sent if nothing comes.
    const QUIET: &'static str;

    /// The events that have come since the last look, as far as the share allows.
    fn look(&mut self, looker: &mut Looker) -> String;
}

/// Who looks.
pub(in crate::api) struct Looker {
    pub(in crate::api) watcher: Watcher,
    pub(in crate::api) share: Share,
    /// The stream ends behind what is given now.
    pub(in crate::api) has_ended: bool,
}

struct Looks<S> {
    source: S,
    looker: Looker,
    greeting: Option<&'static str>,
    ends: Option<Instant>,
    ticks: Interval,
    /// Ticks so far, and since the last event.
    ticked: u32,
    silent: u32,
}

/// The events of a source.
pub(in crate::api) fn events_of<S: Source>(source: S, watcher: Watcher) -> Response {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    answer(Looks {
        source,
        looker: Looker {
            watcher,
            share: Share::default(),
            has_ended: false,
        },
        greeting: S::GREETING,
        ends: S::TIME_MAX.map(|time| Instant::now() + time),
        ticks,
        ticked: 0,
        silent: 0,
    })
}

impl<S: Source> Live for Looks<S> {
    async fn next(&mut self) -> Option<Bytes> {
        let slow = self.looker.watcher.took();
        if self.looker.has_ended {
            return None;
        }
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting.into());
        }
        self.looker.share.grow(slow);
        loop {
            let at = self.ticks.tick().await;
            self.looker.share.grow(TICK);
            if self.ends.is_some_and(|ends| at >= ends) {
                return None;
            }
            self.ticked = self.ticked.wrapping_add(1);
            if self.ticked.is_multiple_of(CHECK_TICKS)
                && let Some(end) = self.looker.watcher.end()
            {
                self.looker.has_ended = true;
                return Some(end.into());
            }
            let events = self.source.look(&mut self.looker);
            if !events.is_empty() {
                self.silent = 0;
                return Some(events.into());
            }
            self.silent += 1;
            if self.silent >= KEEP_ALIVE_TICKS {
                self.silent = 0;
                return Some(S::QUIET.into());
            }
        }
    }

    fn watcher(&mut self) -> &mut Watcher {
        &mut self.looker.watcher
    }
}
