//! System calls that the libraries in use do not offer; the only unsafe code of this crate.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Accepts new connections with their first bytes, or without them after about this number of
/// seconds.
///
/// # Errors
/// As `setsockopt(2)`.
#[cfg(target_os = "linux")]
pub(crate) fn defer_accept(socket: impl AsFd, seconds: u8) -> io::Result<()> {
    set(
        socket,
        libc::IPPROTO_TCP,
        libc::TCP_DEFER_ACCEPT,
        seconds.into(),
    )
}

/// No effect: other systems accept at once.
#[cfg(not(target_os = "linux"))]
pub(crate) fn defer_accept(_socket: impl AsFd, _seconds: u8) -> io::Result<()> {
    Ok(())
}

/// Returns free memory to the system, as far as whole pages are free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn return_free_memory() {
    #[expect(unsafe_code, reason = "no library has a call for it")]
    // SAFETY: the function takes no pointer and may be called at any time from any thread.
    let gave_back = unsafe { libc::malloc_trim(0) };
    tracing::debug!(gave_back, "free memory was returned to the system");
}

/// No effect: other allocators return memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_free_memory() {}

#[expect(unsafe_code, reason = "neither rustix nor socket2 knows this option")]
fn set(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or_default();
    // SAFETY: the descriptor is borrowed for the length of the call, and the pointer is to an int
    // of that length, which the kernel only reads.
    let outcome =
        unsafe { libc::setsockopt(descriptor, level, name, (&raw const value).cast(), len) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The system's counts of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Bytes from the peer.
    pub bytes_received: u64,
    /// The bytes that the peer has acknowledged.
    pub bytes_sent: u64,
    /// Smoothed round trip.
    pub round_trip_micros: u32,
    /// Its mean deviation.
    pub round_trip_deviation_micros: u32,
    /// Segments that were sent again since the connection began.
    pub retransmitted: u32,
    /// Segments that were sent and not acknowledged.
    pub unacknowledged: u32,
    /// Bytes that wait in the socket to be sent for the first time; none on kernels before 4.6.
    pub unsent_bytes: Option<u32>,
    /// Segments that may be sent without an acknowledgement.
    pub congestion_window: u32,
    /// Milliseconds since the last data or acknowledgement of the peer.
    pub silent_millis: u32,
}

/// Offsets in `struct tcp_info` of linux/tcp.h, whose beginning does not change; that of the C
/// library ends before the counts of bytes.
#[cfg(target_os = "linux")]
mod tcp_info {
    /// Bytes that are read: more than all offsets.
    pub(super) const BYTES: usize = 256;
    pub(super) const UNACKED: usize = 24;
    pub(super) const LAST_DATA_RECEIVED: usize = 52;
    pub(super) const LAST_ACK_RECEIVED: usize = 56;
    pub(super) const ROUND_TRIP: usize = 68;
    pub(super) const ROUND_TRIP_DEVIATION: usize = 72;
    pub(super) const CONGESTION_WINDOW: usize = 80;
    pub(super) const TOTAL_RETRANSMITTED: usize = 100;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const BYTES_RECEIVED: usize = 128;
    pub(super) const UNSENT_BYTES: usize = 144;
}

/// The counts of a TCP connection; `None` for other sockets. One system call.
#[cfg(target_os = "linux")]
pub(crate) fn tcp_counts(socket: impl AsFd) -> Option<TcpCounts> {
    let mut found = [0_u8; tcp_info::BYTES];
    let mut len = libc::socklen_t::try_from(tcp_info::BYTES).ok()?;
    let descriptor = socket.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "neither rustix nor socket2 knows this option")]
    // SAFETY: the descriptor is borrowed for the length of the call; the pointers are to an array
    // of bytes and to its length, of which the kernel writes no more than that.
    let outcome = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            found.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let found = found.get(..usize::try_from(len).ok()?)?;
    if outcome != 0 {
        return None;
    }
    let number = |at: usize| {
        let (number, _) = found.get(at..)?.split_first_chunk()?;
        Some(u32::from_ne_bytes(*number))
    };
    let long_number = |at: usize| {
        let (number, _) = found.get(at..)?.split_first_chunk()?;
        Some(u64::from_ne_bytes(*number))
    };
    let silent = number(tcp_info::LAST_DATA_RECEIVED)?.min(number(tcp_info::LAST_ACK_RECEIVED)?);
    Some(TcpCounts {
        bytes_received: long_number(tcp_info::BYTES_RECEIVED)?,
        bytes_sent: long_number(tcp_info::BYTES_ACKED)?,
        round_trip_micros: number(tcp_info::ROUND_TRIP)?,
        round_trip_deviation_micros: number(tcp_info::ROUND_TRIP_DEVIATION)?,
        retransmitted: number(tcp_info::TOTAL_RETRANSMITTED)?,
        unacknowledged: number(tcp_info::UNACKED)?,
        unsent_bytes: number(tcp_info::UNSENT_BYTES),
        congestion_window: number(tcp_info::CONGESTION_WINDOW)?,
        silent_millis: silent,
    })
}

/// Other systems have no such counts.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tcp_counts(_socket: impl AsFd) -> Option<TcpCounts> {
    None
}

/// Bytes that wait in a socket to be read. One system call.
pub(crate) fn unread_bytes(socket: impl AsFd) -> Option<u64> {
    rustix::io::ioctl_fionread(socket).ok()
}

/// Resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // Linux reports in pages: of 4 KiB, or of 16 or 64 KiB on some machines of ARM.
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_a_tcp_connection_has_carried_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&[0; 1000]).unwrap();
        other.read_exact(&mut [0; 1000]).unwrap();
        let counts = tcp_counts(&other).unwrap();
        assert_eq!(counts.bytes_received, 1000);
        assert!(counts.bytes_sent <= 1, "the handshake may count");
        assert!(counts.round_trip_micros > 0 && counts.congestion_window > 0);
        assert_eq!((counts.retransmitted, counts.unsent_bytes), (0, Some(0)));
        assert!(counts.silent_millis < 60_000, "{counts:?}");
        one.write_all(&[0; 77]).unwrap();
        while unread_bytes(&other) != Some(77) {
            std::thread::yield_now();
        }
        // The other end reads nothing: what its buffer does not take stays here.
        other.set_nonblocking(true).unwrap();
        while other.write(&[0; 8192]).is_ok() {}
        assert!(tcp_counts(&other).unwrap().unsent_bytes > Some(0));
        let (socket, _other_end) = UnixStream::pair().unwrap();
        assert!(tcp_counts(&socket).is_none());
    }
}
