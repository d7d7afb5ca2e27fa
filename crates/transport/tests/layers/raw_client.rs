//! A client of the library's own, for versions that the layers of a client do not choose.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};
use thrum_transport::{Acceptor, LayerError, ServerLayers};

use crate::authority::{Authority, Identity};

/// The shared state of connections; they resume each other's sessions.
pub(crate) struct RawClient {
    config: Arc<ClientConfig>,
}

/// One connection after its handshake.
pub(crate) struct RawConnection {
    pub(crate) tls: ClientConnection,
    pub(crate) server: ServerLayers,
    /// The last bytes of a server that gave up.
    pub(crate) fault: Option<LayerError>,
    /// MQTT that the server has received.
    pub(crate) to_server: Vec<u8>,
    server_out: Vec<u8>,
}

impl RawClient {
    /// Version 1.2 or 1.3 only.
    pub(crate) fn new(authority: &Authority, is_1_3: bool, identity: Option<&Identity>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.clone()).unwrap();
        let version = if is_1_3 { &TLS13 } else { &TLS12 };
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(vec![identity.certificate.clone()], identity.private_key())
                .unwrap(),
        };
        config.resumption = Resumption::in_memory_sessions(8);
        Self {
            config: Arc::new(config),
        }
    }

    pub(crate) fn connect(&self, acceptor: &Acceptor, name: &'static str) -> RawConnection {
        let name = name.try_into().unwrap();
        let mut connection = RawConnection {
            tls: ClientConnection::new(Arc::clone(&self.config), name).unwrap(),
            server: acceptor.layers().unwrap(),
            fault: None,
            to_server: Vec::new(),
            server_out: Vec::new(),
        };
        connection.carry();
        connection
    }

    /// Whether a connection resumes an earlier session; both ends must agree.
    pub(crate) fn resumes(&self, acceptor: &Acceptor) -> bool {
        let mut connection = self.connect(acceptor, "localhost");
        assert_eq!(connection.fault, None);
        connection.exchange();
        let resumed = connection.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        assert_eq!(connection.server.tls().unwrap().resumed, resumed);
        resumed
    }
}

impl RawConnection {
    fn carry(&mut self) {
        loop {
            let mut wire = Vec::new();
            while self.tls.wants_write() {
                self.tls.write_tls(&mut wire).unwrap();
            }
            if !wire.is_empty() && self.fault.is_none() {
                let (plain, out) = (&mut self.to_server, &mut self.server_out);
                self.fault = self.server.receive(&mut wire, plain, out).err();
            }
            if self.server_out.is_empty() {
                return;
            }
            let out = std::mem::take(&mut self.server_out);
            let mut input = out.as_slice();
            let mut is_fine = true;
            // After an error no more bytes follow, but the alert has to leave.
            while !input.is_empty() && is_fine {
                self.tls.read_tls(&mut input).unwrap();
                is_fine = self.tls.process_new_packets().is_ok();
            }
        }
    }

    /// One message in each direction.
    pub(crate) fn exchange(&mut self) {
        self.to_server.clear();
        self.tls.writer().write_all(b"to").unwrap();
        self.carry();
        assert_eq!(self.to_server, b"to");
        let pieces = [b"f".as_slice(), b"ro"];
        self.server.send(pieces, &mut self.server_out).unwrap();
        self.carry();
        let mut fro = [0; 3];
        self.tls.reader().read_exact(&mut fro).unwrap();
        assert_eq!(&fro, b"fro");
    }
}
