//! Which connections are traced, and their packets.

use thrum_codec::frame::Frame;
use thrum_codec::{Packet, decode};
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;

use super::Edge;
use crate::connection::SocketRoom;
use crate::trace::{EVERY_TRACE, Flagged, Moment};

/// Traces a connection from now on, if a trace is about it. The client identifier is empty
/// before CONNECT.
#[cold]
pub(crate) fn flag_traced(edge: &mut Edge, engine: &Engine, key: ConnectionKey, client_id: &str) {
    let connection = &mut edge.connections[key];
    let has_been_full = connection.room != SocketRoom::Free;
    let flagged = Flagged {
        key,
        peer: connection.peer,
        client_id,
        has_part: has_been_full && engine.core.outputs[key].waiting() > 0,
    };
    connection.is_traced = edge.traces.flag(flagged, engine.core.id.index());
}

/// Traces a CONNECT and what follows it, if a trace is about this client.
#[cold]
pub(crate) fn trace_connect(
    edge: &mut Edge,
    engine: &Engine,
    key: ConnectionKey,
    client_id: &str,
    frame: Frame<'_>,
) {
    // The traces that were about the connection before have this packet.
    let before = edge.traces.of_connection(key);
    flag_traced(edge, engine, key, client_id);
    let others = edge.traces.of_connection(key) & !before;
    if others != 0 {
        trace_input_for(edge, engine, key, frame, others);
    }
}

/// Traces a packet of a client.
#[cold]
pub(crate) fn trace_input(edge: &mut Edge, engine: &Engine, key: ConnectionKey, frame: Frame<'_>) {
    trace_input_for(edge, engine, key, frame, EVERY_TRACE);
}

fn trace_input_for(
    edge: &mut Edge,
    engine: &Engine,
    key: ConnectionKey,
    frame: Frame<'_>,
    traces: u8,
) {
    let connection = &mut edge.connections[key];
    let moment = Moment {
        worker: engine.core.id.index(),
        elapsed: edge.node.clock.elapsed(),
        version: connection.version,
        traces,
    };
    let packet = decode(frame, connection.version);
    // The session knows the topic of an alias.
    let topic = match &packet {
        Ok(Packet::Publish(publish)) if publish.topic.is_empty() => {
            let client = connection.session().map(|slot| &engine.core.sessions[slot]);
            client.and_then(|client| client.session.inbound().topic_of(publish))
        }
        Ok(Packet::Publish(publish)) => Some(publish.topic),
        _ => None,
    };
    connection.is_traced = edge.traces.take_input(key, frame, topic, moment);
}
