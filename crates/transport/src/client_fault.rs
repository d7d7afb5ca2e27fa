//! Errors of a client, described for the reader of the server's log.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use thrum_codec::websocket::FrameError;

/// Why a client failed in the layers of a server.
///
/// Subjects are written in the form of RFC 4514, cut off after 200 characters, and contain no
/// control characters; their owners are not verified.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// The first bytes of the client are not TLS.
    #[error("the client does not speak TLS but {0}: give it mqtts:// or wss://")]
    NotTls(&'static str),
    /// Only clients with a certificate are admitted.
    #[error(
        "the client shows no certificate: give it one that an authority of this listener has signed"
    )]
    CertificateMissing,
    /// No authority that the listener trusts has signed the certificate.
    #[error(
        "the client certificate {subject} is not signed by an authority of this listener: add the \
         authority's certificate to the listener's ca, or issue another"
    )]
    CertificateUntrusted {
        /// Its subject.
        subject: Box<str>,
    },
    /// The certificate is out of date, or the clock is wrong.
    #[error(
        "the client certificate {subject} is out of date: renew it, or set the clock ({cause})"
    )]
    CertificateOutOfDate {
        /// Its subject.
        subject: Box<str>,
        /// Since when or until when.
        cause: String,
    },
    /// A revocation list names the certificate, or one that signed it.
    #[error("the client certificate {subject} is revoked: issue another")]
    CertificateRevoked {
        /// Its subject.
        subject: Box<str>,
    },
    /// There are revocation lists, but none of the authority that has signed the certificate.
    #[error(
        "it is unknown whether the client certificate {subject} is revoked: add the revocation \
         list of each authority in its chain to the listener's crl"
    )]
    RevocationUnknown {
        /// Its subject.
        subject: Box<str>,
    },
    /// The revocation list is out of date.
    #[error(
        "the revocation list for the client certificate {subject} is out of date: fetch the \
         authority's next one and reload"
    )]
    RevocationListExpired {
        /// Its subject.
        subject: Box<str>,
    },
    /// Any other error of the certificate.
    #[error("the client certificate {subject} is refused: {cause}")]
    Certificate {
        /// Its subject.
        subject: Box<str>,
        /// The error.
        cause: String,
    },
    /// A valid certificate from a client that does not hold its key.
    #[error("the client does not prove that it holds the key of its certificate: {0}")]
    KeyNotHeld(String),
    /// The client rejects the server's certificate.
    #[error(
        "the client does not take this listener's certificate (alert {0}): give the client the \
         authority that has signed it, and connect by a name that it is for"
    )]
    ServerRefused(String),
    /// The client has ended the session.
    #[error("the client ended TLS with the alert {0}")]
    Alert(String),
    /// The client and the listener have no version or cipher suite in common.
    #[error("no TLS version or cipher suite in common with the client: {0}")]
    Incompatible(String),
    /// Any other error of the session.
    #[error("TLS failed: {0}")]
    Tls(Error),
    /// The first bytes of the client are not HTTP.
    #[error("the client does not speak WebSocket but {0}: give it ws:// or wss://")]
    NotHttp(&'static str),
    /// The opening handshake was answered by another status than 101.
    #[error("the client's WebSocket handshake was refused with {status}: {why}")]
    Refused {
        /// Status of the answer.
        status: u16,
        /// Its text.
        why: String,
    },
    /// The frames violate the protocol.
    #[error("the client broke the WebSocket protocol: {0}")]
    Frame(FrameError),
}

impl ClientFault {
    /// The library's error about a client; `subject` is that of a rejected certificate.
    pub(crate) fn from_tls(error: Error, subject: Option<Box<str>>) -> Self {
        match error {
            Error::NoCertificatesPresented => Self::CertificateMissing,
            Error::InvalidCertificate(error) => match subject {
                Some(subject) => Self::from_certificate(error, subject),
                // The certificate was valid.
                None => Self::KeyNotHeld(error.to_string()),
            },
            Error::AlertReceived(alert) if is_about_certificate(alert) => {
                Self::ServerRefused(format!("{alert:?}"))
            }
            Error::AlertReceived(alert) => Self::Alert(format!("{alert:?}")),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => Self::NotTls("another protocol"),
            Error::PeerIncompatible(why) => Self::Incompatible(format!("{why:?}")),
            error => Self::Tls(error),
        }
    }

    fn from_certificate(error: CertificateError, subject: Box<str>) -> Self {
        match error {
            // A wrong signature: an authority of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::CertificateUntrusted { subject }
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::CertificateOutOfDate {
                subject,
                cause: error.to_string(),
            },
            CertificateError::Revoked => Self::CertificateRevoked { subject },
            CertificateError::UnknownRevocationStatus => Self::RevocationUnknown { subject },
            CertificateError::ExpiredRevocationList
            | CertificateError::ExpiredRevocationListContext { .. } => {
                Self::RevocationListExpired { subject }
            }
            error => Self::Certificate {
                subject,
                cause: in_words(&error),
            },
        }
    }
}

/// The library has no text for some errors.
fn in_words(error: &CertificateError) -> String {
    let text = error.to_string();
    if text.contains("UnsupportedCertVersion") {
        return "it is an X.509 certificate of version 1: issue it again with an extension, such as \
                a subject alternative name, which makes it version 3"
            .to_owned();
    }
    text
}

/// Alerts by which a client rejects a certificate.
const fn is_about_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
    )
}
