//! The timeline of one client, of all workers: a CONNECT is refused by the worker that accepted the
//! connection, and a client that begins another session may get another worker.

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::traffic::Traffic;
use thrum_engine::node::WallClock;
use thrum_engine::timeline::{ClientEvent, ClientTimeline, EVENTS_MAX, TimelineEntry, timeline_of};

/// Units of a timeline: each of its events is copied.
const TIMELINE_UNITS: u64 = 64;

/// The last events of a client, at most 200.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// In the order in which they began.
    pub events: Vec<TimelineEvent>,
    /// Events of the client before them that are known to be forgotten; there may be others.
    pub forgotten: u64,
    /// The client has a session.
    pub has_session: bool,
}

/// An event, or several that repeat each other. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When it happened, or began to happen.
    pub at: u64,
    /// When it happened last.
    pub last: u64,
    /// How often it happened.
    pub count: u64,
    /// Events of such kinds that happened beside it and are not listed.
    pub others: u32,
    /// The event with its cause.
    pub event: ClientEvent,
}

/// See [`Queries::timeline`](super::Queries::timeline).
pub(super) fn timeline(sender: &QuerySender, client_id: &str) -> Result<Timeline, QueryError> {
    let task = || ShowTimeline {
        client_id: client_id.into(),
    };
    let answers = sender.query_all(task)?;
    Ok(merged(answers, &sender.node().state.wall))
}

/// Merges the answers of all workers.
pub(super) fn merged(answers: Vec<FoundTimeline>, wall: &WallClock) -> Timeline {
    let mut timeline = Timeline::default();
    let mut entries: Vec<TimelineEntry> = Vec::new();
    for FoundTimeline {
        events,
        has_session,
    } in answers
    {
        timeline.has_session |= has_session;
        timeline.forgotten += events.forgotten;
        entries.extend(events.entries);
    }
    entries.sort_by_key(|entry| (entry.at, entry.order));
    let too_many = entries.len().saturating_sub(EVENTS_MAX);
    timeline.forgotten += too_many as u64;
    let last = entries.into_iter().skip(too_many);
    timeline.events = last
        .map(|entry| TimelineEvent {
            at: wall.millis(entry.at),
            last: wall.millis(entry.last),
            count: entry.count,
            others: entry.others,
            event: entry.event,
        })
        .collect();
    timeline
}

/// What one worker knows of a client.
#[derive(Debug)]
pub(crate) struct FoundTimeline {
    events: ClientTimeline,
    has_session: bool,
}

#[derive(Debug)]
pub(super) struct ShowTimeline {
    pub(super) client_id: Box<str>,
}

impl WorkerTask for ShowTimeline {
    type Answer = FoundTimeline;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<FoundTimeline> {
        let core = &mut traffic.engine.core;
        core.turn.work += TIMELINE_UNITS;
        TaskProgress::Done(FoundTimeline {
            events: timeline_of(core, &self.client_id),
            has_session: core.sessions.find(&self.client_id).is_some(),
        })
    }
}
