//! A listener, dialers and the sockets of both ends.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use thrum_quic::{DialError, DialOptions, Dialing, Host, Limits, Peer, QuicDialer, QuicListener};

/// No wait of a test is longer; a passing test never comes near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The name in the certificates.
pub(crate) const NAME: &str = "broker.test";

/// Signs certificates.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn sign(&self) -> Identity {
        let params = CertificateParams::new([NAME.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// Clients that trust servers which this authority has signed.
    pub(crate) fn client(&self, identity: Option<&Identity>) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(vec![identity.certificate.clone()], identity.key.clone_key())
                .unwrap(),
        }
    }
}

impl Identity {
    /// A server with this certificate; it requires client certificates that `clients` has signed.
    pub(crate) fn server(&self, clients: Option<&Authority>) -> ServerConfig {
        self.server_of(rustls::DEFAULT_VERSIONS, clients)
    }

    /// The same with these versions of TLS.
    pub(crate) fn server_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()), provider)
                    .build()
                    .unwrap(),
            ),
        };
        let chain = vec![self.certificate.clone()];
        builder
            .with_single_cert(chain, self.key.clone_key())
            .unwrap()
    }
}

/// A listener, and a dialer that trusts it.
pub(crate) struct Fixture {
    pub(crate) listener: QuicListener,
    pub(crate) dialer: QuicDialer,
    pub(crate) authority: Authority,
    arrivals: Receiver<(UnixStream, Peer)>,
    refused: Arc<AtomicU32>,
}

/// Hands arrivals to the test and counts refusals.
struct TestHost {
    arrivals: SyncSender<(UnixStream, Peer)>,
    refused: Arc<AtomicU32>,
}

impl Host for TestHost {
    fn on_connection(&self, socket: UnixStream, peer: Peer) {
        // A fixture that is being dropped accepts no client.
        self.arrivals.try_send((socket, peer)).ok();
    }

    fn on_refusal(&self, _address: SocketAddr) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), DialOptions::default())
    }

    pub(crate) fn with(limits: Limits, options: DialOptions) -> Self {
        let authority = Authority::new();
        let server = authority.sign().server(None);
        let client = authority.client(None);
        Self::of(authority, &server, &client, limits, options)
    }

    pub(crate) fn of(
        authority: Authority,
        server: &ServerConfig,
        client: &ClientConfig,
        limits: Limits,
        options: DialOptions,
    ) -> Self {
        let (sender, arrivals) = sync_channel(10_000);
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let refused = Arc::<AtomicU32>::default();
        let hall = TestHost {
            arrivals: sender,
            refused: Arc::clone(&refused),
        };
        let listener = QuicListener::bind(&[any_port], server, limits, hall).unwrap();
        let dialer = QuicDialer::new(client, options).unwrap();
        Self {
            listener,
            dialer,
            authority,
            arrivals,
            refused,
        }
    }

    /// How many refused clients the listener's host was told of.
    pub(crate) fn refused(&self) -> u32 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.addresses()[0]
    }

    pub(crate) fn dial(&self) -> (UnixStream, Dialing) {
        let (socket, dialing) = self.dialer.dial(&[self.address()], NAME).unwrap();
        wait_in(&socket);
        (socket, dialing)
    }

    /// The broker's socket of the next connection.
    pub(crate) fn arrival(&self) -> (UnixStream, Peer) {
        let (socket, peer) = self.arrivals.recv_timeout(PATIENCE).unwrap();
        wait_in(&socket);
        (socket, peer)
    }

    /// Both ends of a connection over which one byte was sent, because a server learns of a stream
    /// with its first byte.
    pub(crate) fn pair(&self) -> (UnixStream, UnixStream, Dialing) {
        let (mut client, dialing) = self.dial();
        client.write_all(b"!").unwrap();
        let (mut server, _) = self.arrival();
        assert_eq!(read(&mut server, 1), b"!");
        (client, server, dialing)
    }

    /// Waits until the counts have these values.
    pub(crate) fn wait_for(&self, what: impl Fn(&thrum_quic::Metrics) -> bool) {
        wait_for(
            || what(&self.listener.metrics()),
            || format!("{:?}", self.listener.metrics()),
        );
    }
}

/// Reads and writes of a socket block in tests.
pub(crate) fn wait_in(socket: &UnixStream) {
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
}

pub(crate) fn read(socket: &mut UnixStream, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    socket.read_exact(&mut buffer).unwrap();
    buffer
}

/// Reads to the end; a connection that was lost may end with a reset.
pub(crate) fn read_to_end(socket: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    bytes
}

/// The reason why a socket has ended.
pub(crate) fn failure(socket: &mut UnixStream, dialing: &Dialing) -> Option<DialError> {
    assert_eq!(read_to_end(socket), b"");
    dialing.failure().cloned()
}

/// Polls until a condition holds that no event signals.
pub(crate) fn wait_for(is_so: impl Fn() -> bool, state: impl Fn() -> String) {
    let (_keep, pause) = sync_channel::<()>(1);
    for _ in 0..PATIENCE.as_millis() / 5 {
        if is_so() {
            return;
        }
        // Nothing ever comes.
        pause.recv_timeout(Duration::from_millis(5)).ok();
    }
    panic!("the condition never holds: {}", state());
}
