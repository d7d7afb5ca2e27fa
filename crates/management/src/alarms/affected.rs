//! The clients that an alarm is about: how many, and the one that has the problem most.

use std::time::Duration;

use serde_json::{Value, json};
use thrum_broker::{
    ClientProblem, Condition, Figure, Presence, Queries, SessionFilter, SessionQuery, SortKey,
};
use thrum_figures::count;

/// Time of the broker for a look at all sessions. Whoever looks waits for it.
const LOOK_TIME: Duration = Duration::from_secs(2);
/// Time for a look at one.
const SESSION_TIME: Duration = Duration::from_millis(500);

/// Clients with a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Affected {
    pub(super) clients: u64,
    /// The one that has it most.
    pub(super) worst: Option<AffectedClient>,
}

/// A client with a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AffectedClient {
    pub(super) client_id: String,
    /// None if it is connected.
    pub(super) away_secs: Option<u64>,
    pub(super) queued: u64,
    pub(super) queue_max: u64,
    /// By messages or by bytes, the larger one.
    pub(super) queue_percent: u64,
}

/// Looks at all sessions for queues that are nearly full; none if the workers do not answer in
/// time.
pub(super) fn affected(queries: &Queries) -> Option<Affected> {
    let queries = queries.clone().with_timeout(LOOK_TIME);
    let found = queries
        .sessions(&SessionQuery {
            filter: SessionFilter::default().and(Condition::Problem(ClientProblem::Queue)),
            sort: SortKey::Figure(Figure::QueuePercent),
            is_descending: true,
            limit: 1,
            cursor: None,
        })
        .ok()?;
    let first = found.page.rows.first();
    let queries = queries.with_timeout(SESSION_TIME);
    let worst = first.and_then(|row| look_up(&queries, &row.client_id));
    Some(Affected {
        clients: found.matching.unwrap_or(0),
        worst,
    })
}

fn look_up(queries: &Queries, client_id: &str) -> Option<AffectedClient> {
    let session = queries.session(client_id).ok()??;
    let (queued, limit) = (session.row.queued, session.queue_limit);
    let percent = |part: u64, of: u64| part.saturating_mul(100).checked_div(of).unwrap_or(0);
    let is_away = matches!(session.row.presence, Presence::Away { .. });
    Some(AffectedClient {
        client_id: client_id.to_owned(),
        away_secs: is_away.then_some(session.row.idle_secs),
        queued: queued.messages,
        queue_max: limit.messages,
        queue_percent: percent(queued.messages, limit.messages)
            .max(percent(queued.bytes, limit.bytes)),
    })
}

impl Affected {
    /// The client, if it is the only one.
    pub(super) fn only(&self) -> Option<&AffectedClient> {
        self.worst.as_ref().filter(|_| self.clients == 1)
    }

    /// For the data of an alarm: its text has no names, as whoever may not see clients reads it,
    /// too.
    pub(super) fn arguments(&self) -> Vec<(&'static str, Value)> {
        let mut arguments = vec![("clients", json!(self.clients))];
        if let Some(worst) = &self.worst {
            arguments.extend([
                ("client_id", json!(worst.client_id)),
                ("away_secs", json!(worst.away_secs)),
                ("queued_messages", json!(worst.queued)),
                ("queue_limit", json!(worst.queue_max)),
                ("queue_percent", json!(worst.queue_percent)),
            ]);
        }
        arguments
    }
}

impl AffectedClient {
    /// How full its queue is.
    pub(super) fn fullness(&self) -> String {
        let (queued, most) = (count(self.queued), count(self.queue_max));
        match self.queue_percent {
            100.. => format!("full ({queued} of {most} messages)"),
            percent => format!("{percent} % full ({queued} of {most} messages)"),
        }
    }
}

/// Whether an alarm is about one client that is away, or about one that is connected.
pub(super) fn remedy(affected: &Affected) -> &'static str {
    let Some(client) = affected.only() else {
        return "bring clients back that are away, or end their sessions; let connected ones read faster, or \
                raise limits.client.queue";
    };
    if client.away_secs.is_some() {
        return "bring the client back, or end its session if nobody needs the messages; a shorter session expiry, \
                or an expiry of the messages, bounds what is kept for it";
    }
    "let the client read faster or acknowledge sooner, or raise limits.client.queue"
}
