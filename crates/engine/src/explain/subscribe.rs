//! What would happen to a filter of a SUBSCRIBE.

use thrum_codec::topic::TopicFilter;
use thrum_codec::{QoS, ReasonCode};

use super::{Step, StepCheck, StepOutcome};
use crate::access::{DecidedBy, Grant};
use crate::engine::Engine;
use crate::ids::Slot;
use crate::subscribing::subscription_refusal;
use crate::timeline::RefusalCause;

/// A filter that a client might subscribe to.
#[derive(Clone, Copy, Debug)]
pub struct SubscribeAsked<'a> {
    /// The filter as the client writes it.
    pub filter: &'a str,
    /// The quality of service that it asks for.
    pub qos: QoS,
}

/// What would happen to a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeExplained {
    /// In their order; the last one may refuse it.
    pub steps: Vec<Step>,
    /// The filter with the mount point; none if it is refused before.
    pub filter: Option<Box<str>>,
    /// The granted quality of service; none if it is refused.
    pub granted: Option<QoS>,
    /// Only the topics that the rules allow are delivered.
    pub in_part: bool,
    /// The client has a subscription to this filter, which would be replaced.
    pub replaces: bool,
}

/// What would happen to a filter of a client's SUBSCRIBE.
pub fn explain_subscribe(
    engine: &Engine,
    slot: Slot,
    asked: &SubscribeAsked<'_>,
) -> SubscribeExplained {
    let mut explained = SubscribeExplained {
        steps: Vec::new(),
        filter: None,
        granted: None,
        in_part: false,
        replaces: false,
    };
    explained.granted = walk(engine, slot, asked, &mut explained);
    explained
}

fn walk(
    engine: &Engine,
    slot: Slot,
    asked: &SubscribeAsked<'_>,
    explained: &mut SubscribeExplained,
) -> Option<QoS> {
    let steps = &mut explained.steps;
    let Ok(filter) = TopicFilter::parse(asked.filter) else {
        steps.push(Step::refuses(
            StepCheck::Name,
            ReasonCode::TopicFilterInvalid,
        ));
        return None;
    };
    steps.push(Step::passes(StepCheck::Name));
    let client = &engine.core.sessions[slot];
    let grant = client.grant(filter.matched_part(), asked.qos, engine.core.turn.now);
    let mount = client.mount_point();
    let mut text = String::new();
    let whole = match &mount {
        None => filter,
        Some(mount) => {
            let Some(whole) = mount.mounted_filter(filter, &mut text) else {
                let check = StepCheck::Mount {
                    name: asked.filter.into(),
                };
                steps.push(Step::refuses(check, ReasonCode::TopicFilterInvalid));
                return None;
            };
            let name = whole.as_str().into();
            steps.push(Step::passes(StepCheck::Mount { name }));
            whole
        }
    };
    explained.filter = Some(whole.as_str().into());
    let topics = &engine.router.topics;
    explained.replaces = topics.is_subscribed(&engine.core, slot, whole);
    if let Some(refused) = subscription_refusal(&engine.core, topics, slot, filter, whole) {
        let limit = match refused.why {
            RefusalCause::Limit(key) => Some(key),
            RefusalCause::Rule(_) | RefusalCause::Other(_) => None,
        };
        steps.push(Step::refuses(StepCheck::Limits(limit), refused.code));
        return None;
    }
    steps.push(Step::passes(StepCheck::Limits(None)));
    let policy = &engine.core.settings.access.access.policy;
    let is_shared = filter.shared().is_some();
    let by = if client.checked().is_none() {
        DecidedBy::Nothing
    } else {
        DecidedBy::Rules
    };
    let outcome = match grant.as_given(is_shared, policy) {
        Grant::Whole => StepOutcome::Passes,
        Grant::Checked { .. } => {
            explained.in_part = true;
            StepOutcome::Passes
        }
        Grant::Refused => StepOutcome::Refuses(ReasonCode::NotAuthorized),
        Grant::Ask => StepOutcome::Depends,
    };
    explained.steps.push(Step {
        check: StepCheck::Access(by),
        outcome,
    });
    let is_refused = matches!(outcome, StepOutcome::Refuses(_));
    (!is_refused).then(|| asked.qos.min(engine.core.settings.session.maximum_qos))
}
