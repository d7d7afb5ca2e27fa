//! A worker that takes its turns by hand, whole or in halves.

use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll};
use thrum_access::Certificate;
use thrum_engine::durable::{Journal, Part};
use thrum_engine::workers::WorkerId;

use super::super::{HOUSEKEEPING, Target, Worker};
use crate::mailbox::Arrived;
use crate::node::Node;
use crate::peer::Peer;
use crate::settings::Settings;
use crate::socket::Socket;

/// A socket, and the certificate that its client showed on the way.
type Arriving = (Socket, Option<Arc<Certificate>>);

/// A worker and what waits for its next turn.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) worker: Worker,
    /// Most units of work that one turn did.
    pub(super) longest_turn: u64,
    arriving: Vec<Arriving>,
    /// It has taken in and not yet handed out.
    is_in_turn: bool,
    events: Events,
}

impl Seat {
    pub(super) fn new(
        id: WorkerId,
        node: &Arc<Node>,
        settings: &Settings,
        poll: Poll,
        part: Option<(Journal, Part)>,
    ) -> Self {
        let mut worker = Worker::new(id, Arc::clone(node), settings, poll).restored(part);
        if id.index() == 0 {
            let soon = worker.traffic.engine.core.turn.now.plus(HOUSEKEEPING);
            worker
                .traffic
                .engine
                .core
                .timers
                .insert(soon, Target::Housekeeping);
        }
        Self {
            worker,
            longest_turn: 0,
            arriving: Vec::new(),
            is_in_turn: false,
            events: Events::with_capacity(64),
        }
    }

    /// Clients may connect, as all workers have their sessions.
    pub(super) fn opens(&mut self) {
        self.worker.listen(Vec::new());
    }

    /// A client's connection, accepted in the next turn.
    pub(super) fn arrives(&mut self, socket: Socket, certificate: Option<Arc<Certificate>>) {
        self.arriving.push((socket, certificate));
    }

    /// A whole turn, or what is left of one; true if there was or is something to do.
    pub(super) fn takes_a_turn(&mut self) -> bool {
        self.ends_turn();
        let had_work = self.takes_in();
        self.hands_out();
        had_work || self.worker.wait() == Some(Duration::ZERO)
    }

    /// The first half of a turn if the worker is between two, else the second.
    pub(super) fn takes_half_a_turn(&mut self) {
        if self.is_in_turn {
            self.hands_out();
        } else {
            self.takes_in();
        }
    }

    /// A turn takes no time: what has begun ends before time passes.
    pub(super) fn ends_turn(&mut self) {
        if self.is_in_turn {
            self.hands_out();
        }
    }

    fn takes_in(&mut self) -> bool {
        self.is_in_turn = true;
        let before = self.worker.traffic.engine.core.turn.work;
        let Self { worker, events, .. } = self;
        worker
            .traffic
            .edge
            .poll
            .poll(events, Some(Duration::ZERO))
            .unwrap();
        worker.handle_inputs(events);
        let had_work = !events.is_empty() || !self.arriving.is_empty();
        // Those who arrive are opened beside the turn, which would have its portion of them too.
        let units = worker.traffic.engine.core.turn.work - before;
        self.longest_turn = self.longest_turn.max(units);
        for (socket, certificate) in self.arriving.drain(..) {
            if certificate.is_none() {
                self.worker.traffic.open_and_read(Arrived {
                    socket,
                    peer: Peer::Local,
                    gate: 0,
                    certificate,
                });
                continue;
            }
            self.worker.open_arrived(Arrived {
                socket,
                peer: Peer::Local,
                gate: 0,
                certificate,
            });
        }
        had_work
    }

    fn hands_out(&mut self) {
        self.is_in_turn = false;
        self.worker.send_outputs();
    }
}
