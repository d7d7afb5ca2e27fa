//! A well-behaved client beside an attack: it measures how long its messages take to return.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thrum_conformance::packets::{Publish, ack, first, unique};
use thrum_conformance::{Event, Version, Wire, clock};

/// Prefix of all its topics; rules have to allow it.
pub const TOPICS: &str = "probe/";
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
/// A round that takes longer counts as lost, and is the last one.
const ROUND_MAX: Duration = Duration::from_mins(1);
/// The probe has a higher priority than the attackers, where the system allows that.
const NICENESS: i32 = -10;

const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;

/// The results of the rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Their number.
    pub count: usize,
    /// Half of them were not longer.
    pub median: Duration,
    /// None was longer.
    pub longest: Duration,
    /// The last one did not end well: no answer, or no connection.
    pub is_lost: bool,
}

/// A probe in a thread of its own.
#[derive(Debug)]
pub struct Watch {
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    rounds: Vec<Duration>,
    is_lost: bool,
}

impl Watch {
    /// Connects a probe.
    pub fn start(address: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::default();
        let mut probe = Probe::new(address);
        let (over, told) = (Arc::clone(&is_over), Arc::clone(&seen));
        let thread = thread::spawn(move || {
            // Without permission, the probe keeps the normal priority.
            rustix::process::nice(NICENESS).unwrap_or_default();
            while !over.load(Ordering::Relaxed) && probe.round(&told) {
                clock::sleep(PAUSE);
            }
        });
        Self {
            is_over,
            seen,
            thread: Some(thread),
        }
    }

    /// The measurements so far do not count.
    pub fn forget(&self) {
        lock(&self.seen).rounds.clear();
    }

    /// Ends the last round and returns the result.
    pub fn end(mut self) -> Rounds {
        self.stop();
        let mut seen = lock(&self.seen);
        seen.rounds.sort_unstable();
        Rounds {
            count: seen.rounds.len(),
            median: seen
                .rounds
                .get(seen.rounds.len() / 2)
                .copied()
                .unwrap_or_default(),
            longest: seen.rounds.last().copied().unwrap_or_default(),
            is_lost: seen.is_lost,
        }
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            lock(&self.seen).is_lost = true;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A client that sends messages with `QoS` 1 to itself.
struct Probe {
    wire: Wire,
    topic: String,
    packet_id: u16,
}

impl Probe {
    fn new(address: SocketAddr) -> Self {
        let mut wire = Wire::fresh(address, Version::V5);
        let topic = unique(TOPICS);
        wire.subscribe(&topic, 1);
        Self {
            wire,
            topic,
            packet_id: 0,
        }
    }

    /// One message and its way back; false if that was the last one.
    fn round(&mut self, seen: &Mutex<Seen>) -> bool {
        let start = clock::now();
        self.packet_id = self.packet_id.checked_add(1).unwrap_or(1);
        let message = Publish::new(Version::V5, &self.topic, 1, &self.packet_id.to_be_bytes());
        self.wire.send(&message.packet_id(self.packet_id).bytes());
        let is_lost = !self.is_back();
        let mut seen = lock(seen);
        seen.rounds.push(start.elapsed());
        seen.is_lost = is_lost;
        !is_lost
    }

    /// Waits for the message and its acknowledgement.
    fn is_back(&mut self) -> bool {
        let (mut is_acknowledged, mut is_delivered) = (false, false);
        while !(is_acknowledged && is_delivered) {
            let Event::Packet(packet) = self.wire.next(ROUND_MAX) else {
                return false;
            };
            match packet.kind() {
                PUBLISH => {
                    let publish = packet.publish(Version::V5);
                    self.wire.send(&ack(first::PUBACK, publish.packet_id));
                    is_delivered = true;
                }
                PUBACK => is_acknowledged = true,
                _ => return false,
            }
        }
        true
    }
}

/// A failed probe has left whole rounds behind.
fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
