//! Deliveries of traced messages whose last byte is not written yet, or which their receivers have
//! not acknowledged.

use thrum_codec::PacketId;

use super::queue::{Span, SpanOutcome};
use crate::core::Core;
use crate::ids::ConnectionId;
use crate::stages::{MovedBytes, now_ns, plan_sweep};

/// Deliveries that one worker follows at a time; the spans of others end in the output.
pub const OPEN_MAX: usize = 64;

/// A delivery that has not ended after this time makes room for others.
const OPEN_NS_MAX: u64 = 60_000_000_000;

/// A delivery whose span has not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: ConnectionId,
    pub(super) place: Place,
    /// None with QoS 0.
    pub(super) packet_id: Option<PacketId>,
    pub(super) span: Span,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the output, which has so many bytes up to its end.
    Output(usize),
    /// In the layers, which have so many.
    Layers(usize),
    /// With the receiver, whose acknowledgement is awaited: its span ends with the write if there
    /// is none.
    Receiver,
}

/// The deliveries of traced messages of one worker.
#[derive(Debug, Default)]
pub struct Spans {
    open: Vec<Open>,
}

impl Spans {
    /// Whether no delivery is followed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a delivery to a connection is followed.
    pub(crate) fn follow(&self, connection: ConnectionId) -> bool {
        self.open.iter().any(|one| one.connection == connection)
    }
}

/// Follows a delivery until it is written.
pub(super) fn follow(core: &mut Core, mut open: Open) {
    end_lost(core);
    if core.outputs[open.connection.key].is_cut {
        open.span.outcome = SpanOutcome::ConnectionEnded;
        core.node.spans.pass(open.span);
        return;
    }
    if core.stages.spans.open.len() >= OPEN_MAX {
        // Any of those that only wait for an acknowledgement: they are written.
        let mut all = core.stages.spans.open.iter();
        if let Some(waiting) = all.position(|one| one.place == Place::Receiver) {
            let waiting = core.stages.spans.open.swap_remove(waiting);
            core.node.spans.pass(waiting.span);
        }
    }
    if core.stages.spans.open.len() >= OPEN_MAX {
        open.span.outcome = SpanOutcome::Unfollowed;
        core.node.spans.pass(open.span);
        return;
    }
    core.outputs[open.connection.key].is_followed = true;
    core.stages.spans.open.push(open);
    core.stages.note_followed();
    plan_sweep(core);
}

/// Ends the spans of deliveries that can no longer be written or acknowledged, and of those that
/// take too long.
pub(crate) fn sweep(core: &mut Core) {
    end_lost(core);
    let now_ns = now_ns(core);
    let is_late = |one: &mut Open| now_ns.saturating_sub(one.span.begin_ns) >= OPEN_NS_MAX;
    for one in core.stages.spans.open.extract_if(.., is_late) {
        core.node
            .spans
            .pass(one.ended(now_ns, SpanOutcome::Unfollowed));
    }
}

/// Ends the spans of deliveries that can no longer be written or acknowledged.
fn end_lost(core: &mut Core) {
    let now_ns = now_ns(core);
    let outputs = &core.outputs;
    let is_lost = |one: &mut Open| {
        !outputs.contains(one.connection) || !outputs[one.connection.key].is_followed
    };
    for one in core.stages.spans.open.extract_if(.., is_lost) {
        core.node
            .spans
            .pass(one.ended(now_ns, SpanOutcome::ConnectionEnded));
    }
}

/// The system has taken output of a connection; returns whether deliveries to it are still open.
pub(crate) fn written(
    core: &mut Core,
    connection: ConnectionId,
    moved: MovedBytes,
    now_ns: u64,
) -> bool {
    let is_over = |one: &mut Open| {
        if one.connection != connection || !one.advance(moved) {
            return false;
        }
        one.span.end_ns = now_ns;
        one.place = Place::Receiver;
        one.packet_id.is_none()
    };
    for one in core.stages.spans.open.extract_if(.., is_over) {
        core.node.spans.pass(one.span);
    }
    core.stages.spans.follow(connection)
}

/// A client has acknowledged a message: the span ends, if there is one.
pub(crate) fn acknowledged(
    core: &mut Core,
    connection: ConnectionId,
    packet_id: PacketId,
    now_ns: u64,
) {
    let is_about = |one: &Open| one.connection == connection && one.packet_id == Some(packet_id);
    let Some(found) = core.stages.spans.open.iter().position(is_about) else {
        return;
    };
    let mut one = core.stages.spans.open.swap_remove(found);
    // What stands behind it in the output is not written yet, so when it was is not known.
    one.span.written_ns = match one.place {
        Place::Receiver => one.span.end_ns,
        Place::Output(_) | Place::Layers(_) => 0,
    };
    one.span.end_ns = now_ns;
    one.span.outcome = SpanOutcome::Acknowledged;
    core.node.spans.pass(one.span);
}

impl Open {
    /// Moves its end by the bytes of a write; true if its last byte is written.
    fn advance(&mut self, moved: MovedBytes) -> bool {
        let behind = match self.place {
            Place::Receiver => return false,
            Place::Layers(behind) => {
                let behind = behind.saturating_sub(moved.into_socket);
                self.place = Place::Layers(behind);
                return behind == 0;
            }
            Place::Output(behind) => behind.saturating_sub(moved.from_output),
        };
        let is_out = behind == 0 && moved.in_layers > 0;
        self.place = if is_out {
            Place::Layers(moved.in_layers)
        } else {
            Place::Output(behind)
        };
        behind == 0 && !is_out
    }

    /// Its span if it ends now, and in this way if it is not written.
    fn ended(mut self, now_ns: u64, outcome: SpanOutcome) -> Span {
        if self.place != Place::Receiver {
            self.span.end_ns = now_ns;
            self.span.outcome = outcome;
        }
        self.span
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SpanKind, TraceContext};
    use super::*;
    use crate::outputs::Outputs;
    use thrum_codec::QoS;

    fn open(behind: usize) -> Open {
        Open {
            connection: Outputs::default().open(),
            place: Place::Output(behind),
            packet_id: None,
            span: Span {
                context: TraceContext {
                    trace_id: 1,
                    span_id: 1,
                },
                parent_id: None,
                state: None,
                kind: SpanKind::Delivered,
                begin_ns: 0,
                end_ns: 0,
                routed_ns: 0,
                written_ns: 0,
                client_id: "".into(),
                topic: "".into(),
                qos: QoS::AtMostOnce,
                payload_bytes: 0,
                outcome: SpanOutcome::Written,
            },
        }
    }

    fn moved(from_output: usize, into_socket: usize, in_layers: usize) -> MovedBytes {
        MovedBytes {
            from_output,
            into_socket,
            in_layers,
        }
    }

    #[test]
    fn a_delivery_ends_with_its_last_byte_in_the_socket() {
        let mut one = open(100);
        assert!(!one.advance(moved(99, 99, 0)));
        assert!(one.advance(moved(1, 1, 0)));
        let mut encrypted = open(100);
        assert!(!encrypted.advance(moved(100, 60, 70)));
        assert!(!encrypted.advance(moved(50, 69, 90)));
        assert!(encrypted.advance(moved(0, 1, 89)));
    }
}
