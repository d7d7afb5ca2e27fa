//! Counters: one row per worker, written by that worker alone, summed by whoever reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted. Names follow `$SYS` and the drop reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    BytesReceived,
    BytesSent,
    PacketsReceived,
    PublishReceived,
    PublishSent,
    /// Packets sent that are no PUBLISH.
    AnswersSent,
    PublishBytesReceived,
    PublishBytesSent,
    ConnectionsOpened,
    /// CONNECT packets that were answered with success.
    ConnectsAccepted,
    ConnectionsClosed,
    ConnectionsRefused,
    ConnectionsOverLimit,
    ConnectRateDeferred,
    ConnectTimeouts,
    KeepAliveTimeouts,
    Violations,
    Takeovers,
    Handovers,
    /// Gauge: sessions with a connection.
    ClientsConnected,
    /// Gauge: sessions.
    Sessions,
    /// Gauge: sessions that outlive their connection, as it stood when the client connected.
    SessionsPersistent,
    /// Gauge: sessions that ended by expiry since the start (a count).
    SessionsExpired,
    /// Gauge: subscriptions, shared ones included.
    Subscriptions,
    /// Gauge: shared subscriptions.
    SharedSubscriptions,
    /// Messages that had to wait in a session's queue: its window was full, its output congested,
    /// or it was away.
    Queued,
    LimitPacket,
    LimitPayload,
    LimitClientId,
    LimitTopic,
    LimitSessions,
    LimitUserSessions,
    LimitAddressSessions,
    /// Filters of a packet that had too many.
    LimitPacketFilters,
    LimitSubscriptions,
    LimitSharedSubscriptions,
    LimitSubscriptionBytes,
    /// Messages sent several times, as more subscription identifiers belong to them than one may
    /// have.
    LimitMessageIdentifiers,
    LimitReceiveMaximum,
    LimitTopicAlias,
    LimitOutput,
    LimitMemory,
    /// PUBLISH packets that waited for room as long as they may.
    LimitQueueHold,
    /// Clients refused, and filters refused, because memory was short.
    LimitMemorySessions,
    LimitMemorySubscriptions,
    /// Pauses of a connection because of a rate, by the limit that made it wait longest.
    LimitClientMessages,
    LimitClientBytes,
    LimitUserMessages,
    LimitUserBytes,
    LimitAddressMessages,
    LimitAddressBytes,
    LimitListenerMessages,
    LimitListenerBytes,
    LimitUserConnects,
    LimitAddressConnects,
    /// Times that accepting waited for the rate of one listener.
    LimitListenerConnects,
    RateAccountsForgotten,
    HandshakeTimeouts,
    /// CONNECT packets and connections refused because of a ban, by what is banned.
    BannedClientIds,
    BannedUsernames,
    BannedAddresses,
    /// Clients that were connected when they were banned.
    BannedDisconnected,
    FlappingBans,
    /// Bans that were not made because there are too many temporary ones.
    FlappingForgotten,
    LoginsFailed,
    LoginWaits,
    LoginsRefused,
    /// Times that a worker began to put something off, by cause.
    OverloadLag,
    OverloadLongLag,
    OverloadMemory,
    OverloadHandshakes,
    /// Gauge: workers that leave new connections in the backlog.
    OverloadDeferring,
    /// Gauge: workers that read publishers less.
    OverloadSlowing,
    OverloadDeferred,
    OverloadPaused,
    DroppedQueueFull,
    DroppedQueueOldest,
    DroppedQueueAge,
    DroppedOffline,
    DroppedSlowConsumer,
    DroppedTooLarge,
    DroppedExpired,
    DroppedOutsideMount,
    DroppedNotAllowed,
    DroppedMemoryShort,
    DroppedNoSharedMember,
    RetainedRefused,
    /// What was refused because the disk is full or cannot be written.
    StorageRefused,
    /// TLS or WebSocket of a connection failed before its handshake was done.
    HandshakesFailed,
    /// The same, later.
    LayersFailed,
    /// Connections without a proper header of a trusted proxy.
    ProxyRefused,
    /// Clients whose identifier had a session of another user.
    ClientIdsOfOthers,
    /// Clients whose identifier is not one that their user may have.
    ClientIdsNotOfUser,
    /// Clients that were connected when they were no longer admitted.
    ClientsTurnedAway,
    /// Questions to the gatekeeper about topics.
    DecisionsAsked,
    /// Publishes decided by what it had said before.
    DecisionsRemembered,
    PublishDenied,
    /// Lines of the log about clients that came or went when there were too many of them.
    ClientLinesLeftOut,
    EventsLeftOut,
    /// Messages of publishers that a full sink refused.
    SinkRefused,
    SubscribeDenied,
    /// Wills that were refused with their CONNECT, or not published when they were due.
    WillsDenied,
    /// Subscriptions that ended because the rules changed.
    SubscriptionsRevoked,
    SharedRedispatched,
    /// PUBLISH packets that waited for room in a queue.
    PublishesHeld,
    /// Gauge: publishers that wait for room in a queue.
    PublishersHeld,
    /// Gauge: bytes of their PUBLISH packets.
    BytesHeld,
    PublishersPaused,
    MailboxFull,
    /// Times that a worker forgot the routes of all topics, as they took too much memory.
    RoutesForgotten,
    Writes,
    Reads,
    Turns,
    /// Times that a connection had used up its portion of a turn before its packets were handled.
    PortionsUsedUp,
    /// Turns that left something for the next one.
    ReadersPutOff,
    MailPutOff,
    TimersPutOff,
    /// Clients that waited for their CONNACK while the session they came back to was looked at.
    ReviewsAwaited,
    WritesPutOff,
}

const COUNTERS: usize = Counter::WritesPutOff as usize + 1;

/// The row of one worker; on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Row([AtomicU64; COUNTERS]);

impl Row {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Adds; only the worker that owns the row may call it, so no read-modify-write is needed.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(
            cell.load(Ordering::Relaxed).wrapping_add(amount),
            Ordering::Relaxed,
        );
    }

    /// What was counted.
    #[inline]
    pub fn count(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    /// Takes away from a gauge; only for the owner of the row.
    #[inline]
    pub fn subtract(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(
            cell.load(Ordering::Relaxed).wrapping_sub(amount),
            Ordering::Relaxed,
        );
    }
}

/// The rows of all workers.
#[derive(Debug)]
pub struct Metrics {
    rows: Box<[Row]>,
    /// What threads count that are no workers.
    elsewhere: Row,
}

impl Metrics {
    /// All counters of a node with so many workers are 0.
    pub fn new(workers: usize) -> Self {
        Self {
            rows: (0..workers).map(|_| Row::new()).collect(),
            elsewhere: Row::new(),
        }
    }

    /// Adds; for threads that are no workers.
    pub fn add_elsewhere(&self, counter: Counter, amount: u64) {
        self.elsewhere.0[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// The counters of one worker.
    pub fn row(&self, worker: usize) -> &Row {
        &self.rows[worker]
    }

    /// Sum over all workers and other threads.
    pub fn total(&self, counter: Counter) -> u64 {
        let rows = self.rows.iter();
        rows.map(|row| row.count(counter))
            .fold(self.elsewhere.count(counter), u64::wrapping_add)
    }
}
