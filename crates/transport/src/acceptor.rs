//! The state that all connections of one listener share.

use std::path::PathBuf;
use std::sync::Arc;

use crate::certificate::{CertificateIdentity, Validity};
use crate::server_layers::ServerLayers;
use crate::tls::{FileError, ServerTls, ServerTlsOptions};
use crate::websocket::{Terms, WebSocketOptions};

/// Makes the layers of connections to one listener; a clone shares everything with its original.
///
/// Never changed, but replaced as a whole when certificates or options change: connections keep the
/// one of their handshake.
#[derive(Clone)]
pub struct Acceptor {
    /// None over plain TCP.
    shared: Option<Arc<Accepting>>,
    warnings: Arc<[String]>,
}

/// The initial state of a connection's layers.
pub(crate) struct Accepting {
    pub(crate) tls: Option<ServerTls>,
    pub(crate) websocket: Option<Terms>,
}

/// A certificate that a listener shows its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCertificate {
    /// The file of the certificate.
    pub file: PathBuf,
    /// When it is valid.
    pub validity: Validity,
    /// Whose it is.
    pub identity: CertificateIdentity,
}

/// Why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptorError {
    /// A file of certificates, keys or revocation lists.
    #[error("cannot use '{}': {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: String,
    },
    /// Certificate and key do not belong together, or the key is of an unknown kind.
    #[error("cannot use '{}' with the key '{}': {cause}", cert_file.display(), key_file.display())]
    KeyPair {
        /// The server's certificate.
        cert_file: PathBuf,
        /// Its key.
        key_file: PathBuf,
        /// The error.
        cause: String,
    },
    /// Clients are to be verified, but no authority is trusted.
    #[error(
        "client certificates are asked for, but no ca is given: name the file of their authority"
    )]
    NoAuthority,
    /// A revocation list of a kind that is not understood.
    #[error("a revocation list of crl cannot be used: {0}; use complete lists of version 2")]
    RevocationList(String),
    /// Not an origin.
    #[error("'{0}' is not an origin: write it as browsers do, such as https://app.example.org")]
    Origin(String),
    /// Not a path.
    #[error("'{0}' is not a WebSocket path: it begins with a slash and has no '?', '#' or space")]
    Path(String),
    /// The library rejects its configuration.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
}

impl From<FileError> for AcceptorError {
    fn from(error: FileError) -> Self {
        Self::File {
            path: error.path,
            cause: error.cause,
        }
    }
}

impl Acceptor {
    /// Reads the files that the connections of a listener need.
    ///
    /// # Errors
    /// A file that cannot be used, or options that contradict each other.
    pub fn new(
        tls: Option<&ServerTlsOptions>,
        websocket: Option<&WebSocketOptions>,
    ) -> Result<Self, AcceptorError> {
        Self::build(tls, websocket, None)
    }

    /// Reads files and options again for the same listener.
    ///
    /// Existing TLS sessions can be resumed, unless the verification of clients (authorities,
    /// revocation lists, the requirement of a certificate) differs: then all clients need a full
    /// handshake, so that a revoked client cannot return by resumption.
    ///
    /// # Errors
    /// As [`Acceptor::new`]; the old one stays in use.
    pub fn renewed(
        &self,
        tls: Option<&ServerTlsOptions>,
        websocket: Option<&WebSocketOptions>,
    ) -> Result<Self, AcceptorError> {
        Self::build(tls, websocket, self.shared.as_deref())
    }

    fn build(
        tls: Option<&ServerTlsOptions>,
        websocket: Option<&WebSocketOptions>,
        previous: Option<&Accepting>,
    ) -> Result<Self, AcceptorError> {
        let mut warnings = Vec::new();
        let previous = previous.and_then(|shared| shared.tls.as_ref());
        let tls = tls
            .map(|options| ServerTls::new(options, previous, &mut warnings))
            .transpose()?;
        let websocket = websocket.map(Terms::new).transpose()?;
        let shared =
            (tls.is_some() || websocket.is_some()).then(|| Arc::new(Accepting { tls, websocket }));
        Ok(Self {
            shared,
            warnings: warnings.into(),
        })
    }

    /// Its connections have layers.
    pub fn has_layers(&self) -> bool {
        self.shared.is_some()
    }

    /// The layers of one accepted connection; none over plain TCP, where the wire carries MQTT
    /// itself.
    pub fn layers(&self) -> Option<ServerLayers> {
        self.shared.clone().map(ServerLayers::new)
    }

    /// The TLS configuration, for a transport that has TLS inside itself (QUIC); none without TLS.
    pub fn tls_config(&self) -> Option<&rustls::ServerConfig> {
        let tls = self.shared.as_ref()?.tls.as_ref()?;
        Some(&tls.config)
    }

    /// The certificates for clients, as they were read; none without TLS.
    pub fn certificates(&self) -> &[ServerCertificate] {
        let tls = self.shared.as_ref().and_then(|shared| shared.tls.as_ref());
        tls.map_or(&[], |tls| &tls.certificates)
    }

    /// Warnings, a line each: a certificate that is out of date.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shared = self.shared.as_deref();
        formatter
            .debug_struct("Acceptor")
            .field("tls", &shared.is_some_and(|shared| shared.tls.is_some()))
            .field(
                "websocket",
                &shared.and_then(|shared| shared.websocket.as_ref()),
            )
            .field("warnings", &self.warnings)
            .finish()
    }
}
