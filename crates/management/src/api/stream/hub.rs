//! The parts that viewers want now, each made by one task; and the places of viewers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use thrum_broker::StreamNote;
use tokio::sync::watch;
use tokio::time::sleep;

use super::super::{ApiState, Problem};
use super::declared::{Every, Part};
use super::part::Work;
use super::state::State;

/// Live streams and traces of an entrance at a time: each has a task, a connection, and some
/// hundred kilobytes.
const VIEWERS_MAX: usize = 64;
/// Of these, those of one administrator or key: the tabs of one person.
const VIEWERS_OF_ONE_MAX: usize = 12;
/// Different parts at a time: each asks the broker at its pace.
const PARTS_MAX: usize = 256;
/// Of these, those that one administrator or key was the first to want: two streams with all that
/// one may declare.
pub(super) const PARTS_OF_ONE_MAX: usize = 64;
/// After a query, the next one waits for so many times as long as each worker worked for it: one
/// part takes at most a hundredth of the time of the workers. What they waited for a core is not
/// counted, else a page would stand still for a quarter of a minute because a compiler ran beside.
const PAUSE_FACTOR: u32 = 100;
/// Longest such pause. With the query itself it stays below the minute for which the broker counts
/// topics after the last look at them.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Seconds after which a refused viewer may ask again.
const RETRY_SECS: u64 = 5;

/// The newest state of a part; none before the first one.
pub(super) type Latest = Option<Arc<State>>;

/// A part that somebody wants, and its pace.
pub(super) type PartId = (Part, Every);

/// See above.
#[derive(Debug, Default)]
pub(in crate::api) struct Hub {
    /// Guards the list of tasks: at the beginning and the end of a viewer and of a task.
    parts: Mutex<HashMap<PartId, Made>>,
    /// Guards the number of viewers by caller, in the same way.
    viewers: Mutex<BTreeMap<Arc<str>, usize>>,
}

/// A part that is made.
#[derive(Debug)]
struct Made {
    sender: watch::Sender<Latest>,
    /// Who was the first to want it.
    caller: Arc<str>,
}

/// The place of a viewer, until it is dropped.
#[derive(Debug)]
pub(in crate::api) struct ViewerPlace {
    hub: Arc<Hub>,
    caller: Arc<str>,
}

impl Hub {
    /// A place for one more viewer of a caller.
    pub(super) fn take_place(
        self: &Arc<Self>,
        api: &ApiState,
        caller: &Arc<str>,
    ) -> Result<ViewerPlace, Problem> {
        let mut viewers = self.viewers.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = viewers.values().sum();
        let own = viewers.get(caller).copied().unwrap_or(0);
        let refusal = if own >= VIEWERS_OF_ONE_MAX {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many live streams",
                format!(
                    "{caller} has {own} live streams and traces open, and may have \
                     {VIEWERS_OF_ONE_MAX}"
                ),
                "close a page that shows live figures, or a trace",
            )
        } else if all >= VIEWERS_MAX {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many live streams",
                format!("{all} live streams and traces are open, which is the limit of the broker"),
                "ask again later, or read the lists and /api/v1/metrics without a stream",
            )
        } else {
            *viewers.entry(Arc::clone(caller)).or_default() += 1;
            return Ok(ViewerPlace {
                hub: Arc::clone(self),
                caller: Arc::clone(caller),
            });
        };
        drop(viewers);
        api.queries.live().note_stream(StreamNote::Refused);
        Err(Problem {
            retry_after_secs: Some(RETRY_SECS),
            ..refusal
        })
    }

    /// The states of a part, which a task makes for all who want it.
    pub(super) fn subscribe(
        &self,
        api: &ApiState,
        id: PartId,
        caller: &Arc<str>,
    ) -> Result<watch::Receiver<Latest>, Problem> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = parts.get(&id) {
            return Ok(made.sender.subscribe());
        }
        let own = parts.values().filter(|made| made.caller == *caller).count();
        let refusal = if own >= PARTS_OF_ONE_MAX {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many live lists",
                format!(
                    "{caller} watches {own} different lists and topics, and may watch \
                     {PARTS_OF_ONE_MAX}"
                ),
                "close a page that shows live figures, or declare fewer lists and topics",
            )
        } else if parts.len() >= PARTS_MAX {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many live lists",
                format!("{PARTS_MAX} different lists and topics are watched already"),
                "declare fewer of them, or ask again later",
            )
        } else {
            let (sender, receiver) = watch::channel(None);
            let made = Made {
                sender: sender.clone(),
                caller: Arc::clone(caller),
            };
            parts.insert(id.clone(), made);
            drop(parts);
            tokio::spawn(make(api.clone(), id, sender));
            return Ok(receiver);
        };
        drop(parts);
        api.queries.live().note_stream(StreamNote::Refused);
        Err(Problem {
            retry_after_secs: Some(RETRY_SECS),
            ..refusal
        })
    }

    /// Ends a task, unless somebody has come meanwhile.
    fn end_if_unseen(&self, id: &PartId, sender: &watch::Sender<Latest>) -> bool {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unseen = sender.receiver_count() == 0;
        if is_unseen {
            parts.remove(id);
        }
        is_unseen
    }

    /// Tasks that run.
    #[cfg(test)]
    pub(super) fn tasks(&self) -> usize {
        self.parts.lock().unwrap().len()
    }

    /// Viewers that are there.
    #[cfg(test)]
    pub(super) fn viewers(&self) -> usize {
        self.viewers.lock().unwrap().values().sum()
    }
}

impl Drop for ViewerPlace {
    fn drop(&mut self) {
        let mut viewers = self
            .hub
            .viewers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = viewers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                viewers.remove(&self.caller);
            }
        }
    }
}

/// Makes the states of a part while somebody wants them.
async fn make(api: ApiState, id: PartId, sender: watch::Sender<Latest>) {
    let mut work = Work::new(&id.0);
    let (api, worked) = api.with_worker_time();
    loop {
        let began = api.security.login.now().uptime;
        let made = tokio::select! {
            state = work.make(&api) => Some(state),
            () = sender.closed() => None,
        };
        if let Some(state) = made {
            show(&sender, state);
        }
        let took = api.security.login.now().uptime.saturating_sub(began);
        let wait = pause(id.1.time(), took, worked.take());
        tokio::select! {
            () = sleep(wait) => {}
            () = sender.closed() => {
                if api.live.end_if_unseen(&id, &sender) {
                    return;
                }
            }
        }
    }
}

/// The time until the next state, after a query that took some time until its answer, in part of
/// which each worker worked for it. Workers that answer late have other work, and what is made of
/// their answers takes time, too: it waits at least as long.
fn pause(every: Duration, took: Duration, worked: Duration) -> Duration {
    let least = every.saturating_sub(took);
    least.max((worked * PAUSE_FACTOR).max(took).min(PAUSE_MAX))
}

/// Replaces the state, if there is something to tell.
fn show(sender: &watch::Sender<Latest>, state: State) {
    sender.send_if_modified(|latest| {
        let is_new = latest.as_ref().is_none_or(|before| !state.is_same(before));
        if is_new {
            *latest = Some(Arc::new(state));
        }
        is_new
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expensive_query_is_asked_rarely() {
        let every = Duration::from_millis(250);
        let millis = Duration::from_millis;
        assert_eq!(pause(every, millis(1), millis(1)), millis(249));
        assert_eq!(pause(every, millis(30), millis(30)), millis(3000));
        assert_eq!(pause(every, millis(5000), millis(5000)), PAUSE_MAX);
        let counted_for = Duration::from_mins(1);
        assert!(PAUSE_MAX + PAUSE_MAX / 2 < counted_for);
    }

    #[test]
    fn a_query_that_waited_for_a_core_is_asked_again_soon() {
        let every = Duration::from_millis(250);
        let millis = Duration::from_millis;
        assert_eq!(pause(every, millis(30), Duration::ZERO), millis(220));
        assert_eq!(pause(every, millis(200), millis(1)), millis(200));
        assert_eq!(pause(every, millis(5000), millis(1)), millis(5000));
    }
}
