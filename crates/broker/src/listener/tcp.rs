//! TCP listeners: the kernel spreads new connections over the workers' sockets. [MQTT3-7.1.1-1]

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::system;

/// Connections that may wait to be accepted, on each worker's socket; the system may lower it.
const BACKLOG: i32 = 4096;
/// How long a connection may wait for its first bytes before it is accepted without them.
const DEFER_SECONDS: u8 = 1;

/// One listening socket per worker on the same address, and the address with its real port.
pub(super) fn bind(address: SocketAddr, workers: usize) -> io::Result<(Vec<OwnedFd>, SocketAddr)> {
    // With SO_REUSEPORT a second broker of the same user would share the port in silence; a socket
    // without it finds out.
    let probe = socket(address)?;
    probe.bind(&address.into())?;
    let address = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);
    let sockets: io::Result<Vec<OwnedFd>> = (0..workers)
        .map(|_| {
            let socket = socket(address)?;
            socket.set_reuse_port(true)?;
            // Accepted sockets inherit it: one system call less for each connection.
            socket.set_tcp_nodelay(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            // A client speaks first: the worker is woken once, for the connection and its CONNECT.
            system::defer_accept(&socket, DEFER_SECONDS)?;
            Ok(socket.into())
        })
        .collect();
    Ok((sockets?, address))
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_another_socket_listens_on_is_refused() {
        let (first, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 2).unwrap();
        assert_eq!(first.len(), 2);
        assert_ne!(address.port(), 0);
        let error = bind(address, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
