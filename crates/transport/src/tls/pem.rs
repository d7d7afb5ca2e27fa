//! Certificates, keys and revocation lists in files.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{InconsistentKeys, RootCertStore};
use thrum_files::read_named;

/// Most bytes of a file: large revocation lists have some ten megabytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The first byte of DER: a sequence.
const SEQUENCE: u8 = 0x30;

/// A file that cannot be used.
#[derive(Debug)]
pub(crate) struct FileError {
    pub(crate) path: PathBuf,
    /// Its error, and the remedy.
    pub(crate) cause: String,
}

impl FileError {
    pub(super) fn new(path: &Path, cause: &dyn Display) -> Self {
        Self {
            path: PathBuf::from(path),
            cause: cause.to_string(),
        }
    }
}

/// The certificates of a PEM file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| FileError::new(path, &error))?;
    if found.is_empty() {
        return Err(FileError::new(
            path,
            &"it holds no '-----BEGIN CERTIFICATE-----'",
        ));
    }
    Ok(found)
}

/// The trusted authorities of a PEM file; at least one.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| FileError::new(path, &error))?;
    }
    Ok(roots)
}

/// The first private key of a PEM file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    let text = read(path)?;
    if is_encrypted(&text) {
        return Err(FileError::new(
            path,
            &"the private key in it is encrypted: decrypt it with 'openssl pkey -in OLD -out NEW' \
              and protect the new file by its permissions",
        ));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        Error::NoItemsFound => FileError::new(path, &"it holds no private key in PEM"),
        error => FileError::new(path, &error),
    })
}

/// Why a certificate and a key cannot be used together.
pub(super) fn key_pair_fault(error: &rustls::Error) -> String {
    let text = error.to_string();
    if matches!(
        error,
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)
    ) {
        return "it is the key of another certificate (the own certificate stands first in its file)"
            .to_owned();
    }
    if text.contains("UnsupportedCertVersion") {
        return "the certificate is of X.509 version 1: issue it with extensions (openssl x509 -extfile)"
            .to_owned();
    }
    text
}

/// The revocation lists of a file, PEM or, as authorities publish them, DER.
pub(super) fn revocation_lists(
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, FileError> {
    let bytes = read(path)?;
    if bytes.first() == Some(&SEQUENCE) {
        return Ok(vec![bytes.into()]);
    }
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| FileError::new(path, &error))?;
    if found.is_empty() {
        return Err(FileError::new(
            path,
            &"it holds no '-----BEGIN X509 CRL-----'",
        ));
    }
    Ok(found)
}

/// PKCS #8 says it in the label, the older forms in a header.
fn is_encrypted(text: &[u8]) -> bool {
    let is_in = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    is_in(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || is_in(b"Proc-Type: 4,ENCRYPTED")
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    read_named(path, FILE_BYTES_MAX).map_err(|error| FileError::new(path, &error))
}
