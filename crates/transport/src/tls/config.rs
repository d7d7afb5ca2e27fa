//! From options to what all sessions of a target share.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::connector::ConnectorError;
use crate::tls::TlsOptions;
use crate::tls::insecure::AnyCertificate;

/// Reads the files that the options name, and the certificates of the system if they are needed.
///
/// Sessions are resumed where the server gives tickets for it: all sessions share one memory.
pub(crate) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, ConnectorError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let schemes = provider
        .signature_verification_algorithms
        .supported_schemes();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ConnectorError::Tls)?;
    let builder = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { schemes }))
    } else {
        builder.with_root_certificates(roots(options.ca_file.as_deref())?)
    };
    let mut config = with_client_certificate(builder, options)?;
    config.alpn_protocols = options
        .alpn
        .iter()
        .map(|name| name.clone().into_bytes())
        .collect();
    Ok(Arc::new(config))
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, ConnectorError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| bad_file(path, &error))?;
        }
        return Ok(roots);
    }
    // Some certificates of a system cannot be parsed; the others do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(ConnectorError::NoRoots);
    }
    Ok(roots)
}

fn with_client_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    options: &TlsOptions,
) -> Result<ClientConfig, ConnectorError> {
    match (&options.cert_file, &options.key_file) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert_file), Some(key_file)) => {
            let key = private_key(key_file)?;
            builder
                .with_client_auth_cert(certificates(cert_file)?, key)
                .map_err(|error| ConnectorError::KeyPair {
                    cert_file: cert_file.clone(),
                    key_file: key_file.clone(),
                    cause: error,
                })
        }
        (Some(_), None) => Err(ConnectorError::HalfKeyPair("the key file")),
        (None, Some(_)) => Err(ConnectorError::HalfKeyPair("the certificate file")),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectorError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| bad_file(path, &error))?;
    if found.is_empty() {
        return Err(bad_file(path, &"it holds no '-----BEGIN CERTIFICATE-----'"));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, ConnectorError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            bad_file(path, &"it holds no private key, or only an encrypted one")
        }
        error => bad_file(path, &error),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, ConnectorError> {
    std::fs::read(path).map_err(|error| bad_file(path, &error))
}

fn bad_file(path: &Path, cause: &dyn Display) -> ConnectorError {
    ConnectorError::File {
        path: PathBuf::from(path),
        cause: cause.to_string(),
    }
}
