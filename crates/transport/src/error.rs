//! Errors that end a connection, and their remedies.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use thrum_codec::websocket::FrameError;

use crate::certificate::date_of;
use crate::client_fault::ClientFault;

/// Why a layer gave up; the connection is over once `wire_out` was sent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// No trusted authority has signed the certificate.
    #[error(
        "the server's certificate is not signed by a trusted authority: give the authority's \
         certificate as CA file (--cafile), or check nothing (--insecure)"
    )]
    Untrusted,
    /// The certificate of an authority is in the place of the server's own.
    #[error(
        "the server's certificate is that of an authority, not one of a server: issue a \
         certificate for the server, or check nothing (--insecure)"
    )]
    AuthorityAsServer,
    /// The certificate is for another host.
    #[error(
        "the server's certificate is not for '{expected}' but for {presented}: connect by one of these \
         names, or give one as server name (--server-name)"
    )]
    WrongName {
        /// The requested name.
        expected: String,
        /// The names of the certificate.
        presented: String,
    },
    /// The certificate is out of date, or the clock is wrong.
    #[error("the server's certificate {0}: renew it, or set the clock of this machine")]
    OutOfDate(String),
    /// A certificate without extensions, and so without names.
    #[error(
        "the server's certificate is of X.509 version 1, which names no host: issue it with \
         extensions (openssl x509 -extfile), or check nothing (--insecure)"
    )]
    VersionOne,
    /// Any other error of the certificate.
    #[error("the server's certificate is refused: {0}")]
    Certificate(String),
    /// The first bytes of the server are not TLS.
    #[error(
        "the server does not speak TLS on this port: use the port of its TLS listener, or mqtt:// \
         or ws://"
    )]
    NotTls,
    /// The server identifies clients by certificates only.
    #[error(
        "the server wants a client certificate: give certificate file and key file (--cert, --key)"
    )]
    ClientCertificateMissing,
    /// The server rejects the client's certificate.
    #[error("the server refuses the client certificate (alert {alert}): {cause}")]
    ClientCertificateRefused {
        /// The TLS alert.
        alert: String,
        /// Its meaning and remedy.
        cause: &'static str,
    },
    /// The server does not give the reason of its rejection.
    #[error(
        "the server refuses the TLS handshake: it has no version or cipher suite in common with \
         this client, or wants a client certificate (--cert, --key); its log says more"
    )]
    HandshakeRefused,
    /// The server does not know the offered protocol.
    #[error(
        "the server knows no such application protocol: give another (--alpn), or none for the \
         port of its MQTT listener"
    )]
    NoApplicationProtocol,
    /// The server has no certificate for the requested name.
    #[error(
        "the server has no certificate for that name: connect by another, or give it as server \
         name (--server-name)"
    )]
    NameUnknown,
    /// The server has ended the session.
    #[error("the server ended TLS with the alert {0}: its log says why")]
    Alert(String),
    /// Client and server have no version or cipher suite in common.
    #[error("no TLS version or cipher suite in common with the server: {0}")]
    Incompatible(String),
    /// A handshake message that does not end.
    #[error("the peer sent a TLS message that is too long")]
    TlsMessageTooLong,
    /// The keys have reached their encryption limit.
    #[error("the keys of the TLS session are used up: connect again")]
    KeysExhausted,
    /// Any other error of the session.
    #[error("TLS failed: {0}")]
    Tls(Error),
    /// The answer to the opening handshake is not HTTP.
    #[error(
        "the server does not speak HTTP on this port: use the port of its WebSocket listener, or \
         mqtt:// or mqtts://"
    )]
    NotHttp,
    /// The answer to the opening handshake is TLS.
    #[error("the server speaks TLS on this port: use wss://, or mqtts:// if it has no WebSocket")]
    TlsNotHttp,
    /// An answer other than 101.
    #[error(
        "no WebSocket here, the server answered {status}{reason}: check port and path of the \
         endpoint"
    )]
    Status {
        /// Status of the answer.
        status: u16,
        /// Its text, after a space.
        reason: String,
    },
    /// The opening handshake violates RFC 6455.
    #[error("the server's WebSocket handshake is wrong: {0}")]
    Handshake(&'static str),
    /// The server did not choose the sub-protocol.
    #[error(
        "the server does not speak MQTT on this WebSocket: it did not choose the sub-protocol \
         'mqtt', check the path"
    )]
    NoSubprotocol,
    /// A head over the limit.
    #[error("the server's HTTP answer has a head of over {0} bytes")]
    HeadTooLong(usize),
    /// The frames violate the protocol.
    #[error("the server broke the WebSocket protocol: {0}")]
    Frame(#[from] FrameError),
    /// The socket has ended before the handshakes were done.
    #[error(
        "the server closed the connection during the {0} handshake: check that it speaks {0} on \
         this port, its log may say more"
    )]
    CutOff(&'static str),
    /// A server's error about its client.
    #[error(transparent)]
    Client(#[from] ClientFault),
    /// Payload before the handshakes were done, or after the end.
    #[error("the connection is not open")]
    NotOpen,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

impl LayerError {
    /// A text for the user who has entered the endpoint.
    pub(crate) fn from_tls(error: Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::from_certificate(error),
            Error::AlertReceived(alert) => Self::from_alert(alert),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => Self::NotTls,
            Error::PeerIncompatible(why) => Self::Incompatible(format!("{why:?}")),
            error => Self::Tls(error),
        }
    }

    fn from_alert(alert: AlertDescription) -> Self {
        let cause = match alert {
            AlertDescription::CertificateRequired => return Self::ClientCertificateMissing,
            AlertDescription::HandshakeFailure => return Self::HandshakeRefused,
            AlertDescription::NoApplicationProtocol => return Self::NoApplicationProtocol,
            AlertDescription::UnrecognisedName => return Self::NameUnknown,
            AlertDescription::ProtocolVersion => {
                let words = "it speaks other versions than this client, which has 1.2 and 1.3";
                return Self::Incompatible(words.to_owned());
            }
            AlertDescription::CertificateRevoked => "it is revoked, use another",
            AlertDescription::CertificateExpired => {
                "it is out of date by the server's clock, renew it"
            }
            AlertDescription::UnknownCA => {
                "no authority that the server trusts has signed it, use one of theirs; its log says \
                 more"
            }
            // Servers also send this for a wrong signature: an authority of the same name with
            // another key.
            AlertDescription::DecryptError => {
                "its signature, or that of its key, is wrong; use one of the server's authority"
            }
            AlertDescription::UnsupportedCertificate => {
                "it is not one for clients, or of a kind that the server does not know"
            }
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied => "its log says why",
            alert => return Self::Alert(format!("{alert:?}")),
        };
        Self::ClientCertificateRefused {
            alert: format!("{alert:?}"),
            cause,
        }
    }

    fn from_certificate(error: CertificateError) -> Self {
        match error {
            // A wrong signature: an authority of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => Self::WrongName {
                expected: expected.to_str().into_owned(),
                presented: names(&presented),
            },
            CertificateError::ExpiredContext { not_after, .. } => {
                Self::OutOfDate(format!("has expired on {}", date_of(not_after)))
            }
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::OutOfDate(format!("is not valid before {}", date_of(not_before)))
            }
            CertificateError::Expired => Self::OutOfDate("has expired".to_owned()),
            CertificateError::NotValidYet => Self::OutOfDate("is not valid yet".to_owned()),
            // The library has no variants of its own for these.
            CertificateError::Other(other) => match other.to_string().as_str() {
                "CaUsedAsEndEntity" => Self::AuthorityAsServer,
                "UnsupportedCertVersion" => Self::VersionOne,
                other => Self::Certificate(other.to_owned()),
            },
            error => Self::Certificate(error.to_string()),
        }
    }
}

/// Names in the form of the library, `DnsName("broker")`, without their kind.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inside = name
            .split_once('(')
            .and_then(|(_, rest)| rest.strip_suffix(')'));
        inside.unwrap_or(name).trim_matches('"').to_owned()
    };
    if presented.is_empty() {
        "no name at all".to_owned()
    } else {
        presented.iter().map(bare).collect::<Vec<_>>().join(", ")
    }
}
