//! Which connections are traced, and their packets.

use thrum_codec::frame::Frame;
use thrum_codec::{DecodeError, Packet, decode};
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;

use super::Edge;
use crate::connection::SocketRoom;
use crate::trace::{EVERY_TRACE, Flagged, HEADER_BYTES_MAX, Malformed, Moment};

/// Traces a connection from now on, if a trace is about it. The client identifier is empty
/// before CONNECT.
#[cold]
pub(crate) fn flag_traced(edge: &mut Edge, engine: &Engine, key: ConnectionKey, client_id: &str) {
    flag(edge, engine, key, client_id, None);
}

/// Goes on tracing a connection that arrives from another worker, under its number.
#[cold]
pub(crate) fn keep_tracing(
    edge: &mut Edge,
    engine: &Engine,
    key: ConnectionKey,
    client_id: &str,
    number: u64,
) {
    flag(edge, engine, key, client_id, Some(number));
}

fn flag(
    edge: &mut Edge,
    engine: &Engine,
    key: ConnectionKey,
    client_id: &str,
    number: Option<u64>,
) {
    let connection = &mut edge.connections[key];
    let has_been_full = connection.room != SocketRoom::Free;
    let flagged = Flagged {
        key,
        peer: connection.peer,
        client_id,
        has_part: has_been_full && engine.core.outputs[key].waiting() > 0,
        number,
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

/// Traces bytes of a client that are no packet: no length can be read from them.
#[cold]
pub(crate) fn trace_unsplit(
    edge: &mut Edge,
    engine: &Engine,
    key: ConnectionKey,
    bytes: &[u8],
    why: DecodeError,
) {
    let connection = &mut edge.connections[key];
    if !connection.is_traced {
        return;
    }
    let moment = Moment {
        worker: engine.core.id.index(),
        elapsed: edge.node.clock.elapsed(),
        version: connection.version,
        traces: EVERY_TRACE,
    };
    let malformed = Malformed {
        header: &bytes[..bytes.len().min(HEADER_BYTES_MAX)],
        len: bytes.len(),
        why,
    };
    connection.is_traced = edge.traces.take_malformed(key, malformed, moment);
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
