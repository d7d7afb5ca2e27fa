//! The socket and its two buffers.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use thrum_transport::Scheme;

use super::Stop;
use super::plan::Target;
use super::quic::Quic;

/// How long a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last bytes may take to leave, and the broker to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 * 1024;

/// A connection; never blocks but in [`Link::wait`].
#[derive(Debug)]
pub(super) struct Link {
    /// Of TCP, or the end of a pipe to what carries it over QUIC.
    stream: Socket,
    /// Goes after the socket, so that its last words are still carried.
    quic: Option<Quic>,
    chunk: Box<[u8]>,
    /// Received and not yet handled.
    pub(super) input: Vec<u8>,
    /// To be sent.
    pub(super) output: Vec<u8>,
}

/// What a wait ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) socket: bool,
    pub(super) input: bool,
}

impl Link {
    pub(super) fn open(target: &Target) -> Result<Self, Stop> {
        let addresses = resolve(&target.host, target.port)?;
        let local = match &target.bind_address {
            Some(address) => resolve(address, 0)?,
            None => Vec::new(),
        };
        let (stream, quic) = match target.scheme {
            Scheme::Quic => {
                let (stream, quic) = Quic::open(target, &addresses, &local)?;
                (stream, Some(quic))
            }
            Scheme::Mqtt | Scheme::Mqtts | Scheme::Ws | Scheme::Wss => {
                (connect_first(target, &addresses, &local)?, None)
            }
        };
        Ok(Self {
            stream,
            quic,
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// Sends what the socket takes now.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(0) => break,
                Ok(length) => sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        self.output.drain(..sent);
        Ok(())
    }

    /// Waits until the socket or the other input has something, what is to be sent fits, the time is over, or a signal came.
    pub(super) fn wait(
        &self,
        timeout: Option<Duration>,
        input: Option<BorrowedFd<'_>>,
    ) -> Result<Ready, Stop> {
        let mut wanted = PollFlags::IN;
        if !self.output.is_empty() {
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

    /// Reads what has come.
    pub(super) fn fill(&mut self) -> Result<(), Stop> {
        match self.stream.read(&mut self.chunk) {
            Ok(0) => Err(match self.quic.as_ref().and_then(Quic::failure) {
                Some(failure) => failure,
                None => Stop::unreachable("the broker closed the connection"),
            }),
            Ok(length) => {
                self.input.extend_from_slice(&self.chunk[..length]);
                Ok(())
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// What the end of the socket means.
    fn lost(&self, error: &str) -> Stop {
        let failure = self.quic.as_ref().and_then(Quic::failure);
        failure.unwrap_or_else(|| Stop::unreachable(format!("connection lost: {error}")))
    }

    /// Sends the rest and closes. Waits for the broker to close its side, because closing with unread bytes in the
    /// socket would make the kernel throw away what is still on its way to the broker.
    pub(super) fn close(mut self) {
        let mut finish = || -> std::io::Result<()> {
            self.stream.set_nonblocking(false)?;
            self.stream.set_write_timeout(Some(CLOSE_TIMEOUT))?;
            self.stream.set_read_timeout(Some(CLOSE_TIMEOUT))?;
            self.stream.write_all(&self.output)?;
            self.stream.shutdown(std::net::Shutdown::Write)?;
            while self.stream.read(&mut self.chunk)? != 0 {}
            Ok(())
        };
        // The connection may be gone already, and there is nothing more to do about it.
        finish().ok();
    }
}

/// Waits for nothing but time; a signal ends it.
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

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Stop> {
    let addresses = (host, port).to_socket_addrs().map_err(|error| {
        Stop::unreachable(format!(
            "cannot find the host {host}: {error}; check the name"
        ))
    })?;
    Ok(addresses.collect())
}

/// A connection to the first address that accepts one.
fn connect_first(
    target: &Target,
    addresses: &[SocketAddr],
    local: &[SocketAddr],
) -> Result<Socket, Stop> {
    let place = target.place();
    let mut failure = None;
    for address in addresses {
        match connect(*address, local) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let why = match failure {
        Some(error) => format!("cannot connect to {place}: {}", explain(&error)),
        None => format!("{place}: the name has no address"),
    };
    Err(Stop::unreachable(why))
}

// [MQTT-4.2.0-1] [MQTT3-7.1.2-1]
fn connect(address: SocketAddr, local: &[SocketAddr]) -> std::io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    let same_family = local
        .iter()
        .find(|local| local.is_ipv4() == address.is_ipv4());
    if let Some(local) = same_family {
        socket.bind(&(*local).into())?;
    }
    socket.connect_timeout(&address.into(), CONNECT_TIMEOUT)?;
    // Acknowledgements must not wait for more data.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn explain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "connection refused; is the broker running? start one with `thrum serve --dev`"
                .to_owned()
        }
        ErrorKind::TimedOut => "no answer; check host, port and firewalls".to_owned(),
        ErrorKind::AddrNotAvailable => {
            "the address to connect from is not one of this machine; check -A".to_owned()
        }
        _ => format!("{error}; check host and port"),
    }
}
