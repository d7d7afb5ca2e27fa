//! Rights of the clients of sessions, by the rules in force for them.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::Time;

use super::client::Client;
use super::core::Core;
use crate::access::{ClientAccess, Grant, Policy, Wanted};
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::retained::RetainedSource;
use crate::timeline::tell_publish_denied;

impl Client {
    /// The access of the client; none if the client may do everything.
    #[inline]
    pub fn checked(&self) -> Option<&ClientAccess> {
        let access = self.access.as_deref();
        access.filter(|access| !access.is_everything())
    }

    /// Whether the client may receive a message for a subscription whose messages are checked. The
    /// topic includes the mount point.
    #[cold]
    pub(super) fn may_receive(&self, topic: &str, qos: QoS, or_allowed: bool) -> bool {
        let Some(access) = self.access.as_deref() else {
            return true;
        };
        let seen = access.seen(topic);
        seen.is_some_and(|seen| access.receive(seen, qos, or_allowed))
    }

    /// Decides about a subscription, whose filter has neither the mount point nor `$share/GROUP/`.
    pub(super) fn grant(&self, filter: &str, qos: QoS, now: Time) -> Grant {
        let access = self.checked();
        access.map_or(Grant::Whole, |access| access.subscribe(filter, qos, now))
    }

    /// The source of the client's retained messages; none if the policy does not check sources.
    pub fn source(&self, policy: &Policy) -> Option<Arc<RetainedSource>> {
        let access = self.access.as_deref()?;
        if policy.checks_retained_source {
            access.source()
        } else {
            None
        }
    }

    /// The user name of the client.
    fn user(&self) -> Option<&str> {
        let access = self.access.as_deref()?;
        access.identity.username.as_deref()
    }
}

impl Grant {
    /// Applies the policy about filters that the rules allow in part.
    pub(super) const fn as_given(self, is_shared: bool, policy: &Policy) -> Self {
        match self {
            // A message that the chosen member may not receive would be lost for the group.
            Self::Checked { .. } if is_shared || !policy.filters_partial => Self::Refused,
            grant => grant,
        }
    }
}

/// Counts and logs that the rules deny a PUBLISH.
#[cold]
pub(super) fn publish_denied(core: &mut Core, slot: Slot, wanted: Wanted<'_>) {
    core.row().add(Counter::PublishDenied, 1);
    tell_publish_denied(core, slot, wanted);
    if !core.may_log() {
        return;
    }
    let client = &core.sessions[slot];
    let Some(access) = client.access.as_deref() else {
        return;
    };
    let policy = &core.settings.access.access.policy;
    tracing::info!(
        client_id = client.session.client_id(),
        user = client.user(),
        topic = wanted.topic,
        rule = access.denial(wanted, policy),
        "publish denied"
    );
}

/// Logs that the rules allow a subscription in part.
#[cold]
pub(super) fn subscribed_in_part(core: &mut Core, slot: Slot, filter: &str) {
    if core.may_log() {
        let client = &core.sessions[slot];
        tracing::info!(
            client_id = client.session.client_id(),
            user = client.user(),
            filter,
            "subscribed in part: only the topics that the rules allow are delivered"
        );
    }
}

/// Counts and logs that the rules deny a subscription.
#[cold]
pub(super) fn subscription_denied(core: &mut Core, slot: Slot, filter: &str) {
    core.row().add(Counter::SubscribeDenied, 1);
    if core.may_log() {
        let client = &core.sessions[slot];
        tracing::info!(
            client_id = client.session.client_id(),
            user = client.user(),
            filter,
            "subscription denied: no rule allows any of it"
        );
    }
}
