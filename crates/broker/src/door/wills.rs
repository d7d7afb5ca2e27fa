//! Wills: the right to publish a will is checked when the will is left.

use thrum_access::{Admission, Question};
use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::access::{ClientAccess, Verdict, Wanted};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::publishing::is_reserved;
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;

use super::Door;
use super::admission::{Awaited, Pending};

/// The refusal of a client that may not leave its will.
const REFUSED: Violation = Violation::new(
    ReasonCode::NotAuthorized,
    "not authorized to publish the will's topic",
);

/// The gatekeeper has decided about the will of a pending client: returns the outcome; none if the
/// client does not wait for that.
pub(crate) fn will_decided(
    door: &mut Door<'_>,
    key: ConnectionKey,
    question: &Question,
    decision: Option<bool>,
) -> Option<Pending> {
    let connection = &mut door.edge.connections[key];
    let mut pending = connection.take_pending_if(|awaited| matches!(awaited, Awaited::Will(_)))?;
    let Awaited::Will(admitted) = &mut pending.awaited else {
        return None;
    };
    let shared = &door.engine.core.settings.access;
    let access = ClientAccess::new(admitted.admission.clone(), shared);
    let wanted = Wanted {
        topic: &question.topic,
        qos: question.qos,
        retain: question.retain,
    };
    if !access.may_leave_will(wanted, decision) {
        door.engine.core.row().add(Counter::WillsDenied, 1);
        let user = access.identity.username.as_deref();
        door.refuse_pending(key, &pending.handshake, user, &REFUSED);
        return None;
    }
    admitted.is_will_allowed = decision == Some(true);
    Some(pending)
}

/// The question to the gatekeeper about the will, before the client is admitted; usually none.
pub(super) fn will_question(
    engine: &Engine,
    handshake: &Handshake,
    admission: &Admission,
) -> Option<Question> {
    let shared = &engine.core.settings.access;
    let (will, topic) = handshake.will().filter(|_| shared.asks())?;
    let access = ClientAccess::new(admission.clone(), shared);
    let wanted = Wanted {
        topic,
        qos: will.qos(),
        retain: will.retain(),
    };
    let verdict = access.publish(wanted, engine.core.turn.now);
    (verdict == Verdict::Ask).then(|| Question {
        identity: access.identity,
        is_publish: true,
        topic: topic.into(),
        qos: will.qos(),
        retain: will.retain(),
    })
}

/// Checks a will when it is left, so that the client is informed. Where the gatekeeper decides, it
/// has decided by then.
pub(super) fn may_leave_will(
    engine: &Engine,
    handshake: &Handshake,
    access: Option<&ClientAccess>,
) -> Result<(), Violation> {
    let Some((will, topic)) = handshake.will() else {
        return Ok(());
    };
    let wanted = Wanted {
        topic,
        qos: will.qos(),
        retain: will.retain(),
    };
    let is_denied =
        |access: &ClientAccess| access.publish(wanted, engine.core.turn.now) == Verdict::Denied;
    if is_reserved(topic) || access.is_some_and(is_denied) {
        engine.core.row().add(Counter::WillsDenied, 1);
        return Err(REFUSED);
    }
    Ok(())
}
