//! Connections that are sockets at once, while QUIC is still at its handshake.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, TokioRuntime};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::call::Call;
use super::{DialError, DialOptions, Dialing};
use crate::ALPN;
use crate::bridge::{self, CODE_DONE, Ending};
use crate::permits::{Permit, Permits};
use crate::pipe;
use crate::transport::{self, Threads};

/// How long the last bytes to the servers may take when a dialer ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Opens connections of MQTT over QUIC, with threads of its own; thousands share a UDP socket.
///
/// When it is dropped, bytes that were written to already closed sockets have a second to be sent;
/// connections whose sockets are still open are ended. The drop blocks for at most two seconds.
pub struct QuicDialer {
    /// None once it is dropped.
    runtime: Option<Runtime>,
    threads: Threads,
    config: ClientConfig,
    options: DialOptions,
    /// Guards the UDP sockets, which are opened when they are needed first; held for the opening of
    /// one at most.
    endpoints: Mutex<Endpoints>,
    connections: Arc<Permits>,
    /// Permits for handshakes.
    turns: Arc<Semaphore>,
}

/// UDP sockets, and the index of the next one.
#[derive(Debug, Default)]
struct Endpoints {
    opened: Vec<(IpAddr, usize, Endpoint)>,
    turn: usize,
}

impl QuicDialer {
    /// Starts the threads.
    ///
    /// Of `tls` the trust in servers and the client certificate are used; the application protocol
    /// is MQTT's unless it names others. Early data is off.
    ///
    /// # Errors
    /// TLS without version 1.3, no threads.
    pub fn new(tls: &rustls::ClientConfig, options: DialOptions) -> Result<Self, DialError> {
        let mut tls = tls.clone();
        if tls.alpn_protocols.is_empty() {
            tls.alpn_protocols = vec![ALPN.to_vec()];
        }
        tls.enable_early_data = false;
        let crypto = QuicClientConfig::try_from(tls).map_err(|_| DialError::NoTls13)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        // A server of MQTT opens no streams.
        config.transport_config(Arc::new(transport::config(options.window_bytes, 0)));
        let threads = Threads::default();
        let runtime = transport::runtime("quic-dial", options.threads, &threads)
            .map_err(|cause| DialError::Local(format!("cannot start threads: {cause}")))?;
        Ok(Self {
            runtime: Some(runtime),
            threads,
            config,
            turns: Arc::new(Semaphore::new(options.handshakes_max.max(1))),
            options,
            endpoints: Mutex::default(),
            connections: Arc::default(),
        })
    }

    /// Begins a connection and returns its socket at once, non-blocking: what is written to it is
    /// sent when the handshake is done, and it ends if that fails.
    ///
    /// All `addresses` are tried at the same time, and the first that completes the handshake is
    /// used. `server_name` is the name or address that the certificate must contain.
    ///
    /// # Errors
    /// No address, no open files, an invalid source address.
    pub fn dial(
        &self,
        addresses: &[SocketAddr],
        server_name: &str,
    ) -> Result<(UnixStream, Dialing), DialError> {
        let runtime = self.runtime()?;
        let _guard = runtime.enter();
        let call = self.call(addresses, server_name, self.options.handshake_time)?;
        let (ours, theirs) = pipe::pair(self.options.pipe_bytes)?;
        let socket = tokio::net::UnixStream::from_std(ours)?;
        let dialing = Dialing::default();
        let permit = self.connections.take();
        let turns = Arc::clone(&self.turns);
        runtime.spawn(carry(call, turns, socket, dialing.clone(), permit));
        Ok((theirs, dialing))
    }

    /// Makes a connection and ends it: checks whether a server of MQTT over QUIC that this dialer
    /// trusts is reachable.
    ///
    /// Blocks for `within` at most.
    ///
    /// # Errors
    /// The reason why a connection fails.
    pub fn probe(
        &self,
        address: SocketAddr,
        server_name: &str,
        within: Duration,
    ) -> Result<(), DialError> {
        let runtime = self.runtime()?;
        let _guard = runtime.enter();
        let call = self.call(&[address], server_name, within)?;
        let (connection, _stream) = runtime.block_on(call.open())?;
        connection.close(CODE_DONE, b"");
        Ok(())
    }

    /// The kernel's numbers of the threads, in the order of their start.
    pub fn thread_ids(&self) -> Vec<u32> {
        self.threads.ids()
    }

    fn runtime(&self) -> Result<&Runtime, DialError> {
        let ended = || DialError::Local("the dialer has ended".to_owned());
        self.runtime.as_ref().ok_or_else(ended)
    }

    fn call(
        &self,
        addresses: &[SocketAddr],
        server_name: &str,
        time: Duration,
    ) -> Result<Call, DialError> {
        let mut places = Vec::with_capacity(addresses.len());
        let mut failure = DialError::Local("the name has no address".to_owned());
        for address in addresses {
            match self.endpoint(*address) {
                Ok(endpoint) => places.push((*address, endpoint)),
                // A machine may lack the family of one of them.
                Err(error) => failure = error.into(),
            }
        }
        if places.is_empty() {
            return Err(failure);
        }
        Ok(Call {
            config: self.config.clone(),
            places,
            server_name: server_name.to_owned(),
            time,
        })
    }

    /// The next UDP socket: one per source address, and as many as there are threads.
    fn endpoint(&self, to: SocketAddr) -> io::Result<Endpoint> {
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let of_family = |source: &&IpAddr| source.is_ipv4() == to.is_ipv4();
        let sources: Vec<IpAddr> = self
            .options
            .sources
            .iter()
            .filter(of_family)
            .copied()
            .collect();
        let turn = endpoints.turn;
        endpoints.turn = turn.wrapping_add(1);
        let source = match (sources.get(turn % sources.len().max(1)), to) {
            (Some(source), _) => *source,
            (None, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (None, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let number = turn / sources.len().max(1) % self.options.threads.max(1);
        let mut opened = endpoints.opened.iter();
        if let Some(found) = opened.find(|(of, at, _)| (*of, *at) == (source, number)) {
            return Ok(found.2.clone());
        }
        let socket = transport::udp_socket(SocketAddr::new(source, 0))?;
        let endpoint = Endpoint::new(transport::endpoint(), None, socket, Arc::new(TokioRuntime))?;
        endpoints.opened.push((source, number, endpoint.clone()));
        Ok(endpoint)
    }
}

impl Drop for QuicDialer {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let endpoints = self
            .endpoints
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            if self.connections.wait_until_empty(FAREWELL).await == 0 {
                return;
            }
            for (_, _, endpoint) in &endpoints.opened {
                endpoint.close(CODE_DONE, b"");
            }
            self.connections.wait_until_empty(FAREWELL).await;
        });
        runtime.shutdown_background();
    }
}

impl fmt::Debug for QuicDialer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("QuicDialer")
            .field("options", &self.options)
            .field("connections", &self.connections.taken())
            .finish_non_exhaustive()
    }
}

/// A connection from the first packet to the end. The answers to the socket owner's questions about
/// it are known before the socket ends.
async fn carry(
    call: Call,
    turns: Arc<Semaphore>,
    socket: tokio::net::UnixStream,
    outcome: Dialing,
    _permit: Permit,
) {
    // The permits are never closed.
    let turn = turns.acquire().await;
    let opened = call.open().await;
    drop(turn);
    let (failure, socket) = match opened {
        Ok((connection, (send, receive))) => {
            let (ending, socket) = bridge::run(&connection, send, receive, socket, || ()).await;
            (failure(ending), socket)
        }
        Err(error) => (Some(error), socket),
    };
    if let Some(error) = failure {
        outcome.fail(error);
    }
    drop(socket);
}

/// The meaning of a connection's end for a client, if MQTT did not end it.
fn failure(ending: Ending) -> Option<DialError> {
    match ending {
        Ending::Done | Ending::Unacknowledged | Ending::GivenUp(CODE_DONE) => None,
        Ending::GivenUp(code) => Some(DialError::Closed(format!(
            "the stream was reset, code {code}"
        ))),
        Ending::Lost(error) => DialError::from_end(&error),
    }
}
