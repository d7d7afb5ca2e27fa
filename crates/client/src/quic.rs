//! MQTT over QUIC: a socket whose other end is carried to the broker.

use std::net::SocketAddr;

use socket2::Socket;
use thrum_quic::{DialError, DialOptions, Dialing, QuicDialer};
use thrum_transport::Connector;

use super::Stop;
use super::target::Target;

/// The carrier of a socket.
#[derive(Debug)]
pub(super) struct Quic {
    dialing: Dialing,
    place: String,
    _dialer: QuicDialer,
}

impl Quic {
    /// Begins a connection to whichever of the addresses answers first.
    pub(super) fn open(
        target: &Target,
        connector: &Connector,
        addresses: &[SocketAddr],
        local: &[SocketAddr],
    ) -> Result<(Socket, Self), Stop> {
        let place = target.place();
        let Some((tls, server_name)) = connector.quic() else {
            return Err(Stop::usage(format!("{place} is not over QUIC")));
        };
        let options = DialOptions {
            sources: local.iter().map(SocketAddr::ip).collect(),
            ..DialOptions::default()
        };
        let cannot = |error: DialError| {
            let message = format!("cannot connect to {place}: {error}");
            match error {
                DialError::LeftOut(_) => Stop::usage(message),
                _ => Stop::unreachable(message),
            }
        };
        let dialer = QuicDialer::new(tls, options).map_err(cannot)?;
        let dialled = dialer.dial(addresses, &server_name.to_str());
        let (stream, dialing) = dialled.map_err(cannot)?;
        let quic = Self {
            dialing,
            place,
            _dialer: dialer,
        };
        Ok((stream.into(), quic))
    }

    /// Why the socket has ended, unless the broker ended MQTT regularly.
    pub(super) fn failure(&self) -> Option<Stop> {
        let error = self.dialing.failure()?;
        let message = format!("no connection to {}: {error}", self.place);
        Some(match error {
            DialError::ClientCertificateMissing | DialError::ClientCertificateRefused(_) => {
                Stop::denied(message)
            }
            _ => Stop::unreachable(message),
        })
    }
}
