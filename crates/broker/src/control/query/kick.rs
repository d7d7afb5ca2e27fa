//! The operator disconnects a client, and ends its session on demand.

use thrum_codec::ReasonCode;

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::edge::{DisconnectNotice, Ending};
use crate::traffic::Traffic;
use thrum_engine::ids::Slot;
use thrum_engine::node::metrics::Counter;
use thrum_engine::timeline::SessionEnd;

/// The reason that a client of 5.0 receives (0x98) and the log contains.
const KICK_NOTICE: DisconnectNotice = DisconnectNotice {
    reason: ReasonCode::AdministrativeAction,
    what: "disconnected by an operator of the broker",
};

/// The effect of a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kicked {
    /// It was connected.
    pub was_connected: bool,
    /// Its session has ended, on demand or with the connection.
    pub session_ended: bool,
}

/// See [`Queries::kick`](super::Queries::kick).
pub(super) fn kick(
    sender: &QuerySender,
    client_id: &str,
    ends_session: bool,
) -> Result<Option<Kicked>, QueryError> {
    let task = || Kick {
        client_id: client_id.into(),
        ends_session,
    };
    let answers = sender.query_all(task)?;
    Ok(answers.into_iter().flatten().next())
}

#[derive(Debug)]
pub(super) struct Kick {
    pub(super) client_id: Box<str>,
    pub(super) ends_session: bool,
}

impl WorkerTask for Kick {
    type Answer = Option<Kicked>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let slot = traffic.engine.core.sessions.find(&self.client_id);
        TaskProgress::Done(slot.map(|slot| disconnect(traffic, slot, self.ends_session)))
    }
}

fn disconnect(traffic: &mut Traffic, slot: Slot, ends_session: bool) -> Kicked {
    let client = &traffic.engine.core.sessions[slot];
    let (id, connection) = (client.session.id(), client.connection);
    let returning = traffic.rechecking().returning_to(slot);
    let was_connected = connection.is_some() || returning.is_some();
    let row = traffic.engine.core.row();
    row.add(Counter::ClientsKicked, was_connected.into());
    if let Some(returning) = returning {
        traffic.door().kick_returning(returning, KICK_NOTICE.what);
    }
    if let Some(key) = connection {
        let edge = &mut traffic.edge;
        edge.disconnect(
            &mut traffic.engine,
            key,
            KICK_NOTICE,
            Ending::ClosedByServer,
        );
    }
    if ends_session && traffic.engine.core.sessions.is(slot, id) {
        tracing::info!(
            client_id = traffic.engine.core.sessions[slot].session.client_id(),
            "session ended by an operator of the broker"
        );
        traffic.engine.remove_session(slot, SessionEnd::ByOperator);
    }
    Kicked {
        was_connected,
        session_ended: !traffic.engine.core.sessions.is(slot, id),
    }
}
