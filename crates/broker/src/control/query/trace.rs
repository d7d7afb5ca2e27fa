//! Begin and end of a trace on the workers.

use std::sync::Arc;

use thrum_codec::TopicFilter;
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::workers::WorkerId;

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{QueuedTask, TaskProgress, TaskStatus, WorkerTask};
use crate::control::Control;
use crate::edge::{Edge, flag_traced};
use crate::mailbox::Mail;
use crate::trace::{
    LiveTrace, SharedTrace, TRACE_BYTES_MAX, TRACE_PACKETS_MAX, TRACE_TIME_MAX, TraceEnd,
    TraceRequest, TraceSubject,
};
use crate::traffic::Traffic;

/// See [`Queries::trace`](super::Queries::trace).
pub(super) fn trace(sender: &QuerySender, request: &TraceRequest) -> Result<LiveTrace, QueryError> {
    let (live, trace) = begin(sender, request)?;
    sender.query_all(|| StartTrace::new(&trace))?;
    Ok(live)
}

/// A trace that no worker knows yet. The reader ends it when it is dropped, also if a worker does
/// not answer.
pub(super) fn begin(
    sender: &QuerySender,
    request: &TraceRequest,
) -> Result<(LiveTrace, Arc<SharedTrace>), QueryError> {
    check(request)?;
    let control = &sender.control;
    let node = sender.node();
    let until = node.clock.elapsed() + request.time;
    let begun = SharedTrace::new(&node.trace_slots, request.clone(), until, node.workers());
    let (trace, queues) = begun.ok_or(QueryError::TooManyTraces)?;
    let trace = Arc::new(trace);
    let live = LiveTrace::new(Arc::clone(control), Arc::clone(&trace), queues);
    Ok((live, trace))
}

fn check(request: &TraceRequest) -> Result<(), QueryError> {
    let problem = match &request.subject {
        TraceSubject::Topic(filter) if !is_plain(filter) => {
            format!("{filter:?} is no topic filter, or a shared one")
        }
        TraceSubject::Client(client_id) if client_id.is_empty() => {
            "a client identifier is not empty".to_owned()
        }
        _ if request.time.is_zero() || request.time > TRACE_TIME_MAX => {
            let most = TRACE_TIME_MAX.as_secs();
            format!("the time of a trace is at most {most} s, and not 0")
        }
        _ if !(1..=TRACE_PACKETS_MAX).contains(&request.packets_max) => {
            format!("a trace has 1 to {TRACE_PACKETS_MAX} packets")
        }
        _ if !(1..=TRACE_BYTES_MAX).contains(&request.bytes_max) => {
            format!("a trace has 1 to {TRACE_BYTES_MAX} bytes")
        }
        _ => return Ok(()),
    };
    Err(QueryError::Invalid(problem))
}

fn is_plain(filter: &str) -> bool {
    TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_none())
}

/// Ends a trace: no worker takes packets for it any longer, and each forgets it.
pub(crate) fn end_trace(control: &Control, trace: &Arc<SharedTrace>) {
    trace.end_with(TraceEnd::Stopped);
    let node = control.node();
    for worker in WorkerId::all(node.workers()) {
        let trace = Arc::clone(trace);
        node.mailbox(worker)
            .push(Mail::Query(Box::new(EndTrace(trace))));
    }
}

/// Begins a trace on one worker, and flags the connections that it is about.
#[derive(Debug)]
pub(super) struct StartTrace {
    trace: Arc<SharedTrace>,
    next: usize,
    end: Option<usize>,
}

impl StartTrace {
    pub(super) fn new(trace: &Arc<SharedTrace>) -> Self {
        Self {
            trace: Arc::clone(trace),
            next: 0,
            end: None,
        }
    }
}

impl WorkerTask for StartTrace {
    type Answer = ();

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<()> {
        let Traffic { edge, engine, .. } = traffic;
        if self.end.is_none() {
            edge.traces.begin(&self.trace);
        }
        if let TraceSubject::Client(client_id) = &self.trace.request.subject {
            flag_client(edge, engine, client_id);
            return TaskProgress::Done(());
        }
        // Later connections are flagged as they begin.
        let end = *self.end.get_or_insert_with(|| edge.connections.capacity());
        while self.next < end {
            flag(edge, engine, self.next);
            engine.core.turn.work += 1;
            self.next += 1;
            if self.next < end && engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        TaskProgress::Done(())
    }
}

/// Flags the connection of a client, if it has one.
fn flag_client(edge: &mut Edge, engine: &Engine, client_id: &str) {
    let slot = engine.core.sessions.find(client_id);
    if let Some(key) = slot.and_then(|slot| engine.core.sessions[slot].connection) {
        flag_traced(edge, engine, key, client_id);
    }
}

/// Flags the connection in a place, if there is one and the trace is about it.
fn flag(edge: &mut Edge, engine: &Engine, place: usize) {
    let Some(key) = ConnectionKey::new(place) else {
        return;
    };
    let Some(connection) = edge.connections.get(key) else {
        return;
    };
    let client = connection.session().map(|slot| &engine.core.sessions[slot]);
    let client_id = client.map_or("", |client| client.session.client_id());
    flag_traced(edge, engine, key, client_id);
}

/// Makes one worker forget a trace.
#[derive(Debug)]
struct EndTrace(Arc<SharedTrace>);

impl QueuedTask for EndTrace {
    fn is_abandoned(&self) -> bool {
        false
    }

    fn advance(&mut self, traffic: &mut Traffic) -> TaskStatus {
        traffic.edge.traces.end(&self.0);
        TaskStatus::Done
    }
}
