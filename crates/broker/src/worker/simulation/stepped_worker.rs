//! A worker whose turns the test runs, whole or in halves.

use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll};
use thrum_access::Certificate;
use thrum_engine::durable::{Journal, Part};
use thrum_engine::peer::Peer;
use thrum_engine::workers::WorkerId;

use super::super::{HOUSEKEEPING, Target, Worker};
use crate::mailbox::Arrived;
use crate::node::Node;
use crate::settings::Settings;
use crate::socket::Socket;

/// A socket, and the certificate that was verified before it was accepted.
type NewConnection = (Socket, Option<Arc<Certificate>>);

/// A worker, and the connections that it accepts in its next turn.
#[derive(Debug)]
pub(super) struct SteppedWorker {
    pub(super) inner: Worker,
    /// Most units of work that one turn did.
    pub(super) longest_turn: u64,
    /// Units of the inputs of the turn under way.
    input_units: u64,
    new_connections: Vec<NewConnection>,
    /// It has read its inputs and not yet written its outputs.
    is_in_turn: bool,
    events: Events,
}

impl SteppedWorker {
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
            inner: worker,
            longest_turn: 0,
            input_units: 0,
            new_connections: Vec::new(),
            is_in_turn: false,
            events: Events::with_capacity(64),
        }
    }

    /// Lets clients connect, as all workers have their sessions.
    pub(super) fn start_listening(&mut self) {
        self.inner.listen(Vec::new());
    }

    /// Adds a client's connection, which is accepted in the next turn.
    pub(super) fn add_connection(&mut self, socket: Socket, certificate: Option<Arc<Certificate>>) {
        self.new_connections.push((socket, certificate));
    }

    /// Runs a whole turn, after the rest of an unfinished one; true if there was or is work.
    pub(super) fn run_turn(&mut self) -> bool {
        self.finish_turn();
        let had_work = self.read_inputs();
        self.write_outputs();
        had_work || self.inner.wait() == Some(Duration::ZERO)
    }

    /// Runs the first half of a turn, or the second half of an unfinished one.
    pub(super) fn run_half_turn(&mut self) {
        if self.is_in_turn {
            self.write_outputs();
        } else {
            self.read_inputs();
        }
    }

    /// Finishes an unfinished turn: no time passes within a turn.
    pub(super) fn finish_turn(&mut self) {
        if self.is_in_turn {
            self.write_outputs();
        }
    }

    fn read_inputs(&mut self) -> bool {
        self.is_in_turn = true;
        let before = self.inner.traffic.engine.core.turn.work;
        let Self {
            inner: worker,
            events,
            ..
        } = self;
        worker
            .traffic
            .edge
            .poll
            .poll(events, Some(Duration::ZERO))
            .unwrap();
        worker.handle_inputs(events);
        let had_work = !events.is_empty() || !self.new_connections.is_empty();
        // New connections are opened outside the measured turn.
        self.input_units = worker.traffic.engine.core.turn.work - before;
        for (socket, certificate) in self.new_connections.drain(..) {
            if certificate.is_none() {
                self.inner.traffic.open_and_read(Arrived {
                    socket,
                    peer: Peer::Local,
                    gate: 0,
                    certificate,
                });
                continue;
            }
            self.inner.open_arrived(Arrived {
                socket,
                peer: Peer::Local,
                gate: 0,
                certificate,
            });
        }
        had_work
    }

    fn write_outputs(&mut self) {
        self.is_in_turn = false;
        self.inner.send_outputs();
        let before = self.inner.traffic.engine.core.turn.work;
        self.inner.run_queries();
        let query_units = self.inner.traffic.engine.core.turn.work - before;
        self.longest_turn = self.longest_turn.max(self.input_units + query_units);
    }
}
