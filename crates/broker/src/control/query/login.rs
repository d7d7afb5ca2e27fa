//! How a client was admitted: by which backend, as whom, and with which rules of its own.

use std::sync::Arc;

use thrum_access::Admission;

use super::QueryError;
use super::row::connection_of;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::traffic::Traffic;

/// Units of an answer: some allocations.
const LOGIN_UNITS: u64 = 16;

/// How a client was admitted.
#[derive(Clone, Debug)]
pub struct ClientLogin {
    /// Its identity, and its own rules; none if the broker admits every client and has no rules.
    pub admission: Option<Arc<Admission>>,
    /// When its connection began, in milliseconds of the Unix epoch; none while it is disconnected.
    pub since: Option<u64>,
}

/// See [`Queries::client_login`](super::Queries::client_login).
pub(super) fn client_login(
    sender: &QuerySender,
    client_id: &str,
) -> Result<Option<ClientLogin>, QueryError> {
    let task = || ShowLogin {
        client_id: client_id.into(),
    };
    let answers = sender.query_all(task)?;
    Ok(answers.into_iter().flatten().next())
}

#[derive(Debug)]
struct ShowLogin {
    client_id: Box<str>,
}

impl WorkerTask for ShowLogin {
    type Answer = Option<ClientLogin>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        traffic.engine.core.turn.work += LOGIN_UNITS;
        let Traffic { edge, engine, .. } = &*traffic;
        let core = &engine.core;
        let Some(slot) = core.sessions.find(&self.client_id) else {
            return TaskProgress::Done(None);
        };
        let client = &core.sessions[slot];
        let access = client.access.as_deref();
        let began = client.session.link().traffic().began();
        let since = connection_of(edge, client).map(|_| core.node.wall.millis(began));
        TaskProgress::Done(Some(ClientLogin {
            admission: access.map(|access| Arc::new(access.admission())),
            since,
        }))
    }
}
