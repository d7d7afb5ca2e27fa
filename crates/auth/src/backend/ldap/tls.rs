//! TLS to a directory.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::backend::settings::{SetupError, read_file};

/// Trusts the certificates of the file, or those that the system trusts if there is none.
pub(super) fn client(ca: &Path) -> Result<Arc<ClientConfig>, SetupError> {
    let mut roots = RootCertStore::empty();
    if ca.as_os_str().is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        let bad = || SetupError::setting("ca", "the file must hold certificates in PEM");
        let text = read_file("ca", ca)?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|_| bad())?;
            roots.add(certificate).map_err(|_| bad())?;
        }
    }
    if roots.is_empty() {
        return Err(SetupError::setting(
            "ca",
            "there is no certificate to trust",
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SetupError::setting("url", error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
