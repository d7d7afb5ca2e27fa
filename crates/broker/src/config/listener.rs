//! One listener: its address, transport and admission.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_access::Network;
use thrum_protection::Rate;

use super::rate::{self, ByteRateSchema, RateSchema};
use super::{Anonymous, units};

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerConfig {
    /// Addresses of the listener: `"address:port"`, a list of them, or a port alone for every IPv4
    /// and IPv6 address of this machine. `"localhost:1883"` is both loopback addresses,
    /// `"unix:/run/thrum.sock"` a Unix socket, outside `node.data_dir`. Port 0 takes a free port,
    /// printed at start. A listener needs an address; only `mqtt` has a default, port 1883 of every
    /// address.
    #[serde(with = "units::bind")]
    #[schemars(with = "units::BindSchema")]
    pub bind: Vec<Bind>,
    /// Transport of MQTT: `"tcp"` (a plain stream, also over a Unix socket), `"websocket"`,
    /// `"quic"`, or `"http"`: the management interface, its pages and metrics, and MQTT over
    /// WebSocket at `path`. With `tls.cert` all but QUIC, which always is, are inside TLS. Default
    /// `"tcp"`; of the listener named `http` it is `"http"`.
    pub transport: Transport,
    /// Path of the WebSocket; others are refused with 404, but by an HTTP listener. Default
    /// `"/mqtt"`, the default of clients.
    pub path: String,
    /// Web pages that may connect over WebSocket, by origin: `"https://example.com"`. Clients that
    /// send no origin (all but browsers) may connect too. Default `[]`: every page.
    pub origins: Vec<String>,
    /// Name of the listener whose TLS this one uses as well, including the certificate. Default
    /// `""`: its own.
    pub tls_from: String,
    /// Connections begin with a PROXY protocol header, version 1 or 2, that names the client's
    /// address. A connection without one is closed. Default `false`.
    pub proxy_protocol: bool,
    /// Networks of the trusted proxies: `["10.0.0.0/8", "::1"]`; with `proxy_protocol`, which needs
    /// them, connections from elsewhere are closed. At an HTTP listener they name their client in
    /// `X-Forwarded-For`. Default `[]`: no proxy is trusted.
    #[serde(with = "units::networks")]
    #[schemars(with = "Vec<String>")]
    pub proxy_from: Vec<Network>,
    /// Most connections through this listener; 0 is no limit of its own. Default `0`:
    /// `limits.connections` bounds them all.
    pub max_connections: u32,
    /// New connections through this listener; those beyond wait in the backlog of the system. 0 is
    /// no limit of its own. Default `0`: `limits.connect_rate` bounds them all.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub connect_rate: Rate,
    /// PUBLISH packets of all clients of this listener; over the rate they are not read until the
    /// rate allows more. A changed rate holds for clients that connect from then on. 0 is no limit.
    /// Default `0`, as `limits.client.messages`.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub messages: Rate,
    /// Bytes of all clients of this listener, as `messages`. 0 is no limit. Default `0`.
    #[serde(with = "rate::bytes")]
    #[schemars(with = "ByteRateSchema")]
    pub bytes: Rate,
    /// Prefix of every topic of this listener's clients, which they do not see: it separates
    /// tenants. `%u` is the user name, `%c` the client identifier. Default `""`.
    pub mount_point: String,
    /// Messages that this listener's clients publish may be retained. With `false` clients of MQTT
    /// 5.0 are told so (Retain Available 0) and disconnected if they publish a message with RETAIN
    /// set (0x9A); messages of other clients are delivered as if RETAIN were not set. They receive
    /// the retained messages of others. Default `true`.
    pub retain_available: bool,
    /// Names of the authentication backends, in the order in which they are asked. Default `[]`:
    /// those of `auth.chain`.
    pub auth: Vec<String>,
    /// Versions of MQTT that clients may speak here: `"3.1"`, `"3.1.1"` and `"5.0"`; others are
    /// refused (0x84, and 1 in 3.x). Default `["3.1", "3.1.1", "5.0"]`.
    pub accept_protocol_versions: Vec<ProtocolVersion>,
    /// Clients that may connect here without credentials: `"loopback"`, `true` or `false`, as
    /// `auth.anonymous`. Default `"inherit"`: the value of `auth.anonymous`.
    #[serde(with = "units::inherited_anonymous")]
    #[schemars(with = "units::InheritedAnonymousSchema")]
    pub anonymous: Option<Anonymous>,
    /// TLS of this listener.
    pub tls: TlsConfig,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            bind: Vec::new(),
            transport: Transport::Tcp,
            path: "/mqtt".to_owned(),
            origins: Vec::new(),
            tls_from: String::new(),
            proxy_protocol: false,
            proxy_from: Vec::new(),
            max_connections: 0,
            connect_rate: Rate::NONE,
            messages: Rate::NONE,
            bytes: Rate::NONE,
            mount_point: String::new(),
            retain_available: true,
            auth: Vec::new(),
            accept_protocol_versions: vec![
                ProtocolVersion::V31,
                ProtocolVersion::V311,
                ProtocolVersion::V5,
            ],
            anonymous: None,
            tls: TlsConfig::default(),
        }
    }
}

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bind {
    /// Address and port.
    Address(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Bind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Bind {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

/// A version of MQTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ProtocolVersion {
    /// 3.1.
    #[serde(rename = "3.1")]
    V31,
    /// 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
    /// 5.0.
    #[serde(rename = "5.0")]
    V5,
}

/// Transport of MQTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Transport {
    /// A plain stream.
    #[default]
    Tcp,
    /// WebSocket.
    WebSocket,
    /// A stream of a QUIC connection.
    Quic,
    /// HTTP, with MQTT over WebSocket at one path.
    Http,
}

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// File with the certificate and its chain to the authority, as PEM. It turns TLS on. Read
    /// again at a reload and when it changes (`tls.reload_interval`), as all files of this table.
    /// Default `""`: no TLS.
    #[schemars(with = "String")]
    pub cert: PathBuf,
    /// File with the private key of `cert`, as PEM without a pass phrase. Default `""`: in the file
    /// of `cert`.
    #[schemars(with = "String")]
    pub key: PathBuf,
    /// File with intermediate certificates, as PEM, between `cert` (and those of `sni`) and the
    /// authority: those that are needed and not in the file of `cert` are sent to clients too, so
    /// that clients that trust only the root can connect. May hold others. Default `""`: the file
    /// of `cert` has them.
    #[schemars(with = "String")]
    pub chain: PathBuf,
    /// File with the authorities whose client certificates are trusted, as PEM. Default `""`:
    /// clients send no certificate.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Whether a client sends a certificate: `"required"`, `"optional"`, or `"none"`. Default
    /// `"required"`, which has an effect once `ca` is set.
    pub client_cert: ClientCert,
    /// Files with lists of revoked client certificates, as PEM. Every authority in `ca` needs one
    /// then. Default `[]`: no check for revocation.
    #[schemars(with = "Vec<String>")]
    pub crl: Vec<PathBuf>,
    /// Part of the client certificate that is the user name, in place of the one in CONNECT:
    /// `"cn"`, `"dn"` (the whole subject), `"dns"`, `"email"`, `"uri"` (alternative names), or
    /// `"none"`. Default `"none"`. Its client needs no password.
    pub username: CertificateName,
    /// Lowest version of TLS: `"1.2"` or `"1.3"`. Default `"1.2"`: many devices support no other;
    /// older ones are broken.
    pub min_version: TlsVersion,
    /// Clients get tickets to resume a TLS session at half the cost. Default `true`.
    pub session_tickets: bool,
    /// More certificates, for other names of this host: a table for each with `cert` and `key`. A
    /// client that asks for a name gets the certificate for it, all others get `tls.cert`.
    pub sni: std::collections::BTreeMap<String, CertificateConfig>,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            cert: PathBuf::new(),
            key: PathBuf::new(),
            chain: PathBuf::new(),
            ca: PathBuf::new(),
            client_cert: ClientCert::Required,
            crl: Vec::new(),
            username: CertificateName::None,
            min_version: TlsVersion::V12,
            sni: std::collections::BTreeMap::new(),
            session_tickets: true,
        }
    }
}

impl TlsConfig {
    /// The listener speaks TLS.
    pub fn is_on(&self) -> bool {
        !self.cert.as_os_str().is_empty()
    }
}

/// A certificate for other names.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateConfig {
    /// File with the certificate and its chain to the authority, as PEM.
    #[schemars(with = "String")]
    pub cert: PathBuf,
    /// File with its private key, as PEM. Default `""`: in the file of `cert`.
    #[schemars(with = "String")]
    pub key: PathBuf,
}

/// Whether clients send a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ClientCert {
    /// No certificate is requested.
    None,
    /// A certificate is requested; clients without one are admitted like others.
    Optional,
    /// Clients without a certificate are refused.
    #[default]
    Required,
}

/// Part of a client certificate that is the user name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CertificateName {
    /// No part.
    #[default]
    None,
    /// Common name.
    Cn,
    /// The whole subject.
    Dn,
    /// First DNS name.
    Dns,
    /// First mail address.
    Email,
    /// First URI.
    Uri,
}

/// Version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TlsVersion {
    /// 1.2.
    #[default]
    #[serde(rename = "1.2")]
    V12,
    /// 1.3.
    #[serde(rename = "1.3")]
    V13,
}
