//! The sessions and the routing of one worker: what its clients' packets and other workers' mail
//! lead to.
//!
//! No socket, no poll and no thread is in here. The edge hands packets in with their session, takes
//! output of connections from [`outputs::Outputs`], and mail leaves by [`outbox::Outboxes`] at the
//! end of the turn, once [`core::Core::settle`] has handed in what it rests on.

pub(crate) mod client;
pub(crate) mod core;
mod delivery;
pub(crate) mod durable;
pub(crate) mod elsewhere;
pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod holding;
mod memory;
mod nearly_full;
pub(crate) mod outbox;
pub(crate) mod output;
pub(crate) mod outputs;
pub(crate) mod packets;
pub(crate) mod publishing;
pub(crate) mod reach;
pub(crate) mod replay;
mod restore;
pub(crate) mod review;
pub(crate) mod rights;
pub(crate) mod rooms;
pub(crate) mod router;
pub(crate) mod sessions;
pub(crate) mod shared;
pub(crate) mod sink_outbox;
pub(crate) mod subscriber;
pub(crate) mod subscribing;
pub(crate) mod timers;
pub(crate) mod topics;
pub(crate) mod turn;

use std::sync::Arc;

use thrum_codec::ReasonCode;
use thrum_protocol::Message;

use self::client::Client;
use self::core::Core;
use self::elsewhere::Inquiry;
use self::holding::HeldPublishers;
use self::publishing::Publishing;
use self::replay::Replays;
use self::restore::Restoring;
use self::router::Router;
use self::subscribing::Subscribing;
use self::timers::TimedSession;
use crate::durable::{Journal, Part};
use crate::mailbox::{Mail, PublishDelivery, SharedDelivery};
use crate::node::Node;
use crate::queue_room::{QueueRoom, Shortage, Told};
use crate::retained::RetainedSource;
use crate::settings::Settings;
use crate::workers::WorkerId;

/// See above.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) core: Core,
    pub(crate) router: Router,
    pub(crate) replays: Replays,
    /// Publishers that wait for room in a queue.
    pub(crate) held: HeldPublishers,
    codes: Vec<ReasonCode>,
}

impl Engine {
    pub(crate) fn new(id: WorkerId, node: &Arc<Node>, settings: Arc<Settings>) -> Self {
        Self {
            core: Core::new(id, node, settings),
            router: Router::new(),
            replays: Replays::default(),
            held: HeldPublishers::default(),
            codes: Vec::new(),
        }
    }

    /// For subscriptions that come or go.
    pub(crate) const fn subscribing(&mut self) -> Subscribing<'_> {
        Subscribing {
            core: &mut self.core,
            router: &mut self.router,
            replays: &mut self.replays,
            codes: &mut self.codes,
        }
    }

    /// For what a client publishes.
    const fn publishing(&mut self) -> Publishing<'_> {
        Publishing {
            core: &mut self.core,
            router: &mut self.router,
        }
    }

    const fn restoring(&mut self) -> Restoring<'_> {
        Restoring {
            core: &mut self.core,
            router: &mut self.router,
        }
    }

    /// Takes over the sessions that were found at the start.
    pub(crate) fn restore(&mut self, journal: Journal, part: Part) {
        self.restoring().restore(journal, part);
        self.pass_room_news_on();
        // The end of the lanes is written behind this.
        self.core.settle();
    }

    /// Once all workers have written down what was on its way to them, its lanes are empty.
    pub(crate) fn end_lanes(&mut self) {
        self.restoring().end_lanes();
    }

    /// Sessions of which something was due before the start. It happens before a client can come
    /// back: its will is not taken back by that.
    pub(crate) fn over(&self) -> Vec<TimedSession> {
        let now = self.core.turn.now;
        let is_over = |client: &Client| client.session.next_deadline().is_some_and(|at| at <= now);
        let clients = self.core.sessions.iter();
        clients
            .filter(|(_, client)| is_over(client))
            .map(|(slot, client)| TimedSession::new(slot, &client.session))
            .collect()
    }

    /// A turn begins: replays that had to wait go on.
    pub(crate) fn replay_waiting(&mut self) {
        let topics = &self.router.topics;
        self.replays.replay_waiting(&mut self.core, topics);
    }

    /// A message that is owned already: a will, `$SYS`.
    pub(crate) fn publish_message(
        &mut self,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) {
        self.router.publish_message(&mut self.core, message, source);
    }

    /// A message of whoever runs the broker, as [`Router::publish_order`].
    pub(crate) fn publish_order(&mut self, message: &Arc<Message>) -> Option<ReasonCode> {
        self.router.publish_order(&mut self.core, message)
    }

    /// A message from another worker.
    pub(crate) fn publish_from_worker(&mut self, delivery: PublishDelivery) {
        self.router.publish_from_worker(&mut self.core, delivery);
    }

    /// A message for a member of a shared group, from another worker.
    pub(crate) fn shared_from_worker(&mut self, delivery: SharedDelivery) {
        self.router.shared_from_worker(&mut self.core, delivery);
    }

    /// There is room that publishers of this worker have waited for.
    pub(crate) fn note_room(&mut self, shortage: Shortage, room: &Arc<QueueRoom>) {
        self.held.note_room(&mut self.core, shortage, room);
    }

    /// Another worker asks whether there is memory for a message here.
    pub(crate) fn answer_inquiry(&mut self, inquiry: &Inquiry) {
        self.router.topics.answer_inquiry(&mut self.core, inquiry);
    }

    /// Gives back the room of those that are gone; no slot and no key changes.
    pub(crate) fn shrink(&mut self) {
        self.core.sessions.shrink();
        self.core.outputs.shrink();
        self.router.topics.routes.forget();
    }

    /// Tells the other workers what has changed of queues in this turn.
    pub(crate) fn pass_room_news_on(&mut self) {
        if self.core.rooms.is_quiet() {
            return;
        }
        for slot in self.core.rooms.take_turned() {
            self.router.topics.turned(&mut self.core, slot);
        }
        for Told { waiter, room } in self.core.rooms.take_told() {
            let (worker, shortage) = waiter;
            if worker == self.core.id {
                self.held.note_room(&mut self.core, shortage, &room);
            } else {
                self.core.outboxes.send(worker, Mail::Room(shortage, room));
            }
        }
    }
}
