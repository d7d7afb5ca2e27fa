//! The sessions and the routing of one worker.
//!
//! The shell passes packets with their session, takes the output of connections from
//! [`Outputs`](crate::outputs::Outputs), and takes mail from [`Outboxes`](crate::outbox::Outboxes)
//! at the end of the turn, after [`Core::settle`] has submitted the changes that the mail depends
//! on.

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
use super::sink_outbox::are_any_refusing;
use super::subscribing::Subscribing;
use super::timers::TimedSession;
use crate::durable::{Journal, Part};
use crate::host::Surroundings;
use crate::ids::ConnectionKey;
use crate::mail::EngineMail;
use crate::node::NodeState;
use crate::queue_room::RoomNotice;
use crate::retained::RetainedSource;
use crate::settings::EngineSettings;
use crate::workers::WorkerId;

/// The sessions and the routing of one worker.
#[derive(Debug)]
pub struct Engine {
    /// State that all parts of the engine share.
    pub core: Core,
    /// Routing of messages to their subscribers.
    pub router: Router,
    /// Replays of retained messages for new subscriptions.
    pub replays: Replays,
    /// Publishers that wait for capacity in a queue.
    pub held: HeldPublishers,
    codes: Vec<ReasonCode>,
}

impl Engine {
    /// Creates the engine of a worker.
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

    /// The part that adds and removes subscriptions.
    pub const fn subscribing(&mut self) -> Subscribing<'_> {
        Subscribing {
            core: &mut self.core,
            router: &mut self.router,
            replays: &mut self.replays,
            codes: &mut self.codes,
        }
    }

    /// The part that handles PUBLISH packets.
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

    /// Restores the sessions that the storage has recovered for this worker.
    pub fn restore(&mut self, journal: Journal, part: Part) {
        self.restoring().restore(journal, part);
        self.send_room_notices();
        // The removal of the lanes is submitted after this batch.
        self.core.settle();
    }

    /// Removes the lanes once all workers have stored the messages in them.
    pub fn end_lanes(&mut self) {
        self.restoring().end_lanes();
    }

    /// The sessions with a deadline that passed before the start. They are handled before clients
    /// connect, so that a client that reconnects does not cancel a will that was due.
    pub fn overdue_sessions(&self) -> Vec<TimedSession> {
        let now = self.core.turn.now;
        let is_over = |client: &Client| client.session.next_deadline().is_some_and(|at| at <= now);
        let clients = self.core.sessions.iter();
        clients
            .filter(|(_, client)| is_over(client))
            .map(|(slot, client)| TimedSession::new(slot, &client.session))
            .collect()
    }

    /// Continues the replays that the previous turn has left.
    pub fn replay_waiting(&mut self) {
        let topics = &self.router.topics;
        self.replays.replay_waiting(&mut self.core, topics);
    }

    /// Routes a message of the node: a will, an event or a `$SYS` message.
    pub fn publish_message(
        &mut self,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) {
        self.router.publish_message(&mut self.core, message, source);
    }

    /// Whether a full sink refuses a message with this topic and QoS 1 or 2.
    pub fn is_refused_by_sinks(&mut self, topic: &str) -> bool {
        let topics = &mut self.router.topics;
        are_any_refusing(&self.core) && topics.is_refused_by_sink(&mut self.core, topic)
    }

    /// Routes a message of the operator; none if it cannot be retained, and then it is not
    /// delivered.
    pub fn publish_order(&mut self, message: &Arc<Message>) -> Option<ReasonCode> {
        self.router.publish_order(&mut self.core, message)
    }

    /// Handles mail of another engine; returns the connection whose inquiry is answered, if any.
    pub fn take_mail(&mut self, mail: EngineMail) -> Option<ConnectionKey> {
        let core = &mut self.core;
        match mail {
            EngineMail::Publish(delivery) => self.router.publish_from_worker(core, delivery),
            EngineMail::Shared(delivery) => self.router.shared_from_worker(core, delivery),
            EngineMail::Room(shortage, room) => self.held.note_room(core, shortage, &room),
            EngineMail::Full(session) => core.handle_full(session),
            EngineMail::Inquiry(inquiry) => self.router.topics.answer_inquiry(core, &inquiry),
            EngineMail::InquiryAnswered(connection) => {
                return core.outputs.contains(connection).then_some(connection.key);
            }
        }
        None
    }

    /// Frees the memory of removed sessions and connections; slots and keys stay valid.
    pub fn shrink(&mut self) {
        self.core.sessions.shrink();
        self.core.outputs.shrink();
        self.router.topics.routes.forget();
    }

    /// Notifies other workers of the queues whose capacity has changed in this turn.
    pub fn send_room_notices(&mut self) {
        if self.core.rooms.is_quiet() {
            return;
        }
        for slot in self.core.rooms.take_changed() {
            self.router.topics.update_announcement(&mut self.core, slot);
        }
        for RoomNotice { waiter, room } in self.core.rooms.take_notices() {
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
