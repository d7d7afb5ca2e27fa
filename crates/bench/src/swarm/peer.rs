//! One client: its connection, its protocol state and how far it is.

use std::collections::VecDeque;

use mio::net::TcpStream;
use thrum_codec::PacketId;
use thrum_protocol::client::Client;

use super::outbox::Stalled;
use crate::plan::Sources;

/// No publisher or no subscriber.
pub(super) const NONE: u32 = u32::MAX;

/// A client of this thread. Idle, it owns its socket, its protocol state and nothing else.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: Option<TcpStream>,
    pub(super) client: Client,
    pub(super) stalled: Option<Box<Stalled>>,
    /// Its number in the plan.
    pub(super) number: u32,
    /// When the step under way began.
    pub(super) since_ns: u64,
    /// This thread's number of the subscriber, or [`NONE`].
    pub(super) subscriber: u32,
    /// This thread's number of the publisher, or [`NONE`].
    pub(super) publisher: u32,
    pub(super) step: Step,
}

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// TCP connection under way.
    Opening,
    /// CONNECT sent.
    Connecting,
    /// SUBSCRIBE sent.
    Subscribing,
    /// Connected and subscribed.
    Ready,
    /// Gave up before that.
    Failed,
    /// Ended after that.
    Lost,
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
    /// Messages without acknowledgement and when they were sent; as many as the window allows.
    pub(super) awaiting: VecDeque<(PacketId, u64)>,
}

/// A subscriber of this thread.
#[derive(Debug)]
pub(crate) enum SubscriberState {
    /// Gets every message of these publishers; its pairs stand together in the thread's list.
    Each {
        /// The first of its pairs.
        first_pair: usize,
        /// The publishers.
        sources: Sources,
    },
    /// Member of a shared subscription.
    Shared(u32),
}

impl PublisherState {
    /// Takes the send time of a message that was acknowledged; acknowledgements mostly come in order.
    pub(super) fn take_sent(&mut self, packet_id: PacketId) -> Option<u64> {
        let at = self
            .awaiting
            .iter()
            .position(|(awaited, _)| *awaited == packet_id)?;
        self.awaiting.remove(at).map(|(_, sent_ns)| sent_ns)
    }
}
