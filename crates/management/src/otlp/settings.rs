//! What is exported, and where to, with the files that the configuration names.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Url, redirect};
use thiserror::Error;
use thrum_broker::config::{TelemetryConfig, TelemetryProtocol};
use thrum_codec::topic::TopicFilter;
use thrum_files::read_named;
use zeroize::Zeroizing;

/// Bytes of a file that the settings name: far more than headers or a bundle of authorities have.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Headers that say where a request begins and ends, and for which host it is: another value would
/// cut requests off, or send them elsewhere.
const FRAMING: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Pause before the first repetition of a request.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Why settings cannot be used.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The address is none.
    #[error(
        "telemetry.endpoint: expected an address such as \"http://127.0.0.1:4318\", found {found:?}{why}"
    )]
    Endpoint {
        /// What is there.
        found: String,
        /// Why it is none.
        why: String,
    },
    /// A file cannot be read.
    #[error("{key}: cannot read {}: {source}", .path.display())]
    File {
        /// The key that names it.
        key: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a header; it is not shown, as it may be a secret.
    #[error("telemetry.headers_file: line {line} of {}: expected \"name: value\"", .path.display())]
    Header {
        /// The path of the file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
    },
    /// A header that the framing of a request needs for itself.
    #[error(
        "telemetry.headers_file: line {line} of {}: the broker sets the header {name} itself; take the line out", .path.display()
    )]
    Framing {
        /// The path of the file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
        /// The header.
        name: String,
    },
    /// The file has no certificates.
    #[error("telemetry.ca: expected certificates in PEM in {}", .0.display())]
    Authorities(PathBuf),
    /// An attribute is none.
    #[error("telemetry.resource: expected \"name=value\", found {0:?}")]
    Attribute(String),
    /// A filter is none.
    #[error(
        "telemetry.traces.filters: {found:?} is no topic filter: {why}; use one as in SUBSCRIBE, not a shared one"
    )]
    Filter {
        /// What is there.
        found: String,
        /// Why it is none.
        why: String,
    },
    /// The system refuses.
    #[error("telemetry: cannot send requests: {0}")]
    Client(#[from] reqwest::Error),
    /// The system has no thread.
    #[error("telemetry: cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// What is exported, and where to.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    pub(super) endpoint: Url,
    pub(super) protocol: TelemetryProtocol,
    pub(super) headers: HeaderMap,
    /// Certificates in PEM; empty for those of the system.
    authorities: Vec<u8>,
    timeout: Duration,
    pub(super) resource: Vec<(String, String)>,
    pub(super) metrics: bool,
    pub(super) interval: Duration,
    pub(super) logs: bool,
    pub(super) traces: bool,
    pub(super) first_pause: Duration,
}

impl TelemetrySettings {
    /// Checks the settings, and reads the files that they name; none if nothing is to be exported.
    ///
    /// # Errors
    /// A setting or a file cannot be used.
    pub fn read(config: &TelemetryConfig) -> Result<Option<Self>, TelemetryError> {
        if !config.is_on() {
            return Ok(None);
        }
        for filter in &config.traces.filters {
            check_filter(filter)?;
        }
        let settings = Self {
            endpoint: endpoint(&config.endpoint)?,
            protocol: config.protocol,
            headers: headers(&config.headers_file)?,
            authorities: authorities(&config.ca)?,
            timeout: config.timeout,
            resource: attributes(&config.resource)?,
            metrics: config.metrics,
            interval: config.interval,
            logs: config.logs,
            traces: config.traces.is_on(),
            first_pause: FIRST_PAUSE,
        };
        // What cannot be used is told at the start.
        settings.client()?;
        Ok(Some(settings))
    }

    /// Sends requests with these settings.
    pub(super) fn client(&self) -> Result<Client, TelemetryError> {
        let mut client = Client::builder()
            .timeout(self.timeout)
            .redirect(redirect::Policy::none());
        if self.protocol == TelemetryProtocol::Grpc {
            client = client.http2_prior_knowledge();
        }
        if !self.authorities.is_empty() {
            client = client.tls_certs_only(Certificate::from_pem_bundle(&self.authorities)?);
        }
        Ok(client.build()?)
    }
}

fn endpoint(text: &str) -> Result<Url, TelemetryError> {
    let wrong = |why: &str| TelemetryError::Endpoint {
        found: text.to_owned(),
        why: why.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| wrong(&format!(": {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong(": it begins with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // It is shown with the configuration.
        return Err(TelemetryError::Endpoint {
            found: "an address with a user".to_owned(),
            why: ": put the Authorization header into telemetry.headers_file".to_owned(),
        });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(": without parameters"));
    }
    Ok(url)
}

fn headers(path: &Path) -> Result<HeaderMap, TelemetryError> {
    let mut headers = HeaderMap::new();
    if path.as_os_str().is_empty() {
        return Ok(headers);
    }
    let bytes = Zeroizing::new(read("telemetry.headers_file", path)?);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (name, value) = header(line).ok_or_else(|| TelemetryError::Header {
            path: path.to_owned(),
            line: number + 1,
        })?;
        if FRAMING.contains(&name.as_str()) {
            return Err(TelemetryError::Framing {
                path: path.to_owned(),
                line: number + 1,
                name: name.to_string(),
            });
        }
        headers.append(name, value);
    }
    Ok(headers)
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let name = HeaderName::from_bytes(name.trim_ascii()).ok()?;
    let mut value = HeaderValue::from_bytes(value.get(1..)?.trim_ascii()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

fn authorities(path: &Path) -> Result<Vec<u8>, TelemetryError> {
    if path.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let bytes = read("telemetry.ca", path)?;
    match Certificate::from_pem_bundle(&bytes) {
        Ok(found) if !found.is_empty() => Ok(bytes),
        _ => Err(TelemetryError::Authorities(path.to_owned())),
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TelemetryError> {
    read_named(path, FILE_BYTES_MAX).map_err(|source| TelemetryError::File {
        key,
        path: path.to_owned(),
        source,
    })
}

fn attributes(configured: &[String]) -> Result<Vec<(String, String)>, TelemetryError> {
    let attribute = |text: &String| {
        let found = text
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty());
        let found = found.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        found.ok_or_else(|| TelemetryError::Attribute(text.clone()))
    };
    configured.iter().map(attribute).collect()
}

fn check_filter(text: &str) -> Result<(), TelemetryError> {
    let why = match TopicFilter::parse(text) {
        Ok(filter) if filter.shared().is_none() => return Ok(()),
        Ok(_) => "it is shared".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(TelemetryError::Filter {
        found: text.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoint: &str) -> TelemetryConfig {
        TelemetryConfig {
            endpoint: endpoint.to_owned(),
            ..TelemetryConfig::default()
        }
    }

    fn complaint(config: &TelemetryConfig) -> String {
        TelemetrySettings::read(config)
            .expect_err("it is wrong")
            .to_string()
    }

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir();
        let path = path.join(format!("thrum-otlp-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        path
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint_or_a_signal() {
        assert_eq!(TelemetrySettings::read(&config("")).unwrap(), None);
        let silent = TelemetryConfig {
            metrics: false,
            logs: false,
            ..config("http://127.0.0.1:4318")
        };
        assert_eq!(TelemetrySettings::read(&silent).unwrap(), None);
    }

    #[test]
    fn an_endpoint_that_is_no_address_is_told_with_an_example() {
        for wrong in [
            "collector:4318",
            "ftp://a",
            "http://",
            "4318",
            "http://a/?b=c",
        ] {
            let complaint = complaint(&config(wrong));
            assert!(
                complaint.starts_with("telemetry.endpoint: expected"),
                "{complaint}"
            );
            assert!(complaint.contains("http://127.0.0.1:4318"), "{complaint}");
        }
    }

    #[test]
    fn filters_of_traces_have_to_be_topic_filters() {
        for wrong in ["", "a/#/b", "$share/g/a"] {
            let mut traced = config("http://127.0.0.1:4318");
            traced.traces.every = 1;
            traced.traces.filters = vec!["a/+".to_owned(), wrong.to_owned()];
            let complaint = complaint(&traced);
            assert!(
                complaint.starts_with("telemetry.traces.filters"),
                "{complaint}"
            );
            traced.traces.filters.pop();
            assert!(TelemetrySettings::read(&traced).unwrap().unwrap().traces);
        }
    }

    #[test]
    fn a_password_in_the_endpoint_is_refused_and_not_shown() {
        let complaint = complaint(&config("http://user:geheim@a:4318"));
        assert!(complaint.contains("headers_file"), "{complaint}");
        assert!(!complaint.contains("geheim"), "{complaint}");
    }

    #[test]
    fn headers_are_read_and_neither_printed_nor_told_in_a_complaint() {
        let path = file(
            "headers",
            "# a token\nauthorization: Bearer geheim\r\n\nx-a:b\n",
        );
        let with_headers = TelemetryConfig {
            headers_file: path.clone(),
            ..config("http://127.0.0.1:4318")
        };
        let settings = TelemetrySettings::read(&with_headers).unwrap().unwrap();
        assert_eq!(settings.headers["authorization"], "Bearer geheim");
        assert_eq!(settings.headers["x-a"], "b");
        assert!(!format!("{settings:?}").contains("geheim"));
        std::fs::write(&path, "x-a: b\ngeheim\n").unwrap();
        let complaint = complaint(&with_headers);
        assert!(complaint.contains("line 2"), "{complaint}");
        assert!(!complaint.contains("geheim"), "{complaint}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn headers_that_the_broker_sets_itself_are_refused() {
        for name in ["Content-Length", "transfer-encoding", "Host", "te"] {
            let path = file("framing", &format!("x-a: b\n{name}: 3\n"));
            let complaint = complaint(&TelemetryConfig {
                headers_file: path.clone(),
                ..config("http://127.0.0.1:4318")
            });
            std::fs::remove_file(path).unwrap();
            let expected = format!("sets the header {} itself", name.to_lowercase());
            assert!(complaint.contains("line 2"), "{complaint}");
            assert!(complaint.contains(&expected), "{complaint}");
        }
    }

    #[test]
    fn files_and_attributes_that_cannot_be_used_are_named_with_their_key() {
        let base = || config("https://127.0.0.1:4318");
        let missing = PathBuf::from("/nonexistent/file");
        let empty = file("ca", "no certificate");
        for (wrong, key) in [
            (
                TelemetryConfig {
                    ca: missing.clone(),
                    ..base()
                },
                "telemetry.ca: cannot read",
            ),
            (
                TelemetryConfig {
                    ca: empty.clone(),
                    ..base()
                },
                "telemetry.ca: expected",
            ),
            (
                TelemetryConfig {
                    headers_file: missing,
                    ..base()
                },
                "telemetry.headers_file: cannot read",
            ),
            (
                TelemetryConfig {
                    resource: vec!["prod".to_owned()],
                    ..base()
                },
                "telemetry.resource: expected \"name=value\", found \"prod\"",
            ),
        ] {
            let complaint = complaint(&wrong);
            assert!(complaint.starts_with(key), "{complaint}");
        }
        std::fs::remove_file(empty).unwrap();
    }
}
