//! The reference relay: it does the socket work of a broker and nothing else.
//!
//! It knows the borders of packets, a table of numbers instead of a routing index, packet
//! identifiers and acknowledgements. It has no sessions, no queues, no windows, no retained
//! messages and no keep alive. The difference in CPU between a broker and this relay is the cost of
//! those features.
//!
//! ```text
//!   wait --> read every ready socket once, handle all its packets
//!        --> one write per connection that has output
//! ```
//!
//! Invariant: nothing is judged here; a client that breaks the protocol loses its connection, and
//! every other packet is answered or forwarded.
#![forbid(unsafe_code)]

mod answer;
mod client;
mod listen;
mod message;
mod outputs;
mod packets;
mod route;
mod shared_socket;
mod thread_group;
mod totals;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

pub use totals::Totals;

use thread_group::ThreadGroup;
use worker::Worker;

/// Most threads of a relay: they share the packet identifiers of a connection, 4 095 for each
/// thread.
pub const THREADS_MAX: u16 = 16;

/// A relay that runs in its own threads until it is stopped or dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    group: Arc<ThreadGroup>,
    threads: Vec<JoinHandle<io::Result<Totals>>>,
}

impl Relay {
    /// Listens on an address, port 0 for a free one, with 1 to [`THREADS_MAX`] threads.
    ///
    /// # Errors
    /// The address is taken or not of this machine, or the kernel gives no socket, event queue or
    /// thread.
    pub fn start(address: SocketAddr, threads: u16) -> io::Result<Self> {
        let threads = threads.clamp(1, THREADS_MAX);
        let (listeners, address) = listen::bind(address, threads)?;
        let group = Arc::new(ThreadGroup::new(threads)?);
        let mut relay = Self {
            address,
            group: Arc::clone(&group),
            threads: Vec::new(),
        };
        for (number, listener) in (0..).zip(listeners) {
            let worker = Worker::new(number, listener, Arc::clone(&group))?;
            let thread = thread::Builder::new().name(format!("limit-{number}"));
            relay.threads.push(thread.spawn(move || worker.run())?);
        }
        Ok(relay)
    }

    /// Its listening address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and returns what was done in all.
    ///
    /// # Errors
    /// The event queue of a thread failed while it ran.
    pub fn stop(mut self) -> io::Result<Totals> {
        self.group.stop();
        let mut totals = Totals::default();
        for thread in std::mem::take(&mut self.threads) {
            let failed = |_| io::Error::other("a thread of the relay failed");
            totals.add(&thread.join().map_err(failed)??);
        }
        Ok(totals)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.group.stop();
        for thread in std::mem::take(&mut self.threads) {
            // The panic hook printed a panic of the thread.
            thread.join().ok();
        }
    }
}
