//! The server's end of one session, and the verified client.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::UnbufferedServerConnection;
use rustls::{HandshakeKind, ServerConfig};
use thrum_access::Certificate;

use crate::certificate::{describe, out_of_date, subject_of};
use crate::client_fault::ClientFault;
use crate::error::LayerError;
use crate::peer_protocol::{OPENING_BYTES, protocol_of};
use crate::tls::session::Sink;
use crate::tls::{Session, TlsSummary, notes};

/// One accepted session.
pub(crate) struct ServerSession {
    pub(crate) session: Session<UnbufferedServerConnection>,
    /// The name that the client has requested.
    server_name: Option<Box<str>>,
    /// The client's first bytes, which wait until all have arrived: an error is found at the same
    /// byte and explained in the same words however they are split.
    opening: [u8; OPENING_BYTES],
    /// How many of them have arrived.
    opened: u8,
    handshaken: bool,
}

impl ServerSession {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, LayerError> {
        let connection = UnbufferedServerConnection::new(config).map_err(LayerError::Tls)?;
        Ok(Self {
            session: Session::new(connection),
            server_name: None,
            opening: [0; OPENING_BYTES],
            opened: 0,
            handshaken: false,
        })
    }

    /// Takes bytes of the client; answers of the handshake go to `wire_out`, payload to the sink.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        wire_in: &mut [u8],
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        if self.handshaken {
            return self.session.receive(wire_in, wire_out, sink);
        }
        self.shake_hands(wire_in, wire_out, sink)
    }

    #[cold]
    fn shake_hands(
        &mut self,
        wire_in: &mut [u8],
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        let mut held = self.opening;
        let held = held.get_mut(..usize::from(self.opened)).unwrap_or_default();
        let waited = held.len() < OPENING_BYTES;
        self.remember_opening(wire_in);
        if usize::from(self.opened) < OPENING_BYTES {
            return Ok(());
        }
        notes::clear();
        let before = if waited { held } else { &mut [] };
        let result = self
            .session
            .receive(before, wire_out, sink)
            .and_then(|()| self.session.receive(wire_in, wire_out, sink));
        if let Some(name) = notes::take_server_name() {
            self.server_name = Some(name);
        }
        if let Err(LayerError::Client(ClientFault::NotTls(_))) = result {
            return Err(ClientFault::NotTls(protocol_of(&self.opening)).into());
        }
        result?;
        if self.session.connection().is_handshaking() {
            return Ok(());
        }
        self.handshaken = true;
        self.check_resumed(wire_out)
    }

    fn remember_opening(&mut self, wire_in: &[u8]) {
        let known = usize::from(self.opened);
        let missing = self.opening.get_mut(known..).unwrap_or_default();
        for (place, byte) in missing.iter_mut().zip(wire_in) {
            *place = *byte;
            self.opened += 1;
        }
    }

    /// A resumed session has the certificate of an earlier one, which may have expired since.
    fn check_resumed(&mut self, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        let connection = self.session.connection();
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            return Ok(());
        }
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let Some(fault) = shown.and_then(|shown| ended(shown, UnixTime::now())) else {
            return Ok(());
        };
        self.session.close(wire_out);
        Err(fault.into())
    }

    /// The client's verified certificate.
    pub(crate) fn certificate(&self) -> Option<Arc<Certificate>> {
        if !self.handshaken {
            return None;
        }
        let shown = self.session.connection().peer_certificates()?.first()?;
        describe(shown).map(Arc::new)
    }

    pub(crate) fn summary(&self) -> Option<TlsSummary> {
        let mut summary = self.session.summary()?;
        summary.server_name.clone_from(&self.server_name);
        Some(summary)
    }
}

/// The error of a certificate that was valid before.
fn ended(certificate: &CertificateDer<'_>, now: UnixTime) -> Option<ClientFault> {
    Some(ClientFault::CertificateOutOfDate {
        cause: out_of_date(certificate, now)?,
        subject: subject_of(certificate),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_certificate_that_has_ended_since_is_found() {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        params.distinguished_name.push(DnType::CommonName, "meter");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let at = |secs| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(secs));
            ended(certificate.der(), now).map(|fault| fault.to_string())
        };
        assert_eq!(at(1_600_000_000), None);
        let words = at(1_609_459_201).unwrap();
        assert!(words.contains("expired on 2021-01-01 00:00 UTC"), "{words}");
        assert!(words.contains("'CN=meter'"), "{words}");
        assert!(
            at(1_500_000_000)
                .unwrap()
                .contains("not valid before 2020-01-01")
        );
    }
}
