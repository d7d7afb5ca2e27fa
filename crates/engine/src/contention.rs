//! Access of benchmarks to the tables that all workers of a node share.

use std::sync::Arc;

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, SharedFilter};
use thrum_protocol::server::GroupId;
use thrum_protocol::{Message, Publication, Time};
use thrum_routing::Destination;
use thrum_routing::shared::{Choice, Cursor, Strategy};

use crate::ids::Slot;
use crate::interest::changes::Version;
use crate::interest::groups::GroupTexts;
use crate::interest::{Interest, Member, Route, SessionRef};
use crate::node::placement::Placement;
use crate::queue_room::QueueRoom;
use crate::retained::{RetainedLimits, RetainedStore};

/// The shared groups of a node.
#[derive(Debug)]
pub struct SharedGroups {
    interest: Interest,
    placement: Placement,
}

/// The cached route of one worker that publishes to a topic.
#[derive(Debug, Default)]
pub struct Publisher {
    version: Version,
    route: Route,
    cursor: Cursor<u64>,
}

/// The group texts that a worker caches for messages that it stores.
#[derive(Debug, Default)]
pub struct Texts(GroupTexts);

impl SharedGroups {
    /// Creates a node of that many workers without groups.
    pub fn new(workers: usize) -> Self {
        Self {
            interest: Interest::new(Strategy::RoundRobin, workers),
            placement: Placement::new(workers),
        }
    }

    /// Makes a session a member of the group of a filter.
    pub fn join(&self, filter: &str, session: u64) -> GroupId {
        let worker = self.placement.worker_of(session);
        let session = SessionRef {
            worker,
            slot: Slot::FIRST,
            id: session,
        };
        let member = Member {
            session,
            options: SubscriptionOptions::default(),
            identifier: None,
            durable: false,
            room: Arc::new(QueueRoom::new(session, Arc::default())),
        };
        let group = SharedFilter { group: "g", filter };
        self.interest.join(group, member).group
    }

    /// Removes a session from a group.
    pub fn leave(&self, group: GroupId, session: u64) -> bool {
        self.interest.leave(group, session)
    }

    /// Sets whether a member has a connection.
    pub fn set_online(&self, group: GroupId, session: u64, online: bool) {
        self.interest.set_online(group, session, online);
    }

    /// Routes a message to a topic and returns the member that receives it.
    pub fn publish(&self, publisher: &mut Publisher, topic: &str) -> Option<u64> {
        if !self.interest.holds(&mut publisher.version, topic) {
            let mut scratch = Vec::new();
            let found = self
                .interest
                .route(topic, &mut scratch, &mut publisher.route);
            publisher.version = found.0;
        }
        let (_, members) = publisher.route.groups.first()?;
        let member = members.pick(&mut publisher.cursor, Choice::default(), |_| false, None)?;
        Some(member.key())
    }

    /// Invalidates the cached route of a publisher.
    pub fn forget(&self, publisher: &mut Publisher) {
        publisher.version = Version::default();
    }

    /// Length in bytes of the text that is stored as the group of a durable message.
    pub fn group_text_bytes(&self, texts: &mut Texts, group: GroupId) -> usize {
        texts.0.of(group, || self.interest.group(group)).len()
    }
}

/// Retained messages that have all expired.
#[derive(Debug)]
pub struct ExpiredMessages(RetainedStore);

impl ExpiredMessages {
    /// Creates that many messages on a node of that many workers.
    pub fn new(messages: usize, workers: usize) -> Self {
        let limits = RetainedLimits {
            message_count: messages,
            bytes: usize::MAX,
            payload_bytes: 1,
        };
        let store = RetainedStore::new(limits, workers);
        for number in 0..messages {
            let message = Message::new(&Publication {
                retain: true,
                expires_at: Some(Time::from_millis(1)),
                ..Publication::new(
                    &format!("site/{}/device/{number}", number % 1_000),
                    b"x",
                    QoS::AtMostOnce,
                )
            });
            let now = Time::default();
            assert!(store.store(&Arc::new(message), None, now).kept);
        }
        Self(store)
    }

    /// Removes the messages that one worker removes in a second, and returns their number.
    pub fn sweep(&self) -> usize {
        let mut removed = Vec::new();
        self.0.sweep(Time::from_millis(2), &mut removed);
        removed.len()
    }
}
