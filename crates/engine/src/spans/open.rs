//! Deliveries of traced messages whose last byte is not written yet.

use super::queue::{Span, SpanOutcome};
use crate::core::Core;
use crate::ids::ConnectionId;
use crate::stages::{MovedBytes, now_ns, plan_sweep};

/// Deliveries that one worker follows at a time; the spans of others end in the output.
pub const OPEN_MAX: usize = 64;

/// A delivery that is not written after this time makes room for others.
const OPEN_NS_MAX: u64 = 60_000_000_000;

/// A delivery whose span has not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: ConnectionId,
    /// The bytes up to its end, of the output or of the layers.
    pub(super) behind: usize,
    pub(super) is_in_layers: bool,
    pub(super) span: Span,
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
    } else if core.stages.spans.open.len() >= OPEN_MAX {
        open.span.outcome = SpanOutcome::Unfollowed;
        core.node.spans.pass(open.span);
    } else {
        core.outputs[open.connection.key].is_followed = true;
        core.stages.spans.open.push(open);
        plan_sweep(core);
    }
}

/// Ends the spans of deliveries that can no longer be written, and of those that take too long.
pub(crate) fn sweep(core: &mut Core) {
    end_lost(core);
    let now_ns = now_ns(core);
    let is_late = |one: &mut Open| now_ns.saturating_sub(one.span.begin_ns) >= OPEN_NS_MAX;
    for mut one in core.stages.spans.open.extract_if(.., is_late) {
        one.span.end_ns = now_ns;
        one.span.outcome = SpanOutcome::Unfollowed;
        core.node.spans.pass(one.span);
    }
}

/// Ends the spans of deliveries that can no longer be written.
fn end_lost(core: &mut Core) {
    let now_ns = now_ns(core);
    let outputs = &core.outputs;
    let is_lost = |one: &mut Open| {
        !outputs.contains(one.connection) || !outputs[one.connection.key].is_followed
    };
    for mut one in core.stages.spans.open.extract_if(.., is_lost) {
        one.span.end_ns = now_ns;
        one.span.outcome = SpanOutcome::ConnectionEnded;
        core.node.spans.pass(one.span);
    }
}

/// The system has taken output of a connection; returns whether deliveries to it are still open.
pub(crate) fn written(
    core: &mut Core,
    connection: ConnectionId,
    moved: MovedBytes,
    now_ns: u64,
) -> bool {
    let is_written = |one: &mut Open| one.connection == connection && one.advance(moved);
    for mut one in core.stages.spans.open.extract_if(.., is_written) {
        one.span.end_ns = now_ns;
        core.node.spans.pass(one.span);
    }
    core.stages.spans.follow(connection)
}

impl Open {
    /// Moves its end by the bytes of a write; true if its last byte is written.
    fn advance(&mut self, moved: MovedBytes) -> bool {
        if self.is_in_layers {
            self.behind = self.behind.saturating_sub(moved.into_socket);
            return self.behind == 0;
        }
        self.behind = self.behind.saturating_sub(moved.from_output);
        if self.behind > 0 || moved.in_layers == 0 {
            return self.behind == 0;
        }
        (self.behind, self.is_in_layers) = (moved.in_layers, true);
        false
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
            behind,
            is_in_layers: false,
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
