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
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpCarried {
    pub(crate) bytes_received: u64,
    /// The bytes that the peer has acknowledged.
    pub(crate) bytes_sent: u64,
    /// Smoothed.
    pub(crate) round_trip_micros: u32,
}

/// The counts of a TCP connection; `None` for other sockets. One system call.
#[cfg(target_os = "linux")]
pub(crate) fn tcp_carried(socket: impl AsFd) -> Option<TcpCarried> {
    // Of `struct tcp_info` in linux/tcp.h, whose beginning does not change; that of the C library
    // ends before the counts of bytes.
    const BYTES: usize = 256;
    const ROUND_TRIP_AT: usize = 68;
    const ACKNOWLEDGED_AT: usize = 120;
    const RECEIVED_AT: usize = 128;
    let mut found = [0_u8; BYTES];
    let mut len = libc::socklen_t::try_from(BYTES).ok()?;
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
    let (round_trip, _) = found.get(ROUND_TRIP_AT..)?.split_first_chunk()?;
    let (acknowledged, _) = found.get(ACKNOWLEDGED_AT..)?.split_first_chunk()?;
    let (received, _) = found.get(RECEIVED_AT..)?.split_first_chunk()?;
    Some(TcpCarried {
        bytes_received: u64::from_ne_bytes(*received),
        bytes_sent: u64::from_ne_bytes(*acknowledged),
        round_trip_micros: u32::from_ne_bytes(*round_trip),
    })
}

/// Other systems have no such counts.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tcp_carried(_socket: impl AsFd) -> Option<TcpCarried> {
    None
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
        let carried = tcp_carried(&other).unwrap();
        assert_eq!(carried.bytes_received, 1000);
        assert!(carried.bytes_sent <= 1, "the handshake may count");
        let (socket, _other_end) = UnixStream::pair().unwrap();
        assert!(tcp_carried(&socket).is_none());
    }
}
