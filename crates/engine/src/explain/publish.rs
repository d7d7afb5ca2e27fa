//! The way of a PUBLISH up to its receivers.

use thrum_codec::{QoS, ReasonCode, topic};

use super::{Step, StepCheck, StepOutcome};
use crate::access::{DecidedBy, Verdict, Wanted};
use crate::engine::Engine;
use crate::ids::Slot;
use crate::interest::Route;
use crate::publishing::is_reserved;
use crate::sink_outbox::{are_any_refusing, is_refused};

/// A PUBLISH that a client might send.
#[derive(Clone, Copy, Debug)]
pub struct PublishAsked<'a> {
    /// The topic as the client writes it.
    pub topic: &'a str,
    /// Quality of service.
    pub qos: QoS,
    /// It is to be retained.
    pub retain: bool,
    /// Bytes of the payload.
    pub payload_bytes: usize,
}

/// The way of a PUBLISH up to its receivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishExplained {
    /// In their order; the last one may refuse it.
    pub steps: Vec<Step>,
    /// The topic by which receivers are found, with the mount point; none if it is refused.
    pub topic: Option<Box<str>>,
}

/// What would happen to a PUBLISH of a client up to its receivers.
pub fn explain_publish(engine: &Engine, slot: Slot, asked: &PublishAsked<'_>) -> PublishExplained {
    let mut steps = Vec::new();
    let topic = walk(engine, slot, asked, &mut steps);
    PublishExplained { steps, topic }
}

/// Adds the steps up to the one that refuses the PUBLISH, if there is one.
fn walk(
    engine: &Engine,
    slot: Slot,
    asked: &PublishAsked<'_>,
    steps: &mut Vec<Step>,
) -> Option<Box<str>> {
    let mut add = |step: Step| {
        let goes_on = !step.is_refusal();
        steps.push(step);
        goes_on.then_some(())
    };
    add(name(engine, asked.topic))?;
    add(access(engine, slot, asked))?;
    add(payload(engine, asked.payload_bytes))?;
    let client = &engine.core.sessions[slot];
    let mount = client.mount_point();
    let mut text = String::new();
    let whole = match &mount {
        None => asked.topic,
        Some(mount) => {
            let whole = mount.mounted_topic(asked.topic, &mut text);
            let check = StepCheck::Mount {
                name: whole.unwrap_or(asked.topic).into(),
            };
            add(match whole {
                Some(_) => Step::passes(check),
                None => Step::refuses(check, ReasonCode::NotAuthorized),
            })?;
            whole?
        }
    };
    add(if is_reserved(asked.topic) {
        Step::refuses(StepCheck::Reserved, ReasonCode::NotAuthorized)
    } else {
        Step::passes(StepCheck::Reserved)
    })?;
    add(disk(engine, asked))?;
    add(sinks(engine, asked.qos, whole))?;
    Some(whole.into())
}

fn name(engine: &Engine, name: &str) -> Step {
    if name.is_empty() || !topic::is_valid_name(name) {
        return Step::refuses(StepCheck::Name, ReasonCode::TopicNameInvalid);
    }
    let limits = &engine.core.settings.session;
    let length = StepCheck::Limit {
        key: "limits.topic_length",
        has: name.len() as u64,
        most: limits.topic_bytes_max.into(),
    };
    if name.len() > usize::from(limits.topic_bytes_max) {
        return Step::refuses(length, ReasonCode::TopicNameInvalid);
    }
    let levels = topic::level_count(name);
    if levels > usize::from(limits.topic_levels_max) {
        let check = StepCheck::Limit {
            key: "limits.topic_levels",
            has: levels as u64,
            most: limits.topic_levels_max.into(),
        };
        return Step::refuses(check, ReasonCode::TopicNameInvalid);
    }
    Step::passes(length)
}

fn access(engine: &Engine, slot: Slot, asked: &PublishAsked<'_>) -> Step {
    let client = &engine.core.sessions[slot];
    let Some(access) = client.checked() else {
        return Step::passes(StepCheck::Access(DecidedBy::Nothing));
    };
    let wanted = Wanted {
        topic: asked.topic,
        qos: asked.qos,
        retain: asked.retain && client.session.link().retain_available(),
    };
    let policy = &engine.core.settings.access.access.policy;
    let (verdict, by) = access.decided_by(wanted, policy, engine.core.turn.now);
    let check = StepCheck::Access(by);
    match verdict {
        Verdict::Allowed => Step::passes(check),
        Verdict::Denied => Step::refuses(check, ReasonCode::NotAuthorized),
        Verdict::Ask => Step {
            check,
            outcome: StepOutcome::Depends,
        },
    }
}

fn payload(engine: &Engine, bytes: usize) -> Step {
    let most = engine.core.settings.session.payload_bytes_max;
    let check = StepCheck::Limit {
        key: "limits.max_payload",
        has: bytes as u64,
        most: most.into(),
    };
    if bytes > most as usize {
        return Step::refuses(check, ReasonCode::QuotaExceeded);
    }
    Step::passes(check)
}

/// A full disk refuses what has to be stored.
fn disk(engine: &Engine, asked: &PublishAsked<'_>) -> Step {
    if !engine.core.durable.is_disk_full() {
        return Step::passes(StepCheck::Disk);
    }
    if asked.retain && asked.payload_bytes > 0 {
        return Step::refuses(StepCheck::Disk, ReasonCode::QuotaExceeded);
    }
    Step {
        check: StepCheck::Disk,
        // It is refused if a durable session is to get it.
        outcome: StepOutcome::Depends,
    }
}

fn sinks(engine: &Engine, qos: QoS, topic: &str) -> Step {
    let core = &engine.core;
    if qos == QoS::AtMostOnce || !are_any_refusing(core) {
        return Step::passes(StepCheck::Sinks);
    }
    let mut route = Route::default();
    core.node.interest.route(topic, &mut Vec::new(), &mut route);
    if is_refused(core, route.sinks) {
        return Step::refuses(StepCheck::Sinks, ReasonCode::QuotaExceeded);
    }
    Step::passes(StepCheck::Sinks)
}
