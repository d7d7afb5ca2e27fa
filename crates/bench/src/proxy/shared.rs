//! The shared state of a proxy's owner and its thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thrum_load::scenario::Network;

/// The owner's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Controls {
    pub(super) network: Network,
    pub(super) is_stopped: bool,
}

/// The counts of a proxy so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Of these open now.
    pub open: u64,
    /// Connections cut because their time was over.
    pub cut: u64,
    /// Connections that the broker did not accept, or for which there was no socket.
    pub failed: u64,
    /// Bytes delivered to the broker.
    pub bytes_to_broker: u64,
    /// Bytes delivered to clients.
    pub bytes_to_clients: u64,
    /// How often a sender was not read because too many of its bytes were in flight.
    pub held_back: u64,
}

/// Controls in one direction, counters in the other.
#[derive(Debug)]
pub(super) struct Shared {
    /// Guards the controls; held only to copy or change them.
    controls: Mutex<Controls>,
    pub(super) connections: AtomicU64,
    pub(super) closed: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) bytes_to_broker: AtomicU64,
    pub(super) bytes_to_clients: AtomicU64,
    pub(super) held_back: AtomicU64,
}

impl Shared {
    pub(super) const fn new(network: Network) -> Self {
        Self {
            controls: Mutex::new(Controls {
                network,
                is_stopped: false,
            }),
            connections: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes_to_broker: AtomicU64::new(0),
            bytes_to_clients: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    pub(super) fn controls(&self) -> Controls {
        *self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Controls)) {
        change(&mut self.controls.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn stats(&self) -> Stats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Counted first, so that no more are closed than were opened.
        let closed = value(&self.closed);
        let connections = value(&self.connections);
        Stats {
            connections,
            open: connections.saturating_sub(closed),
            cut: value(&self.cut),
            failed: value(&self.failed),
            bytes_to_broker: value(&self.bytes_to_broker),
            bytes_to_clients: value(&self.bytes_to_clients),
            held_back: value(&self.held_back),
        }
    }
}

/// Adds to a counter that only the proxy's thread changes.
pub(super) fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(u64::try_from(number).unwrap_or(0), Ordering::Relaxed);
}
