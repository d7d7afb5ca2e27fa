//! Common parts of the settings of all networked backends: limits, secrets from files, errors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use thrum_access::Secret;

use super::pool::PoolLimits;
use crate::template::TemplateError;

/// Longest secret in a file.
const SECRET_BYTES_MAX: usize = 4096;
/// Most bytes of a file of keys, certificates or a statement.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a backend cannot be set up: the error in the configuration, and its remedy.
#[derive(Debug, Error)]
pub(crate) enum SetupError {
    /// A template cannot be read.
    #[error("{key}: {source}")]
    Template {
        /// Key in the table of the backend.
        key: &'static str,
        /// The error.
        source: TemplateError,
    },
    /// Another setting is wrong.
    #[error("{key}: {what}")]
    Setting {
        /// Key in the table of the backend.
        key: &'static str,
        /// The error; never contains the value of a secret.
        what: String,
    },
    /// A file cannot be read.
    #[error("{key}: {path} cannot be read: {source}")]
    File {
        /// Key in the table of the backend.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl SetupError {
    /// A wrong setting.
    pub(crate) fn setting(key: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self::Setting { key, what }
    }

    /// Makes one of a template's error.
    pub(crate) fn template(key: &'static str) -> impl Fn(TemplateError) -> Self {
        move |source| Self::Template { key, source }
    }
}

/// The limits that the settings give.
pub(super) fn pool_limits(pool: u32, in_flight: u32, timeout: Duration) -> PoolLimits {
    PoolLimits {
        connections: usize::try_from(pool.max(1)).unwrap_or(usize::MAX),
        requests: usize::try_from(in_flight.max(1)).unwrap_or(usize::MAX),
        time: timeout,
    }
}

/// Whole seconds between two requests for rules; none for zero.
pub(super) fn refresh_secs(refresh: Duration) -> Option<u32> {
    let seconds = u32::try_from(refresh.as_secs()).unwrap_or(u32::MAX);
    (seconds > 0).then_some(seconds)
}

/// Reads a file that contains only a secret; a line end behind it is not part of it. None without a
/// path.
pub(super) fn secret_of(key: &'static str, path: &Path) -> Result<Option<Secret>, SetupError> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let text = read_file(key, path)?;
    let text = zeroize::Zeroizing::new(text);
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    if end == 0 || end > SECRET_BYTES_MAX {
        let what = format!("{} must hold 1 to {SECRET_BYTES_MAX} bytes", path.display());
        return Err(SetupError::setting(key, what));
    }
    Ok(Some(Secret::new(&text[..end])))
}

/// Reads a file.
pub(super) fn read_file(key: &'static str, path: &Path) -> Result<Vec<u8>, SetupError> {
    thrum_files::read_named(path, FILE_BYTES_MAX).map_err(|source| SetupError::File {
        key,
        path: path.to_owned(),
        source,
    })
}

/// The text of a secret that must be text.
pub(super) fn secret_text<'a>(
    key: &'static str,
    secret: &'a Secret,
) -> Result<&'a str, SetupError> {
    secret
        .expose_str()
        .ok_or_else(|| SetupError::setting(key, "the file must hold UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_ends_before_the_end_of_its_line() {
        let path = std::env::temp_dir().join(format!("thrum-secret-{}", std::process::id()));
        for (text, expected) in [
            ("s\n", Some("s")),
            (" s p\r\n", Some(" s p")),
            ("\n", None),
            ("", None),
        ] {
            std::fs::write(&path, text).expect("a file");
            let secret = secret_of("key", &path);
            let secret = secret.ok().flatten();
            assert_eq!(
                secret.as_ref().and_then(Secret::expose_str),
                expected,
                "{text:?}"
            );
        }
        std::fs::remove_file(&path).expect("a file");
        assert!(secret_of("key", Path::new("")).expect("no path").is_none());
    }
}
