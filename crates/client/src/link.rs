//! The socket, the layers between it and MQTT, and the buffers of both sides.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::Socket;
use thrum_transport::{Connector, LayerError, Layers, Scheme, not_mqtt};

use super::Stop;
use super::dial::dial;
use super::quic::Quic;
use super::target::Target;

/// Time limit for the handshakes of TLS and WebSocket.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the last bytes to leave, and for the broker to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 * 1024;

/// A connection; never blocks but in [`Link::wait`].
pub(super) struct Link {
    /// Of TCP, of this machine, or the end of a pipe to what carries it over QUIC.
    stream: Socket,
    /// Dropped after the socket, so that its last bytes are still carried.
    quic: Option<Quic>,
    /// TLS and WebSocket; none if the socket carries plain MQTT.
    layers: Option<Layers>,
    /// Output of the layers for the socket.
    wire: Vec<u8>,
    scheme: Scheme,
    /// Its target, for messages.
    place: String,
    chunk: Box<[u8]>,
    /// Bytes of MQTT, or of an unexpected protocol, have arrived.
    has_received: bool,
    /// Received and not yet handled.
    pub(super) input: Vec<u8>,
    /// To be sent.
    pub(super) output: Vec<u8>,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) socket: bool,
    pub(super) input: bool,
}

impl Link {
    /// Connects and begins the handshakes; files of certificates are read each time, so that
    /// renewed ones count.
    pub(super) fn open(target: &Target) -> Result<Self, Stop> {
        let connector = Connector::new(&target.endpoint, &target.tls)
            .map_err(|error| Stop::usage(error.to_string()))?;
        let (stream, quic) = dial(target, &connector)?;
        let mut link = Self {
            stream,
            quic,
            layers: connector.layers(),
            wire: Vec::new(),
            scheme: target.endpoint.scheme,
            place: target.place(),
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            has_received: false,
            input: Vec::new(),
            output: Vec::new(),
        };
        let started = match &mut link.layers {
            Some(layers) => layers.start(&mut link.wire),
            None => Ok(()),
        };
        started.map_err(|error| link.refused(&error))?;
        Ok(link)
    }

    /// All handshakes below MQTT are done.
    pub(super) fn is_open(&self) -> bool {
        self.layers.as_ref().is_none_or(Layers::is_open)
    }

    /// TLS version and cipher of the connection, for `-d`; none without own TLS.
    pub(super) fn security(&self) -> Option<String> {
        let tls = self.layers.as_ref()?.tls()?;
        let resumed = if tls.resumed { ", resumed" } else { "" };
        Some(format!("{}, {}{resumed}", tls.version, tls.cipher_suite))
    }

    /// The handshakes have taken too long.
    pub(super) fn unanswered(&self) -> Stop {
        let (place, seconds) = (&self.place, HANDSHAKE_TIMEOUT.as_secs());
        let handshake = match self.layers.as_ref().and_then(Layers::cut_off) {
            Some(LayerError::CutOff(layer)) => layer,
            _ => "TLS",
        };
        Stop::unreachable(format!(
            "no connection to {place}: the server did not answer the {handshake} handshake within \
             {seconds} s; check that it speaks {handshake} on this port"
        ))
    }

    /// Sends what the socket takes now.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        // The pending output of the socket limits the input from the command.
        if self.wire.is_empty() && self.is_open() {
            self.wrap().map_err(|error| self.refused(&error))?;
        }
        self.write().map_err(|error| self.lost(&error))
    }

    /// Passes output through the layers.
    fn wrap(&mut self) -> Result<(), LayerError> {
        if let Some(layers) = &mut self.layers
            && !self.output.is_empty()
        {
            layers.send(&self.output, &mut self.wire)?;
            self.output.clear();
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let bytes = match self.layers {
            Some(_) => &mut self.wire,
            None => &mut self.output,
        };
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(0) => break,
                Ok(length) => sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.drain(..sent);
        Ok(())
    }

    /// Waits until the socket or the other input is readable, pending output fits, the time is
    /// over, or a signal arrived.
    pub(super) fn wait(
        &self,
        timeout: Option<Duration>,
        input: Option<BorrowedFd<'_>>,
    ) -> Result<Ready, Stop> {
        let mut wanted = PollFlags::IN;
        if !self.output.is_empty() || !self.wire.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let socket = PollFd::from_borrowed_fd(self.stream.as_fd(), wanted);
        let readable = |fd: &PollFd<'_>| {
            let flags = fd.revents();
            flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
        };
        let Some(input) = input else {
            let mut fds = [socket];
            poll_for(&mut fds, timeout)?;
            return Ok(Ready {
                socket: readable(&fds[0]),
                input: false,
            });
        };
        let mut fds = [socket, PollFd::from_borrowed_fd(input, PollFlags::IN)];
        poll_for(&mut fds, timeout)?;
        Ok(Ready {
            socket: readable(&fds[0]),
            input: readable(&fds[1]),
        })
    }

    /// Reads the available bytes. Bytes before an error are in the input.
    pub(super) fn fill(&mut self) -> Result<(), Stop> {
        let length = match self.stream.read(&mut self.chunk) {
            Ok(0) => return Err(self.ended()),
            Ok(length) => length,
            Err(error) if is_nothing_yet(&error) => return Ok(()),
            Err(error) => return Err(self.lost(&error)),
        };
        let received = self.unwrap(length);
        self.check_opening()?;
        if let Err(error) = received {
            // An alert with the reason; the server may have closed the connection.
            self.write().ok();
            return Err(self.refused(&error));
        }
        if self.layers.as_ref().is_some_and(Layers::is_closed_by_peer) {
            self.write().ok();
            return Err(self.ended());
        }
        Ok(())
    }

    /// Takes bytes of the socket through the layers.
    fn unwrap(&mut self, length: usize) -> Result<(), LayerError> {
        let bytes = &mut self.chunk[..length];
        if let Some(layers) = &mut self.layers {
            return layers.receive(bytes, &mut self.input, &mut self.wire);
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// The first bytes show whether the server uses MQTT at all.
    fn check_opening(&mut self) -> Result<(), Stop> {
        if self.has_received || self.input.is_empty() {
            return Ok(());
        }
        self.has_received = true;
        let Some(why) = not_mqtt(&self.input, self.scheme) else {
            return Ok(());
        };
        self.input.clear();
        Err(Stop::unreachable(format!(
            "no connection to {}: {why}",
            self.place
        )))
    }

    /// The meaning of the connection's end.
    fn ended(&self) -> Stop {
        if let Some(failure) = self.quic.as_ref().and_then(Quic::failure) {
            return failure;
        }
        if let Some(error) = self.layers.as_ref().and_then(Layers::cut_off) {
            return self.refused(&error);
        }
        if self.has_received {
            return Stop::unreachable("the broker closed the connection");
        }
        Stop::unreachable(format!(
            "{} closed the connection before it answered: check that it speaks {} there; its log may say more",
            self.place,
            spoken(self.scheme)
        ))
    }

    /// The meaning of a socket error.
    fn lost(&mut self, error: &io::Error) -> Stop {
        if let Some(failure) = self.quic.as_ref().and_then(Quic::failure) {
            return failure;
        }
        if let Some(error) = self.last_words() {
            return self.refused(&error);
        }
        let hung_up = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        if !self.has_received && hung_up.contains(&error.kind()) {
            return self.ended();
        }
        Stop::unreachable(format!("connection to {} lost: {error}", self.place))
    }

    /// A server that closed the connection may have sent a TLS alert that is still unread.
    fn last_words(&mut self) -> Option<LayerError> {
        self.layers.as_ref()?;
        while let Ok(length @ 1..) = self.stream.read(&mut self.chunk) {
            if let Err(error) = self.unwrap(length) {
                return Some(error);
            }
        }
        None
    }

    /// The error of the layers, and its cause.
    fn refused(&self, error: &LayerError) -> Stop {
        let message = format!("no connection to {}: {error}", self.place);
        match error {
            LayerError::ClientCertificateMissing | LayerError::ClientCertificateRefused { .. } => {
                Stop::denied(message)
            }
            _ => Stop::unreachable(message),
        }
    }

    /// Sends the rest and closes. Waits for the broker to close its side, because closing with
    /// unread bytes in the socket would make the kernel discard bytes that are still in flight to
    /// the broker.
    pub(super) fn close(mut self) {
        let mut finish = || -> io::Result<()> {
            self.wrap().map_err(io::Error::other)?;
            if let Some(layers) = &mut self.layers {
                layers.close(&mut self.wire);
            }
            self.stream.set_nonblocking(false)?;
            self.stream.set_write_timeout(Some(CLOSE_TIMEOUT))?;
            self.stream.set_read_timeout(Some(CLOSE_TIMEOUT))?;
            self.stream.write_all(&self.wire)?;
            self.stream.write_all(&self.output)?;
            self.stream.shutdown(std::net::Shutdown::Write)?;
            while self.stream.read(&mut self.chunk)? != 0 {}
            Ok(())
        };
        // The connection may be closed already, which needs no handling.
        finish().ok();
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The protocol of a scheme, as text.
const fn spoken(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Mqtt => "MQTT without TLS",
        Scheme::Mqtts => "MQTT inside TLS, without WebSocket,",
        Scheme::Ws | Scheme::Wss => "MQTT inside the WebSocket",
        Scheme::Quic => "MQTT over QUIC",
    }
}

/// Sleeps; a signal ends it.
pub(super) fn pause(duration: Duration) -> Result<(), Stop> {
    poll_for(&mut [], Some(duration))
}

fn poll_for(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<(), Stop> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Stop::failed(format!("cannot wait for the socket: {error}"))),
    }
}
