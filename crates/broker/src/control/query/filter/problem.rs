//! Problems of a client that its worker can see.

use thrum_engine::client::Client;
use thrum_protocol::Time;

use super::super::row::connection_of;
use super::Subject;
use super::figure::queue_percent;

/// A queue is a problem from this percentage of its limit on.
const QUEUE_PERCENT: u64 = 80;
/// A session is near a limit from this percentage of it on.
const NEAR_PERCENT: u64 = 80;
/// A client that lost a message within this time is losing messages.
const DROPPING_SECS: u64 = 60;

/// A problem of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClientProblem {
    /// Its queue has reached 80 % of its limit.
    Queue,
    /// It does not take its messages as fast as they come: its output is congested, or messages are
    /// queued because its window is full.
    Slow,
    /// It lost a message within the last minute.
    Dropping,
    /// The broker does not read it now: it has used up a rate, or something of the broker is full.
    Limited,
    /// It has used 80 % of its subscriptions, or of its receive maximum.
    NearLimit,
}

impl ClientProblem {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::Slow,
        Self::Dropping,
        Self::Limited,
        Self::NearLimit,
    ];

    /// Name in filters and listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Slow => "slow",
            Self::Dropping => "dropping",
            Self::Limited => "limited",
            Self::NearLimit => "near_limit",
        }
    }
}

/// The problems of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProblemSet(u8);

impl ProblemSet {
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether that one is among them.
    pub const fn contains(self, problem: ClientProblem) -> bool {
        self.0 & (1 << problem as u8) != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = ClientProblem> {
        let all = ClientProblem::ALL.into_iter();
        all.filter(move |problem| self.contains(*problem))
    }

    fn set(&mut self, problem: ClientProblem, is_there: bool) {
        self.0 |= u8::from(is_there) << problem as u8;
    }
}

/// The problems of a client now.
pub(in super::super) fn problems(subject: &Subject<'_>, now: Time) -> ProblemSet {
    let client = subject.client;
    let lost = client.last_dropped();
    let mut found = ProblemSet::default();
    found.set(ClientProblem::Queue, queue_percent(client) >= QUEUE_PERCENT);
    found.set(
        ClientProblem::Dropping,
        lost.is_some_and(|lost| now.since(lost).as_secs() < DROPPING_SECS),
    );
    found.set(ClientProblem::NearLimit, is_near_limit(client));
    let (Some(key), Some(connection)) = (client.connection, connection_of(subject.edge, client))
    else {
        return found;
    };
    let is_congested = subject.engine.core.outputs[key].is_congested;
    found.set(ClientProblem::Slow, is_congested || has_full_window(client));
    found.set(ClientProblem::Limited, !connection.reading.is_open());
    found
}

/// Whether messages wait because the client has not acknowledged others.
pub(in super::super) fn has_full_window(client: &Client) -> bool {
    let (queued, _, inflight) = client.session.outbound().backlog();
    queued > 0 && inflight > 0 && client.session.free_window() == 0
}

fn is_near_limit(client: &Client) -> bool {
    let limits = client.session.limits();
    let is_near = |value: usize, limit: u64| {
        let value = (value as u64).saturating_mul(100);
        limit > 0 && value >= limit.saturating_mul(NEAR_PERCENT)
    };
    is_near(client.subscription_count(), limits.subscriptions_max.into())
        || is_near(
            client.session.inbound().under_way(),
            limits.receive_maximum.into(),
        )
}
