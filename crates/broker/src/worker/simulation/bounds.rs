//! Memory has its limits, whatever clients and the disk do.

use super::super::{Client, READ_BYTES};
use super::world::{Failure, World};
use crate::connection::Connection;

/// Messages that a session writes at once, whatever the limit of the output is: on a new connection, and for one packet of the client.
const BURST_BYTES: usize = 256 * 1024;
/// A client is read until so many times the limit of its output waits.
const OUTPUT_HARD_FACTOR: usize = 2;

impl World {
    /// No queue and no output is longer than it may be.
    pub(super) fn check_bounds(&self) -> Result<(), Failure> {
        for seat in &self.machine.seats {
            let local = &seat.worker.local;
            let mut clients = local.clients.iter();
            clients.try_for_each(|(_, client)| self.check_queue(client))?;
            let mut connections = local.connections.iter();
            connections.try_for_each(|(_, connection)| self.check_output(connection))?;
        }
        Ok(())
    }

    fn check_queue(&self, client: &Client) -> Result<(), Failure> {
        let limits = &self.plan.config.limits.client;
        let (messages, bytes, inflight) = client.session.backlog();
        // A start may find a message that was about to leave for another member of its group, and the one that took its turn.
        let inflight_max = usize::from(if self.plan.has_disk {
            u16::MAX
        } else {
            limits.inflight
        });
        let is_within = messages <= limits.queue as usize
            && bytes <= limits.queue_bytes as usize
            && inflight <= inflight_max;
        if is_within {
            return Ok(());
        }
        let client_id = client.session.client_id();
        Err(format!(
            "{client_id} has {messages} messages ({bytes} bytes) in its queue and {inflight} inflight"
        ))
    }

    fn check_output(&self, connection: &Connection) -> Result<(), Failure> {
        let limit = self.plan.config.limits.output_bytes as usize;
        // The answers to one more read are no longer than what was read.
        let output_max = OUTPUT_HARD_FACTOR * limit + READ_BYTES + BURST_BYTES;
        let waiting = connection.waiting();
        if waiting <= output_max {
            return Ok(());
        }
        Err(format!("{waiting} bytes of output wait for one client"))
    }
}
