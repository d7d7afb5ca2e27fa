//! Reads all retained messages with a client of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use thrum_conformance::Version;
use thrum_conformance::packets::{Connect, PINGREQ, subscribe};
use thrum_conformance::received::Packet;

use crate::client::Link;
use crate::event::{Event, MessageNumber, Millis};
use crate::journal::Journal;
use crate::payload;

/// A retained message that does not arrive within this time is missing.
const PATIENCE: Millis = 5_000;
const VERSION: Version = Version::V311;

/// One look.
#[derive(Debug)]
pub struct Inspector {
    link: Link,
    began: Millis,
    found: BTreeMap<String, MessageNumber>,
    /// PINGRESP was received.
    is_answered: bool,
}

impl Inspector {
    /// Connects and subscribes; none if the broker does not listen.
    pub fn new(address: SocketAddr, journal: &mut Journal) -> Option<Self> {
        let mut link = Link::open(address)?;
        journal.note(Event::Inspecting);
        link.send(&Connect::new(VERSION).bytes());
        link.send(&subscribe(VERSION, 1, &[("ret/#", 0), ("will/#", 0)]));
        link.send(&PINGREQ);
        Some(Self {
            link,
            began: journal.now(),
            found: BTreeMap::new(),
            is_answered: false,
        })
    }

    /// Its socket and whether something waits to be written.
    pub fn socket(&self) -> (BorrowedFd<'_>, bool) {
        (self.link.as_fd(), self.link.has_output())
    }

    /// Reads and writes; true if the look is over.
    pub fn turn(&mut self, journal: &mut Journal) -> bool {
        self.link.flush();
        let is_open = self.link.read();
        while let Some(packet) = self.link.next_packet() {
            self.packet(&packet);
        }
        // A kill ends a look without a result.
        if !is_open {
            journal.note(Event::NotInspected);
            return true;
        }
        let is_late = journal.now() > self.began + PATIENCE;
        let is_right = self.is_answered && journal.checker().is_retained_right(&self.found);
        if is_right || is_late {
            journal.note(Event::Inspected(self.found.clone()));
        }
        is_right || is_late
    }

    fn packet(&mut self, packet: &Packet) {
        self.is_answered |= packet.kind() == 13;
        if packet.kind() == 3 {
            let publish = packet.publish(VERSION);
            let number = payload::number_of(&publish.payload).unwrap_or(0);
            // Messages that are published meanwhile arrive without the flag.
            if publish.retain {
                self.found.insert(publish.topic, number);
            }
        }
    }
}
