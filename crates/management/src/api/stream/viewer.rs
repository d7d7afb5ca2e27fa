//! What one viewer gets: at each tick, what has changed of its parts since its last state.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::super::history::History;
use super::super::{ApiState, Problem};
use super::declared::{Declared, Part};
use super::hub::Latest;
use super::state::{Event, State};
use super::watcher::{Live, Share, Watcher, ended};

/// The right to watch is checked at this interval at least.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A comment is sent after so long without an event, so that no proxy takes the stream for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The first event waits for all parts for so long: a page opens at once with everything.
const FIRST_TIME: Duration = Duration::from_millis(300);
/// Milliseconds after which a browser connects again.
const RETRY_MILLIS: u64 = 2000;

/// See above.
pub(super) struct Viewer {
    watcher: Watcher,
    parts: Vec<Viewed>,
    /// Places of the figures that it wants.
    figures: Vec<usize>,
    share: Share,
    /// The part that did not fit last time, which is the next one.
    waits: Option<usize>,
    ticks: Interval,
    /// What its reader took the last piece in, until it is counted.
    slow: Duration,
    /// Time since the last event.
    silent: Duration,
    /// The stream ends after this time; none if it does not.
    left: Option<Duration>,
    /// What is sent before the first tick.
    greeting: Option<String>,
    has_ended: bool,
}

/// A part as its viewer sees it.
struct Viewed {
    part: Part,
    receiver: watch::Receiver<Latest>,
    /// The last state that was sent.
    sent: Option<Arc<State>>,
    /// States that were left out since then.
    skipped: u64,
}

impl Viewer {
    /// A viewer of these parts. One that connects again gets the seconds that it missed.
    pub(super) async fn begin(
        api: &ApiState,
        watcher: Watcher,
        declared: Declared,
        last_id: Option<u64>,
    ) -> Result<Self, Problem> {
        let every = declared.every;
        let mut parts = Vec::with_capacity(declared.parts.len());
        for part in declared.parts {
            let receiver = api
                .live
                .subscribe(api, (part.clone(), every), watcher.caller())?;
            parts.push(Viewed {
                part,
                receiver,
                sent: None,
                skipped: 0,
            });
        }
        let first = async {
            for viewed in &mut parts {
                // The task of a part outlives its viewers.
                viewed.receiver.wait_for(Option::is_some).await.ok();
            }
        };
        // A part that takes longer comes later.
        timeout(FIRST_TIME, first).await.ok();
        for viewed in &mut parts {
            viewed.receiver.mark_changed();
        }
        let mut greeting = format!(": live stream of thrum\nretry: {RETRY_MILLIS}\n\n");
        if let Some(since) = last_id.filter(|_| !declared.figures.is_empty()) {
            greeting.push_str(&missed(api, since, &declared.figures).unwrap_or_default());
        }
        let mut ticks = interval(every.time().min(CHECK_INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            watcher,
            parts,
            figures: declared.figures,
            share: Share::default(),
            waits: None,
            ticks,
            slow: Duration::ZERO,
            silent: Duration::ZERO,
            left: declared.time,
            greeting: Some(greeting),
            has_ended: false,
        })
    }
}

impl Live for Viewer {
    async fn next(&mut self) -> Option<Bytes> {
        let slow = self.watcher.took();
        if self.has_ended {
            return None;
        }
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting.into());
        }
        if slow > self.ticks.period() * 2 {
            self.note_slow();
        }
        self.share.grow(slow);
        self.slow = slow;
        loop {
            self.ticks.tick().await;
            self.share.grow(self.ticks.period());
            if let Some(end) = self.watcher.end() {
                self.has_ended = true;
                return Some(end.into());
            }
            if self.is_over() {
                self.has_ended = true;
                return Some(ended("seconds", "the time of this stream is over").into());
            }
            let events = self.changes();
            if !events.is_empty() {
                self.silent = Duration::ZERO;
                return Some(events.into());
            }
            self.silent += self.ticks.period();
            if self.silent >= KEEP_ALIVE {
                self.silent = Duration::ZERO;
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
        }
    }

    fn watcher(&mut self) -> &mut Watcher {
        &mut self.watcher
    }
}

impl Viewer {
    /// Whether the time that the viewer asked for has passed, one tick later.
    fn is_over(&mut self) -> bool {
        // A slow reader is counted once, at the first tick behind it.
        let slow = std::mem::take(&mut self.slow);
        let passed = self.ticks.period().max(slow);
        self.left.as_mut().is_some_and(|left| {
            let is_over = left.is_zero();
            *left = left.saturating_sub(passed);
            is_over
        })
    }

    /// The reader took so long that states have passed.
    fn note_slow(&mut self) {
        for viewed in &mut self.parts {
            if viewed.receiver.has_changed().unwrap_or(false) {
                viewed.skipped += 1;
                self.watcher.skips();
            }
        }
    }

    /// The events of the parts that have changed, as far as the share of the viewer allows. The
    /// part that did not fit last time comes first, and if it does not fit again the others wait
    /// for it: otherwise a part that fills the share at each tick would keep it from all others.
    fn changes(&mut self) -> String {
        let mut events = String::new();
        let count = self.parts.len();
        let waited = self.waits.take();
        let first = waited.unwrap_or(0);
        let (head, tail) = self.parts.split_at_mut(first);
        for (turn, viewed) in tail.iter_mut().chain(head).enumerate() {
            if !viewed.receiver.has_changed().unwrap_or(false) {
                continue;
            }
            let Some(state) = viewed.receiver.borrow_and_update().clone() else {
                continue;
            };
            let Some(event) = viewed.event(&state, &self.figures) else {
                viewed.sent = Some(state);
                continue;
            };
            if self.share.take(event.len()) {
                events.push_str(&event);
                viewed.sent = Some(state);
                viewed.skipped = 0;
                continue;
            }
            viewed.skipped += 1;
            self.watcher.skips();
            // It is tried again at the next tick, or a newer one.
            viewed.receiver.mark_changed();
            let number = (first + turn) % count;
            self.waits.get_or_insert(number);
            if waited == Some(number) {
                break;
            }
        }
        events
    }
}

impl Viewed {
    /// The event of a state; none if there is nothing to tell.
    fn event(&self, state: &State, figures: &[usize]) -> Option<String> {
        let content = state.event(self.sent.as_deref(), figures)?;
        let mut members: Vec<String> = self.part.subject().into_iter().collect();
        members.push(content);
        if self.skipped > 0 {
            members.push(format!("\"skipped\":{}", self.skipped));
        }
        let event = Event {
            name: self.part.event_name(),
            at_ms: state.at_ms,
            members,
        };
        Some(event.text())
    }
}

/// The seconds that a viewer has missed; none if there is no history.
fn missed(api: &ApiState, since: u64, figures: &[usize]) -> Option<String> {
    let seconds = api.queries.live().history(since)?;
    let last = seconds.last()?;
    let history = History::new(&seconds, figures);
    let data = json!(history);
    Some(format!("id: {}\nevent: history\ndata: {data}\n\n", last.at))
}

#[cfg(test)]
mod tests {
    use super::super::state::Content;
    use super::super::tests::{broker_and_api, viewer};
    use super::*;

    /// A part of one object of so many bytes.
    fn state(number: u64, bytes: usize) -> Arc<State> {
        let text = format!("\"n\":{number},\"x\":\"{}\"", "x".repeat(bytes));
        Arc::new(State {
            at_ms: number,
            content: Content::One(text),
        })
    }

    /// A part of this name, and what gives its states.
    fn part(name: &str) -> (watch::Sender<Latest>, Viewed) {
        let (sender, receiver) = watch::channel(None);
        let viewed = Viewed {
            part: Part::Client(name.to_owned()),
            receiver,
            sent: None,
            skipped: 0,
        };
        (sender, viewed)
    }

    /// Parts of other sizes have other states; returns what a viewer is told then.
    fn tick(viewer: &mut Viewer, senders: &[watch::Sender<Latest>], number: u64) -> String {
        for (sender, kilobytes) in senders.iter().zip([90, 2, 150]) {
            sender.send_replace(Some(state(number, kilobytes * 1024)));
        }
        viewer.share.grow(Duration::from_secs(1));
        viewer.changes()
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_fills_the_share_at_each_tick_keeps_no_other_from_it() {
        let (broker, api) = broker_and_api();
        let mut viewer = viewer(&api, "clients=&every=1s").await.expect("a place");
        let names = ["large", "small", "larger"];
        let (senders, parts): (Vec<_>, Vec<_>) = names.map(part).into_iter().unzip();
        viewer.parts = parts;
        let mut told = [0; 3];
        for number in 0..40 {
            let events = tick(&mut viewer, &senders, number);
            let found = names.map(|name| events.matches(&format!("\"{name}\"")).count());
            told = std::array::from_fn(|part| told[part] + found[part]);
        }
        let [large, small, larger] = told;
        assert!(large >= 10 && small >= 10 && larger >= 10, "{told:?}");
        broker.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_counted_once() {
        let (broker, api) = broker_and_api();
        let query = "clients=&every=1s&seconds=10";
        let mut viewer = viewer(&api, query).await.expect("a place");
        viewer.slow = Duration::from_secs(4);
        let ticks = (1..100).find(|_| viewer.is_over());
        // Four seconds, six ticks, and one more.
        assert_eq!(ticks, Some(8));
        broker.stop();
    }
}
