//! The figures of a session that filters compare and listings are sorted by.

use std::cmp::Ordering;

use thrum_engine::client::Client;
use thrum_protocol::Time;

/// A figure of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Figure {
    /// Messages in the queue.
    QueuedMessages,
    /// Their bytes.
    QueuedBytes,
    /// How full the queue is, by messages or by bytes, in percent of its limit.
    QueuePercent,
    /// Messages with QoS 1 and 2 that were sent and not acknowledged.
    Inflight,
    /// Subscriptions, shared ones included.
    Subscriptions,
    /// Messages received on the connection, or the last one.
    MessagesReceived,
    /// Messages sent on the connection, or the last one.
    MessagesSent,
    /// Messages that the session did not get since it began.
    Dropped,
    /// Seconds that the session outlives its connection.
    Expiry,
    /// Seconds since the last packet of the client, or since its connection ended.
    Idle,
    /// Seconds since the oldest queued message was queued; sessions without one have none.
    OldestQueued,
    /// Seconds since the session got the oldest message that was sent and not acknowledged;
    /// sessions without one have none, nor have those that keep no copy of it.
    OldestUnacknowledged,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::QueuedMessages,
        Self::QueuedBytes,
        Self::QueuePercent,
        Self::Inflight,
        Self::Subscriptions,
        Self::MessagesReceived,
        Self::MessagesSent,
        Self::Dropped,
        Self::Expiry,
        Self::Idle,
        Self::OldestQueued,
        Self::OldestUnacknowledged,
    ];

    /// Name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueuedMessages => "queued_messages",
            Self::QueuedBytes => "queued_bytes",
            Self::QueuePercent => "queue_percent",
            Self::Inflight => "inflight",
            Self::Subscriptions => "subscriptions",
            Self::MessagesReceived => "messages_received",
            Self::MessagesSent => "messages_sent",
            Self::Dropped => "messages_dropped",
            Self::Expiry => "session_expiry_secs",
            Self::Idle => "idle_secs",
            Self::OldestQueued => "oldest_queued_secs",
            Self::OldestUnacknowledged => "oldest_unacknowledged_secs",
        }
    }

    /// Short name in filters.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::QueuedMessages => "queue",
            Self::QueuedBytes => "queue_bytes",
            Self::MessagesReceived => "received",
            Self::MessagesSent => "sent",
            Self::Expiry => "expiry",
            Self::Idle => "idle",
            Self::OldestQueued => "oldest",
            Self::OldestUnacknowledged => "unacknowledged",
            Self::Dropped => "dropped",
            Self::QueuePercent | Self::Inflight | Self::Subscriptions => self.name(),
        }
    }

    /// The figure with that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|figure| figure.name() == name || figure.short_name() == name)
    }

    /// Its value for a session; none if it has none.
    pub(in super::super) fn of(self, client: &Client, now: Time) -> Option<u64> {
        if self.is_age() {
            return self.since(client).map(|since| now.since(since).as_secs());
        }
        let session = &client.session;
        let (queued, queued_bytes, inflight) = session.outbound().backlog();
        let traffic = session.link().traffic();
        Some(match self {
            Self::QueuedMessages => queued as u64,
            Self::QueuedBytes => queued_bytes as u64,
            Self::QueuePercent => queue_percent(client),
            Self::Inflight => inflight as u64,
            Self::Subscriptions => client.subscription_count() as u64,
            Self::MessagesReceived => traffic.received.into(),
            Self::MessagesSent => traffic.sent.into(),
            Self::Dropped => client.dropped().map(|(_, count)| count).sum(),
            Self::Expiry => session.lifetime().session_expiry().into(),
            Self::Idle | Self::OldestQueued | Self::OldestUnacknowledged => return None,
        })
    }

    /// Its place in an order, the lowest first. Sessions without a value are first. Ages do not
    /// change the order while time passes, so that a listing by page lists each session once.
    pub(in super::super) fn order(self, client: &Client) -> u64 {
        if self.is_age() {
            let since = self.since(client);
            return since.map_or(0, |since| u64::MAX - since.as_millis());
        }
        self.of(client, Time::default()).unwrap_or(0)
    }

    const fn is_age(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::OldestQueued | Self::OldestUnacknowledged
        )
    }

    /// The begin of an age.
    fn since(self, client: &Client) -> Option<Time> {
        let session = &client.session;
        match self {
            Self::OldestQueued => session.outbound().oldest().queued,
            Self::OldestUnacknowledged => session.outbound().oldest().unacknowledged,
            _ => Some(session.lifetime().last_activity()),
        }
    }
}

/// How full the queue of a session is, in percent of its limit of messages or of bytes, whichever
/// is closer; more than 100 if it exceeds them.
pub(super) fn queue_percent(client: &Client) -> u64 {
    let (messages, bytes, _) = client.session.outbound().backlog();
    let queue = &client.session.limits().queue;
    let percent = |value: usize, limit: u32| match limit {
        0 => 0,
        limit => (value as u64).saturating_mul(100) / u64::from(limit),
    };
    percent(messages, queue.messages_max).max(percent(bytes, queue.bytes_max))
}

/// How a figure is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

impl Comparison {
    /// Whether a figure compares so with a value.
    pub(super) fn holds(self, figure: u64, value: u64) -> bool {
        let order = figure.cmp(&value);
        match self {
            Self::Below => order == Ordering::Less,
            Self::AtMost => order != Ordering::Greater,
            Self::Equal => order == Ordering::Equal,
            Self::AtLeast => order != Ordering::Less,
            Self::Above => order == Ordering::Greater,
        }
    }
}
