//! Enhanced authentication of pending clients: the steps between CONNECT and CONNACK.

use thrum_access::Exchange;
use thrum_codec::ReasonCode;
use thrum_codec::packet::Packet;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::timers::Target;
use thrum_protocol::Violation;
use thrum_protocol::server::{AuthenticationStep, Handshake};

use super::Door;
use super::admission::{Awaited, Claim, Pending};
use super::answers::{AnswerTo, reply};
use crate::connection::Phase;
use crate::edge::Ending;
use crate::traffic::Next;

/// A step that the client has to take.
#[derive(Debug)]
pub(crate) struct Challenge {
    pub(crate) data: Vec<u8>,
    pub(crate) exchange: Exchange,
}

/// Requests a step of enhanced authentication from the client. Bytes that it has sent already are
/// handled now.
pub(crate) fn challenge(
    door: &mut Door<'_>,
    key: ConnectionKey,
    mut handshake: Handshake,
    claim: Claim,
    challenge: Challenge,
) -> Option<Vec<u8>> {
    let Challenge { data, exchange } = challenge;
    if let Err(violation) = handshake.challenge(&data, door.engine.core.outputs.buffer(Some(key))) {
        door.refuse_pending(key, &handshake, claim.username(), &violation);
        return None;
    }
    let connection = &mut door.edge.connections[key];
    let partial = connection.partial.take();
    let target = Target::Connection(door.engine.core.outputs.id(key));
    let deadline = door
        .engine
        .core
        .turn
        .now
        .plus(door.edge.settings.connect_timeout);
    door.engine.core.timers.insert(deadline, target);
    let pending = Pending {
        handshake,
        awaited: Awaited::Step(claim, exchange),
        deadline,
    };
    connection.phase = Phase::Challenged(Some(Box::new(pending)));
    door.engine.core.outputs.wrote(key);
    Some(partial)
}

/// Handles a packet of a client whose step is awaited.
pub(crate) fn challenged(
    door: &mut Door<'_>,
    key: ConnectionKey,
    packet: &Packet<'_>,
    rest: &[u8],
) -> Next {
    let Some(Pending {
        mut handshake,
        awaited: Awaited::Step(claim, exchange),
        ..
    }) = door.edge.connections[key].take_pending()
    else {
        door.edge.lost(door.engine, key, Ending::ClosedByPeer);
        return Next::Stop;
    };
    match handshake.authentication_step(packet) {
        Err(violation) => {
            door.engine.core.row().add(Counter::Violations, 1);
            door.refuse_pending(key, &handshake, claim.username(), &violation);
        }
        Ok(AuthenticationStep::Disconnected) => {
            door.edge.lost(door.engine, key, Ending::Disconnected);
        }
        Ok(AuthenticationStep::Data(data)) => {
            let Some(gatekeeper) = door.engine.core.settings.access.access.gatekeeper.clone()
            else {
                let what = "enhanced authentication is no longer set up";
                let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
                door.refuse_pending(key, &handshake, claim.username(), &violation);
                return Next::Stop;
            };
            door.hold(key, handshake, Awaited::Answer(claim), rest);
            let connection = door.engine.core.outputs.id(key);
            let reply = reply(door.edge, door.engine, AnswerTo::Connection(connection));
            gatekeeper.step(exchange, data.to_vec(), reply);
        }
    }
    Next::Stop
}
