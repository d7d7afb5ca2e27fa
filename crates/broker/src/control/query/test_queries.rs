//! Questions of tests, which call the turns of the workers themselves.

use std::sync::Arc;

use super::ask::Asking;
pub(crate) use super::ask::QUESTIONS_MAX;
pub(crate) use super::best::PAGE_BYTES_MAX;
use super::connections::CountConnections;
use super::detail::ShowSession;
use super::kick::Kick;
pub(crate) use super::questions::QUESTION_UNITS;
pub(crate) use super::sessions::ROW_UNITS;
use super::sessions::{ListSessions, SessionsFound, merged};
use super::unsorted::test_pages;
use super::{
    ConnectionCounts, Kicked, Queries, QueryError, SessionDetail, SessionPage, SessionQuery,
};
use crate::config::Config;
use crate::control::Control;
use crate::node::Node;
use thrum_engine::access::Shared;

pub(crate) use test_pages::AskedUnsorted;

/// Asks the workers of a node.
pub(crate) fn queries(node: &Arc<Node>) -> Queries {
    let control = Control::new(
        Arc::clone(node),
        Config::default(),
        Arc::new(Shared::default()),
    );
    Queries::new(Arc::new(control))
}

/// A page of sessions that was asked for.
#[derive(Debug)]
pub(crate) struct AskedPage {
    query: SessionQuery,
    asking: Asking<SessionsFound>,
}

impl AskedPage {
    pub(crate) fn begin(queries: &Queries, query: &SessionQuery) -> Result<Self, QueryError> {
        let question = ListSessions::new(query)?;
        Ok(Self {
            query: query.clone(),
            asking: queries.0.begin(queries.0.workers(), || question.begun())?,
        })
    }

    /// None while a worker has not answered.
    pub(crate) fn page(&mut self) -> Option<SessionPage> {
        let is_answered = self.asking.is_answered();
        let question = ListSessions::new(&self.query).expect("it was asked");
        is_answered.then(|| {
            let answers = self.asking.take_answers();
            merged(&self.query, question.wanted(), answers)
        })
    }
}

/// Asks for a page of the first worker's sessions, in no order.
pub(crate) fn unsorted(
    queries: &Queries,
    query: &SessionQuery,
) -> Result<AskedUnsorted, QueryError> {
    AskedUnsorted::begin(&queries.0, query)
}

/// Asks for one session.
pub(crate) fn session(queries: &Queries, client_id: &str) -> Answers<Option<Box<SessionDetail>>> {
    let show = || ShowSession {
        client_id: client_id.into(),
    };
    Answers(queries.0.begin(queries.0.workers(), show))
}

/// Disconnects a client, and ends its session on demand.
pub(crate) fn kick(
    queries: &Queries,
    client_id: &str,
    ends_session: bool,
) -> Answers<Option<Kicked>> {
    let kick = || Kick {
        client_id: client_id.into(),
        ends_session,
    };
    Answers(queries.0.begin(queries.0.workers(), kick))
}

/// Counts connections.
pub(crate) fn connections(queries: &Queries) -> Answers<ConnectionCounts> {
    Answers(
        queries
            .0
            .begin(queries.0.workers(), CountConnections::default),
    )
}

/// A question, or the reason why it was not asked.
#[derive(Debug)]
pub(crate) struct Answers<A>(Result<Asking<A>, QueryError>);

impl<A> Answers<A> {
    /// The answers of all workers; none while one has not answered.
    pub(crate) fn take(&mut self) -> Option<Vec<A>> {
        let asking = self.0.as_mut().expect("few questions are under way");
        asking.is_answered().then(|| asking.take_answers())
    }
}
