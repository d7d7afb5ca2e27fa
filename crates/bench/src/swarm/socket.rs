//! The socket of a client: of TCP, or the end of a pipe that is carried over QUIC elsewhere.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Token};
use rustix::io::Errno;
use rustix::net::getpeername;
use rustix::net::sockopt::socket_error;

use super::Swarm;
use super::outbox::slot;
use super::ramp::reason_of;
use crate::source;

/// Receive buffer of a slow reader: with the kernel's usual one it would be slow only after
/// megabytes.
const SLOW_RECEIVE_BUFFER_BYTES: usize = 8 * 1024;

impl Swarm {
    /// Begins the connection of a client; a pipe can be written to at once.
    pub(super) fn open_socket(&mut self, peer: u32) -> Result<(), String> {
        let group = self.peers[slot(peer)].group;
        let target = self.groups[slot(group)].target;
        let stream = match &self.setup.targets[target].quic {
            Some(quic) => {
                let dialled = quic.dial(self.setup.targets[target].address);
                let (stream, dialing) = dialled.map_err(|error| error.to_string())?;
                self.peers[slot(peer)].extra().dialing = Some(dialing);
                stream.into()
            }
            None => self.connect_tcp(group).map_err(|error| reason_of(&error))?,
        };
        let interests = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(
                &mut SourceFd(&stream.as_raw_fd()),
                Token(slot(peer)),
                interests,
            )
            .map_err(|error| reason_of(&error))?;
        self.peers[slot(peer)].stream = Some(stream);
        Ok(())
    }

    fn connect_tcp(&mut self, group: u32) -> io::Result<OwnedFd> {
        let settings = &self.groups[slot(group)];
        let target = &self.setup.targets[settings.target];
        let address = target.address;
        let socket = source::socket(address.ip())?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if settings.read_rate.is_some() {
            socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER_BYTES)?;
        }
        if let Some(address) = self.sources.next(settings.target, &target.sources) {
            source::bind(&socket, address)?;
        }
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if is_under_way(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(socket.into())
    }

    /// The connection is up or has failed: sends CONNECT, after the handshakes below it.
    pub(super) fn begin_session(&mut self, peer: u32) {
        let Some(stream) = &self.peers[slot(peer)].stream else {
            return;
        };
        if let Ok(Err(error)) | Err(error) = socket_error(stream) {
            self.lose(peer, &format!("connection: {}", reason_of(&error.into())));
            return;
        }
        if getpeername(stream).is_err() {
            return;
        }
        if !self.begin_layers(peer) {
            self.send_connect(peer);
        }
    }
}

fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error())
}
