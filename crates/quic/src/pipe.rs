//! The socket pair between a bridge and an event loop.

use std::io;
use std::os::unix::net::UnixStream;

use socket2::SockRef;

/// Two connected, non-blocking stream sockets that hold about `bytes` in each direction.
pub(crate) fn pair(bytes: usize) -> io::Result<(UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    for socket in [&ours, &theirs] {
        socket.set_nonblocking(true)?;
        // For a Unix socket the buffer of the sender counts; the kernel may give less than
        // requested.
        SockRef::from(socket).set_send_buffer_size(bytes)?;
    }
    Ok((ours, theirs))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_pipe_holds_about_the_requested_bytes() {
        let (mut ours, _theirs) = pair(64 * 1024).unwrap();
        let mut held = 0;
        while let Ok(written) = ours.write(&[0; 4096]) {
            held += written;
        }
        assert!((16 * 1024..=160 * 1024).contains(&held), "{held}");
    }
}
