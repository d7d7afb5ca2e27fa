//! What this thread counts and judges of the messages that come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::control::Timeline;
use super::peer::SubscriberState;
use crate::ledger::{Arrival, PairLedger, SharedLedger, as_index};
use crate::mark::Mark;
use crate::plan::{Expectation, Plan};
use crate::record::{Counts, Latencies, Series, enter};
use crate::units::SECOND_NS;

/// Different reasons of failures kept; more are counted under one name.
const REASONS_MAX: usize = 20;

/// Seconds of the series beyond the load: for the drain and what comes late.
const SERIES_SECONDS_EXTRA: u64 = 60;

/// Measurements of one thread.
#[derive(Debug)]
pub(super) struct Tally {
    plan: Arc<Plan>,
    pub(super) latencies: Latencies,
    pub(super) counts: Counts,
    pub(super) series: Series,
    pub(super) subscribers: Vec<SubscriberState>,
    pub(super) pairs: Vec<PairLedger>,
    pub(super) shared: Vec<SharedLedger>,
    pub(super) reasons: BTreeMap<String, u64>,
    timeline: Option<Timeline>,
}

impl Tally {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let seconds = plan.load_ns() / SECOND_NS + SERIES_SECONDS_EXTRA;
        let shared = plan.shared().iter();
        let shared = shared
            .map(|sources| SharedLedger::new(sources.len(), plan.messages_max(sources)))
            .collect();
        Self {
            latencies: Latencies::new(),
            counts: Counts::default(),
            series: Series::with_seconds(usize::try_from(seconds).unwrap_or(usize::MAX)),
            subscribers: Vec::new(),
            pairs: Vec::new(),
            shared,
            reasons: BTreeMap::new(),
            timeline: None,
            plan,
        }
    }

    /// Adds a subscriber of the plan; returns this thread's number of it.
    pub(super) fn add_subscriber(&mut self, subscriber: u32) -> u32 {
        let state = match self.plan.expectation(subscriber) {
            Expectation::Each(sources) => {
                let first_pair = self.pairs.len();
                let pairs = first_pair + as_index(sources.len());
                self.pairs.resize_with(pairs, PairLedger::default);
                SubscriberState::Each {
                    first_pair,
                    sources: sources.clone(),
                }
            }
            Expectation::Shared(group) => SubscriberState::Shared(*group),
        };
        self.subscribers.push(state);
        u32::try_from(self.subscribers.len() - 1).unwrap_or(super::peer::NONE)
    }

    pub(super) const fn set_timeline(&mut self, timeline: Option<Timeline>) {
        self.timeline = timeline;
    }

    /// A message came in at `now_ns`.
    pub(super) fn receive(&mut self, subscriber: u32, payload: &[u8], now_ns: u64) {
        self.counts.received += 1;
        let sent = self
            .timeline
            .and_then(|timeline| self.recognise(timeline, payload, now_ns));
        let Some((timeline, mark, intended_ns)) = sent else {
            self.counts.foreign += 1;
            return;
        };
        self.series.at(second(timeline, now_ns)).received += 1;
        self.counts.received_in_hold += u64::from(timeline.holds(now_ns));
        let arrival = match self.subscribers.get(as_index(subscriber)) {
            Some(SubscriberState::Each {
                first_pair,
                sources,
            }) => {
                let pair = sources
                    .position(mark.publisher)
                    .map(|at| first_pair + as_index(at));
                pair.and_then(|pair| self.pairs.get_mut(pair))
                    .map(|pair| pair.receive(mark.sequence))
            }
            Some(SubscriberState::Shared(group)) => {
                let sources = self.plan.shared().get(as_index(*group));
                let at = sources.and_then(|sources| sources.position(mark.publisher));
                let ledger = self.shared.get_mut(as_index(*group));
                at.zip(ledger)
                    .map(|(at, ledger)| ledger.receive(at, mark.sequence))
            }
            None => None,
        };
        match arrival {
            Some(Arrival::First | Arrival::Late) => {}
            Some(Arrival::Duplicate) => return,
            Some(Arrival::Impossible) | None => {
                self.counts.misdelivered += 1;
                return;
            }
        }
        self.counts.distinct += 1;
        if timeline.holds(intended_ns) {
            enter(
                &mut self.latencies.response,
                now_ns.saturating_sub(intended_ns),
            );
            enter(
                &mut self.latencies.service,
                now_ns.saturating_sub(mark.sent_ns),
            );
        }
    }

    /// A message left at `now_ns`; `punctual` unless the broker held it back.
    pub(super) fn send(&mut self, publisher: u32, sequence: u32, now_ns: u64, punctual: bool) {
        let (Some(timeline), Some(offset_ns)) =
            (self.timeline, self.plan.offset_ns(publisher, sequence))
        else {
            return;
        };
        let intended_ns = timeline.start_ns + offset_ns;
        self.counts.sent += 1;
        self.counts.sent_in_hold += u64::from(timeline.holds(now_ns));
        let fan_out = self
            .plan
            .publishers()
            .get(as_index(publisher))
            .map_or(0, |of| of.fan_out);
        self.counts.expected += u64::from(fan_out);
        self.series.at(second(timeline, now_ns)).sent += 1;
        if punctual && timeline.holds(intended_ns) {
            enter(&mut self.latencies.lag, now_ns.saturating_sub(intended_ns));
        }
    }

    /// The broker took or refused a message that left at `sent_ns`.
    pub(super) fn acknowledge(&mut self, sent_ns: u64, now_ns: u64, refused: bool) {
        self.counts.acknowledged += 1;
        self.counts.refused += u64::from(refused);
        let Some(timeline) = self.timeline else {
            return;
        };
        self.series.at(second(timeline, now_ns)).acknowledged += 1;
        if timeline.holds(sent_ns) {
            enter(
                &mut self.latencies.publish_ack,
                now_ns.saturating_sub(sent_ns),
            );
        }
    }

    /// Keeps the reason of a failure; all of a kind under one text.
    pub(super) fn note(&mut self, reason: String) {
        let known = self.reasons.contains_key(&reason);
        let reason = if known || self.reasons.len() < REASONS_MAX {
            reason
        } else {
            "other".to_owned()
        };
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// The mark of a message of this run, with the time it was due; none for any other message.
    fn recognise(
        &self,
        timeline: Timeline,
        payload: &[u8],
        now_ns: u64,
    ) -> Option<(Timeline, Mark, u64)> {
        let mark = Mark::read(payload)?;
        let intended_ns = timeline.start_ns + self.plan.offset_ns(mark.publisher, mark.sequence)?;
        // No message of this run leaves before it is due, nor after it arrives.
        let ours = intended_ns <= mark.sent_ns && mark.sent_ns <= now_ns;
        ours.then_some((timeline, mark, intended_ns))
    }
}

impl Timeline {
    /// Whether a time counts.
    pub(crate) const fn holds(&self, at_ns: u64) -> bool {
        self.hold_start_ns <= at_ns && at_ns < self.hold_end_ns
    }
}

fn second(timeline: Timeline, now_ns: u64) -> usize {
    let second = now_ns.saturating_sub(timeline.start_ns) / SECOND_NS;
    usize::try_from(second).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, find};

    const START: u64 = 1_000_000_000_000;

    fn tally(publishers: u32) -> Tally {
        let overrides = Overrides {
            publishers: Some(publishers),
            warm_up: Some(std::time::Duration::from_secs(1)),
            hold: Some(std::time::Duration::from_secs(2)),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        let mut tally = Tally::new(Arc::new(Plan::new(scenario, "t").unwrap()));
        for subscriber in 0..publishers {
            tally.add_subscriber(subscriber);
        }
        tally.set_timeline(Some(Timeline {
            start_ns: START,
            hold_start_ns: START + SECOND_NS,
            hold_end_ns: START + 3 * SECOND_NS,
        }));
        tally
    }

    fn payload(publisher: u32, sequence: u32, sent_ns: u64) -> [u8; 16] {
        let mut payload = [0; 16];
        Mark {
            publisher,
            sequence,
            sent_ns,
        }
        .write(&mut payload);
        payload
    }

    #[test]
    fn latency_counts_from_the_intended_time_and_only_within_the_hold() {
        let mut tally = tally(1);
        let (due, sent, arrived) = (
            START + SECOND_NS,
            START + SECOND_NS + 3_000_000,
            START + SECOND_NS + 5_000_000,
        );
        tally.receive(0, &payload(0, 0, START), START + 7);
        tally.receive(0, &payload(0, 1, sent), arrived);
        assert_eq!(tally.latencies.response.len(), 1);
        assert!(tally.latencies.response.max().abs_diff(arrived - due) < 5_000);
        assert!(tally.latencies.service.max().abs_diff(arrived - sent) < 5_000);
        assert_eq!(
            (tally.counts.distinct, tally.counts.received_in_hold),
            (2, 1)
        );
    }

    #[test]
    fn a_duplicate_adds_no_latency() {
        let mut tally = tally(1);
        let message = payload(0, 1, START + SECOND_NS);
        tally.receive(0, &message, START + SECOND_NS + 10);
        tally.receive(0, &message, START + SECOND_NS + 900_000_000);
        assert_eq!((tally.counts.received, tally.counts.distinct), (2, 1));
        assert_eq!(tally.latencies.response.len(), 1);
        assert_eq!(tally.pairs[0].duplicates(), 1);
    }

    #[test]
    fn a_message_for_another_subscriber_is_misdelivered() {
        let mut tally = tally(2);
        tally.receive(1, &payload(0, 0, START + 5), START + 10);
        assert_eq!((tally.counts.misdelivered, tally.counts.distinct), (1, 0));
    }

    #[test]
    fn messages_of_other_runs_are_foreign() {
        let mut tally = tally(1);
        tally.receive(0, b"retained by someone", START + 10);
        tally.receive(0, b"short", START + 10);
        tally.receive(0, &payload(0, 0, START - 1), START + 10);
        tally.receive(0, &payload(0, 0, START + 11), START + 10);
        assert_eq!((tally.counts.foreign, tally.counts.distinct), (4, 0));
    }

    #[test]
    fn lag_is_counted_only_for_messages_that_the_broker_did_not_hold_back() {
        let mut tally = tally(1);
        tally.send(0, 1, START + SECOND_NS + 1_000, true);
        tally.send(0, 2, START + 2 * SECOND_NS + 900_000_000, false);
        assert_eq!(tally.latencies.lag.len(), 1);
        assert_eq!((tally.counts.sent, tally.counts.expected), (2, 2));
    }

    #[test]
    fn reasons_are_counted_under_few_names() {
        let mut tally = tally(1);
        for reason in 0..100 {
            tally.note(format!("reason {reason}"));
        }
        tally.note("reason 3".to_owned());
        assert_eq!(tally.reasons.len(), REASONS_MAX + 1);
        assert_eq!(tally.reasons["reason 3"], 2);
        assert_eq!(tally.reasons["other"], 80);
    }
}
