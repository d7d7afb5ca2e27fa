//! A weak network in user space: a TCP proxy that delays, slows, cuts and silences connections.
//!
//! It needs no privileges. The handshake of TCP is the kernel's and is not delayed; bytes are never
//! lost or reordered, because TCP would repair it: MQTT sees a lossy network as delay and its
//! variation.

mod bucket;
mod chance;
mod connection;
mod link;
mod relay;
mod shared;
mod timetable;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use mio::Waker;
use thrum_load::scenario::Network;

pub use shared::Stats;

use relay::Relay;
use shared::Shared;

/// A proxy that runs in its own thread until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy to `upstream` on a free port of 127.0.0.1. The same seed draws the same
    /// jitter and the same lifetimes, as far as connections arrive in the same order.
    ///
    /// # Errors
    /// The kernel gives no socket, event queue or thread.
    pub fn start(upstream: SocketAddr, network: Network, seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(network));
        let relay = Relay::new(upstream, Arc::clone(&shared), seed)?;
        let (address, waker) = (relay.address()?, relay.waker());
        let thread = thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || relay.run())?;
        Ok(Self {
            address,
            shared,
            waker,
            thread: Some(thread),
        })
    }

    /// The address for clients, in place of the broker's.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the network of all connections; bytes on their way keep their time.
    pub fn set_network(&self, network: Network) {
        self.shared.change(|controls| controls.network = network);
        self.wake();
    }

    /// The counts so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    fn wake(&self) {
        // It fails only if the counter behind it is full, which wakes as well.
        self.waker.wake().ok();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.change(|controls| controls.is_stopped = true);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The panic hook printed a panic of the thread.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
