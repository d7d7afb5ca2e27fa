//! One client: its connection, its protocol state and its progress.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use thrum_codec::PacketId;
use thrum_load::delivered::QosRange;
use thrum_load::thread_report::Absence;
use thrum_protocol::client::Client;
use thrum_quic::Dialing;
use thrum_transport::Layers;

use super::outbox::Stalled;

/// No publisher or no subscriber.
pub(super) const NONE: u32 = u32::MAX;

/// Messages that a publisher can number: the open loop ends there, too.
pub(super) const SEQUENCES: u32 = u32::MAX;

/// A client of this thread. Idle, it owns its socket, its protocol state and nothing else.
///
/// What every delivery looks at is on its first cache line: between two deliveries to a client,
/// others have taken the cache.
#[repr(C, align(64))]
pub(super) struct Peer {
    /// A TCP socket, or the end of a pipe that the QUIC threads carry.
    pub(super) stream: Option<OwnedFd>,
    /// This thread's number of the subscriber, or [`NONE`].
    pub(super) subscriber: u32,
    /// This thread's number of the publisher, or [`NONE`].
    pub(super) publisher: u32,
    /// Its group.
    pub(super) group: u32,
    /// Its number in the plan.
    pub(super) number: u32,
    /// Time of the steps so far that may have been the generator's.
    pub(super) own_us: u32,
    pub(super) step: Step,
    pub(super) stalled: Option<Box<Stalled>>,
    /// State that most clients never need.
    pub(super) extra: Option<Box<Extra>>,
    /// When the step under way began.
    pub(super) since_ns: u64,
    pub(super) client: Client,
}

/// Progress of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// TCP connection under way.
    Opening,
    /// TLS or WebSocket handshake under way.
    Securing,
    /// CONNECT sent.
    Connecting,
    /// SUBSCRIBE sent.
    Subscribing,
    /// Connected and subscribed.
    Ready,
    /// Lost; reconnects.
    Away,
    /// Gave up before it was ready.
    Failed,
    /// Ended after that.
    Lost,
}

/// State of clients with TLS, WebSocket or QUIC, of clients that reconnect, and of clients with a
/// fault.
#[derive(Default)]
pub(super) struct Extra {
    /// The layers between MQTT and the socket.
    pub(super) layers: Option<Layers>,
    /// State of its QUIC connection.
    pub(super) dialing: Option<Dialing>,
    /// Time of the loss, until ready again; 0 if it is not disconnected.
    pub(super) away_since_ns: u64,
    /// Failed attempts to reconnect.
    pub(super) attempts: u32,
    /// Periods without a session.
    pub(super) absences: Vec<Absence>,
    /// Its fault.
    pub(super) impairment: Impairment,
    /// A slow reader's next read.
    pub(super) next_read_ns: u64,
    /// The time that its timer was last set to.
    pub(super) read_timer_ns: u64,
    /// Answers that wait for the window.
    pub(super) answers: VecDeque<Answer>,
    /// Answers to SUBSCRIBE still expected after the next one.
    pub(super) subacks_further: u32,
    /// What the answers so far granted.
    pub(super) granted: Option<QosRange>,
}

/// An answer that waits for the window.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Number of the publisher that asked.
    pub(super) publisher: u32,
    pub(super) payload: Vec<u8>,
    pub(super) correlation: Option<Vec<u8>>,
}

/// Fault of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Impairment {
    /// No fault.
    #[default]
    None,
    /// It does not read.
    NotReading,
    /// It neither reads nor writes.
    Frozen,
}

/// A publisher of this thread.
#[derive(Debug)]
pub(super) struct PublisherState {
    /// Its client.
    pub(super) peer: u32,
    /// Its number in the plan.
    pub(super) number: u32,
    /// The next message to send.
    pub(super) next: u32,
    /// Messages that were due so far.
    pub(super) due: u32,
    /// The broker did not take the next message yet.
    pub(super) held: bool,
    /// Messages before this were late already when they came due here.
    pub(super) late_until: u32,
    /// Messages without acknowledgement, as many as the window allows.
    pub(super) awaiting: VecDeque<Awaited>,
    /// Messages that cannot be acknowledged any more, because their session is gone.
    pub(super) given_up: Vec<u32>,
}

/// A message without acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) packet_id: PacketId,
    pub(super) sequence: u32,
    pub(super) sent_ns: u64,
    /// The broker did not take it when it was due.
    pub(super) was_held_back: bool,
}

impl Extra {
    /// An answer to SUBSCRIBE has arrived; returns what all of them grant, if it is the last.
    pub(super) fn note_suback(&mut self, granted: QosRange) -> Option<QosRange> {
        let before = self.granted.take();
        let granted = before.map_or(granted, |before| before.with(granted));
        if self.subacks_further == 0 {
            return Some(granted);
        }
        self.subacks_further -= 1;
        self.granted = Some(granted);
        None
    }
}

impl Peer {
    /// The generator may have taken this long on the way to being ready.
    pub(super) fn add_own(&mut self, ns: u64) {
        let us = u32::try_from(ns.div_ceil(1_000)).unwrap_or(u32::MAX);
        self.own_us = self.own_us.saturating_add(us);
    }

    /// What of a latency of connecting or subscribing is certainly not the generator's.
    pub(super) fn floor_ns(&self, latency_ns: u64) -> u64 {
        latency_ns.saturating_sub(u64::from(self.own_us) * 1_000)
    }

    pub(super) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    pub(super) fn impairment(&self) -> Impairment {
        self.extra
            .as_ref()
            .map_or(Impairment::None, |extra| extra.impairment)
    }

    /// Time of the loss; 0 if it is not disconnected.
    pub(super) fn away_since_ns(&self) -> u64 {
        self.extra.as_ref().map_or(0, |extra| extra.away_since_ns)
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.step, Step::Failed | Step::Lost)
    }
}

impl PublisherState {
    pub(super) const fn new(peer: u32, number: u32) -> Self {
        Self {
            peer,
            number,
            next: 0,
            due: 0,
            held: false,
            late_until: 0,
            awaiting: VecDeque::new(),
            given_up: Vec::new(),
        }
    }

    /// Whether a closed loop with this window may send another message.
    pub(super) fn has_room(&self, window: u16) -> bool {
        self.next < SEQUENCES && self.awaiting.len() < usize::from(window)
    }

    /// Removes an acknowledged message; acknowledgements mostly arrive in order.
    pub(super) fn take_awaited(&mut self, packet_id: PacketId) -> Option<Awaited> {
        let at = self
            .awaiting
            .iter()
            .position(|awaited| awaited.packet_id == packet_id)?;
        self.awaiting.remove(at)
    }

    /// Forgets the acknowledgements of a lost session; returns how many.
    pub(super) fn give_up(&mut self) -> usize {
        let lost = self.awaiting.len();
        self.given_up
            .extend(self.awaiting.drain(..).map(|awaited| awaited.sequence));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_ends_with_the_numbers_of_its_messages() {
        let mut publisher = PublisherState::new(0, 0);
        publisher.next = SEQUENCES - 1;
        assert!(publisher.has_room(1) && !publisher.has_room(0));
        publisher.next = SEQUENCES;
        assert!(!publisher.has_room(1));
    }
}
