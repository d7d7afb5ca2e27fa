//! The begin and the end of sessions: a connection begins or resumes them, their connections are
//! lost, they expire, or a clean start replaces them.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Identity};
use thrum_protection::ClientRef;
use thrum_protocol::Message;
use thrum_protocol::server::{ConnAckParts, Handshake, Session};

use super::Engine;
use super::client::Client;
use super::events::watch_deliveries;
use super::shared::publisher_hash;
use crate::access::{ClientAccess, Wanted};
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::node::session_counts::Holder;
use crate::retained::RetainedSource;
use crate::timeline::{ClientEvent, SessionEnd, cut, tell, tell_drops};

/// Longest delay of a session timer; a timer for a later deadline is armed again. This limits the
/// memory of timers whose sessions have ended to 20 MB for a thousand sessions per second.
pub const TIMER_MAX: Duration = Duration::from_mins(10);

/// A will that is due and that its client may publish.
#[derive(Debug)]
pub struct DueWill {
    message: Message,
    source: Option<Arc<RetainedSource>>,
}

impl Engine {
    /// Begins a session.
    pub fn begin_session(&mut self, handshake: &Handshake) -> Slot {
        let id = self.core.node.next_session_id(self.core.id);
        let session = Session::new(id, handshake, &self.core.settings.session);
        self.core.row().add(Counter::Sessions, 1);
        self.core.sessions.insert(Client::new(session))
    }

    /// Records that the connection of a session is lost; ends the session if it does not outlive
    /// its connection.
    pub fn session_lost(&mut self, slot: Slot) {
        let now = self.core.turn.now;
        let ended = self.core.turn.no_earlier_than_now();
        self.core.row().subtract(Counter::ClientsConnected, 1);
        let client = &mut self.core.sessions[slot];
        client.connection = None;
        client.log_next_drop();
        let lost = client.session.connection_lost(now);
        client.session.count_absence_from(ended);
        self.core.record_steps(slot);
        let id = self.core.sessions[slot].session.id();
        self.router.publishers.forget(id);
        let will = lost.will.and_then(|will| self.authorize_will(slot, will));
        if lost.session_ended {
            self.end_session(slot);
        } else {
            self.core
                .durable
                .write_session(&self.core.sessions[slot], Some(ended));
            if !self.core.sessions[slot].groups().is_empty() {
                self.subscribing().set_groups_online(slot, false);
                let client = &mut self.core.sessions[slot];
                let (id, messages) = (
                    client.session.id(),
                    client.session.outbound_mut().take_shared(None),
                );
                self.router.redispatch(&mut self.core, messages, id, false);
            }
            self.core.show_room(slot);
            self.core.arm(slot);
        }
        if let Some(will) = will {
            self.publish_will(will);
        }
    }

    /// Sends the CONNACK and the waiting messages of a session that has received its connection.
    /// The session is recorded before its first steps.
    pub fn complete_connect(
        &mut self,
        slot: Slot,
        handshake: Handshake,
        parts: ConnAckParts<'_>,
        holder: Holder,
    ) {
        let was_durable = self.begin_durable(slot, &handshake);
        let core = &mut self.core;
        watch_deliveries(core, slot);
        let now = core.turn.now;
        let client = &mut core.sessions[slot];
        let connection = client.connection;
        let was_persistent = client.session.lifetime().was_persistent_at_connect();
        // A resumed session takes over the limits of the current configuration.
        client.session.set_limits(&core.settings.session);
        // [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT3-3.2.2-1] [MQTT3-3.2.2-2] [MQTT3-3.2.2-3]
        let out = core.outputs.buffer(connection);
        client.session.connect(handshake, parts, now, out);
        let row = core.node.metrics.row(core.id.index());
        row.add(Counter::ConnectsAccepted, 1);
        row.add(Counter::AnswersSent, 1);
        client.count(was_persistent, holder, row, &core.node.session_counts);
        let durable = &mut core.durable;
        let depends = durable.write_connected(client, was_durable, &core.settings, row);
        if let Some(key) = connection.filter(|_| depends) {
            core.outputs.depend(key);
        }
        core.collect(slot);
        if let Some(key) = connection {
            core.outputs.wrote(key);
        }
    }

    /// Sets whether the session is durable for its new connection, and returns whether it was.
    fn begin_durable(&mut self, slot: Slot, handshake: &Handshake) -> bool {
        let session = &mut self.core.sessions[slot].session;
        let was_durable = session.is_durable();
        let is_durable = self.core.durable.journal.is_some() && handshake.session_expiry() > 0;
        if was_durable != is_durable {
            session.journal_mut().set_on(is_durable);
            self.router
                .topics
                .set_subscriptions_durable(&mut self.core, slot, is_durable);
        }
        was_durable
    }

    /// Removes a session and its subscriptions; its retained messages stay. [MQTT3-3.1.2-7]
    pub fn end_session(&mut self, slot: Slot) {
        tell_drops(&mut self.core, slot);
        self.router.topics.close_room(&mut self.core, slot);
        let mut client = self.core.sessions.remove(slot);
        self.core.row().subtract(Counter::Sessions, 1);
        client.uncount(self.core.row(), &self.core.node.session_counts);
        let (_, bytes, _) = client.session.outbound().backlog();
        let bytes = bytes + client.subscription_bytes as usize;
        self.core.memory.shrank(bytes as u64);
        let is_on_disk = client.session.is_durable() || client.is_kept_for_will();
        let durable = is_on_disk.then(|| client.session.id());
        self.subscribing().unsubscribe_all(slot, &mut client);
        if let Some(session) = durable {
            self.core.durable.forget_session(session);
        }
        if self.core.node.workers() > 1 {
            self.core
                .sessions
                .ended
                .push(client.session.into_client_id());
        }
    }

    /// Records that a session has expired, before its end.
    pub fn session_expired(&mut self, slot: Slot) {
        let lifetime = self.core.sessions[slot].session.lifetime();
        let end = SessionEnd::Expired {
            expiry_secs: lifetime.session_expiry(),
        };
        tell(&mut self.core, slot, || ClientEvent::SessionEnded(end));
    }

    /// Ends the session of a disconnected client, and publishes its will if it is still pending.
    pub fn remove_session(&mut self, slot: Slot, why: SessionEnd) {
        let now = self.core.turn.now;
        let will = self.core.sessions[slot].session.take_will_at(now);
        let will = will.and_then(|will| self.authorize_will(slot, will));
        self.core.record_steps(slot);
        tell(&mut self.core, slot, || ClientEvent::SessionEnded(why));
        self.end_session(slot);
        if let Some(will) = will {
            self.publish_will(will);
        }
    }

    /// Allows other workers to begin sessions for the clients whose sessions ended in this turn.
    /// This happens at the end of the turn: the messages of the old session must be in the
    /// mailboxes before a new session can publish. [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
    pub fn release_ended(&mut self) {
        for client_id in std::mem::take(&mut self.core.sessions.ended) {
            // The client may have begun a new session on this worker.
            if self.core.sessions.find(&client_id).is_none() {
                self.core.node.registry.release(&client_id, self.core.id);
            }
        }
    }

    /// Authorizes a will that is due; none if its client may no longer publish it. Must be called
    /// before the session ends.
    pub fn authorize_will(&mut self, slot: Slot, mut will: Message) -> Option<DueWill> {
        let Some(why) = self.will_denial(slot, &will) else {
            let topic = cut(will.topic());
            tell(&mut self.core, slot, || ClientEvent::WillPublished {
                topic: topic.into(),
            });
            will.set_publisher_hash(publisher_hash(&self.core, &self.core.sessions[slot]));
            let source = self.core.sessions[slot].source(&self.core.settings.access.access.policy);
            return Some(DueWill {
                message: will,
                source,
            });
        };
        self.report_dropped_will(slot, will.topic(), why);
        None
    }

    /// Publishes a will. [MQTT-3.1.2-14] [MQTT-3.1.2-15] [MQTT3-3.1.2-16] [MQTT3-3.1.2-17]
    pub fn publish_will(&mut self, will: DueWill) {
        let DueWill { message, source } = will;
        self.router
            .publish_message(&mut self.core, &Arc::new(message), source.as_ref());
    }

    /// Removes the will of a client that is no longer admitted, without publishing it.
    pub fn drop_will(&mut self, slot: Slot, why: &'static str) {
        let now = self.core.turn.now;
        let will = self.core.sessions[slot].session.take_will_at(now);
        self.core.will_taken(slot);
        if let Some(will) = will {
            self.report_dropped_will(slot, will.topic(), why);
        }
    }

    #[cold]
    fn report_dropped_will(&mut self, slot: Slot, topic: &str, why: &'static str) {
        self.core.row().add(Counter::WillsDenied, 1);
        let event = || ClientEvent::WillDropped {
            topic: cut(topic).into(),
            why,
        };
        tell(&mut self.core, slot, event);
        if self.core.may_log() {
            let client_id = self.core.sessions[slot].session.client_id();
            tracing::info!(client_id, topic, why, "a will is not published");
        }
    }

    /// The reason why a client may not publish its will now; none if it may.
    fn will_denial(&mut self, slot: Slot, will: &Message) -> Option<&'static str> {
        if self.is_publisher_banned(slot) {
            return Some("the client is banned");
        }
        let shared = Arc::clone(&self.core.settings.access);
        let wanted = |topic| Wanted {
            topic,
            qos: will.qos(),
            retain: will.retain(),
        };
        let may = |access: &ClientAccess| {
            let seen = access.seen(will.topic());
            seen.is_some_and(|seen| access.may_publish_will(wanted(seen)))
        };
        let is_allowed = match self.core.sessions[slot].access.as_deref() {
            Some(access) if access.is_current(&shared) => may(access),
            Some(access) => may(&access.with_current_rules(&shared)),
            None if shared.is_open() => true,
            None => {
                // Only the client identifier and the user are known of a client that has not
                // connected since the start.
                let admission = Admission {
                    identity: identity_of_away(&self.core.sessions[slot]),
                    ..Admission::default()
                };
                !ClientAccess::new(admission, &shared).forbids(wanted(will.topic()))
            }
        };
        (!is_allowed).then_some("the rules do not allow it")
    }

    /// Whether an administrator has banned the client: a temporary ban for frequent reconnects does
    /// not suppress the will.
    fn is_publisher_banned(&self, slot: Slot) -> bool {
        let client = &self.core.sessions[slot];
        let identity = client.access.as_deref().map(|access| &*access.identity);
        let who = ClientRef {
            client_id: client.session.client_id(),
            username: client.owner().user(),
            address: identity.and_then(|identity| identity.address),
        };
        self.core.node.bans.is_listed(&who, self.core.turn.now)
    }
}

/// The identity of a disconnected client, of which only the client identifier and the user are
/// known.
fn identity_of_away(client: &Client) -> Identity {
    Identity {
        client_id: client.session.client_id().into(),
        username: client.owner().user().map(Into::into),
        ..Identity::default()
    }
}
