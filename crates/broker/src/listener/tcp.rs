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

/// Listening sockets on the same address, and the address with its real port. Those that take an
/// address over do not listen before [`listen`]: the system would give them connections of the
/// sockets that have it, and reset those if they are closed instead of used.
pub(super) fn bind(address: SocketAddr, wanted: Sockets) -> io::Result<(Vec<OwnedFd>, SocketAddr)> {
    // With SO_REUSEPORT a second broker of the same user would share the port without an error; a
    // socket without it detects the first.
    let address = if wanted.takes_over {
        address
    } else {
        let probe = socket(address)?;
        probe.bind(&address.into())?;
        probe.local_addr()?.as_socket().unwrap_or(address)
    };
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
            let socket = OwnedFd::from(socket);
            if !wanted.takes_over {
                listen(&socket)?;
            }
            Ok(socket)
        })
        .collect();
    Ok((sockets?, address))
}

/// Listens on a socket that is bound.
pub(super) fn listen(socket: &OwnedFd) -> io::Result<()> {
    rustix::net::listen(socket, BACKLOG)?;
    // A client sends first: the worker is woken once, for the connection and its CONNECT.
    system::defer_accept(socket, DEFER_SECONDS)
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
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    const fn sockets(count: usize, keepalive: Duration) -> Sockets {
        Sockets {
            count,
            keepalive,
            takes_over: false,
        }
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
    fn an_address_is_taken_over_from_sockets_of_this_broker() {
        let (first, address) = bind(LOOPBACK, sockets(2, Duration::ZERO)).unwrap();
        let wanted = Sockets {
            takes_over: true,
            ..sockets(1, Duration::ZERO)
        };
        let (mut next, same) = bind(address, wanted).unwrap();
        assert_eq!(same, address);
        listen(&next[0]).unwrap();
        drop(first);
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"first bytes").unwrap();
        let listener = TcpListener::from(next.remove(0));
        listener.set_nonblocking(false).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn a_takeover_that_is_not_carried_out_takes_no_connection() {
        let (first, address) = bind(LOOPBACK, sockets(1, Duration::ZERO)).unwrap();
        let wanted = Sockets {
            takes_over: true,
            ..sockets(8, Duration::ZERO)
        };
        let (planned, _) = bind(address, wanted).unwrap();
        let clients: Vec<_> = (0..16)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        drop(planned);
        for mut client in clients {
            client.write_all(b"first bytes").unwrap();
            let patience = Duration::from_millis(20);
            client.set_read_timeout(Some(patience)).unwrap();
            let nothing = client.read(&mut [0]).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock, "{nothing}");
        }
        drop(first);
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
