//! Which sessions a query is about: conditions that all have to hold.

mod figure;
mod problem;
mod text;

use std::sync::Arc;

use thrum_access::Network;
use thrum_codec::{TopicFilter, Version};
use thrum_protocol::Time;
use thrum_protocol::server::GroupId;
use thrum_routing::FilterId;

pub use figure::{Comparison, Figure};
pub use problem::{ClientProblem, ProblemSet};
pub use text::FilterError;

pub(super) use problem::{has_full_window, problems};

use super::QueryError;
use super::row::{address_of, connection_of};
use super::wildcard::WildcardText;
use crate::edge::Edge;
use crate::traffic::Traffic;
use thrum_engine::Engine;
use thrum_engine::access::ClientAccess;
use thrum_engine::client::Client;
use thrum_engine::ids::Slot;

/// Conditions of one filter: each is checked for every session.
const CONDITIONS_MAX: usize = 16;
/// Longest pattern in bytes. Its comparison costs the product of both lengths.
const PATTERN_BYTES_MAX: usize = 1024;
/// Bytes of a text, or numbers of a list, that are compared in the time of a unit.
const COMPARED_OF_UNIT: usize = 64;

/// Selects the sessions for which every condition holds; without conditions all of them.
///
/// Written as text (`FromStr`) it is a list of terms: `user=alice queue>100 state=connected`.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    terms: Vec<Term>,
}

/// A condition, or its contrary.
#[derive(Clone, Debug)]
struct Term {
    condition: Condition,
    is_negated: bool,
}

/// A property of a session.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Client identifier.
    ClientId(WildcardText),
    /// User name; sessions without a verified user have none.
    User(WildcardText),
    /// Exact user name, in which `*` is a letter like others; not written as text.
    UserNamed(Box<str>),
    /// Exact name of the backend that admitted its client; not written as text.
    Backend(Box<str>),
    /// Network of the client's connection, or of the last one, if it is known.
    Network(Network),
    /// Listener of the client's connection; no disconnected client has one.
    Listener(WildcardText),
    /// Connected, or able to outlive its connection.
    State(SessionState),
    /// A filter that the session has subscribed to, as the client wrote it (behind its mount
    /// point), with `$share/GROUP/` if it is shared.
    Subscribed(String),
    /// Protocol version of the connection, or of the last one.
    Version(Version),
    /// A figure is above, at or below a value.
    Figure(Figure, Comparison, u64),
    /// The session has this problem.
    Problem(ClientProblem),
    /// The session has some problem.
    AnyProblem,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// It has a connection.
    Connected,
    /// It has none.
    Disconnected,
    /// It outlives its connection, which it may have now.
    Persistent,
}

impl SessionState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Connected, Self::Disconnected, Self::Persistent];

    /// Name in filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::Persistent => "persistent",
        }
    }

    pub(super) fn is_of(self, client: &Client) -> bool {
        match self {
            Self::Connected => client.connection.is_some(),
            Self::Disconnected => client.connection.is_none(),
            Self::Persistent => client.session.lifetime().is_persistent(),
        }
    }
}

impl SessionFilter {
    /// Adds a condition.
    #[must_use]
    pub fn and(self, condition: Condition) -> Self {
        self.with(condition, false)
    }

    /// Adds a condition that must not hold.
    #[must_use]
    pub fn and_not(self, condition: Condition) -> Self {
        self.with(condition, true)
    }

    fn with(mut self, condition: Condition, is_negated: bool) -> Self {
        self.terms.push(Term {
            condition,
            is_negated,
        });
        self
    }

    fn subscribed(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().filter_map(|term| match &term.condition {
            Condition::Subscribed(filter) => Some(filter.as_str()),
            _ => None,
        })
    }

    /// Refuses a filter that is invalid or too long.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        if self.terms.len() > CONDITIONS_MAX {
            let what = format!("a filter has at most {CONDITIONS_MAX} conditions");
            return Err(QueryError::Invalid(what));
        }
        if self.subscribed().count() > 1 {
            let what = "a filter has one condition about a subscription at most".to_owned();
            return Err(QueryError::Invalid(what));
        }
        for term in &self.terms {
            check_condition(&term.condition)?;
        }
        Ok(())
    }
}

fn check_condition(condition: &Condition) -> Result<(), QueryError> {
    let (what, pattern) = match condition {
        Condition::Subscribed(filter) => return check_topic_filter(filter),
        Condition::ClientId(pattern) => ("client identifiers", pattern),
        Condition::User(pattern) => ("users", pattern),
        Condition::Listener(pattern) => ("listeners", pattern),
        _ => return Ok(()),
    };
    check_pattern(what, pattern)
}

/// Refuses a pattern that is too long.
pub(super) fn check_pattern(what: &str, pattern: &WildcardText) -> Result<(), QueryError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let what = format!("a pattern of {what} has at most {PATTERN_BYTES_MAX} bytes");
        return Err(QueryError::Invalid(what));
    }
    Ok(())
}

/// Refuses an invalid topic filter.
pub(super) fn check_topic_filter(text: &str) -> Result<(), QueryError> {
    let parsed = TopicFilter::parse(text).map(|_| ());
    parsed.map_err(|_| QueryError::Invalid(format!("{text:?} is no topic filter")))
}

/// A filter for one portion of the sessions of a worker.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    filter: Arc<SessionFilter>,
    /// The numbers of filters may change between two portions.
    subscribed: Subscribed,
    now: Time,
}

impl Matcher {
    pub(super) fn new(filter: &Arc<SessionFilter>, engine: &Engine) -> Self {
        let subscribed = filter.subscribed().next();
        Self {
            filter: Arc::clone(filter),
            subscribed: subscribed
                .map_or(Subscribed::None, |filter| Subscribed::find(engine, filter)),
            now: engine.core.turn.now,
        }
    }

    /// Whether a session matches, and the units of the comparison.
    pub(super) fn matches(&self, subject: &mut Subject<'_>) -> (bool, u64) {
        let mut units = 1;
        for term in &self.filter.terms {
            let holds = self.holds(&term.condition, subject, &mut units);
            if holds == term.is_negated {
                return (false, units);
            }
        }
        (true, units)
    }

    fn holds(&self, condition: &Condition, subject: &mut Subject<'_>, units: &mut u64) -> bool {
        let client = subject.client;
        let mut is_like = |pattern: &WildcardText, text: &str| {
            let compared = pattern.len() * text.len();
            *units += (compared / COMPARED_OF_UNIT / COMPARED_OF_UNIT) as u64;
            pattern.matches(text)
        };
        match condition {
            Condition::ClientId(pattern) => is_like(pattern, client.session.client_id()),
            Condition::User(pattern) => {
                let user = client.owner().user();
                user.is_some_and(|user| is_like(pattern, user))
            }
            Condition::UserNamed(name) => client.owner().user() == Some(&**name),
            Condition::Backend(name) => {
                let access = client.access.as_deref();
                access.and_then(ClientAccess::backend) == Some(&**name)
            }
            Condition::Listener(pattern) => {
                let listener = subject.listener();
                listener.is_some_and(|listener| is_like(pattern, listener))
            }
            Condition::Network(network) => {
                let address = address_of(subject.edge, client);
                address.is_some_and(|address| network.contains(address))
            }
            Condition::State(state) => state.is_of(client),
            Condition::Version(version) => *version == client.session.link().version(),
            Condition::Figure(figure, comparison, value) => {
                let found = figure.of(client, self.now);
                found.is_some_and(|found| comparison.holds(found, *value))
            }
            Condition::Problem(problem) => problems(subject, self.now).contains(*problem),
            Condition::AnyProblem => !problems(subject, self.now).is_empty(),
            Condition::Subscribed(_) => {
                *units += (client.subscription_count() / COMPARED_OF_UNIT) as u64;
                self.subscribed.is_of(client)
            }
        }
    }
}

/// A session with its worker.
pub(super) struct Subject<'a> {
    pub(super) edge: &'a mut Edge,
    pub(super) engine: &'a Engine,
    pub(super) client: &'a Client,
}

impl<'a> Subject<'a> {
    /// The session in a slot, if there is one and it matches, and the units of the look at it.
    pub(super) fn select(
        traffic: &'a mut Traffic,
        slot: Slot,
        matcher: &Matcher,
    ) -> (Option<Self>, u64) {
        let Traffic { edge, engine, .. } = traffic;
        let Some(client) = engine.core.sessions.get(slot) else {
            return (None, 1);
        };
        let mut subject = Self {
            edge,
            engine,
            client,
        };
        let (is_match, units) = matcher.matches(&mut subject);
        (is_match.then_some(subject), units)
    }

    /// Name of the listener of its connection.
    pub(super) fn listener(&mut self) -> Option<&str> {
        let gate = connection_of(self.edge, self.client)?.gate;
        Some(&self.edge.gates.get(gate).name)
    }
}

/// A subscription as one worker identifies it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subscribed {
    Filter(FilterId),
    Group(GroupId),
    /// No session of this worker has it.
    None,
}

impl Subscribed {
    pub(super) fn find(engine: &Engine, filter: &str) -> Self {
        let Ok(parsed) = TopicFilter::parse(filter) else {
            return Self::None;
        };
        let found = match parsed.shared() {
            Some(shared) => engine
                .core
                .node
                .interest
                .find_group(shared)
                .map(Self::Group),
            None => engine.router.topics.find(filter).map(Self::Filter),
        };
        found.unwrap_or(Self::None)
    }

    pub(super) fn is_of(self, client: &Client) -> bool {
        match self {
            Self::Filter(filter) => client.subscriptions.contains(&filter),
            Self::Group(group) => client.groups().contains(&group),
            Self::None => false,
        }
    }
}
