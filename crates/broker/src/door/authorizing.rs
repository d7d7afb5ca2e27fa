//! Authorization of topics: to publish, to subscribe and to receive.
//!
//! Decisions that only the gatekeeper can make are requested before the session handles the packet:
//! the packet waits in the connection, which is not read until all its answers have arrived. The
//! filters of a SUBSCRIBE are checked then, too: many filters against many rules can take several
//! turns.

use std::sync::Arc;

use thrum_access::Question;
use thrum_codec::packet::{Packet, Publish, Subscribe};
use thrum_engine::Engine;
use thrum_engine::access::{ClientAccess, Grant, TopicQuestion, Verdict, Wanted};
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::stages;
use thrum_engine::workers::WorkerId;
use thrum_protocol::server::Handshake;

use super::admission::Admitted;
use crate::edge::Edge;
use crate::mailbox::Mail;
use crate::node::Node;
use crate::read_gate::PauseReason;

/// An answer of the gatekeeper about a topic.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) connection: ConnectionId,
    pub(crate) question: Question,
    pub(crate) allowed: Option<bool>,
}

/// Sends the answer to the worker, or a refusal if no answer arrives.
struct Deciding {
    node: Arc<Node>,
    worker: WorkerId,
    decided: Option<Box<Decided>>,
}

impl Deciding {
    fn send(&mut self, allowed: Option<bool>) {
        if let Some(mut decided) = self.decided.take() {
            decided.allowed = allowed;
            self.node.mailbox(self.worker).push(Mail::Decided(decided));
        }
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        self.send(Some(false));
    }
}

/// See above.
#[derive(Debug)]
pub(crate) struct Authorizing<'a> {
    pub(crate) edge: &'a mut Edge,
    pub(crate) engine: &'a mut Engine,
}

impl Authorizing<'_> {
    /// The decision of the rules about a PUBLISH; none if the packet has to wait: for the
    /// gatekeeper, which is asked now, or for the next turn.
    #[inline]
    pub(crate) fn verdict(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: &Packet<'_>,
    ) -> Option<Verdict> {
        if self.engine.core.sessions[slot].checked().is_none() {
            return Some(Verdict::Allowed);
        }
        let verdict = match packet {
            Packet::Publish(publish) if self.engine.core.stages.is_next() => {
                self.stamped_verdict(key, slot, publish)?
            }
            Packet::Publish(publish) => self.publish_verdict(key, slot, publish)?,
            Packet::Subscribe(subscribe) => {
                if self.are_filters_pending(key, slot, subscribe) {
                    return None;
                }
                Verdict::Allowed
            }
            _ => Verdict::Allowed,
        };
        let decisions_max = self.engine.core.settings.access.access.policy.decisions_max;
        if let Some(access) = self.engine.core.sessions[slot].access.as_deref_mut() {
            access.end_packet(decisions_max);
        }
        Some(verdict)
    }

    /// As `publish_verdict`, with the time that it takes.
    #[cold]
    #[inline(never)]
    fn stamped_verdict(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        publish: &Publish<'_>,
    ) -> Option<Verdict> {
        stages::examined(&mut self.engine.core);
        let verdict = self.publish_verdict(key, slot, publish)?;
        stages::authorized(&mut self.engine.core);
        Some(verdict)
    }

    fn publish_verdict(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        publish: &Publish<'_>,
    ) -> Option<Verdict> {
        let client = &self.engine.core.sessions[slot];
        let access = client.access.as_deref();
        let Some((access, topic)) = access.zip(client.session.inbound().topic_of(publish)) else {
            return Some(Verdict::Allowed);
        };
        let now = self.engine.core.turn.now;
        let wanted = Wanted {
            topic,
            qos: publish.qos,
            // Without retained messages, a PUBLISH of 3.x is delivered as not retained.
            retain: publish.retain && client.session.link().retain_available(),
        };
        let (verdict, is_remembered) = access.look_up(wanted, now);
        if verdict != Verdict::Ask {
            if is_remembered && !access.has_waited() {
                self.engine.core.row().add(Counter::DecisionsRemembered, 1);
            }
            return Some(verdict);
        }
        let question = Question {
            identity: Arc::clone(&access.identity),
            is_publish: true,
            topic: topic.into(),
            qos: wanted.qos,
            retain: wanted.retain,
        };
        self.put(key, question);
        None
    }

    /// Checks one filter after the other, up to the portion of a turn; true if the packet has to be
    /// handled again: in the next turn, or after an answer of the gatekeeper, it continues with its
    /// next filter. Filters beyond the limit are refused unchecked.
    fn are_filters_pending(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        subscribe: &Subscribe<'_>,
    ) -> bool {
        let now = self.engine.core.turn.now;
        let filters_max = self.engine.core.settings.subscriptions.packet_filters_max;
        let access = self.engine.core.sessions[slot].access.as_deref_mut();
        let known = access.map_or(0, |access| access.grants().len());
        for request in subscribe.requests.iter().take(filters_max).skip(known) {
            if self.engine.core.turn.is_portion_over() {
                return true;
            }
            let Some(access) = self.engine.core.sessions[slot].access.as_deref_mut() else {
                return false;
            };
            let (filter, qos) = (request.filter.matched_part(), request.options.qos);
            let grant = access.subscribe(filter, qos, now);
            let units = access.filter_units();
            if grant == Grant::Ask && access.may_ask() {
                let question = Question {
                    identity: Arc::clone(&access.identity),
                    is_publish: false,
                    topic: filter.into(),
                    qos,
                    retain: false,
                };
                self.put(key, question);
                return true;
            }
            access.grants().push(grant);
            self.engine.core.turn.work += units;
        }
        false
    }

    /// Makes the current packet wait for the answer.
    fn put(&mut self, key: ConnectionKey, question: Question) {
        self.edge.pause(key, PauseReason::Decision);
        self.ask_to_decide(key, question);
    }

    /// Requests a decision of the gatekeeper; the answer always arrives by mail.
    pub(crate) fn ask_to_decide(&mut self, key: ConnectionKey, question: Question) {
        let decided = Decided {
            connection: self.engine.core.outputs.id(key),
            question: question.clone(),
            allowed: None,
        };
        self.engine.core.row().add(Counter::DecisionsAsked, 1);
        let mut deciding = Deciding {
            node: Arc::clone(&self.edge.node),
            worker: self.engine.core.id,
            decided: Some(Box::new(decided)),
        };
        if let Some(gatekeeper) = &self.engine.core.settings.access.access.gatekeeper {
            gatekeeper.authorize(question, Box::new(move |allowed| deciding.send(allowed)));
        }
    }

    /// The gatekeeper has decided about a waiting packet of a connected client: keeps the decision
    /// for that packet. None if the connection is gone, or does not wait for it.
    pub(crate) fn decided(&mut self, decided: &Decided) -> Option<ConnectionKey> {
        let Decided {
            connection: asked,
            question,
            allowed,
        } = decided;
        let now = self.engine.core.turn.now;
        let connection = self.edge.connection_mut(self.engine, *asked)?;
        if !connection.reading.open(PauseReason::Decision) {
            return None;
        }
        let slot = connection.session();
        let policy = &self.engine.core.settings.access.access.policy;
        let sessions = &mut self.engine.core.sessions;
        if let Some(access) = slot.and_then(|slot| sessions[slot].access.as_deref_mut()) {
            let asked = if question.is_publish {
                TopicQuestion::publish(&question.topic, question.qos, question.retain)
            } else {
                TopicQuestion::subscribe(&question.topic, question.qos)
            };
            access.remember(asked, *allowed, policy, now);
        }
        Some(asked.key)
    }
}

/// The rules for a client at its admission; none if it may do everything.
pub(crate) fn access_of(
    engine: &Engine,
    handshake: &Handshake,
    admitted: Admitted,
) -> Option<Box<ClientAccess>> {
    let shared = &engine.core.settings.access;
    let Admitted {
        admission,
        is_will_allowed,
        ..
    } = admitted;
    // The owner of the session is recorded even where every client may do everything.
    let has_user = admission.identity.username.is_some();
    if shared.is_open() && admission.rules.is_none() && !has_user {
        return None;
    }
    let access = ClientAccess::new(admission, shared);
    let mount = handshake.mount_point().cloned();
    Some(Box::new(access.with_mount(mount, is_will_allowed)))
}
