//! One raw TCP connection to the broker.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::clock;
use crate::packets::{Connect, PINGREQ, Version, ack, first, subscribe};
use crate::received::{ConnAck, Packet, Publish};

/// Longest wait for something that must happen.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// The next event.
#[derive(Debug)]
pub enum Event {
    /// A whole packet.
    Packet(Packet),
    /// The broker closed the connection.
    Closed,
    /// Nothing within the time.
    Silence,
}

/// A connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    pending: Vec<u8>,
    /// Packets before the awaited one.
    passed_over: VecDeque<Packet>,
    version: Version,
}

impl Wire {
    /// Connects without sending anything; packets are read as of the given version.
    ///
    /// # Panics
    /// The broker does not accept.
    pub fn open(address: SocketAddr, version: Version) -> Self {
        let stream = TcpStream::connect(address).expect("the broker accepts connections");
        stream
            .set_nodelay(true)
            .expect("a connected socket has the option");
        Self {
            stream,
            pending: Vec::new(),
            passed_over: VecDeque::new(),
            version,
        }
    }

    /// Connects, sends the CONNECT and reads the CONNACK, which has to be a success.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn connect(address: SocketAddr, connect: &Connect) -> (Self, ConnAck) {
        let mut wire = Self::open(address, connect.version);
        wire.send(&connect.bytes());
        let connack = wire.packet("CONNACK").connack(connect.version);
        assert_eq!(connack.code, 0, "the broker accepts the client");
        (wire, connack)
    }

    /// A clean connection with a fresh client identifier.
    pub fn fresh(address: SocketAddr, version: Version) -> Self {
        Self::connect(address, &Connect::new(version)).0
    }

    /// The version that packets are read as.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Sends bytes; a broker that has closed already is not an error here but the next [`Event`].
    pub fn send(&mut self, bytes: &[u8]) {
        // The reader sees the end of the connection; what matters is what the broker sent before.
        drop(self.stream.write_all(bytes));
    }

    /// Sends bytes; returns whether the broker took them within the time.
    ///
    /// # Panics
    /// The time cannot be set.
    pub fn try_send(&mut self, bytes: &[u8], timeout: Duration) -> bool {
        self.stream
            .set_write_timeout(Some(timeout))
            .expect("the time is not zero");
        let sent = self.stream.write_all(bytes).is_ok();
        self.stream.set_write_timeout(None).expect("none is a time");
        sent
    }

    /// Waits for the next packet or the end of the connection.
    ///
    /// # Panics
    /// The operating system reports an error that is not about the connection.
    pub fn next(&mut self, timeout: Duration) -> Event {
        let start = clock::now();
        loop {
            if let Some(packet) = self.passed_over.pop_front().or_else(|| self.split()) {
                return Event::Packet(packet);
            }
            let Some(left) = timeout
                .checked_sub(start.elapsed())
                .filter(|left| !left.is_zero())
            else {
                return Event::Silence;
            };
            self.stream
                .set_read_timeout(Some(left))
                .expect("the time is not zero");
            let mut chunk = [0; 16_384];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Event::Closed,
                Ok(count) => self.pending.extend(chunk.iter().take(count)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Event::Silence,
                    ErrorKind::Interrupted => {}
                    _ => return Event::Closed,
                },
            }
        }
    }

    fn split(&mut self) -> Option<Packet> {
        let first = *self.pending.first()?;
        let mut length = 0_usize;
        for (index, shift) in (1..=4).zip([0, 7, 14, 21]) {
            let byte = *self.pending.get(index)?;
            length |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                let start = index + 1;
                let body = self.pending.get(start..start + length)?.to_vec();
                self.pending.drain(..start + length);
                return Some(Packet { first, body });
            }
        }
        panic!("the broker sent a remaining length of more than four bytes");
    }

    /// The next packet, which is required.
    ///
    /// # Panics
    /// The connection ends or stays silent.
    pub fn packet(&mut self, what: &str) -> Packet {
        match self.next(DEADLINE) {
            Event::Packet(packet) => packet,
            other => panic!("{what} expected, got {other:?}"),
        }
    }

    /// The next packet, which has to be a PUBLISH.
    pub fn publish(&mut self) -> Publish {
        let version = self.version;
        self.packet("PUBLISH").publish(version)
    }

    /// The next packet, which has to be exactly these bytes.
    ///
    /// # Panics
    /// It is another one.
    pub fn expect(&mut self, first: u8, body: &[u8]) {
        let packet = self.packet("a packet");
        assert_eq!(
            packet,
            Packet {
                first,
                body: body.to_vec()
            }
        );
    }

    /// The acknowledgement with this first byte, packet identifier and reason codes.
    ///
    /// # Panics
    /// It is another packet.
    pub fn expect_ack(&mut self, first: u8, packet_id: u16, codes: &[u8]) {
        let packet = self.packet("an acknowledgement");
        let ack = packet.ack(self.version);
        assert_eq!(
            (packet.first, ack.packet_id, ack.codes.as_slice()),
            (first, packet_id, codes),
            "{packet:?}"
        );
    }

    /// Subscribes with packet identifier 1 and takes the SUBACK.
    pub fn subscribe(&mut self, filter: &str, options: u8) {
        self.send(&subscribe(self.version, 1, &[(filter, options)]));
        self.expect_ack(0x90, 1, &[options & 3]);
    }

    /// Sends a packet whose answer arrives only when everything before it is done.
    ///
    /// # Panics
    /// Another packet arrives first.
    pub fn expect_nothing_before_pingresp(&mut self) {
        self.send(&PINGREQ);
        self.expect(0xD0, &[]);
    }

    /// Waits for the end of the connection; returns the packets before it.
    ///
    /// # Panics
    /// The connection stays open.
    pub fn closed(&mut self, timeout: Duration) -> Vec<Packet> {
        let start = clock::now();
        let mut packets = Vec::new();
        loop {
            match self.next(timeout.saturating_sub(start.elapsed())) {
                Event::Packet(packet) => packets.push(packet),
                Event::Closed => return packets,
                Event::Silence => panic!("the connection is open after {timeout:?}: {packets:?}"),
            }
        }
    }

    /// Expects a DISCONNECT with this reason (5.0), or nothing (3.x), and the end.
    ///
    /// # Panics
    /// It ends in another way.
    pub fn expect_end(&mut self, reason: u8) {
        let packets = self.closed(DEADLINE);
        if self.version == Version::V5 {
            let last = packets.last().expect("a DISCONNECT comes before the end");
            assert_eq!(
                (last.kind(), last.reason()),
                (14, Some(reason)),
                "{packets:?}"
            );
        } else {
            assert_eq!(packets, [], "3.x has no DISCONNECT of the server");
        }
    }

    /// Takes the next PUBLISH and acknowledges it to the end.
    ///
    /// # Panics
    /// Another packet arrives.
    pub fn take(&mut self) -> Publish {
        let publish = self.publish();
        match publish.qos {
            1 => self.send(&ack(first::PUBACK, publish.packet_id)),
            2 => {
                self.send(&ack(first::PUBREC, publish.packet_id));
                self.pass_over_to_pubrel(publish.packet_id);
                self.send(&ack(first::PUBCOMP, publish.packet_id));
            }
            _ => {}
        }
        publish
    }

    /// More messages may arrive between PUBREC and PUBREL; they are kept for later.
    fn pass_over_to_pubrel(&mut self, packet_id: u16) {
        let mut passed_over = VecDeque::new();
        loop {
            let packet = self.packet("PUBREL");
            if packet.kind() != 3 {
                let ack = packet.ack(self.version);
                assert_eq!(
                    (packet.first, ack.packet_id),
                    (0x62, packet_id),
                    "{packet:?}"
                );
                break;
            }
            passed_over.push_back(packet);
        }
        passed_over.append(&mut self.passed_over);
        self.passed_over = passed_over;
    }

    /// Publishes and waits for the end of the acknowledgement.
    ///
    /// # Panics
    /// The broker refuses.
    pub fn deliver(&mut self, message: &crate::packets::Publish) {
        self.send(&message.bytes());
        match (message.flags >> 1) & 3 {
            1 => self.expect_success(0x40, message.packet_id),
            2 => {
                self.expect_success(0x50, message.packet_id);
                self.send(&ack(first::PUBREL, message.packet_id));
                self.expect_success(0x70, message.packet_id);
            }
            _ => {}
        }
    }

    fn expect_success(&mut self, first: u8, packet_id: u16) {
        let packet = self.packet("an acknowledgement");
        let ack = packet.ack(self.version);
        assert_eq!(
            (packet.first, ack.packet_id),
            (first, packet_id),
            "{packet:?}"
        );
        // 0x10: no matching subscribers.
        assert!(
            ack.codes.iter().all(|code| matches!(code, 0x00 | 0x10)),
            "{packet:?}"
        );
    }

    /// The connection itself, for tests that only send.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Closes the sending side and leaves.
    pub fn abandon(self) {
        // The broker may have closed first.
        drop(self.stream.shutdown(Shutdown::Both));
    }

    /// Time since an instant, for the bounds of timers.
    pub fn elapsed(start: Instant) -> Duration {
        start.elapsed()
    }
}
