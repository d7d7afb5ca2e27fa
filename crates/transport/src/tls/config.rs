//! From options to the state that all sessions of a target share.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ConfigBuilder, Error, InconsistentKeys, RootCertStore};

use crate::connector::ConnectorError;
use crate::tls::TlsOptions;
use crate::tls::insecure::AnyCertificate;
use crate::tls::pem::{authorities, certificates, key_pair_fault, private_key};

/// Reads the files that the options name, and the certificates of the system if they are needed.
///
/// Sessions are resumed if the server gives tickets: all sessions share one memory.
pub(crate) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, ConnectorError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let schemes = provider
        .signature_verification_algorithms
        .supported_schemes();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(options.min_version.and_newer())
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
    if let Some(path) = ca_file {
        return Ok(authorities(path)?);
    }
    let mut roots = RootCertStore::empty();
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
            let key = certified_key(cert_file, key_file, builder.crypto_provider())?;
            Ok(builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))))
        }
        (Some(_), None) => Err(ConnectorError::HalfKeyPair("the key file")),
        (None, Some(_)) => Err(ConnectorError::HalfKeyPair("the certificate file")),
    }
}

fn certified_key(
    cert_file: &Path,
    key_file: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, ConnectorError> {
    let (chain, key) = (certificates(cert_file)?, private_key(key_file)?);
    let unusable = |error: Error| ConnectorError::KeyPair {
        cert_file: cert_file.to_owned(),
        key_file: key_file.to_owned(),
        cause: key_pair_fault(&error),
    };
    let key = provider.key_provider.load_private_key(key);
    let certified = CertifiedKey::new(chain, key.map_err(unusable)?);
    match certified.keys_match() {
        // Some servers accept certificates that the library cannot read, such as those of version
        // 1: the server decides.
        Ok(()) | Err(Error::InvalidCertificate(_)) => Ok(certified),
        Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(error) => Err(unusable(error)),
    }
}
