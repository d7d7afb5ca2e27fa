//! Listening sockets: one per thread on the same address, among which the kernel spreads the
//! connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted, on each socket; the system may lower it.
const BACKLOG: i32 = 4_096;

/// So many sockets, and the address they have in the end.
pub(super) fn bind(
    address: SocketAddr,
    threads: u16,
) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    // Sockets that share their port would silently share it with another relay too: the probe
    // prevents that.
    let probe = socket(address)?;
    probe.bind(&address.into())?;
    let address = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);
    let mut listeners = Vec::new();
    for _ in 0..threads {
        let socket = socket(address)?;
        socket.set_reuse_port(true)?;
        // Accepted sockets have it from their listener.
        socket.set_tcp_nodelay(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        listeners.push(socket.into());
    }
    Ok((listeners, address))
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn threads_share_a_port_and_no_other_process_gets_it() {
        let (listeners, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        assert_eq!(listeners.len(), 3);
        for listener in &listeners {
            assert_eq!(listener.local_addr().unwrap(), address);
        }
        assert_eq!(bind(address, 1).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
