//! The state that all connections to one target share.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::endpoint::{Endpoint, Scheme};
use crate::layers::Layers;
use crate::tls::{FileError, TlsOptions, client_config};
use crate::websocket::Request;

/// Makes the layers of connections to one target; a clone shares everything with its original.
#[derive(Clone)]
pub struct Connector {
    /// None over plain TCP.
    shared: Option<Arc<Shared>>,
    scheme: Scheme,
}

/// The initial state of a connection's layers.
pub(crate) struct Shared {
    pub(crate) tls: Option<Tls>,
    pub(crate) request: Option<Request>,
}

/// The initial state of TLS sessions.
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
}

/// Why connections to a target are impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// Options that would have no effect.
    #[error("{0} has no TLS: use mqtts://, wss:// or quic://, or leave the TLS options out")]
    NoTls(String),
    /// A file of certificates or keys.
    #[error("cannot use '{}': {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: String,
    },
    /// A certificate without key, or the other way round.
    #[error("a client certificate needs certificate file and key file: {0} is missing")]
    HalfKeyPair(&'static str),
    /// Certificate and key do not belong together, or the key is of an unknown kind.
    #[error("cannot use '{}' with the key '{}': {cause}", cert_file.display(), key_file.display())]
    KeyPair {
        /// The client's certificate.
        cert_file: PathBuf,
        /// Its key.
        key_file: PathBuf,
        /// The error.
        cause: String,
    },
    /// The system trusts no authority.
    #[error(
        "this machine has no trusted certificates: give a CA file (--cafile), or install the \
         package ca-certificates"
    )]
    NoRoots,
    /// A host that is not a valid name in TLS.
    #[error("'{0}' cannot be the name of a TLS server: give another server name (--server-name)")]
    ServerName(String),
    /// The library rejects its configuration.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
}

impl From<FileError> for ConnectorError {
    fn from(error: FileError) -> Self {
        Self::File {
            path: error.path,
            cause: error.cause,
        }
    }
}

impl Connector {
    /// Reads the files that the connections to a target need.
    ///
    /// # Errors
    /// A file that cannot be used, options that contradict each other or the endpoint.
    pub fn new(endpoint: &Endpoint, options: &TlsOptions) -> Result<Self, ConnectorError> {
        let tls = if endpoint.scheme.is_tls() {
            let name = options.server_name.as_ref().unwrap_or(&endpoint.host);
            let server_name = ServerName::try_from(name.clone())
                .map_err(|_| ConnectorError::ServerName(name.clone()))?;
            Some(Tls {
                config: client_config(options)?,
                server_name,
            })
        } else if *options == TlsOptions::default() {
            None
        } else {
            return Err(ConnectorError::NoTls(endpoint.to_string()));
        };
        let request = endpoint
            .scheme
            .is_websocket()
            .then(|| Request::new(endpoint));
        let shared =
            (tls.is_some() || request.is_some()).then(|| Arc::new(Shared { tls, request }));
        Ok(Self {
            shared,
            scheme: endpoint.scheme,
        })
    }

    /// The transport of MQTT to the target.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The layers of one new connection; none over plain TCP, where the wire carries MQTT itself,
    /// and over QUIC, which has TLS inside.
    pub fn layers(&self) -> Option<Layers> {
        // TLS is a part of QUIC, and not a layer in here.
        let shared = self.shared.clone().filter(|_| !self.scheme.is_quic());
        shared.map(Layers::new)
    }

    /// The trust and the server name for a connection over QUIC; none for the other schemes.
    pub fn quic(&self) -> Option<(&ClientConfig, &ServerName<'static>)> {
        let tls = self.shared.as_ref()?.tls.as_ref();
        let tls = tls.filter(|_| self.scheme.is_quic())?;
        Some((&tls.config, &tls.server_name))
    }
}
