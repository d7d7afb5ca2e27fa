//! Listeners: sockets, and the settings for the connections through them.

mod certificates;
mod gate;
mod gates;
mod http;
mod known;
mod layers;
mod mount;
mod plan;
mod quic;
mod tcp;
mod unix;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::net::SocketFlags;
use thrum_engine::peer::Peer;
use thrum_protocol::Time;

pub(crate) use certificates::{CertificateFiles, CertificateWatch};
pub(crate) use gate::{Gate, GateParts};
pub(crate) use gates::{Gates, Numbered};
pub use http::{HttpPort, WebSocketClient};
pub(crate) use known::KnownGates;
pub(crate) use plan::{Change, OpenListeners, Plan};

use crate::config::{Bind, Config, ListenerConfig, Transport};
use crate::protection::BanFileError;
use crate::sinks::SinkError;
use crate::socket::Socket;
use crate::storage::StorageError;

/// Reasons why the broker cannot start, or cannot listen as configured.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, forbidden or not of this machine.
    #[error("cannot listen on {address} (listener {listener:?}): {source}")]
    Bind {
        /// Name in the configuration.
        listener: String,
        /// The address.
        address: Bind,
        /// Error of the system.
        source: io::Error,
    },
    /// TLS or WebSocket of a listener cannot be set up.
    #[error("listener {listener:?}: {cause}")]
    Listener {
        /// Name in the configuration.
        listener: String,
        /// The cause, and the remedy.
        cause: String,
    },
    /// The durable state cannot be loaded.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The bans cannot be read.
    #[error(transparent)]
    Bans(#[from] BanFileError),
    /// A sink cannot be set up.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The system refused a thread, an epoll instance or an eventfd.
    #[error("cannot start a worker: {0}")]
    System(io::Error),
}

/// An address that clients may connect to, or that answers HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Name of the listener in the configuration.
    pub listener: String,
    /// The URL scheme of the protocol: `mqtt`, `mqtts`, `ws`, `wss`, `quic`, `http`, `https`.
    pub scheme: &'static str,
    /// Address, with its real port where 0 was asked for.
    pub address: Bind,
    /// Path of a WebSocket, else empty.
    pub path: String,
}

impl Listening {
    /// An address of a listener.
    pub fn new(name: &str, config: &ListenerConfig, address: &Bind) -> Self {
        let is_tls = config.tls.is_on() || !config.tls_from.is_empty();
        let scheme = match (config.transport, is_tls) {
            (Transport::Tcp, false) => "mqtt",
            (Transport::Tcp, true) => "mqtts",
            (Transport::WebSocket, false) => "ws",
            (Transport::WebSocket, true) => "wss",
            (Transport::Quic, _) => "quic",
            (Transport::Http, false) => "http",
            (Transport::Http, true) => "https",
        };
        let path = match config.transport {
            Transport::WebSocket => config.path.clone(),
            Transport::Tcp | Transport::Quic | Transport::Http => String::new(),
        };
        Self {
            listener: name.to_owned(),
            scheme,
            address: address.clone(),
            path,
        }
    }
}

impl Listening {
    /// Its address; none of a Unix socket.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        match self.address {
            Bind::Address(address) => Some(address),
            Bind::Unix(_) => None,
        }
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, path) = (self.scheme, &self.path);
        match &self.address {
            Bind::Address(address) => write!(formatter, "{scheme}://{address}{path}"),
            Bind::Unix(_) if scheme == "mqtt" => self.address.fmt(formatter),
            Bind::Unix(_) => write!(formatter, "{}  {scheme}{path}", self.address),
        }
    }
}

/// A listener of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedListener<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a ListenerConfig,
}

/// Reads the files of a listener as a start does; returns warnings.
///
/// # Errors
/// The reasons for which a start would fail before it opens a socket.
pub(crate) fn check(
    config: &Config,
    of: NamedListener<'_>,
    now: Time,
) -> Result<Vec<String>, StartError> {
    let NamedListener {
        name,
        config: listener,
    } = of;
    let acceptor = layers::acceptor(config, of, None)?;
    if listener.transport == Transport::Quic {
        quic::check(&listener.bind, &acceptor).map_err(|cause| StartError::Listener {
            listener: name.to_owned(),
            cause,
        })?;
    }
    let acceptor = if listener.transport == Transport::Http {
        http::check(config, of)?
    } else {
        acceptor
    };
    let warnings = acceptor.warnings().iter().cloned();
    let ending = acceptor.certificates().iter();
    let ending = ending.filter_map(|certificate| certificates::ends_soon(certificate, now));
    let warnings = warnings.chain(ending);
    Ok(warnings
        .map(|warning| format!("listener {name:?}: {warning}"))
        .collect())
}

/// One worker's socket of a listener.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    /// Number of the listener's gate.
    pub(crate) gate: u16,
}

impl Listener {
    pub(crate) const fn new(socket: OwnedFd, gate: u16) -> Self {
        Self { socket, gate }
    }

    /// The next waiting connection.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Peer)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, address) = rustix::net::acceptfrom_with(&self.socket, flags)?;
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        Ok((socket.into(), address.map_or(Peer::Local, Peer::from)))
    }
}

impl Source for Listener {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.socket.as_raw_fd()).register(registry, token, interest)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.socket.as_raw_fd()).reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.socket.as_raw_fd()).deregister(registry)
    }
}

/// Options of the sockets of a new address.
#[derive(Clone, Copy, Debug)]
struct Sockets {
    /// One for each worker.
    count: usize,
    /// `limits.tcp_keepalive`.
    keepalive: Duration,
    /// This broker listens at the address, and will close the sockets of it: they are no reason
    /// against others.
    takes_over: bool,
}

/// The listening sockets of an address, and the address with its real port.
fn bind(address: &Bind, wanted: Sockets) -> io::Result<(Vec<OwnedFd>, Bind)> {
    match address {
        Bind::Address(address) => {
            let (sockets, address) = tcp::bind(*address, wanted)?;
            Ok((sockets, Bind::Address(address)))
        }
        Bind::Unix(path) => Ok((unix::bind(path, wanted.count)?, address.clone())),
    }
}
