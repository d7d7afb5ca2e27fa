//! Sockets with a source address of our choice.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// A TCP socket for a connection to an address.
pub(crate) fn socket(to: IpAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(SocketAddr::new(to, 0)),
        Type::STREAM,
        Some(Protocol::TCP),
    )
}

/// Sets the source address of a socket. The port is chosen when connecting, so that it may be the
/// same as that of a connection to another broker.
pub(crate) fn bind(socket: &Socket, source: IpAddr) -> io::Result<()> {
    nix::sys::socket::setsockopt(
        socket,
        nix::sys::socket::sockopt::IpBindAddressNoPort,
        &true,
    )?;
    socket.bind(&SocketAddr::new(source, 0).into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Connects from an address and returns the port on the way.
    fn connect(from: &str, to: SocketAddr) -> u16 {
        let from: IpAddr = from.parse().unwrap();
        let socket = socket(to.ip()).unwrap();
        bind(&socket, from).unwrap();
        let unconnected = socket.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(
            unconnected,
            SocketAddr::new(from, 0),
            "the port is chosen when connecting"
        );
        socket.connect(&to.into()).unwrap();
        let connected = socket.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(connected.ip(), from);
        connected.port()
    }

    #[test]
    fn a_connection_comes_from_its_source_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_ne!(connect("127.0.0.9", address), 0);
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), IpAddr::from([127, 0, 0, 9]));
    }

    #[test]
    fn version_6_has_source_addresses_too() {
        // A machine may have no IPv6.
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            return;
        };
        assert_ne!(connect("::1", listener.local_addr().unwrap()), 0);
    }

    #[test]
    fn an_address_of_another_machine_is_no_source() {
        let source = IpAddr::from([192, 0, 2, 1]);
        let error = bind(&socket(source).unwrap(), source).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
