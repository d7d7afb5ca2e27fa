//! The end of a turn: what it took decides whether new work waits.

use thrum_protection::{Measured, OverloadCause};

use super::Worker;
use crate::metrics::Counter;

impl Worker {
    /// Takes in how long the turn took, and what else is short.
    pub(super) fn observe_load(&mut self) {
        let now = self.node.clock.now();
        self.local.look_at_memory_if_due(now);
        let measured = Measured {
            turn: now.since(self.local.now),
            handshakes: self.handshakes.open(),
        };
        let limits = &self.local.settings.protection.overload;
        let before = self.overload;
        let row = self.local.row();
        self.overload
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
        let now = &self.overload;
        let defers = now.defers_connections();
        if defers != before.defers_connections() {
            self.node.set_defers_connections(self.local.id, defers);
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
