//! Opening the socket of a connection: of TCP, of this machine, or the end of a pipe that is
//! carried over QUIC.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use thrum_transport::Connector;

use super::Stop;
use super::quic::Quic;
use super::target::Target;

/// Time limit for a connection of the transport.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects; what carries the socket beside it, if it is a pipe.
pub(super) fn dial(target: &Target, connector: &Connector) -> Result<(Socket, Option<Quic>), Stop> {
    if let Some(path) = &target.unix {
        return Ok((connect_unix(path)?, None));
    }
    let endpoint = &target.endpoint;
    let addresses = resolve(&endpoint.host, endpoint.port)?;
    let local = match &target.bind_address {
        Some(address) => resolve(address, 0)?,
        None => Vec::new(),
    };
    if endpoint.scheme.is_quic() {
        let (stream, quic) = Quic::open(target, connector, &addresses, &local)?;
        return Ok((stream, Some(quic)));
    }
    Ok((connect_first(target, &addresses, &local)?, None))
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

fn connect_unix(path: &Path) -> Result<Socket, Stop> {
    let connect = || {
        let address = SockAddr::unix(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.connect_timeout(&address, CONNECT_TIMEOUT)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    connect().map_err(|error: std::io::Error| {
        let place = path.display();
        Stop::unreachable(format!(
            "cannot connect to unix:{place}: {}",
            explain_unix(&error)
        ))
    })
}

fn explain_unix(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "there is no such socket; is the broker running, and is this the path of its listener?"
                .to_owned()
        }
        ErrorKind::ConnectionRefused => {
            "no process listens there any more, or it is not a socket; is the broker running?"
                .to_owned()
        }
        ErrorKind::PermissionDenied => {
            "permission denied; the user needs to write to the socket and to enter its folders"
                .to_owned()
        }
        ErrorKind::InvalidInput => {
            "the path is too long for a socket; 107 bytes are the most".to_owned()
        }
        ErrorKind::WouldBlock => "the broker has a full backlog; try again".to_owned(),
        _ => format!("{error}; check the path"),
    }
}
