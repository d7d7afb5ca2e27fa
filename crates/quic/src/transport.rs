//! Settings of QUIC for both ends.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};
use quinn_proto::RandomConnectionIdGenerator;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::runtime::{Builder, Runtime};

/// Buffer of a UDP socket in each direction: the packets of many connections share it, and packets
/// that do not fit are lost.
const UDP_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Below this a warning names the remedy: the first packets of a few hundred clients fit into it.
const UDP_BUFFER_BYTES_LEAST: usize = 1024 * 1024;

/// A connection that received nothing for this time is dead, in milliseconds.
///
/// MQTT's keep alive may be off, or up to 18 hours; QUIC must not end such a connection. So an end
/// that has received nothing for [`KEEP_ALIVE`] sends a PING, and silence for this long means that
/// three of them had no answer.
const IDLE_TIMEOUT_MS: u32 = 300_000;

/// Silence after which an end sends a PING.
///
/// MQTT's usual keep alive of 60 seconds makes that superfluous: any packet counts, and the PING
/// does not wake an idle client. It is shorter than the two minutes for which a NAT keeps the
/// mapping of a UDP port at least (RFC 4787).
const KEEP_ALIVE: Duration = Duration::from_secs(100);

/// Behaviour of a connection whose ends hold up to `window_bytes` in each direction.
pub(crate) fn config(window_bytes: u32, client_streams: u32) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(client_streams.into())
        // MQTT does not use them, and each possible one costs memory in every connection.
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(window_bytes.into())
        // One stream carries everything, so the connection needs no more.
        .receive_window(window_bytes.into())
        .send_window(window_bytes.into())
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .keep_alive_interval(Some(KEEP_ALIVE));
    config
}

/// Bytes of a connection identifier.
const CONNECTION_ID_BYTES: usize = 8;

/// Generates the connection identifiers of a UDP socket.
///
/// quinn's own identifiers are unsuitable: of their 8 bytes 3 are random, and a connection has up
/// to 8 of them. With a thousand connections every two-thousandth client that has proved its
/// address got an identifier which another connection had already: its packets went to that one,
/// and it got no answer.
pub(crate) fn endpoint() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(CONNECTION_ID_BYTES)));
    config
}

/// The kernel's numbers of the threads of a runtime; the lock is held to add to them or to copy
/// them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads(Arc<Mutex<Vec<u32>>>);

impl Threads {
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add_this(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.push(id.unsigned_abs());
    }
}

/// Starts named threads that run connections.
pub(crate) fn runtime(name: &'static str, threads: usize, ids: &Threads) -> io::Result<Runtime> {
    let ids = ids.clone();
    Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .thread_name(name)
        .on_thread_start(move || ids.add_this())
        .enable_io()
        .enable_time()
        .build()
}

/// A UDP socket for many connections.
pub(crate) fn udp_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM.nonblocking(),
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        // A socket of its own listens on the IPv4 addresses of the machine.
        socket.set_only_v6(true)?;
    }
    set_buffers(&socket);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A process with the right to administer the network gets the requested size, another the maximum
/// of the system (`net.core.rmem_max` and `wmem_max`).
fn set_buffers(socket: &Socket) {
    if sockopt::set_socket_recv_buffer_size_force(socket, UDP_BUFFER_BYTES).is_err() {
        // The actual size is read back from the socket.
        socket.set_recv_buffer_size(UDP_BUFFER_BYTES).ok();
    }
    socket.set_send_buffer_size(UDP_BUFFER_BYTES).ok();
}

/// Warns if many simultaneous clients would be too many for the socket.
pub(crate) fn warn_of_small_buffer(socket: &UdpSocket, address: SocketAddr) {
    // The kernel reports twice the requested size, because it includes its own part.
    let bytes = SockRef::from(socket).recv_buffer_size();
    let bytes = bytes.map_or(0, |doubled| doubled / 2);
    if bytes < UDP_BUFFER_BYTES_LEAST {
        tracing::warn!(
            %address,
            bytes,
            "the receive buffer of the UDP socket is small, and packets of many clients at a time will be lost: set \
             net.core.rmem_max of the system to {UDP_BUFFER_BYTES}"
        );
    }
}
