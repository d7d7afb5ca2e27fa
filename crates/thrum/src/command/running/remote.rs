//! A broker elsewhere: the URL of its HTTP port, and the way there over TCP, with or without TLS.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use thrum_transport::{Connector, Endpoint, LayerError, Layers, Scheme, TlsOptions};

use super::http::TIME_MAX;
use crate::command::Failure;

/// Longest time until a connection is there, for each address of the host.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// The address of an HTTP port, perhaps below a path of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    endpoint: Endpoint,
    /// With a slash in front and none at the end; empty without one.
    path: String,
}

impl Url {
    /// Reads `https://HOST[:PORT][/PATH]` or the same with `http`.
    ///
    /// # Errors
    /// Another scheme, no host, user and password, a query.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let form = "write https://HOST:8080, or http:// without TLS";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| form.to_owned())?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            // The layers below HTTP are the same as those below MQTT.
            "https" => Scheme::Mqtts,
            "http" => Scheme::Mqtt,
            other => return Err(format!("{other}:// is not how a broker is asked; {form}")),
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(
                "a URL has no user and no password here: the API key is given with --token-file"
                    .to_owned(),
            );
        }
        if path.contains(['?', '#']) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the path has characters that it must not have; {form}"
            ));
        }
        let whole = format!("{}://{authority}", scheme.as_str());
        let mut endpoint = Endpoint::parse(&whole).map_err(|_| form.to_owned())?;
        if !has_port(authority) {
            endpoint.port = if scheme == Scheme::Mqtts { 443 } else { 80 };
        }
        let path = path.trim_end_matches('/');
        // An address that was copied from a browser or from curl.
        let path = path.strip_suffix("/api/v1").unwrap_or(path).to_owned();
        Ok(Self { endpoint, path })
    }

    /// The path of the interface at a proxy.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Host and port, as the field `Host` has them.
    pub(super) fn authority(&self) -> String {
        self.endpoint.authority()
    }

    /// An API key would be readable on the way.
    pub(super) fn is_readable_on_the_way(&self) -> bool {
        let host = &*self.endpoint.host;
        let is_local = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        !self.endpoint.scheme.is_tls() && !is_local
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.endpoint.scheme.is_tls() {
            "https"
        } else {
            "http"
        };
        let Self { endpoint, path } = self;
        write!(formatter, "{scheme}://{}{path}", endpoint.authority())
    }
}

fn has_port(authority: &str) -> bool {
    let behind_address = authority.rsplit(']').next().unwrap_or(authority);
    behind_address.contains(':')
}

/// Connects; the handshake of TLS is done when this returns.
pub(super) fn connect(url: &Url, tls: &TlsOptions) -> anyhow::Result<Stream> {
    let connector = if url.endpoint.scheme.is_tls() {
        Connector::new(&url.endpoint, tls)
    } else if *tls == TlsOptions::default() {
        Connector::new(&url.endpoint, &TlsOptions::default())
    } else {
        return Err(Failure::usage(format!(
            "{url} has no TLS: write https://, or leave --cafile, --insecure and --server-name out"
        )));
    };
    let connector = connector.map_err(Failure::usage)?;
    let socket = dial(url)?;
    let timeouts = socket
        .set_read_timeout(Some(TIME_MAX))
        .and_then(|()| socket.set_write_timeout(Some(TIME_MAX)));
    timeouts.map_err(|error| unreached(url, &error.to_string()))?;
    let mut stream = Stream {
        socket,
        layers: connector.layers(),
        plain: Vec::new(),
        used: 0,
        wire: Vec::new(),
    };
    stream.shake_hands().map_err(|error| {
        let layer = error.get_ref().and_then(|inner| inner.downcast_ref());
        match layer {
            Some(LayerError::NotTls) => unreached(
                url,
                "it does not speak TLS on this port: write http://, or name the port that has TLS",
            ),
            Some(LayerError::ClientCertificateMissing) => unreached(
                url,
                "it wants a certificate of the client, which these commands do not have: go through a port without",
            ),
            _ => unreached(url, &error.to_string()),
        }
    })?;
    Ok(stream)
}

fn dial(url: &Url) -> anyhow::Result<TcpStream> {
    let Endpoint { host, port, .. } = &url.endpoint;
    let addresses = (host.as_str(), *port).to_socket_addrs();
    let addresses = addresses.map_err(|error| {
        unreached(
            url,
            &format!("the name {host} is not known here ({error}): check it, or name an address"),
        )
    })?;
    let mut last = None;
    for address in addresses.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(error),
        }
    }
    let why = match last {
        Some(error) if error.kind() == ErrorKind::ConnectionRefused => {
            "nothing listens there: check host and port (listeners.http.bind), and that the broker runs".to_owned()
        }
        Some(error) if error.kind() == ErrorKind::TimedOut => {
            "no answer: check host and port, and the firewall between".to_owned()
        }
        Some(error) => error.to_string(),
        None => "the name has no address".to_owned(),
    };
    Err(unreached(url, &why))
}

fn unreached(url: &Url, why: &str) -> anyhow::Error {
    Failure::with_code(
        Failure::UNREACHABLE,
        format!("cannot reach the broker at {url}: {why}"),
    )
}

/// A connection, with TLS if the URL says so.
pub(crate) struct Stream {
    socket: TcpStream,
    layers: Option<Layers>,
    /// Decrypted bytes.
    plain: Vec<u8>,
    /// Those that were read.
    used: usize,
    /// Bytes for the socket.
    wire: Vec<u8>,
}

impl Stream {
    fn shake_hands(&mut self) -> io::Result<()> {
        if let Some(layers) = &mut self.layers {
            layers.start(&mut self.wire).map_err(io::Error::other)?;
        }
        while self.layers.as_ref().is_some_and(|layers| !layers.is_open()) {
            self.send_wire()?;
            if self.receive()? == 0 {
                let cut = self.layers.as_ref().and_then(Layers::cut_off);
                return Err(cut.map_or_else(ended, io::Error::other));
            }
        }
        self.send_wire()
    }

    fn send_wire(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.wire)?;
        self.wire.clear();
        Ok(())
    }

    /// Reads from the socket through TLS; 0 at its end.
    fn receive(&mut self) -> io::Result<usize> {
        let mut chunk = [0; READ_BYTES];
        let count = loop {
            match self.socket.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let Some(layers) = &mut self.layers else {
            self.plain.extend_from_slice(&chunk[..count]);
            return Ok(count);
        };
        if count == 0 {
            return Ok(0);
        }
        let received = layers.receive(&mut chunk[..count], &mut self.plain, &mut self.wire);
        if let Err(error) = received {
            // An alert with the reason; the server may have closed the connection.
            self.send_wire().ok();
            return Err(io::Error::other(error));
        }
        self.send_wire()?;
        Ok(count)
    }
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection ended")
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.used == self.plain.len() {
            self.plain.clear();
            self.used = 0;
            let is_closed = self.layers.as_ref().is_some_and(Layers::is_closed_by_peer);
            if is_closed || self.receive()? == 0 {
                return Ok(0);
            }
        }
        let count = into.len().min(self.plain.len() - self.used);
        into[..count].copy_from_slice(&self.plain[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(layers) = &mut self.layers else {
            return self.socket.write(bytes);
        };
        layers
            .send(bytes, &mut self.wire)
            .map_err(io::Error::other)?;
        self.send_wire()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_port_and_the_path_of_a_proxy() {
        for (text, shown) in [
            ("https://broker.example", "https://broker.example:443"),
            ("http://broker.example/", "http://broker.example:80"),
            ("HTTPS://b:8080/thrum/", "https://b:8080/thrum"),
            ("http://[::1]:8080/api/v1", "http://[::1]:8080"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]:443"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn a_wrong_url_is_refused_with_the_form_to_write() {
        for (text, words) in [
            ("broker.example:8080", "write https://HOST:8080"),
            ("mqtt://b", "mqtt:// is not how a broker is asked"),
            ("https://me:secret@b", "--token-file"),
            ("https://", "write https://"),
            ("https://b:70000", "write https://"),
            ("https://b/a?b", "characters"),
            ("https://b/a\r\nX: y", "characters"),
        ] {
            let why = Url::parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn a_key_is_readable_on_the_way_without_tls_but_not_on_this_machine() {
        for (text, expected) in [
            ("http://broker.example", true),
            ("https://broker.example", false),
            ("http://127.0.0.1:8080", false),
            ("http://localhost:8080", false),
            ("http://[::1]", false),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(url.is_readable_on_the_way(), expected, "{text}");
        }
    }
}
