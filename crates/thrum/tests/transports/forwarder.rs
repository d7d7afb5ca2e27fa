//! A way to a broker that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Carries connections to a place.
pub(crate) struct Forwarder {
    port: u16,
    /// Those that were made.
    made: Receiver<TcpStream>,
}

impl Forwarder {
    pub(crate) fn new(place: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, made) = channel();
        // It ends with the test that receives from it.
        thread::spawn(move || while carry(&listener.accept().unwrap().0, &place, &tell) {});
        Self { port, made }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends the connection that was made first and is still there.
    pub(crate) fn cut(&self) {
        let connection = self.made.recv().unwrap();
        connection.shutdown(Shutdown::Both).unwrap();
    }
}

/// Carries one connection; false if the receiver is gone.
fn carry(client: &TcpStream, place: &str, tell: &Sender<TcpStream>) -> bool {
    let broker = TcpStream::connect(place).unwrap();
    let own = |stream: &TcpStream| stream.try_clone().unwrap();
    for (from, to) in [(client, &broker), (&broker, client)] {
        let (from, to) = (own(from), own(to));
        thread::spawn(move || copy(from, to));
    }
    tell.send(own(client)).is_ok()
}

fn copy(mut from: impl Read, mut to: TcpStream) {
    // Either end may be gone, which ends the other.
    std::io::copy(&mut from, &mut to).ok();
    to.flush().ok();
    to.shutdown(Shutdown::Both).ok();
}
