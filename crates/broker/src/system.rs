//! System calls that the libraries in use do not offer; the only unsafe code of this crate.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A new connection is accepted with its first bytes, or after about so many seconds without.
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

/// Other systems accept at once.
#[cfg(not(target_os = "linux"))]
pub(crate) fn defer_accept(_socket: impl AsFd, _seconds: u8) -> io::Result<()> {
    Ok(())
}

/// Returns free memory to the system, as far as whole pages are free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_memory() {
    #[expect(unsafe_code, reason = "no library has a call for it")]
    // SAFETY: it takes no pointer and may be called at any time from any thread.
    let gave_back = unsafe { libc::malloc_trim(0) };
    tracing::debug!(gave_back, "free memory was returned to the system");
}

/// Other allocators do it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_memory() {}

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
    // of that length which the kernel only reads.
    let outcome =
        unsafe { libc::setsockopt(descriptor, level, name, (&raw const value).cast(), len) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // Linux reports in pages: of 4 KiB, or of 16 or 64 KiB on some machines of ARM.
    Some(pages * rustix::param::page_size() as u64)
}
