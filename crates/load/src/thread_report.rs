//! What a thread of the generator hands over at its end.

use serde::{Deserialize, Serialize};

use crate::delivered::Wrong;
use crate::ledger::{PairLedger, SharedLedger};
use crate::plan::Sources;

/// The counts of a thread; its latencies were handed over second by second.
#[derive(Debug, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Messages and connections.
    pub counts: Counts,
    /// Clients that got ready.
    #[serde(default)]
    pub ready: u64,
    /// Clients that gave up before they were ready.
    #[serde(default)]
    pub failed: u64,
    /// Its publishers.
    pub publishers: Vec<PublisherReport>,
    /// Subscribers that were ready, with what each of them expects.
    pub subscribers: Vec<SubscriberReport>,
    /// Deliveries from each publisher to each subscriber, in the order of the subscribers.
    pub pairs: Vec<PairLedger>,
    /// Deliveries to each shared group.
    pub shared: Vec<SharedLedger>,
    /// Longest time from when a message was due until it arrived.
    #[serde(default)]
    pub slowest_ns: u64,
}

/// The counts of a publisher.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PublisherReport {
    /// Its number in the plan.
    pub number: u32,
    /// Messages sent.
    pub sent: u32,
    /// Messages that were due and could not be sent until the end of the drain.
    #[serde(default)]
    pub unsent: u32,
    /// Messages that were to be acknowledged and were not until the end of the drain.
    pub unacknowledged: u32,
    /// Messages whose acknowledgement was lost with the session.
    pub given_up: Vec<u32>,
}

/// A subscriber that was ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// Whose messages it receives.
    pub state: SubscriberState,
    /// What it does with them.
    pub role: Role,
    /// Periods without a session.
    pub absences: Vec<Absence>,
}

/// A period in which a subscriber was without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// When something had arrived there last; 0 if nothing had.
    pub heard_ns: u64,
    /// When its connection ended.
    pub from_ns: u64,
    /// When it was subscribed again.
    pub to_ns: u64,
}

/// The handling of messages by a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Nothing.
    Receiver,
    /// Sends them back.
    Responder,
    /// They are the answers to its requests.
    Requester,
}

/// A subscriber of this thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SubscriberState {
    /// Receives every message of these publishers; its pairs are adjacent in the thread's list.
    Each {
        /// The first of its pairs.
        first_pair: usize,
        /// The publishers.
        sources: Sources,
    },
    /// Member of a shared subscription.
    Shared(u32),
}

/// Counts of one thread over the whole run; messages of the whole load, warm-up included, unless
/// stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// PUBLISH packets sent.
    pub sent: u64,
    /// Of these, sent within the hold.
    pub sent_in_hold: u64,
    /// Messages that could not be sent when due, because the broker had not acknowledged enough
    /// earlier ones, did not take more bytes, or the connection was down.
    pub held_back: u64,
    /// Messages due before the end of the hold that were still held back then.
    pub held_back_at_end: u64,
    /// Messages received, duplicates included.
    pub received: u64,
    /// Of these, received within the hold.
    pub received_in_hold: u64,
    /// Deliveries that the messages sent ought to cause.
    pub expected: u64,
    /// Deliveries for the first time.
    pub distinct: u64,
    /// Deliveries that happened again.
    pub duplicated: u64,
    /// PUBACK or PUBCOMP received.
    pub acknowledged: u64,
    /// Acknowledgements that refused the message.
    pub refused: u64,
    /// Messages received that are not what they should be.
    pub wrong: Wrong,
    /// Messages that arrived longer after they were due than the drain lasts.
    pub late: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Connections that the broker lost or closed after they were ready.
    pub connections_lost: u64,
    /// Connections that the scenario cut on purpose.
    pub connections_cut: u64,
    /// Connections that were restored.
    pub reconnected: u64,
    /// Subscriptions with a lower quality of service than requested.
    pub downgraded: u64,
    /// Clients that should have reconnected and were still disconnected at the end.
    pub away_at_end: u64,
}

impl Counts {
    /// Adds the counts of another thread.
    pub const fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_in_hold += other.sent_in_hold;
        self.held_back += other.held_back;
        self.held_back_at_end += other.held_back_at_end;
        self.received += other.received;
        self.received_in_hold += other.received_in_hold;
        self.expected += other.expected;
        self.distinct += other.distinct;
        self.duplicated += other.duplicated;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.wrong.merge(&other.wrong);
        self.late += other.late;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.connections_lost += other.connections_lost;
        self.connections_cut += other.connections_cut;
        self.reconnected += other.reconnected;
        self.downgraded += other.downgraded;
        self.away_at_end += other.away_at_end;
    }
}
