//! A connection to a directory: one request at a time, answers bounded in size, nothing assumed
//! about their contents.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::ber::{
    self, ENUMERATED, INTEGER, OCTETS, Reader, SEQUENCE, push, push_all, push_number,
};
use super::search::{Entry, SEARCH_DONE, SEARCH_ENTRY, SEARCH_REFERENCE, Search};
use super::tls;
use crate::backend::BackendError;
use crate::backend::pool::{Connect, Request};
use crate::backend::settings::{SetupError, secret_of};
use crate::config::LdapConfig;
use thrum_access::Secret;

/// Longest accepted message of a server.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Most entries that are used of one search.
const ENTRIES_MAX: usize = 10_000;
const READ_BYTES: usize = 4096;

const BIND_REQUEST: u8 = 0x60;
const BIND_RESPONSE: u8 = 0x61;
const EXTENDED_REQUEST: u8 = 0x77;
const EXTENDED_RESPONSE: u8 = 0x78;
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// Result codes (RFC 4511, appendix A).
pub(super) const SUCCESS: u32 = 0;
pub(super) const NO_SUCH_OBJECT: u32 = 32;
const BUSY: u32 = 51;
const UNAVAILABLE: u32 = 52;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection.
pub(super) struct Line {
    stream: Box<dyn Stream>,
    /// Received bytes that are not yet a whole message.
    input: Vec<u8>,
    message_id: u32,
}

/// Address and options of a connection.
pub(super) struct Connector {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    starttls: bool,
    /// The account that every new connection binds as; none for connections that verify passwords.
    account: Option<(String, Secret)>,
}

/// Verifies a name and its password.
pub(super) struct Bind<'a> {
    pub(super) dn: &'a str,
    pub(super) password: &'a [u8],
}

impl Connector {
    /// Reads URL, password and certificates.
    pub(super) fn new(config: &LdapConfig, is_account: bool) -> Result<Self, SetupError> {
        let bad = || SetupError::setting("url", "must be ldap://host:port or ldaps://host:port");
        let url = Url::parse(config.url.expose()).map_err(|_| bad())?;
        let is_tls = match url.scheme() {
            "ldap" => false,
            "ldaps" => true,
            _ => return Err(bad()),
        };
        if is_tls && config.starttls {
            return Err(SetupError::setting(
                "starttls",
                "ldaps:// is TLS already: use ldap://",
            ));
        }
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(bad)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = if is_tls || config.starttls {
            let name = ServerName::try_from(host.clone()).map_err(|_| bad())?;
            Some((tls::client(&config.ca)?, name))
        } else {
            None
        };
        let account = match (is_account, config.bind_dn.as_str()) {
            (false, _) | (true, "") => None,
            (true, dn) => {
                let secret = secret_of("password_file", &config.password_file)?;
                let missing = || SetupError::setting("password_file", "bind_dn needs a password");
                Some((dn.to_owned(), secret.ok_or_else(missing)?))
            }
        };
        Ok(Self {
            host,
            port: url.port().unwrap_or(if is_tls { 636 } else { 389 }),
            tls,
            starttls: config.starttls,
            account,
        })
    }
}

impl Connect for Connector {
    type Line = Line;

    async fn connect(&self) -> Result<Line, BackendError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| gone(&error))?;
        stream.set_nodelay(true).map_err(|error| gone(&error))?;
        let mut stream: Box<dyn Stream> = Box::new(stream);
        if self.starttls {
            let mut line = Line::new(stream);
            line.start_tls().await?;
            // Bytes that were received before TLS do not count as an answer of the server.
            stream = line.stream;
        }
        if let Some((config, name)) = &self.tls {
            let connector = TlsConnector::from(Arc::clone(config));
            let secured = connector.connect(name.clone(), stream).await;
            stream = Box::new(secured.map_err(|error| gone(&error))?);
        }
        let mut line = Line::new(stream);
        if let Some((dn, password)) = &self.account {
            let bind = Bind {
                dn,
                password: password.expose(),
            };
            match line.bind(&bind).await? {
                SUCCESS => {}
                code => {
                    let what = format!("bind_dn was refused with the result {code}");
                    return Err(BackendError::Unreachable(what));
                }
            }
        }
        Ok(line)
    }
}

impl Request<Line> for Bind<'_> {
    type Answer = u32;

    async fn ask(&self, line: &mut Line) -> Result<u32, BackendError> {
        line.bind(self).await
    }
}

impl Request<Line> for Search<'_> {
    type Answer = Vec<Entry>;

    async fn ask(&self, line: &mut Line) -> Result<Vec<Entry>, BackendError> {
        line.search(self).await
    }
}

impl Line {
    fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            message_id: 0,
        }
    }

    async fn start_tls(&mut self) -> Result<(), BackendError> {
        let request = |out: &mut Vec<u8>| {
            push_all(out, EXTENDED_REQUEST, |out| push(out, 0x80, START_TLS));
        };
        self.send(request).await?;
        let (tag, content) = self.receive().await?;
        match (tag, result_code(&content)) {
            (EXTENDED_RESPONSE, Some(SUCCESS)) if self.input.is_empty() => Ok(()),
            (EXTENDED_RESPONSE, Some(code)) => {
                let what = format!("StartTLS was refused with the result {code}");
                Err(BackendError::Unreachable(what))
            }
            _ => Err(nonsense()),
        }
    }

    /// The result code.
    async fn bind(&mut self, bind: &Bind<'_>) -> Result<u32, BackendError> {
        let request = |out: &mut Vec<u8>| {
            push_all(out, BIND_REQUEST, |out| {
                push_number(out, INTEGER, 3);
                push(out, OCTETS, bind.dn.as_bytes());
                push(out, 0x80, bind.password);
            });
        };
        self.send(request).await?;
        match self.receive().await? {
            (BIND_RESPONSE, content) => served(result_code(&content).ok_or_else(nonsense)?),
            _ => Err(nonsense()),
        }
    }

    async fn search(&mut self, search: &Search<'_>) -> Result<Vec<Entry>, BackendError> {
        self.send(|out| search.push(out)).await?;
        let mut entries = Vec::new();
        while entries.len() <= ENTRIES_MAX {
            match self.receive().await? {
                (SEARCH_ENTRY, content) => {
                    entries.push(Entry::parse(&content).ok_or_else(nonsense)?);
                }
                (SEARCH_REFERENCE, _) => {}
                (SEARCH_DONE, content) => {
                    let code = served(result_code(&content).ok_or_else(nonsense)?)?;
                    return search.finish(code, entries);
                }
                _ => return Err(nonsense()),
            }
        }
        Err(nonsense())
    }

    async fn send(&mut self, request: impl FnOnce(&mut Vec<u8>)) -> Result<(), BackendError> {
        self.message_id = (self.message_id + 1) & 0x7fff_ffff;
        let message_id = self.message_id;
        let mut message = zeroize::Zeroizing::new(Vec::new());
        push_all(&mut message, SEQUENCE, |out| {
            push_number(out, INTEGER, message_id);
            request(out);
        });
        self.stream
            .write_all(&message)
            .await
            .map_err(|error| gone(&error))?;
        self.stream.flush().await.map_err(|error| gone(&error))
    }

    /// The next answer to the last request: tag and content.
    async fn receive(&mut self) -> Result<(u8, Vec<u8>), BackendError> {
        let length = loop {
            match ber::header(&self.input).map_err(|_| nonsense())? {
                Some(header) if header.content > MESSAGE_BYTES_MAX => return Err(nonsense()),
                Some(header) if self.input.len() >= header.length + header.content => {
                    break header.length + header.content;
                }
                _ => self.read().await?,
            }
        };
        let rest = self.input.split_off(length);
        let message = std::mem::replace(&mut self.input, rest);
        let mut message = Reader::new(&message);
        let mut message = Reader::new(message.next_as(SEQUENCE).ok_or_else(nonsense)?);
        // The number 0 marks a notice before the server disconnects.
        if message.next_number(INTEGER) != Some(self.message_id) {
            return Err(nonsense());
        }
        let (tag, content) = message.next().ok_or_else(nonsense)?;
        Ok((tag, content.to_vec()))
    }

    async fn read(&mut self) -> Result<(), BackendError> {
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes).await {
            Ok(0) => {
                let what = "the server closed the connection";
                Err(BackendError::Unreachable(what.to_owned()))
            }
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) => Err(gone(&error)),
        }
    }
}

fn result_code(content: &[u8]) -> Option<u32> {
    Reader::new(content).next_number(ENUMERATED)
}

/// A server that is busy has not answered.
fn served(code: u32) -> Result<u32, BackendError> {
    match code {
        BUSY | UNAVAILABLE => Err(BackendError::Unreachable(format!("the result {code}"))),
        code => Ok(code),
    }
}

fn gone(error: &std::io::Error) -> BackendError {
    BackendError::Unreachable(error.to_string())
}

/// A connection with an unexpected message is of no more use.
fn nonsense() -> BackendError {
    BackendError::Unreachable("the server violates the LDAP protocol".to_owned())
}
