//! How many sessions there are of each kind, counted in one pass.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use thrum_codec::Version;
use thrum_engine::ids::Slot;
use thrum_engine::top_counts::TopCounts;

use super::filter::{Matcher, ProblemSet, SessionFilter, SessionState, Subject, problems};
use super::row::connection_of;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::{Backlog, ClientProblem, QueryError};
use crate::edge::Edge;
use crate::traffic::Traffic;

/// Users that are listed, those with the most sessions.
const FACET_USERS: usize = 20;
/// Users that one worker counts: with more of them the counts are approximate, and those of users
/// with few sessions may be missing.
const USERS_COUNTED_MAX: usize = 2048;
/// Units of a session that is counted: its user is looked up.
const COUNT_UNITS: u64 = 1;

/// Sessions by kind.
#[derive(Clone, Debug, Default)]
pub struct Facets {
    /// Sessions that match the filter.
    pub matching: u64,
    /// Connected sessions by the name of their listener.
    pub listeners: Vec<(String, u64)>,
    /// Sessions by protocol version.
    pub versions: Vec<(Version, u64)>,
    /// Sessions by state; a connected session may be persistent, too.
    pub states: Vec<(SessionState, u64)>,
    /// Sessions by problem; one session may have several.
    pub problems: Vec<(ClientProblem, u64)>,
    /// The users with the most sessions, at most 20.
    pub users: Vec<UserCount>,
    /// Users beside these; none if it is not known.
    pub other_users: Option<u64>,
    /// Sessions without a verified user.
    pub without_user: u64,
    /// Messages in all queues.
    pub queued: Backlog,
    /// Messages that were sent and not acknowledged.
    pub inflight: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Messages that were dropped.
    pub dropped: u64,
    /// Wills of disconnected sessions, which are published later.
    pub delayed_wills: u64,
}

/// Sessions of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCount {
    /// User.
    pub user: Box<str>,
    /// Sessions.
    pub sessions: u64,
    /// How many fewer they may be.
    pub at_most_less: u64,
}

/// See [`Queries::facets`](super::Queries::facets).
pub(super) fn facets(sender: &QuerySender, filter: &SessionFilter) -> Result<Facets, QueryError> {
    filter.check()?;
    let filter = Arc::new(filter.clone());
    let hasher = RandomState::new();
    let answers = sender.walk_all(|| CountFacets::new(&filter, &hasher))?;
    Ok(merged(answers))
}

const VERSIONS: [Version; 3] = [Version::V31, Version::V311, Version::V5];

/// The counts of one worker.
#[derive(Debug)]
pub(crate) struct FacetCounts {
    matching: u64,
    /// By the number of the gate.
    gates: BTreeMap<u16, u64>,
    listeners: BTreeMap<Arc<str>, u64>,
    versions: [u64; VERSIONS.len()],
    states: [u64; SessionState::ALL.len()],
    problems: [u64; ClientProblem::ALL.len()],
    users: TopCounts<Box<str>>,
    without_user: u64,
    queued: Backlog,
    inflight: u64,
    subscriptions: u64,
    dropped: u64,
    delayed_wills: u64,
}

impl Default for FacetCounts {
    fn default() -> Self {
        Self {
            matching: 0,
            gates: BTreeMap::new(),
            listeners: BTreeMap::new(),
            versions: [0; VERSIONS.len()],
            states: [0; SessionState::ALL.len()],
            problems: [0; ClientProblem::ALL.len()],
            users: TopCounts::new(USERS_COUNTED_MAX),
            without_user: 0,
            queued: Backlog::default(),
            inflight: 0,
            subscriptions: 0,
            dropped: 0,
            delayed_wills: 0,
        }
    }
}

impl FacetCounts {
    fn count(&mut self, subject: &Subject<'_>, hasher: &RandomState) {
        let client = subject.client;
        let session = &client.session;
        self.matching += 1;
        if let Some(connection) = connection_of(subject.edge, client) {
            *self.gates.entry(connection.gate).or_default() += 1;
        }
        let version = session.link().version();
        let versions = VERSIONS.iter().zip(&mut self.versions);
        for (_, count) in versions.filter(|(of, _)| **of == version) {
            *count += 1;
        }
        for (state, count) in SessionState::ALL.into_iter().zip(&mut self.states) {
            *count += u64::from(state.is_of(client));
        }
        let found: ProblemSet = problems(subject, subject.engine.core.turn.now);
        for (problem, count) in ClientProblem::ALL.into_iter().zip(&mut self.problems) {
            *count += u64::from(found.contains(problem));
        }
        match client.owner().user() {
            None => self.without_user += 1,
            Some(user) => {
                let hash = hasher.hash_one(user);
                self.users
                    .add(hash, 1, |known| **known == *user, || user.into());
            }
        }
        let (messages, bytes, inflight) = session.outbound().backlog();
        self.queued.messages += messages as u64;
        self.queued.bytes += bytes as u64;
        self.inflight += inflight as u64;
        self.subscriptions += client.subscription_count() as u64;
        let has_delayed_will = client.connection.is_none() && session.will().is_some();
        self.delayed_wills += u64::from(has_delayed_will);
        self.dropped += client.dropped().map(|(_, count)| count).sum::<u64>();
    }

    /// Replaces the numbers of gates by the names of their listeners.
    fn name_listeners(&mut self, edge: &mut Edge) {
        for (gate, count) in std::mem::take(&mut self.gates) {
            // The gate may have gone since a connection named it.
            if let Some(gate) = edge.gates.find(gate) {
                *self.listeners.entry(Arc::clone(&gate.name)).or_default() += count;
            }
        }
    }
}

/// The pass of one worker over its sessions.
#[derive(Debug)]
pub(crate) struct CountFacets {
    filter: Arc<SessionFilter>,
    hasher: RandomState,
    next: usize,
    end: Option<usize>,
    counts: FacetCounts,
}

impl CountFacets {
    pub(super) fn new(filter: &Arc<SessionFilter>, hasher: &RandomState) -> Self {
        Self {
            filter: Arc::clone(filter),
            hasher: hasher.clone(),
            next: 0,
            end: None,
            counts: FacetCounts::default(),
        }
    }

    fn visit(&mut self, traffic: &mut Traffic, slot: Slot, matcher: &Matcher) -> u64 {
        let (subject, units) = Subject::select(traffic, slot, matcher);
        let Some(mut subject) = subject else {
            return units;
        };
        // Its name is known from here on.
        subject.listener();
        self.counts.count(&subject, &self.hasher);
        units + COUNT_UNITS
    }
}

impl WorkerTask for CountFacets {
    type Answer = FacetCounts;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let sessions = &traffic.engine.core.sessions;
        let end = *self.end.get_or_insert_with(|| sessions.capacity());
        let matcher = Matcher::new(&self.filter, &traffic.engine);
        while self.next < end {
            let slot = Slot::new(self.next);
            let units = slot.map_or(1, |slot| self.visit(traffic, slot, &matcher));
            traffic.engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && traffic.engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        self.counts.name_listeners(&mut traffic.edge);
        TaskProgress::Done(std::mem::take(&mut self.counts))
    }
}

pub(super) fn merged(answers: Vec<FacetCounts>) -> Facets {
    let mut all = Facets::default();
    let mut listeners: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let mut users: BTreeMap<Box<str>, UserCount> = BTreeMap::new();
    let (mut versions, mut states, mut found) = ([0; 3], [0; 3], [0; 5]);
    let mut is_exact = true;
    for counts in answers {
        all.matching += counts.matching;
        all.without_user += counts.without_user;
        all.queued.messages += counts.queued.messages;
        all.queued.bytes += counts.queued.bytes;
        all.inflight += counts.inflight;
        all.subscriptions += counts.subscriptions;
        all.dropped += counts.dropped;
        all.delayed_wills += counts.delayed_wills;
        add(&mut versions, &counts.versions);
        add(&mut states, &counts.states);
        add(&mut found, &counts.problems);
        for (listener, count) in counts.listeners {
            *listeners.entry(listener).or_default() += count;
        }
        is_exact &= counts.users.replaced() == 0;
        for counted in counts.users.iter() {
            let user = users.entry(counted.key.clone());
            let user = user.or_insert_with(|| UserCount {
                user: counted.key.clone(),
                sessions: 0,
                at_most_less: 0,
            });
            user.sessions += counted.count;
            user.at_most_less += counted.error;
        }
    }
    let listeners = listeners.into_iter();
    all.listeners = listeners
        .map(|(name, count)| (name.to_string(), count))
        .collect();
    all.versions = VERSIONS.into_iter().zip(versions).collect();
    all.states = SessionState::ALL.into_iter().zip(states).collect();
    all.problems = ClientProblem::ALL.into_iter().zip(found).collect();
    let number = users.len();
    all.users = users.into_values().collect();
    all.users.sort_by(|one, other| {
        let by_sessions = other.sessions.cmp(&one.sessions);
        by_sessions.then_with(|| one.user.cmp(&other.user))
    });
    all.users.truncate(FACET_USERS);
    all.other_users = is_exact.then(|| (number - all.users.len()) as u64);
    all
}

fn add(all: &mut [u64], some: &[u64]) {
    for (all, some) in all.iter_mut().zip(some) {
        *all += some;
    }
}
