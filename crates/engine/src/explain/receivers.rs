//! Who would get a message, and what each would do with it.

use std::collections::BTreeMap;

use thrum_codec::QoS;
use thrum_protocol::server::GroupId;
use thrum_protocol::{Message, Publication};
use thrum_routing::FilterId;
use thrum_routing::shared::{Choice, Cursor, Strategy, stable_hash};

use super::{Foreseen, QueueState, foresee, queue_state};
use crate::client::Client;
use crate::engine::Engine;
use crate::ids::Slot;
use crate::interest::{Member, Route, SessionRef};
use crate::shared::publisher_hash;
use crate::subscriber::Subscriber;

/// Sessions of one worker, and groups, that are listed; more are counted.
pub const RECEIVERS_MAX: usize = 100;
/// Sessions that one word of a set notes.
const BITS: usize = u64::BITS as usize;

/// The sessions of one worker that a message matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    /// The first ones, by their places.
    pub sessions: Vec<SessionReceiver>,
    /// How many more there are.
    pub more: usize,
    /// Subscriptions that match, of all of them: one session may have several.
    pub subscriptions: usize,
}

/// A session that a message matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReceiver {
    /// Client identifier.
    pub client_id: Box<str>,
    /// Its filters that match, with the mount point.
    pub filters: Vec<Box<str>>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Why it does not get the message although a filter matches, if so.
    pub passed_over: Option<&'static str>,
    /// What it would do with the message.
    pub foreseen: Foreseen,
    /// Its queue and window.
    pub queue: QueueState,
}

/// A shared group that a message matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReceiver {
    /// The filter, with `$share/GROUP/`.
    pub filter: Box<str>,
    /// How members are chosen.
    pub strategy: Strategy,
    /// Members.
    pub members: usize,
    /// Members whose clients are connected.
    pub online: usize,
    /// The member that would get the next message of this worker, if its queue has room; none if
    /// the choice is random.
    pub next: Option<SessionRef>,
    /// The queue of that member has room.
    pub has_room: bool,
}

/// What is known of one session while its filters are collected.
#[derive(Debug, Default)]
struct Matching {
    /// Its number.
    session: u64,
    filters: Vec<Box<str>>,
    qos: QoS,
    passed_over: Option<&'static str>,
    is_taken: bool,
}

/// The search for the sessions of one worker that a message matches, a portion at a time:
/// subscriptions that begin or end meanwhile may be missed.
#[derive(Debug)]
pub struct ReceiverSearch {
    /// The number of the session that publishes the message.
    publisher: u64,
    /// The filter that is looked at; those with lower numbers are done.
    filter: Option<FilterId>,
    /// Its subscribers that are done.
    done: usize,
    /// A bit for each place of a session: it is counted.
    known: Vec<u64>,
    sessions: usize,
    subscriptions: usize,
    listed: BTreeMap<Slot, Matching>,
}

impl ReceiverSearch {
    /// Begins.
    pub const fn new(publisher: u64) -> Self {
        Self {
            publisher,
            filter: None,
            done: 0,
            known: Vec::new(),
            sessions: 0,
            subscriptions: 0,
            listed: BTreeMap::new(),
        }
    }

    /// Looks at that many further subscriptions at most; true if these were the last ones.
    pub fn advance(&mut self, engine: &Engine, message: &Message, most: usize) -> bool {
        let topics = &engine.router.topics;
        let mut matched = Vec::new();
        topics.index.matches(message.topic(), &mut matched);
        matched.sort_unstable();
        let mut published = message.publication();
        published.publisher = self.publisher;
        let mut left = most;
        let at = self.filter;
        for filter in matched.into_iter().filter(|filter| Some(*filter) >= at) {
            if self.filter != Some(filter) {
                (self.filter, self.done) = (Some(filter), 0);
            }
            let subscribers = topics.subscribers(filter);
            let rest = subscribers.get(self.done..).unwrap_or_default();
            let portion = &rest[..rest.len().min(left)];
            for subscriber in portion {
                self.take(engine, filter, subscriber, &published);
            }
            self.done += portion.len();
            left -= portion.len();
            if portion.len() < rest.len() {
                return false;
            }
        }
        true
    }

    fn take(
        &mut self,
        engine: &Engine,
        filter: FilterId,
        subscriber: &Subscriber,
        published: &Publication<'_>,
    ) {
        self.subscriptions += 1;
        let is_new = self.mark(engine, subscriber.slot);
        self.sessions += usize::from(is_new);
        let matching = if is_new && self.listed.len() < RECEIVERS_MAX {
            self.listed.entry(subscriber.slot).or_default()
        } else if let Some(matching) = self.listed.get_mut(&subscriber.slot) {
            matching
        } else {
            return;
        };
        let mut text = String::new();
        engine.router.topics.index.filter_text(filter, &mut text);
        matching.filters.push(text.into());
        matching.session = engine.core.sessions[subscriber.slot].session.id();
        match engine.core.matched(subscriber, published) {
            Some(found) => {
                matching.is_taken = true;
                matching.qos = matching.qos.max(found.qos);
            }
            None if subscriber.options.no_local => {
                matching.passed_over = Some("it is the publisher, and has set No Local");
            }
            None => {
                matching.passed_over = Some("the rules do not allow it to receive this topic");
            }
        }
    }

    /// Notes a session; false if it was noted before.
    fn mark(&mut self, engine: &Engine, slot: Slot) -> bool {
        let word = slot.index() / BITS;
        if self.known.len() <= word {
            let words = engine.core.sessions.capacity().div_ceil(BITS);
            self.known.resize(words.max(word + 1), 0);
        }
        let bit = 1 << (slot.index() % BITS);
        let is_new = self.known[word] & bit == 0;
        self.known[word] |= bit;
        is_new
    }

    /// What was found.
    pub fn finish(&mut self, engine: &Engine, message: &Message) -> Receivers {
        let listed = std::mem::take(&mut self.listed);
        let more = self.sessions - listed.len();
        let sessions = listed.into_iter().filter_map(|(slot, matching)| {
            let client = engine.core.sessions.get(slot)?;
            // Another client may have taken the place meanwhile.
            let is_same = client.session.id() == matching.session;
            is_same.then(|| receiver(engine, client, matching, message))
        });
        Receivers {
            sessions: sessions.collect(),
            more,
            subscriptions: self.subscriptions,
        }
    }
}

fn receiver(
    engine: &Engine,
    client: &Client,
    matching: Matching,
    message: &Message,
) -> SessionReceiver {
    SessionReceiver {
        client_id: client.session.client_id().into(),
        filters: matching.filters,
        qos: matching.qos,
        passed_over: matching.passed_over.filter(|_| !matching.is_taken),
        foreseen: foresee(&engine.core, client, message, matching.qos),
        queue: queue_state(&engine.core, client),
    }
}

/// The shared groups that a message of a client of this worker matches, with the member that would
/// be chosen now; the groups' turns stay as they are.
pub fn explain_groups(engine: &Engine, slot: Slot, message: &Message) -> Vec<GroupReceiver> {
    let interest = &engine.core.node.interest;
    let mut route = Route::default();
    interest.route(message.topic(), &mut Vec::new(), &mut route);
    let groups = route.groups.iter().take(RECEIVERS_MAX);
    groups
        .filter_map(|(group, members)| {
            let shared = interest.group(*group)?;
            let next = next_member(engine, slot, *group, message, members);
            Some(GroupReceiver {
                filter: shared.text().into(),
                strategy: members.strategy(),
                members: members.len(),
                online: members.online_count(),
                next: next.map(|member| member.session),
                has_room: next.is_some_and(|member| {
                    message.qos() == QoS::AtMostOnce || member.room.has_room(message.bytes_len())
                }),
            })
        })
        .collect()
}

/// The member that the next message would go to; none if that is left to chance.
fn next_member<'g>(
    engine: &Engine,
    slot: Slot,
    group: GroupId,
    message: &Message,
    members: &'g thrum_routing::shared::Group<Member>,
) -> Option<&'g Member> {
    if members.strategy() == Strategy::Random {
        return None;
    }
    let core = &engine.core;
    let client = &core.sessions[slot].session;
    let choice = Choice {
        client_hash: match publisher_hash(core, &core.sessions[slot]) {
            0 => client.id(),
            hash => u64::from(hash),
        },
        topic_hash: stable_hash(message.topic()),
        random: 0,
    };
    let first = u32::try_from(core.id.index()).unwrap_or(0);
    let first = Cursor::starting_at(first);
    // A copy: the turn of the group stays as it is.
    let mut cursor = engine.router.groups.cursor(group).unwrap_or(first);
    let is_local = |member: &Member| member.session.worker == core.id;
    members.pick(&mut cursor, choice, is_local, None)
}
