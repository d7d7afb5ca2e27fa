//! A PUBLISH of a client, up to its PUBACK or PUBREC.

use std::rc::Rc;

use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::{Outgoing, Publication};

use super::core::Core;
use super::reach::{Clearance, Cleared, Publisher};
use super::rights::publish_denied;
use super::router::Router;
use super::shared::publisher_hash;
use super::sink_outbox::are_any_refusing;
use crate::access::{Verdict, Wanted};
use crate::ids::Slot;
use crate::interest::EventKind;
use crate::node::metrics::Counter;

/// What came of a PUBLISH of a client. Where it was not answered, nothing is acknowledged and the
/// connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Published {
    /// As far as it wants an answer.
    Answered,
    /// It cannot be kept, and the client's version has no way to be told.
    DiskFull,
    /// A sink has no room for it, and the client's version has no way to be told.
    SinkFull,
    /// The client may not publish it, and the policy is to disconnect.
    Denied,
}

/// What a PUBLISH leads to.
#[derive(Debug)]
pub(super) struct Publishing<'a> {
    pub(super) core: &'a mut Core,
    pub(super) router: &'a mut Router,
}

impl Publishing<'_> {
    /// A PUBLISH of a client, up to its PUBACK or PUBREC.
    pub(super) fn publish_from(
        &mut self,
        slot: Slot,
        publish: &Publish<'_>,
        alias: Option<&Rc<str>>,
        cleared: Cleared,
    ) -> Published {
        let seen = alias.map_or(publish.topic, |topic| topic);
        if cleared.verdict != Verdict::Allowed {
            return self.deny(slot, publish, seen);
        }
        if publish.payload.len() > self.core.settings.session.payload_bytes_max as usize {
            return self.refuse_payload(slot, seen, publish);
        }
        let mount = self.core.sessions[slot]
            .session
            .link()
            .mount_point()
            .cloned();
        let mut text = String::new();
        let topic = match &mount {
            None => seen,
            Some(mount) => match mount.mounted_topic(seen, &mut text) {
                Some(topic) => topic,
                None => return self.refuse_publish(slot, publish, seen),
            },
        };
        let client = &self.core.sessions[slot];
        let is_v3 = client.session.link().version() != Version::V5;
        let came_at = cleared.came_at.unwrap_or(self.core.turn.now);
        let publication = Publication {
            topic,
            payload: publish.payload,
            properties: PublishProperties {
                topic_alias: None,
                message_expiry: None,
                ..publish.properties
            },
            qos: publish.qos,
            retain: publish.retain,
            expires_at: publish
                .properties
                .message_expiry
                .map(|s| came_at.plus_secs(s)),
            publisher: client.session.id(),
            publisher_hash: publisher_hash(self.core, client),
        };
        let row = self.core.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::PublishBytesReceived, publish.payload.len() as u64);
        let outcome = if is_reserved(seen) {
            ReasonCode::NotAuthorized
        } else {
            match self.shortage(&publication) {
                Some(lack) if is_v3 && publish.qos != QoS::AtMostOnce => {
                    let session = &mut self.core.sessions[slot].session;
                    session.publish_withdrawn(publish.qos, publish.packet_id);
                    self.report_refusal(slot, &publication, ReasonCode::QuotaExceeded);
                    return lack;
                }
                Some(_) => ReasonCode::QuotaExceeded,
                None => {
                    let publisher = Publisher {
                        slot,
                        can_be_told: publish.qos != QoS::AtMostOnce && !is_v3,
                    };
                    self.publish(&publication, cleared.clearance, publisher)
                }
            }
        };
        self.report_refusal(slot, &publication, outcome);
        self.answer_publish(slot, publish, outcome);
        Published::Answered
    }

    /// Why a message cannot be kept where it has to be; none if it can.
    fn shortage(&mut self, publication: &Publication<'_>) -> Option<Published> {
        let Self { core, router } = self;
        if core.durable.is_disk_full() && router.topics.needs_disk(core, publication) {
            core.row().add(Counter::StorageRefused, 1);
            return Some(Published::DiskFull);
        }
        let is_refused = are_any_refusing(core)
            && publication.qos != QoS::AtMostOnce
            && router.topics.is_refused_by_sink(core, publication.topic);
        is_refused.then(|| {
            core.row().add(Counter::SinkRefused, 1);
            Published::SinkFull
        })
    }

    fn report_refusal(&mut self, slot: Slot, publication: &Publication<'_>, outcome: ReasonCode) {
        if outcome != ReasonCode::Success
            && let Some(reporter) = self.core.reporter(EventKind::MessageDropped)
        {
            reporter.refused(slot, publication, outcome);
        }
    }

    /// The rules forbid it.
    #[cold]
    fn deny(&mut self, slot: Slot, publish: &Publish<'_>, topic: &str) -> Published {
        let wanted = Wanted {
            topic,
            qos: publish.qos,
            retain: publish.retain,
        };
        publish_denied(self.core, slot, wanted);
        self.refuse_publish(slot, publish, topic)
    }

    /// The client may not publish it: it is told (0x87) if its version can tell, or disconnected if
    /// that is the policy.
    fn refuse_publish(&mut self, slot: Slot, publish: &Publish<'_>, topic: &str) -> Published {
        self.core.row().add(Counter::PublishReceived, 1);
        let refused = as_sent(publish, topic);
        self.report_refusal(slot, &refused, ReasonCode::NotAuthorized);
        if self.core.settings.access.access.policy.disconnects_denied {
            let session = &mut self.core.sessions[slot].session;
            session.publish_withdrawn(publish.qos, publish.packet_id);
            return Published::Denied;
        }
        self.answer_publish(slot, publish, ReasonCode::NotAuthorized);
        Published::Answered
    }

    /// A payload over `limits.max_payload`: the publisher is told if its version can tell. PUBACK
    /// and PUBREC know no "packet too large", and the limit is one that the owner of the broker has
    /// set.
    #[cold]
    fn refuse_payload(&mut self, slot: Slot, topic: &str, publish: &Publish<'_>) -> Published {
        let row = self.core.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::LimitPayload, 1);
        if self.core.may_log() {
            tracing::info!(
                client_id = self.core.sessions[slot].session.client_id(),
                topic,
                bytes = publish.payload.len(),
                "message dropped: its payload is larger than limits.max_payload"
            );
        }
        let refused = as_sent(publish, topic);
        self.report_refusal(slot, &refused, ReasonCode::QuotaExceeded);
        self.answer_publish(slot, publish, ReasonCode::QuotaExceeded);
        Published::Answered
    }

    fn answer_publish(&mut self, slot: Slot, publish: &Publish<'_>, outcome: ReasonCode) {
        if publish.qos != QoS::AtMostOnce {
            self.core.with(slot, |session, out| {
                session.publish_done(publish.qos, publish.packet_id, outcome, out);
            });
            self.core.row().add(Counter::AnswersSent, 1);
        }
    }

    /// Makes a message its topic's retained one; true if it may be delivered.
    fn retain(&mut self, publisher: Publisher, outgoing: &mut Outgoing<'_>) -> bool {
        let client = &self.core.sessions[publisher.slot];
        let source = client.source(&self.core.settings.access.access.policy);
        self.core
            .retain(outgoing, source.as_ref(), publisher.can_be_told)
    }

    /// Routes a message that is borrowed from a read buffer. One that is to be retained and cannot
    /// be is refused as a whole if its publisher can be told.
    fn publish(
        &mut self,
        publication: &Publication<'_>,
        clearance: Clearance,
        publisher: Publisher,
    ) -> ReasonCode {
        let mut frames = std::mem::take(&mut self.core.frames);
        let mut outgoing = Outgoing::new(*publication, &mut frames);
        let outcome = if !publication.retain || self.retain(publisher, &mut outgoing) {
            self.router.route(self.core, &mut outgoing, clearance)
        } else {
            ReasonCode::QuotaExceeded
        };
        self.core.frames = frames;
        outcome
    }
}

/// A PUBLISH that is refused before it becomes a message of the node.
fn as_sent<'a>(publish: &Publish<'a>, topic: &'a str) -> Publication<'a> {
    Publication {
        topic,
        payload: publish.payload,
        properties: PublishProperties::default(),
        qos: publish.qos,
        retain: publish.retain,
        expires_at: None,
        publisher: 0,
        publisher_hash: 0,
    }
}

/// `$` topics belong to the server; clients may use those that no feature of ours owns.
/// [MQTT3-4.7.2-1]
#[inline]
pub fn is_reserved(topic: &str) -> bool {
    const RESERVED: [&str; 4] = ["$SYS", "$share", "$queue", "$events"];
    if !topic.starts_with('$') {
        return false;
    }
    let first = topic.split('/').next().unwrap_or_default();
    RESERVED.contains(&first)
}
