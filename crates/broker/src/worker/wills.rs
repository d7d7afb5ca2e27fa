//! Wills: who may leave one, asked when it is left, and whether it may still be published, asked
//! when it is due.

use std::sync::Arc;

use thrum_access::{Admission, Question};
use thrum_codec::ReasonCode;
use thrum_protection::ClientRef;
use thrum_protocol::server::Handshake;
use thrum_protocol::{Message, Violation};

use super::Worker;
use super::admission::{Awaited, Pending};
use crate::access::{ClientAccess, Verdict};
use crate::ids::{ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::publish::is_reserved;
use crate::retained::RetainedSource;

/// A will that may be published.
#[derive(Debug)]
pub(super) struct DueWill {
    message: Message,
    /// The client that left it.
    source: Option<Arc<RetainedSource>>,
}

impl Worker {
    /// What the gatekeeper has to be asked about the will before the client is in; mostly nothing.
    pub(super) fn will_question(
        &self,
        handshake: &Handshake,
        admission: &Admission,
    ) -> Option<Question> {
        let shared = &self.local.settings.access;
        let (will, topic) = handshake.will().filter(|_| shared.asks())?;
        let access = ClientAccess::new(admission.clone(), shared);
        let verdict = access.publish(topic, (will.qos(), will.retain()), self.local.now);
        (verdict == Verdict::Ask).then(|| Question {
            identity: access.identity,
            is_publish: true,
            topic: topic.into(),
            qos: will.qos(),
            retain: will.retain(),
        })
    }

    /// The gatekeeper has decided about the will of a client that is not in yet.
    pub(super) fn will_decided(
        &mut self,
        key: ConnectionKey,
        question: &Question,
        said: Option<bool>,
    ) {
        let connection = &mut self.local.connections[key];
        let Some(Pending {
            handshake,
            awaited: Awaited::Will(mut admitted),
            ..
        }) = connection.take_pending_if(|awaited| matches!(awaited, Awaited::Will(_)))
        else {
            return;
        };
        let access = ClientAccess::new(admitted.admission.clone(), &self.local.settings.access);
        if !access.may_leave_will(&question.topic, (question.qos, question.retain), said) {
            let violation = self.will_refused();
            let user = access.identity.username.as_deref();
            self.refuse_pending(key, (&handshake, user), &violation);
            return;
        }
        admitted.is_will_allowed = said == Some(true);
        self.after_wait(key, |worker, rest| {
            worker.go_in(key, (handshake, rest), *admitted)
        });
    }

    /// A will is checked when it is left, so that the client is told. What the gatekeeper decides
    /// has been asked by then.
    pub(super) fn may_leave_will(
        &self,
        handshake: &Handshake,
        access: Option<&ClientAccess>,
    ) -> Result<(), Violation> {
        let Some((will, topic)) = handshake.will() else {
            return Ok(());
        };
        let wanted = (will.qos(), will.retain());
        let is_denied = |access: &ClientAccess| {
            access.publish(topic, wanted, self.local.now) == Verdict::Denied
        };
        if is_reserved(topic) || access.is_some_and(is_denied) {
            return Err(self.will_refused());
        }
        Ok(())
    }

    fn will_refused(&self) -> Violation {
        self.local.row().add(Counter::WillsDenied, 1);
        let what = "not authorized to publish the will's topic";
        Violation::new(ReasonCode::NotAuthorized, what)
    }

    /// A will is due: nothing of it is left if its client may not publish it any more. To be asked
    /// before the session ends.
    pub(super) fn permitted(&mut self, slot: Slot, mut will: Message) -> Option<DueWill> {
        let Some(why) = self.objection(slot, &will) else {
            will.set_publisher_hash(self.publisher_hash(&self.local.clients[slot]));
            let source = self.source_of(slot);
            return Some(DueWill {
                message: will,
                source,
            });
        };
        self.will_dropped(slot, will.topic(), why);
        None
    }

    /// [MQTT-3.1.2-14] [MQTT-3.1.2-15] [MQTT3-3.1.2-16] [MQTT3-3.1.2-17]
    pub(super) fn publish_will(&mut self, will: DueWill) {
        let DueWill { message, source } = will;
        self.publish_message(&Arc::new(message), source.as_ref());
    }

    /// The client is no longer admitted: its will is not published.
    pub(super) fn drop_will(&mut self, slot: Slot, why: &str) {
        let now = self.local.now;
        let will = self.local.clients[slot].session.take_will_at(now);
        self.will_taken(slot);
        if let Some(will) = will {
            self.will_dropped(slot, will.topic(), why);
        }
    }

    #[cold]
    fn will_dropped(&mut self, slot: Slot, topic: &str, why: &str) {
        self.local.row().add(Counter::WillsDenied, 1);
        if self.may_log() {
            let client_id = self.local.clients[slot].session.client_id();
            tracing::info!(client_id, topic, why, "a will is not published");
        }
    }

    /// What is against a will now, by what is known of its client.
    fn objection(&mut self, slot: Slot, will: &Message) -> Option<&'static str> {
        if self.is_publisher_banned(slot) {
            return Some("the client is banned");
        }
        let shared = Arc::clone(&self.local.settings.access);
        let wanted = (will.qos(), will.retain());
        let may = |access: &ClientAccess| {
            let seen = access.seen(will.topic());
            seen.is_some_and(|seen| access.may_publish_will(seen, wanted))
        };
        let is_allowed = match self.local.clients[slot].access.as_deref() {
            Some(access) if access.is_current(&shared) => may(access),
            Some(access) => may(&access.made_anew(&shared)),
            None if shared.is_open() => true,
            None => {
                // Of a client that has not come back since the start no more is known than its
                // identifier and its user.
                let admission = Admission {
                    identity: self.identity_of(slot),
                    ..Admission::default()
                };
                !ClientAccess::new(admission, &shared).forbids(will.topic(), wanted)
            }
        };
        (!is_allowed).then_some("the rules do not allow it")
    }

    /// By an administrator: who only came back too often may still say that it is gone.
    fn is_publisher_banned(&self, slot: Slot) -> bool {
        let client = &self.local.clients[slot];
        let identity = client.access.as_deref().map(|access| &*access.identity);
        let who = ClientRef {
            client_id: client.session.client_id(),
            username: client.owner().user(),
            address: identity.and_then(|identity| identity.address),
        };
        let bans = self.node.protection.bans();
        bans.is_listed(&who, self.local.now)
    }
}
