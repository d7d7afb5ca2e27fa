//! Memory has its limits, whatever clients and the disk do.

use super::super::READ_BYTES;
use super::world::{Failure, World};

/// Messages that a session writes at once, whatever the limit of the output is: on a new connection, and for one packet of the client.
const BURST_BYTES: usize = 256 * 1024;
/// A client is read until so many times the limit of its output waits.
const OUTPUT_HARD_FACTOR: usize = 2;

impl World {
    /// No queue and no output is longer than it may be.
    pub(super) fn check_bounds(&self) -> Result<(), Failure> {
        let limits = self.plan.config.limits.session_limits();
        // The answers to one more read are no longer than what was read.
        let output_max = OUTPUT_HARD_FACTOR * self.plan.config.limits.output_bytes as usize
            + READ_BYTES
            + BURST_BYTES;
        let workers = self.machine.seats.iter().map(|seat| &seat.worker);
        for worker in workers {
            for (_, client) in &worker.local.clients {
                let (messages, bytes, inflight) = client.session.backlog();
                let is_within = messages <= limits.queue_messages_max as usize
                    && bytes <= limits.queue_bytes_max as usize
                    && inflight <= usize::from(u16::MAX);
                if !is_within {
                    let client_id = client.session.client_id();
                    return Err(format!(
                        "the queue of {client_id} has {messages} messages, {bytes} bytes"
                    ));
                }
            }
            for (_, connection) in &worker.local.connections {
                let waiting = connection.waiting();
                if waiting > output_max {
                    return Err(format!("{waiting} bytes of output wait for one client"));
                }
            }
        }
        Ok(())
    }
}
