//! One worker's sessions with all that they have to say.
//!
//! The shell hands packets in with their session, takes output of connections from
//! [`Outputs`](crate::outputs::Outputs), and mail leaves by
//! [`Outboxes`](crate::outbox::Outboxes) at the end of the turn, once [`Core::settle`] has handed
//! in what it rests on.

use std::sync::Arc;

use thrum_codec::ReasonCode;
use thrum_protocol::Message;

use super::client::Client;
use super::core::Core;
use super::holding::HeldPublishers;
use super::publishing::Publishing;
use super::replay::Replays;
use super::restore::Restoring;
use super::router::Router;
use super::subscribing::Subscribing;
use super::timers::TimedSession;
use crate::durable::{Journal, Part};
use crate::host::Surroundings;
use crate::ids::ConnectionKey;
use crate::mail::EngineMail;
use crate::node::NodeState;
use crate::queue_room::Told;
use crate::retained::RetainedSource;
use crate::settings::EngineSettings;
use crate::workers::WorkerId;

/// See above.
#[derive(Debug)]
pub struct Engine {
    /// What all parts work on.
    pub core: Core,
    /// The way of a message to those who want it.
    pub router: Router,
    /// Retained messages for new subscriptions.
    pub replays: Replays,
    /// Publishers that wait for room in a queue.
    pub held: HeldPublishers,
    codes: Vec<ReasonCode>,
}

impl Engine {
    /// The engine of a worker that begins.
    pub fn new(
        id: WorkerId,
        node: &Arc<NodeState>,
        settings: Arc<EngineSettings>,
        surroundings: Surroundings,
    ) -> Self {
        Self {
            core: Core::new(id, node, settings, surroundings),
            router: Router::new(),
            replays: Replays::default(),
            held: HeldPublishers::default(),
            codes: Vec::new(),
        }
    }

    /// For subscriptions that come or go.
    pub const fn subscribing(&mut self) -> Subscribing<'_> {
        Subscribing {
            core: &mut self.core,
            router: &mut self.router,
            replays: &mut self.replays,
            codes: &mut self.codes,
        }
    }

    /// For what a client publishes.
    pub(crate) const fn publishing(&mut self) -> Publishing<'_> {
        Publishing {
            core: &mut self.core,
            router: &mut self.router,
        }
    }

    pub(crate) const fn restoring(&mut self) -> Restoring<'_> {
        Restoring {
            core: &mut self.core,
            router: &mut self.router,
        }
    }

    /// Takes over the sessions that were found at the start.
    pub fn restore(&mut self, journal: Journal, part: Part) {
        self.restoring().restore(journal, part);
        self.pass_room_news_on();
        // The end of the lanes is written behind this.
        self.core.settle();
    }

    /// Once all workers have written down what was on its way to them, its lanes are empty.
    pub fn end_lanes(&mut self) {
        self.restoring().end_lanes();
    }

    /// Sessions of which something was due before the start. It happens before a client can come
    /// back: its will is not taken back by that.
    pub fn over(&self) -> Vec<TimedSession> {
        let now = self.core.turn.now;
        let is_over = |client: &Client| client.session.next_deadline().is_some_and(|at| at <= now);
        let clients = self.core.sessions.iter();
        clients
            .filter(|(_, client)| is_over(client))
            .map(|(slot, client)| TimedSession::new(slot, &client.session))
            .collect()
    }

    /// A turn begins: replays that had to wait go on.
    pub fn replay_waiting(&mut self) {
        let topics = &self.router.topics;
        self.replays.replay_waiting(&mut self.core, topics);
    }

    /// A message that is owned already: a will, `$SYS`.
    pub fn publish_message(
        &mut self,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) {
        self.router.publish_message(&mut self.core, message, source);
    }

    /// Mail of another engine; the connection that need not wait any longer, if it is about one.
    pub fn take_mail(&mut self, mail: EngineMail) -> Option<ConnectionKey> {
        let core = &mut self.core;
        match mail {
            EngineMail::Publish(delivery) => self.router.publish_from_worker(core, delivery),
            EngineMail::Shared(delivery) => self.router.shared_from_worker(core, delivery),
            EngineMail::Room(shortage, room) => self.held.note_room(core, shortage, &room),
            EngineMail::Full(session) => core.found_full(session),
            EngineMail::Inquiry(inquiry) => self.router.topics.answer_inquiry(core, &inquiry),
            EngineMail::Heard(connection) => {
                return core.outputs.contains(connection).then_some(connection.key);
            }
        }
        None
    }

    /// Gives back the room of those that are gone; no slot and no key changes.
    pub fn shrink(&mut self) {
        self.core.sessions.shrink();
        self.core.outputs.shrink();
        self.router.topics.routes.forget();
    }

    /// Tells the other workers what has changed of queues in this turn.
    pub fn pass_room_news_on(&mut self) {
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
                self.core
                    .outboxes
                    .send(worker, EngineMail::Room(shortage, room));
            }
        }
    }
}
