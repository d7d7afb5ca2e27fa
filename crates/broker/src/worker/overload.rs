//! Measurement of overload at the end of a turn: its duration decides whether new work waits.

use thrum_engine::node::metrics::Counter;
use thrum_protection::{Measured, OverloadCause};

use crate::traffic::Traffic;

/// Records the duration of the turn, and other shortages.
pub(super) fn observe_load(traffic: &mut Traffic) {
    let now = traffic.edge.node.clock.now();
    traffic.engine.core.read_memory_if_due(now);
    let measured = Measured {
        turn: now.since(traffic.engine.core.turn.now),
        handshakes: traffic.edge.handshakes.open(),
    };
    let limits = &traffic.edge.settings.protection.overload;
    let before = traffic.edge.overload;
    let row = traffic.engine.core.row();
    traffic
        .edge
        .overload
        .observe(&measured, limits, now, |cause, begins| {
            if begins {
                row.add(cause.into(), 1);
            }
            log(cause, begins);
        });
    let gauge = |counter, was, is| match (was, is) {
        (false, true) => row.add(counter, 1),
        (true, false) => row.subtract(counter, 1),
        (false, false) | (true, true) => {}
    };
    let now = &traffic.edge.overload;
    let defers = now.defers_connections();
    if defers != before.defers_connections() {
        traffic
            .edge
            .node
            .set_defers_connections(traffic.engine.core.id, defers);
    }
    gauge(
        Counter::OverloadDeferring,
        before.defers_connections(),
        defers,
    );
    gauge(
        Counter::OverloadSlowing,
        before.slows_publishers(),
        now.slows_publishers(),
    );
}

fn log(cause: OverloadCause, begins: bool) {
    let what = match cause {
        OverloadCause::Lag => "turns take long: new connections wait (protection.overload.turn)",
        OverloadCause::LongLag => {
            "turns take long: publishers are read less (protection.overload.publish_turn)"
        }
        OverloadCause::Handshakes => {
            "many handshakes are unfinished: new connections wait (limits.handshakes)"
        }
    };
    if begins {
        tracing::warn!("{what}");
    } else {
        tracing::info!("over: {what}");
    }
}
