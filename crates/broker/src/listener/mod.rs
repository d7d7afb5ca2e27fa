//! Where clients come in: one socket per listener address and worker.

mod tcp;

use std::net::SocketAddr;

use std::sync::atomic::{AtomicU32, Ordering};

use mio::net::TcpListener;

use crate::config::Config;
use crate::storage::StorageError;

/// Why the broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, forbidden or not of this machine.
    #[error("cannot listen on {address} (listener {listener:?}): {source}")]
    Bind {
        /// Name in the configuration.
        listener: String,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The durable state cannot be taken over.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The system refused a thread, an epoll instance or an eventfd.
    #[error("cannot start a worker: {0}")]
    System(std::io::Error),
}

/// How many connections a listener has, and may have.
#[derive(Debug)]
pub(crate) struct Gate {
    open: AtomicU32,
    /// 0 is no limit.
    connections_max: u32,
}

impl Gate {
    /// A gate that lets so many in at a time; 0 is no limit.
    pub(crate) fn new(connections_max: u32) -> Self {
        Self {
            open: AtomicU32::new(0),
            connections_max,
        }
    }

    /// Counts a new connection in; false if the listener is full.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        if self.connections_max == 0 || before < self.connections_max {
            return true;
        }
        self.leave();
        false
    }

    /// Connections at this moment.
    pub(crate) fn open(&self) -> u64 {
        u64::from(self.open.load(Ordering::Relaxed))
    }

    /// Counts a connection out.
    pub(crate) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One worker's socket of a listener.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    /// Number of the listener's gate.
    pub(crate) gate: u16,
}

/// The sockets of all listeners.
#[derive(Debug)]
pub(crate) struct Bound {
    /// Name and address, with the real port where 0 was asked for.
    pub(crate) addresses: Vec<(String, SocketAddr)>,
    /// Each worker's own sockets.
    pub(crate) per_worker: Vec<Vec<Listener>>,
}

/// One gate per listener, in their order.
pub(crate) fn gates(config: &Config) -> Vec<Gate> {
    let listeners = config.listeners.values();
    listeners
        .map(|listener| Gate::new(listener.max_connections))
        .collect()
}

/// Binds every configured address once per worker.
pub(crate) fn bind_all(config: &Config, workers: usize) -> Result<Bound, StartError> {
    let mut bound = Bound {
        addresses: Vec::new(),
        per_worker: (0..workers).map(|_| Vec::new()).collect(),
    };
    for (gate, (name, listener)) in config.listeners.iter().enumerate() {
        let gate = u16::try_from(gate).unwrap_or(u16::MAX);
        for address in &listener.bind {
            let sockets = tcp::bind(*address, workers).map_err(|source| StartError::Bind {
                listener: name.clone(),
                address: *address,
                source,
            })?;
            let real = sockets.first().and_then(|socket| socket.local_addr().ok());
            bound
                .addresses
                .push((name.clone(), real.unwrap_or(*address)));
            for (socket, worker) in sockets.into_iter().zip(&mut bound.per_worker) {
                worker.push(Listener { socket, gate });
            }
        }
    }
    Ok(bound)
}
