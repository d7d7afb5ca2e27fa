//! The source of keys.

use std::path::Path;
use std::sync::Arc;

use jsonwebtoken::Algorithm;

use super::keys::{Keys, algorithms};
use super::remote::Remote;
use crate::backend::BackendError;
use crate::config::JwtConfig;
use crate::watched::Watched;

/// Most bytes of a file with keys, or of a key set.
pub(super) const KEYS_BYTES_MAX: u64 = 1 << 20;

/// Keys of a file, or at an address.
#[derive(Debug)]
pub(super) enum Source {
    File(Watched<Keys>),
    Remote(Arc<Remote>),
}

impl Source {
    /// Reads the file, or begins to fetch.
    ///
    /// # Errors
    /// The settings contradict each other, or the file cannot be read.
    pub(super) fn load(name: &str, config: &JwtConfig) -> Result<Self, String> {
        let allowed = algorithms(&config.algorithms)?;
        let secret = Some(config.secret_file.as_path()).filter(|it| !it.as_os_str().is_empty());
        let public = Some(config.public_key_file.as_path()).filter(|it| !it.as_os_str().is_empty());
        let set = Some(config.jwks.as_str()).filter(|it| !it.is_empty());
        match (secret, public, set) {
            (Some(path), None, None) => file(path, allowed, |bytes, allowed| {
                let secret = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
                Keys::of_secret(secret, allowed)
            }),
            (None, Some(path), None) => file(path, allowed, Keys::of_pem),
            (None, None, Some(address))
                if address.starts_with("https://") || address.starts_with("http://") =>
            {
                Remote::start(name, config, allowed).map(Self::Remote)
            }
            (None, None, Some(path)) => file(Path::new(path), allowed, Keys::of_set),
            _ => Err("set one of secret_file, public_key_file and jwks".to_owned()),
        }
    }

    /// The keys that are known now.
    ///
    /// # Errors
    /// They could not be fetched yet.
    pub(super) async fn keys(&self) -> Result<Arc<Keys>, BackendError> {
        match self {
            Self::File(file) => Ok(file.current()),
            Self::Remote(remote) => remote.keys().await,
        }
    }

    /// For a token that names an unknown key: checks for new ones. False if there was nothing to
    /// fetch.
    ///
    /// # Errors
    /// They cannot be fetched.
    pub(super) async fn look_again(&self) -> Result<bool, BackendError> {
        match self {
            Self::File(_) => Ok(false),
            Self::Remote(remote) => remote.look_again().await,
        }
    }

    /// Reads a changed file.
    pub(super) fn reread(&self) -> Result<bool, String> {
        match self {
            // A connected client stays connected until its token ends.
            Self::File(file) => file.refresh().map(|_| false),
            Self::Remote(_) => Ok(false),
        }
    }
}

fn file(
    path: &Path,
    allowed: Vec<Algorithm>,
    parse: fn(&[u8], &[Algorithm]) -> Result<Keys, String>,
) -> Result<Source, String> {
    let read = move |path: &Path| {
        let shown = path.display();
        let bytes = read(path)?;
        parse(&bytes, &allowed).map_err(|error| format!("{shown}: {error}"))
    };
    Watched::load(path, read).map(Source::File)
}

/// Reads a file of keys.
pub(super) fn read(path: &Path) -> Result<zeroize::Zeroizing<Vec<u8>>, String> {
    let shown = path.display();
    let read = thrum_files::read_named(path, KEYS_BYTES_MAX);
    read.map(Into::into)
        .map_err(|error| format!("cannot read {shown}: {error}"))
}
