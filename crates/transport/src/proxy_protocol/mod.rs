//! The PROXY protocol, versions 1 and 2: the client address that a proxy reports.
//!
//! A trusted proxy writes one header before the bytes of its client. Headers of untrusted senders
//! must be refused: a sender can put any address into the header.
//!
//! Source: <https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>, "specification" below.

mod tlv;
mod v1;
mod v2;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

/// Longest header of version 1 with its line end, from the specification.
const V1_BYTES_MAX: usize = 107;

/// Longest header of version 2: addresses and as many extensions as a packet of a common network
/// holds, which the specification tells senders not to exceed. With 1024 bytes for a certificate's
/// name it is still far below.
pub const V2_BYTES_MAX: usize = 4096;

/// The information of a proxy about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The proxy itself, as a health check; the addresses of the socket count.
    Local,
    /// A client whose address the proxy does not give; the addresses of the socket count.
    Unknown,
    /// A client.
    Proxied(Proxied),
}

/// A client behind a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Address of the client; none if it came over a Unix socket.
    pub source: Option<SocketAddr>,
    /// Address of the proxy that it connected to; none if it came over a Unix socket.
    pub destination: Option<SocketAddr>,
    /// The proxy's information about the client's TLS; none if it has none, or the proxy does not
    /// report it.
    pub tls: Option<ProxiedTls>,
}

/// TLS that ends at the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedTls {
    /// The common name of the client's certificate, if it has presented one that the proxy has
    /// verified; a name that is not UTF-8 or contains a NUL is refused.
    pub common_name: Option<Box<str>>,
}

/// Why a header cannot be used; the connection is to be closed, because the end of the header is
/// unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Not a header.
    #[error(
        "no PROXY header: let the proxy send one (HAProxy: send-proxy-v2), or turn proxy_protocol \
         off for this listener"
    )]
    Missing,
    /// A line that does not end.
    #[error("the PROXY header of version 1 has over {V1_BYTES_MAX} bytes")]
    LineTooLong,
    /// A length over the limit.
    #[error("the PROXY header has {bytes} bytes, the limit is {V2_BYTES_MAX}")]
    TooLong {
        /// Its announced length, including its first 16 bytes.
        bytes: usize,
    },
    /// An unspecified version.
    #[error("PROXY protocol version {0}: only 1 and 2 are known")]
    Version(u8),
    /// A violation of the grammar.
    #[error("malformed PROXY header: {0}")]
    Malformed(&'static str),
    /// Transports without connections.
    #[error("the PROXY header is of a datagram: only streams are accepted")]
    Datagram,
    /// The checksum shows that bytes have changed on the way.
    #[error("the checksum of the PROXY header is wrong")]
    Checksum,
}

/// The header at the start of a connection and its length; `Ok(None)` when more bytes are needed.
///
/// Before that a caller holds no more than [`V2_BYTES_MAX`] bytes. Bytes that cannot become a
/// header are refused at the first difference.
///
/// # Errors
/// No header, or one that is malformed, too long or corrupted.
pub fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    if begins(bytes, v1::SIGNATURE) {
        v1::parse(bytes)
    } else if begins(bytes, &v2::SIGNATURE) {
        v2::parse(bytes)
    } else {
        Err(ProxyError::Missing)
    }
}

/// The bytes so far are those of the signature.
fn begins(bytes: &[u8], signature: &[u8]) -> bool {
    let len = bytes.len().min(signature.len());
    bytes.get(..len) == signature.get(..len)
}
