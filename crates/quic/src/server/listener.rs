//! UDP sockets on one side, one Unix socket per client on the other.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use quinn::{Endpoint, ServerConfig, TokioRuntime};
use tokio::runtime::Runtime;

use super::accept::{self, CLOSED, CODE_SHUTDOWN, Shared};
use super::metrics::Counters;
use super::{Host, Limits, ListenError, Metrics, tls};
use crate::transport::{self, Threads};

/// Streams that a client may open before the first of them is refused: each costs about 50 bytes in
/// every connection.
const CLIENT_STREAMS: u32 = 8;

/// How long the last packets to the clients may take, and then the threads to release the ports.
const FAREWELL: Duration = Duration::from_millis(500);

/// Listens for MQTT over QUIC, with threads of its own.
///
/// Cost of an idle connection: a task, QUIC's and TLS's state, and a socket pair of two open files;
/// no buffers.
///
/// One address has one UDP socket, whose packets one thread at a time receives: with several of
/// them the kernel would give a client that changes its address to another socket than before.
pub struct QuicListener {
    /// None once it is shut down.
    runtime: Option<Runtime>,
    threads: Threads,
    endpoints: Vec<Endpoint>,
    addresses: Vec<SocketAddr>,
    /// The parts of the configuration that survive a change of certificates, the key of Retry among
    /// them. The lock is held for a change.
    config: Mutex<ServerConfig>,
    shared: Arc<Shared>,
}

impl QuicListener {
    /// Listens on all the addresses; each new connection is given to `host`.
    ///
    /// Of `tls` the certificates, the check of client certificates and the session tickets are
    /// used; the application protocol is MQTT's and early data is off.
    ///
    /// # Errors
    /// An address that cannot be bound, TLS without version 1.3, no threads.
    pub fn bind(
        addresses: &[SocketAddr],
        tls: &rustls::ServerConfig,
        limits: Limits,
        host: impl Host,
    ) -> Result<Self, ListenError> {
        let mut config = ServerConfig::with_crypto(Arc::new(tls::for_quic(tls)?));
        config.transport_config(Arc::new(transport::config(
            limits.window_bytes,
            CLIENT_STREAMS,
        )));
        // First packets are decided upon at once: they hardly ever wait.
        config.max_incoming(limits.handshakes_max);
        let shared = Arc::new(Shared {
            limits: RwLock::new(limits),
            counters: Counters::default(),
            host: Box::new(host),
            connections: Arc::default(),
            handshakes: Arc::default(),
            is_closing: AtomicBool::new(false),
        });
        let threads = Threads::default();
        let runtime = transport::runtime("quic-listen", limits.threads, &threads)
            .map_err(ListenError::Threads)?;
        let mut listener = Self {
            runtime: None,
            threads,
            endpoints: Vec::new(),
            addresses: Vec::new(),
            config: Mutex::new(config),
            shared,
        };
        let bound: Result<(), ListenError> = addresses.iter().try_for_each(|address| {
            let bound = listener.listen(*address, &runtime);
            bound.map_err(|cause| ListenError::Bind {
                address: *address,
                cause,
            })
        });
        listener.runtime = Some(runtime);
        bound.map(|()| listener)
    }

    fn listen(&mut self, address: SocketAddr, runtime: &Runtime) -> io::Result<()> {
        let socket = transport::udp_socket(address)?;
        let local = socket.local_addr()?;
        transport::warn_of_small_buffer(&socket, local);
        let _guard = runtime.enter();
        let endpoint = Endpoint::new(
            transport::endpoint(),
            Some(self.config().clone()),
            socket,
            Arc::new(TokioRuntime),
        )?;
        self.endpoints.push(endpoint.clone());
        self.addresses.push(local);
        runtime.spawn(accept::accept(endpoint, local, Arc::clone(&self.shared)));
        Ok(())
    }

    /// The addresses in the order given, with the ports that the kernel chose where 0 was asked
    /// for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counts so far.
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics()
    }

    /// The kernel's numbers of the threads, in the order of their start.
    pub fn thread_ids(&self) -> Vec<u32> {
        self.threads.ids()
    }

    /// Uses other certificates for connections from now on; existing ones keep theirs.
    ///
    /// # Errors
    /// TLS without version 1.3; then nothing changes.
    pub fn set_tls(&self, tls: &rustls::ServerConfig) -> Result<(), ListenError> {
        let crypto = Arc::new(tls::for_quic(tls)?);
        let mut config = self.config();
        config.crypto = crypto;
        for endpoint in &self.endpoints {
            endpoint.set_server_config(Some(config.clone()));
        }
        Ok(())
    }

    /// Uses other limits for the connections from now on; threads and windows stay as they are.
    pub fn set_limits(&self, limits: Limits) {
        let current = self.shared.limits.write();
        *current.unwrap_or_else(PoisonError::into_inner) = limits;
    }

    fn config(&self) -> MutexGuard<'_, ServerConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new connections from now on; existing ones continue, and the ports stay taken for
    /// them.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
    }

    /// Closes, waits until the sockets' owners have ended their connections, for at most `within`,
    /// and ends the rest. Blocks for at most a second more than that. Returns how many connections
    /// it had to end. The ports are free then.
    pub fn drain(mut self, within: Duration) -> usize {
        self.shut_down(within)
    }

    fn shut_down(&mut self, within: Duration) -> usize {
        self.close();
        let Some(runtime) = self.runtime.take() else {
            return 0;
        };
        let left = runtime.block_on(async {
            let left = self.shared.connections.wait_until_empty(within).await;
            for endpoint in &self.endpoints {
                endpoint.close(CODE_SHUTDOWN, CLOSED);
            }
            self.shared.connections.wait_until_empty(FAREWELL).await;
            left
        });
        // The tasks hold the sockets.
        self.endpoints.clear();
        runtime.shutdown_timeout(FAREWELL);
        left
    }
}

impl Drop for QuicListener {
    /// Ends all connections.
    fn drop(&mut self) {
        self.shut_down(Duration::ZERO);
    }
}

impl fmt::Debug for QuicListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("QuicListener")
            .field("addresses", &self.addresses)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
