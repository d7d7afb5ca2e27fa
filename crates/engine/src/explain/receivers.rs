//! Who would get a message, and what each would do with it.

use std::collections::BTreeMap;

use thrum_codec::QoS;
use thrum_protocol::Message;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Choice, Cursor, Strategy, stable_hash};

use super::{Foreseen, QueueState, foresee, queue_state};
use crate::client::Client;
use crate::engine::Engine;
use crate::ids::Slot;
use crate::interest::{Member, Route, SessionRef};
use crate::shared::publisher_hash;

/// Sessions of one worker, and groups, that are listed; more are counted.
pub const RECEIVERS_MAX: usize = 100;

/// The sessions of one worker that a message matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    /// The first ones, by their places.
    pub sessions: Vec<SessionReceiver>,
    /// How many more there are.
    pub more: usize,
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
    filters: Vec<Box<str>>,
    qos: QoS,
    passed_over: Option<&'static str>,
    is_taken: bool,
}

/// The sessions of this worker that a message matches; `publisher` is the number of the session
/// that publishes it.
pub fn explain_receivers(engine: &Engine, message: &Message, publisher: u64) -> Receivers {
    let core = &engine.core;
    let topics = &engine.router.topics;
    let mut matched = Vec::new();
    topics.index.matches(message.topic(), &mut matched);
    let mut by_slot: BTreeMap<Slot, Matching> = BTreeMap::new();
    let mut more = 0;
    let mut published = message.publication();
    published.publisher = publisher;
    for filter in matched {
        for subscriber in topics.subscribers(filter) {
            let is_known = by_slot.contains_key(&subscriber.slot);
            if !is_known && by_slot.len() >= RECEIVERS_MAX {
                more += 1;
                continue;
            }
            let matching = by_slot.entry(subscriber.slot).or_default();
            let mut text = String::new();
            topics.index.filter_text(filter, &mut text);
            matching.filters.push(text.into());
            match core.matched(subscriber, &published) {
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
    }
    let sessions = by_slot.into_iter().map(|(slot, matching)| {
        let client = &core.sessions[slot];
        receiver(engine, client, matching, message)
    });
    Receivers {
        sessions: sessions.collect(),
        more,
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
