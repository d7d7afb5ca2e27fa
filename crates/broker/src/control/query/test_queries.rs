//! Queries of tests that run the turns of the workers themselves.

use std::hash::RandomState;
use std::sync::Arc;

pub(crate) use super::best::PAGE_BYTES_MAX;
use super::connections::CountConnections;
use super::detail::ShowSession;
use super::explain::{About, FindReceivers, FoundReceivers};
use super::facets::{CountFacets, FacetCounts, merged as merged_facets};
use super::kick::Kick;
use super::sender::PendingQuery;
pub(crate) use super::sender::QUERIES_MAX;
pub(crate) use super::sessions::ROW_UNITS;
use super::sessions::{ListSessions, SessionsFound, merged};
pub(crate) use super::tasks::QUERY_UNITS;
use super::timeline::{FoundTimeline, ShowTimeline, merged as merged_timeline};
use super::topic_metrics::add_in_vain;
use super::trace::{StartTrace, begin};
use super::unsorted::test_pages;
use super::waiting::{LookAtClients, MessageBytes};
use super::{
    ConnectionCounts, Facets, Kicked, Queries, QueryError, SessionDetail, SessionFilter,
    SessionPage, SessionQuery, Timeline, Waiting, WaitingSubject,
};
use crate::config::Config;
use crate::control::Control;
use crate::node::Node;
use crate::trace::{LiveTrace, TraceRequest};
use thrum_codec::QoS;
use thrum_engine::access::Shared;
use thrum_protocol::{Message, Publication};

pub(crate) use test_pages::PendingUnsortedPage;

/// Queries to the workers of a node.
pub(crate) fn queries(node: &Arc<Node>) -> Queries {
    let control = Control::new(
        Arc::clone(node),
        Config::default(),
        Arc::new(Shared::default()),
    );
    Queries::new(Arc::new(control))
}

/// The workers are about to end.
pub(crate) fn refuse(queries: &Queries) {
    queries.0.control.refuse_queries();
}

/// A page of sessions that was requested.
#[derive(Debug)]
pub(crate) struct PendingPage {
    query: SessionQuery,
    pending: PendingQuery<SessionsFound>,
}

impl PendingPage {
    pub(crate) fn send(queries: &Queries, query: &SessionQuery) -> Result<Self, QueryError> {
        let list = ListSessions::new(query)?;
        Ok(Self {
            query: query.clone(),
            pending: queries.0.send_walk(|| list.for_worker())?,
        })
    }

    /// None while a worker has not answered.
    pub(crate) fn page(&mut self) -> Option<SessionPage> {
        let is_answered = self.pending.is_answered();
        let list = ListSessions::new(&self.query).expect("it was sent");
        is_answered.then(|| {
            let answers = self.pending.take_answers();
            merged(&self.query, list.wanted(), answers)
        })
    }
}

/// Requests a page of the first worker's sessions, in no order.
pub(crate) fn unsorted(
    queries: &Queries,
    query: &SessionQuery,
) -> Result<PendingUnsortedPage, QueryError> {
    PendingUnsortedPage::send(&queries.0, query)
}

/// Requests one session.
pub(crate) fn session(
    queries: &Queries,
    client_id: &str,
) -> PendingAnswers<Option<Box<SessionDetail>>> {
    let show = || ShowSession {
        client_id: client_id.into(),
    };
    PendingAnswers(queries.0.send(queries.0.workers(), show))
}

/// Disconnects a client, and ends its session on demand.
pub(crate) fn kick(
    queries: &Queries,
    client_id: &str,
    ends_session: bool,
) -> PendingAnswers<Option<Kicked>> {
    let kick = || Kick {
        client_id: client_id.into(),
        ends_session,
    };
    PendingAnswers(queries.0.send(queries.0.workers(), kick))
}

/// Counts sessions by kind.
pub(crate) fn facets(queries: &Queries, filter: &str) -> PendingFacets {
    let filter: SessionFilter = filter.parse().expect("a filter");
    let (filter, hasher) = (Arc::new(filter), RandomState::new());
    let count = || CountFacets::new(&filter, &hasher);
    PendingFacets(PendingAnswers(queries.0.send_walk(count)))
}

/// Facets that were requested.
#[derive(Debug)]
pub(crate) struct PendingFacets(PendingAnswers<FacetCounts>);

impl PendingFacets {
    /// None while a worker has not answered.
    pub(crate) fn take(&mut self) -> Option<Facets> {
        self.0.take().map(merged_facets)
    }
}

/// Requests the timeline of a client.
pub(crate) fn timeline(queries: &Queries, client_id: &str) -> PendingAnswers<FoundTimeline> {
    let show = || ShowTimeline {
        client_id: client_id.into(),
    };
    PendingAnswers(queries.0.send(queries.0.workers(), show))
}

/// The timeline from the answers of all workers.
pub(crate) fn whole_timeline(queries: &Queries, answers: Vec<FoundTimeline>) -> Timeline {
    merged_timeline(answers, &queries.0.node().state.wall)
}

/// Begins a trace, which runs once all workers have answered.
pub(crate) fn start_trace(
    queries: &Queries,
    request: &TraceRequest,
) -> Result<(LiveTrace, PendingAnswers<()>), QueryError> {
    let (live, trace) = begin(&queries.0, request)?;
    let started = queries
        .0
        .send(queries.0.workers(), || StartTrace::new(&trace));
    Ok((live, PendingAnswers(started)))
}

/// Adds a filter of topic metrics, which fails when some workers have had their turn.
pub(crate) fn count_topics_in_vain(queries: &Queries, filter: &str, turn: impl FnOnce()) {
    add_in_vain(&queries.0, filter, turn);
}

/// Looks at what waits.
pub(crate) fn waiting(queries: &Queries, subject: WaitingSubject) -> PendingAnswers<Waiting> {
    let subject = Arc::new(subject);
    let sizes = MessageBytes::of(&queries.0.node().state.metrics);
    let look = || LookAtClients::new(&subject, sizes);
    PendingAnswers(queries.0.send_walk(look))
}

/// Searches the receivers of a message of nobody.
pub(crate) fn receivers(queries: &Queries, topic: &str) -> PendingAnswers<FoundReceivers> {
    let about = Arc::new(About {
        message: Message::new(&Publication::new(topic, b"x", QoS::AtMostOnce)),
        publisher: 0,
        members: Vec::new(),
    });
    let find = || FindReceivers::new(&about);
    PendingAnswers(queries.0.send(queries.0.workers(), find))
}

/// Counts connections.
pub(crate) fn connections(queries: &Queries) -> PendingAnswers<ConnectionCounts> {
    PendingAnswers(
        queries
            .0
            .send(queries.0.workers(), CountConnections::default),
    )
}

/// A pending query, or the reason why it was not sent.
#[derive(Debug)]
pub(crate) struct PendingAnswers<A>(Result<PendingQuery<A>, QueryError>);

impl<A> PendingAnswers<A> {
    /// The answers of all workers; none while one has not answered.
    pub(crate) fn take(&mut self) -> Option<Vec<A>> {
        let pending = self.0.as_mut().expect("few queries are pending");
        pending.is_answered().then(|| pending.take_answers())
    }
}
