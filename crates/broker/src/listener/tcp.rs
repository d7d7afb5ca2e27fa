//! TCP listeners: the kernel spreads new connections over the workers' sockets. [MQTT3-7.1.1-1]

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::Sockets;
use crate::system;

/// Connections that may wait to be accepted, on each worker's socket; the system may lower it.
const BACKLOG: i32 = 4096;
/// Time that a connection may wait for its first bytes before it is accepted without them.
const DEFER_SECONDS: u8 = 1;
/// Number of probes to a silent peer before the connection ends.
const PROBES: u32 = 4;
/// Time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Listening sockets on the same address, and the address with its real port.
pub(super) fn bind(address: SocketAddr, wanted: Sockets) -> io::Result<(Vec<OwnedFd>, SocketAddr)> {
    // With SO_REUSEPORT a second broker of the same user would share the port without an error; a
    // socket without it detects the first.
    let probe = socket(address)?;
    probe.bind(&address.into())?;
    let address = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);
    let sockets: io::Result<Vec<OwnedFd>> = (0..wanted.count)
        .map(|_| {
            let socket = socket(address)?;
            socket.set_reuse_port(true)?;
            // Accepted sockets inherit these options: no system call for each connection.
            socket.set_tcp_nodelay(true)?;
            if !wanted.keepalive.is_zero() {
                let keepalive = TcpKeepalive::new().with_time(wanted.keepalive);
                let keepalive = keepalive.with_interval(PROBE_INTERVAL).with_retries(PROBES);
                socket.set_tcp_keepalive(&keepalive)?;
            }
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            // A client sends first: the worker is woken once, for the connection and its CONNECT.
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
    use std::io::Write as _;
    use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    const fn sockets(count: usize, keepalive: Duration) -> Sockets {
        Sockets { count, keepalive }
    }

    #[test]
    fn a_port_that_another_socket_listens_on_is_refused() {
        let (first, address) = bind(LOOPBACK, sockets(2, Duration::ZERO)).unwrap();
        assert_eq!(first.len(), 2);
        assert_ne!(address.port(), 0);
        let error = bind(address, sockets(2, Duration::ZERO)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn accepted_sockets_ask_silent_peers_whether_they_are_there() {
        let accepted = |keepalive| {
            let (mut sockets, address) = bind(LOOPBACK, sockets(1, keepalive)).unwrap();
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"first bytes").unwrap();
            let listener = TcpListener::from(sockets.remove(0));
            listener.set_nonblocking(false).unwrap();
            Socket::from(listener.accept().unwrap().0)
        };
        let asking = accepted(Duration::from_mins(10));
        assert!(asking.keepalive().unwrap());
        assert_eq!(
            asking.tcp_keepalive_time().unwrap(),
            Duration::from_mins(10)
        );
        assert_eq!(asking.tcp_keepalive_interval().unwrap(), PROBE_INTERVAL);
        assert_eq!(asking.tcp_keepalive_retries().unwrap(), PROBES);
        assert!(!accepted(Duration::ZERO).keepalive().unwrap());
    }
}
