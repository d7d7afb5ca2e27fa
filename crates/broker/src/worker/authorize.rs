//! May a client publish this, subscribe to that, receive this?
//!
//! What the gatekeeper alone can decide is asked before the session sees the packet: the packet
//! waits in the connection, which is not read until all its answers are there. The filters of a
//! SUBSCRIBE are looked up then, too: there may be many of them, and many rules, so that it takes
//! several turns.

use std::sync::Arc;

use thrum_access::Question;
use thrum_codec::QoS;
use thrum_codec::packet::{Packet, Publish, Subscribe};
use thrum_protocol::server::Handshake;

use super::Worker;
use super::admission::Admitted;
use crate::access::{Asked, ClientAccess, Grant, Verdict};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::node::Node;
use crate::read_gate::PauseReason;
use crate::workers::WorkerId;

/// An answer of the gatekeeper about a topic.
#[derive(Debug)]
pub(crate) struct Decided {
    connection: ConnectionId,
    question: Question,
    allowed: Option<bool>,
}

/// Sends the answer to the worker, or a refusal if there never is one.
struct Deciding {
    node: Arc<Node>,
    worker: WorkerId,
    decided: Option<Box<Decided>>,
}

impl Deciding {
    fn tell(&mut self, allowed: Option<bool>) {
        if let Some(mut decided) = self.decided.take() {
            decided.allowed = allowed;
            self.node.mailbox(self.worker).push(Mail::Decided(decided));
        }
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        self.tell(Some(false));
    }
}

impl Worker {
    /// Whether the packet has to wait: for the gatekeeper, who is asked now, or for the next turn.
    #[inline]
    pub(super) fn has_to_wait(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: &Packet<'_>,
    ) -> bool {
        let Some(access) = self.local.clients[slot].access.as_deref_mut() else {
            return false;
        };
        if !self.has_waited {
            access.end_of_packet(self.local.settings.access.access.policy.decisions_max);
        }
        let waits = match packet {
            Packet::Publish(publish) => self.asks_about_publish(key, slot, publish),
            Packet::Subscribe(subscribe) if !access.is_everything() => {
                self.looks_filters_up(key, slot, subscribe)
            }
            _ => false,
        };
        // It is handled now, and the next one is another.
        self.has_waited &= waits;
        waits
    }

    fn asks_about_publish(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        publish: &Publish<'_>,
    ) -> bool {
        let now = self.local.now;
        let client = &self.local.clients[slot];
        let Some((access, topic)) = client
            .access
            .as_deref()
            .zip(client.session.topic_of(publish))
        else {
            return false;
        };
        let (verdict, is_remembered) = access.look_up(topic, (publish.qos, publish.retain), now);
        if verdict != Verdict::Ask {
            if is_remembered && !self.has_waited {
                self.local.row().add(Counter::DecisionsRemembered, 1);
            }
            return false;
        }
        let question = Question {
            identity: Arc::clone(&access.identity),
            is_publish: true,
            topic: topic.into(),
            qos: publish.qos,
            retain: publish.retain,
        };
        self.put(key, question);
        true
    }

    /// One filter after the other, as far as the portion goes: the packet is looked at again in the
    /// next turn, and after each answer of the gatekeeper, and goes on where it was. What is beyond
    /// the limit is refused without a look.
    fn looks_filters_up(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        subscribe: &Subscribe<'_>,
    ) -> bool {
        let now = self.local.now;
        let filters_max = self.local.settings.packet_filters_max;
        let access = self.local.clients[slot].access.as_deref_mut();
        let known = access.map_or(0, |access| access.grants().len());
        for request in subscribe.requests.iter().take(filters_max).skip(known) {
            if self.is_portion_over() {
                return true;
            }
            let Some(access) = self.local.clients[slot].access.as_deref_mut() else {
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
            self.local.work += units;
        }
        false
    }

    /// The packet at hand waits for the answer.
    fn put(&mut self, key: ConnectionKey, question: Question) {
        self.pause(key, PauseReason::Decision);
        self.ask_to_decide(key, question);
    }

    /// Asks the gatekeeper; the answer comes by mail, in any case.
    pub(super) fn ask_to_decide(&mut self, key: ConnectionKey, question: Question) {
        let decided = Decided {
            connection: self.local.connections[key].id(key),
            question: question.clone(),
            allowed: None,
        };
        self.local.row().add(Counter::DecisionsAsked, 1);
        let mut deciding = Deciding {
            node: Arc::clone(&self.node),
            worker: self.local.id,
            decided: Some(Box::new(decided)),
        };
        if let Some(gatekeeper) = &self.local.settings.access.access.gatekeeper {
            gatekeeper.authorize(question, Box::new(move |allowed| deciding.tell(allowed)));
        }
    }

    /// The gatekeeper has decided: the packet that waits is looked at again, or the CONNECT with a
    /// will goes on.
    pub(super) fn take_decision(&mut self, decided: &Decided) {
        let Decided {
            connection: asked,
            question,
            allowed,
        } = decided;
        let key = asked.key;
        let now = self.local.now;
        let Some(connection) = self.local.connection_mut(*asked) else {
            return;
        };
        if connection.awaits_admission() {
            self.will_decided(key, question, *allowed);
            return;
        }
        if !connection.reading.open(PauseReason::Decision) {
            return;
        }
        connection.reading.take_packets();
        let partial = connection.partial.take();
        let slot = connection.session();
        let policy = &self.local.settings.access.access.policy;
        if let Some(access) = slot.and_then(|slot| self.local.clients[slot].access.as_deref_mut()) {
            let asked = if question.is_publish {
                Asked::publish(&question.topic, question.qos, question.retain)
            } else {
                Asked::subscribe(&question.topic, question.qos)
            };
            access.remember(asked, *allowed, policy, now);
        }
        self.has_waited = true;
        self.go_on_reading(key, &partial);
        self.has_waited = false;
    }

    /// What holds for a client that comes in; none if it may do everything.
    pub(super) fn access_of(
        &self,
        handshake: &Handshake,
        admitted: Admitted,
    ) -> Option<Box<ClientAccess>> {
        let shared = &self.local.settings.access;
        let Admitted {
            admission,
            is_will_allowed,
            ..
        } = admitted;
        // Whose the session is has to be known also where everybody may do everything.
        let has_user = admission.identity.username.is_some();
        if shared.is_open() && admission.rules.is_none() && !has_user {
            return None;
        }
        let access = ClientAccess::new(admission, shared);
        let mount = handshake.mount_point().cloned();
        Some(Box::new(access.entered(mount, is_will_allowed)))
    }

    /// Something is checked for the client.
    pub(super) fn needs_check(&self, slot: Slot) -> bool {
        let access = self.local.clients[slot].access.as_ref();
        access.is_some_and(|access| !access.is_everything())
    }

    /// May the client publish this? The topic is as it names it.
    #[inline]
    pub(crate) fn may_publish(&mut self, slot: Slot, topic: &str, qos: QoS, retain: bool) -> bool {
        let client = &self.local.clients[slot];
        let Some(access) = client
            .access
            .as_deref()
            .filter(|access| !access.is_everything())
        else {
            return true;
        };
        let is_allowed = access.publish(topic, (qos, retain), self.local.now) == Verdict::Allowed;
        if !is_allowed {
            self.publish_denied(slot, topic, (qos, retain));
        }
        is_allowed
    }

    #[cold]
    fn publish_denied(&mut self, slot: Slot, topic: &str, wanted: (QoS, bool)) {
        self.local.row().add(Counter::PublishDenied, 1);
        if !self.may_log() {
            return;
        }
        let client = &self.local.clients[slot];
        let Some(access) = client.access.as_deref() else {
            return;
        };
        let policy = &self.local.settings.access.access.policy;
        tracing::info!(
            client_id = client.session.client_id(),
            user = access.identity.username.as_deref(),
            topic,
            rule = access.denial(topic, wanted, policy),
            "publish denied"
        );
    }

    /// How a subscription is granted. The filter is as the client names it, without
    /// `$share/GROUP/`.
    pub(crate) fn grant(&self, slot: Slot, filter: &str, (qos, is_shared): (QoS, bool)) -> Grant {
        let access = self.local.clients[slot].access.as_deref();
        let Some(access) = access.filter(|access| !access.is_everything()) else {
            return Grant::Whole;
        };
        self.grant_as(access.subscribe(filter, qos, self.local.now), is_shared)
    }

    /// What a grant by the rules comes to.
    pub(crate) fn grant_as(&self, grant: Grant, is_shared: bool) -> Grant {
        let filters_partial = self.local.settings.access.access.policy.filters_partial;
        match grant {
            // A message that its member may not have would be lost for the group.
            Grant::Checked { .. } if is_shared || !filters_partial => Grant::Refused,
            grant => grant,
        }
    }

    #[cold]
    pub(crate) fn subscribed_in_part(&mut self, slot: Slot, filter: &str) {
        if self.may_log() {
            let client = &self.local.clients[slot];
            let access = client.access.as_deref();
            tracing::info!(
                client_id = client.session.client_id(),
                user = access.and_then(|access| access.identity.username.as_deref()),
                filter,
                "subscribed in part: only the topics that the rules allow are delivered"
            );
        }
    }

    #[cold]
    pub(crate) fn subscription_denied(&mut self, slot: Slot, filter: &str) {
        self.local.row().add(Counter::SubscribeDenied, 1);
        if self.may_log() {
            let client = &self.local.clients[slot];
            let access = client.access.as_deref();
            tracing::info!(
                client_id = client.session.client_id(),
                user = access.and_then(|access| access.identity.username.as_deref()),
                filter,
                "subscription denied: no rule allows any of it"
            );
        }
    }
}

impl crate::worker::Local {
    /// May a client receive this through a subscription that is checked? The topic is whole.
    #[cold]
    pub(crate) fn may_receive(&self, slot: Slot, topic: &str, qos: QoS, or_allowed: bool) -> bool {
        let Some(access) = self.clients[slot].access.as_deref() else {
            return true;
        };
        let seen = access.seen(topic);
        seen.is_some_and(|seen| access.receive(seen, qos, or_allowed))
    }
}
