//! HTTP listeners: their connections are accepted by the part of the program that answers HTTP. One
//! that turns out to be MQTT over WebSocket goes to a worker, and is a client like any other.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use thrum_access::Network;
use thrum_engine::node::metrics::Counter;
use thrum_engine::peer::Peer;
use thrum_engine::workers::WorkerId;
use thrum_transport::{Acceptor, ServerCertificate, describe_certificate};

use super::{Listening, NamedListener, Numbered, Sockets, StartError, layers, tcp};
use crate::config::{Bind, Config, ListenerConfig};
use crate::mailbox::{Arrived, Mail};
use crate::node::Node;

/// Protocols over TLS, the preferred one first.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Paths that the management interface answers itself, and beginnings of them.
const OWN_PATHS: [&str; 7] = [
    "/",
    "/setup",
    "/setup.js",
    "/start.css",
    "/livez",
    "/readyz",
    "/metrics",
];
const OWN_PATHS_BELOW: &str = "/api/";

/// An address of an HTTP listener.
#[derive(Clone, Debug)]
pub(super) struct HttpPlace {
    /// Name of its listener.
    pub(super) name: String,
    /// As configured.
    pub(super) asked: Bind,
    real: SocketAddr,
    /// Unique to this address.
    number: u32,
    socket: Arc<OwnedFd>,
    entrance: Arc<Entrance>,
}

/// An address that a listener asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpAddress<'a> {
    /// Of the listener.
    pub(super) name: &'a str,
    pub(super) asked: &'a Bind,
    /// Of the place that it gets.
    pub(super) number: u32,
    /// `limits.tcp_keepalive`.
    pub(super) keepalive: Duration,
    /// See [`Sockets::takes_over`].
    pub(super) takes_over: bool,
}

/// The settings of a listener for its next connections.
#[derive(Debug)]
pub(super) struct HttpSettings {
    gate: Arc<Numbered>,
    tls: Tls,
    path: Box<str>,
    proxies: Box<[Network]>,
}

/// TLS of the HTTP connections; none over plain TCP.
struct Tls {
    acceptor: Acceptor,
    config: Option<Arc<rustls::ServerConfig>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acceptor.fmt(formatter)
    }
}

/// The way of connections to the workers.
#[derive(Debug)]
struct Entrance {
    node: Arc<Node>,
    /// Guards the settings that a reload replaces: read for a moment for each connection.
    settings: RwLock<HttpSettings>,
    next: AtomicUsize,
    /// The address was taken away by a reload.
    is_closed: AtomicBool,
}

/// An open address of an HTTP listener. The caller accepts its connections.
#[derive(Clone, Debug)]
pub struct HttpPort {
    number: u32,
    listening: Listening,
    entrance: Arc<Entrance>,
    /// None in the hands of a connection: the address is free again when nobody accepts.
    socket: Option<Arc<OwnedFd>>,
}

/// A connection that asked for MQTT over WebSocket.
#[derive(Debug)]
pub struct WebSocketClient {
    /// Its socket, or one end of a pair whose other end is relayed; the request for the upgrade is
    /// the first that is read from it. No TLS is expected on it.
    pub socket: OwnedFd,
    /// Its address.
    pub address: SocketAddr,
    /// Its verified certificate, if TLS ended before.
    pub certificate: Option<CertificateDer<'static>>,
}

impl HttpSettings {
    /// The settings of a listener. `gate` has its WebSocket.
    pub(super) fn new(
        config: &Config,
        of: NamedListener<'_>,
        gate: &Arc<Numbered>,
        before: Option<&HttpPlace>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            gate: Arc::clone(gate),
            tls: Tls::new(config, of, before)?,
            path: of.config.path.as_str().into(),
            proxies: of.config.proxy_from.as_slice().into(),
        })
    }
}

impl Tls {
    fn new(
        config: &Config,
        of: NamedListener<'_>,
        before: Option<&HttpPlace>,
    ) -> Result<Self, StartError> {
        let before = before.map(|place| place.entrance.read(|of| of.tls.acceptor.clone()));
        let acceptor = layers::tls_acceptor(config, of, before.as_ref())?;
        for warning in acceptor.warnings() {
            tracing::warn!(listener = of.name, "{warning}");
        }
        let config = acceptor.tls_config().map(|config| {
            let mut config = config.clone();
            config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
            Arc::new(config)
        });
        Ok(Self { acceptor, config })
    }
}

impl HttpPlace {
    /// Opens the address.
    pub(super) fn open(
        node: &Arc<Node>,
        address: HttpAddress<'_>,
        settings: HttpSettings,
    ) -> Result<Self, StartError> {
        let HttpAddress {
            name,
            asked,
            number,
            keepalive,
            takes_over,
        } = address;
        let failed = |source| StartError::Bind {
            listener: name.to_owned(),
            address: asked.clone(),
            source,
        };
        let address = address_of(asked).map_err(|cause| refused(name, cause))?;
        let wanted = Sockets {
            count: 1,
            keepalive,
            takes_over,
        };
        // Of an address that is taken over it listens later.
        let (sockets, real) = tcp::bind(address, wanted).map_err(failed)?;
        let socket = sockets
            .into_iter()
            .next()
            .ok_or_else(|| failed(ErrorKind::AddrNotAvailable.into()))?;
        Ok(Self {
            name: name.to_owned(),
            asked: asked.clone(),
            real,
            number,
            socket: Arc::new(socket),
            entrance: Arc::new(Entrance {
                node: Arc::clone(node),
                settings: RwLock::new(settings),
                next: AtomicUsize::new(0),
                is_closed: AtomicBool::new(false),
            }),
        })
    }

    /// Listens on an address that is taken over.
    pub(super) fn listen(&self) {
        log_unheard(&self.name, tcp::listen(&self.socket));
    }

    /// The same address, of a listener of another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// Puts other settings in force for the next connections.
    pub(super) fn renew(&self, settings: HttpSettings) {
        let standing = self.entrance.settings.write();
        *standing.unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Reads the files of TLS again, for the next connections.
    pub(super) fn renew_tls(
        &self,
        config: &Config,
        of: NamedListener<'_>,
    ) -> Result<(), StartError> {
        let tls = Tls::new(config, of, Some(self))?;
        let standing = self.entrance.settings.write();
        standing.unwrap_or_else(PoisonError::into_inner).tls = tls;
        Ok(())
    }

    /// The acceptor of its TLS.
    pub(super) fn acceptor(&self) -> Acceptor {
        self.entrance.read(|settings| settings.tls.acceptor.clone())
    }

    /// The address that the broker listens on.
    pub(super) fn listening(&self, config: &ListenerConfig) -> Listening {
        Listening::new(&self.name, config, &Bind::Address(self.real))
    }

    pub(super) fn port(&self, config: &ListenerConfig) -> HttpPort {
        HttpPort {
            number: self.number,
            listening: self.listening(config),
            entrance: Arc::clone(&self.entrance),
            socket: Some(Arc::clone(&self.socket)),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// The address is taken away: requests on its connections are refused.
    pub(super) fn close(&self) {
        self.entrance.is_closed.store(true, Ordering::Relaxed);
    }
}

/// An address that was bound has no reason to fail.
pub(super) fn log_unheard(name: &str, listening: io::Result<()>) {
    if let Err(error) = listening {
        tracing::error!(listener = name, %error, "cannot listen on the address that is taken over");
    }
}

impl Entrance {
    fn read<T>(&self, what: impl FnOnce(&HttpSettings) -> T) -> T {
        let settings = self.settings.read();
        what(&settings.unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpPort {
    /// Unique to this address: after a reload the same address has the same number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The address, and the scheme of its URL.
    pub const fn listening(&self) -> &Listening {
        &self.listening
    }

    /// A socket that accepts its connections, for the caller; it never blocks.
    ///
    /// # Errors
    /// The process has no more files.
    pub fn socket(&self) -> io::Result<TcpListener> {
        let socket = self.socket.as_ref().ok_or(ErrorKind::NotConnected)?;
        Ok(socket.try_clone()?.into())
    }

    /// The same for a connection, which does not keep the address.
    #[must_use]
    pub fn for_connection(&self) -> Self {
        Self {
            socket: None,
            ..self.clone()
        }
    }

    /// Whether a reload has taken the address away.
    pub fn is_closed(&self) -> bool {
        self.entrance.is_closed.load(Ordering::Relaxed)
    }

    /// TLS of the next connection, for HTTP/2 and HTTP/1.1; none over plain TCP.
    pub fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        let of = |settings: &HttpSettings| settings.tls.config.clone();
        self.entrance.read(of)
    }

    /// The certificates that it shows.
    pub(crate) fn certificates(&self) -> Vec<ServerCertificate> {
        let of = |settings: &HttpSettings| settings.tls.acceptor.certificates().to_vec();
        self.entrance.read(of)
    }

    /// Whether a request for this path, without its query, is for MQTT over WebSocket.
    pub fn is_websocket(&self, path: &str) -> bool {
        self.entrance.read(|settings| *settings.path == *path)
    }

    /// Whether an address is that of a proxy whose headers name the client's address.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.entrance.read(|settings| {
            let mut proxies = settings.proxies.iter();
            proxies.any(|network| network.contains(address))
        })
    }

    /// Counts a connection that the caller closed because there were too many.
    pub fn count_over_limit(&self) {
        let metrics = &self.entrance.node.state.metrics;
        metrics.add_elsewhere(Counter::ConnectionsOverLimit, 1);
    }

    /// Passes a client to the next worker with capacity, which answers its request for the upgrade;
    /// false if none takes clients now.
    #[must_use]
    pub fn admit(&self, client: WebSocketClient) -> bool {
        if self.is_closed() {
            return false;
        }
        if self.entrance.node.all_defer_connections() {
            let metrics = &self.entrance.node.state.metrics;
            metrics.add_elsewhere(Counter::OverloadDeferred, 1);
            return false;
        }
        let certificate = client.certificate.as_ref().and_then(describe_certificate);
        let entrance = &self.entrance;
        let gate = entrance.read(|settings| {
            settings.gate.gate.hold();
            settings.gate.number
        });
        let arrived = Arrived {
            socket: client.socket.into(),
            peer: Peer::from(client.address),
            gate,
            certificate: certificate.map(Arc::new),
        };
        let node = &entrance.node;
        let workers = node.workers();
        let first = entrance.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..workers).map(|step| WorkerId::new(first.wrapping_add(step) % workers));
        let mut free = in_turn
            .clone()
            .filter(|worker| !node.defers_connections(*worker));
        let worker = free.next().or_else(|| in_turn.clone().next());
        let worker = worker.unwrap_or(WorkerId::new(0));
        let mail = Mail::Arrived(Box::new(arrived));
        node.mailbox(worker).push(mail);
        true
    }
}

/// Checks the settings that need no sockets; returns its TLS.
///
/// # Errors
/// The setting that is impossible.
pub(super) fn check(config: &Config, of: NamedListener<'_>) -> Result<Acceptor, StartError> {
    for asked in &of.config.bind {
        address_of(asked).map_err(|cause| refused(of.name, cause))?;
    }
    if of.config.proxy_protocol {
        let cause = "an HTTP listener reads no PROXY protocol header: its proxies name the client in the header \
            X-Forwarded-For; leave out proxy_protocol, and name them in proxy_from";
        return Err(refused(of.name, cause.to_owned()));
    }
    let path = of.config.path.as_str();
    if OWN_PATHS.contains(&path) || path.starts_with(OWN_PATHS_BELOW) {
        let cause = format!(
            "the management interface answers {path} itself; choose another path for MQTT over WebSocket, as /mqtt"
        );
        return Err(refused(of.name, cause));
    }
    layers::tls_acceptor(config, of, None)
}

fn address_of(asked: &Bind) -> Result<SocketAddr, String> {
    match asked {
        Bind::Address(address) => Ok(*address),
        Bind::Unix(_) => Err(
            "an HTTP listener needs an address and a port; on this machine the control socket in the data directory \
             answers the same requests"
                .to_owned(),
        ),
    }
}

fn refused(name: &str, cause: String) -> StartError {
    StartError::Listener {
        listener: name.to_owned(),
        cause,
    }
}
