//! Counters: one row per worker, written by that worker alone and summed by readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of the node. Names follow the `$SYS` topics and the drop reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Bytes received from clients.
    BytesReceived,
    /// Bytes sent to clients.
    BytesSent,
    /// MQTT packets received from clients.
    PacketsReceived,
    /// PUBLISH packets received from clients.
    PublishReceived,
    /// PUBLISH packets sent to clients.
    PublishSent,
    /// Packets sent to clients other than PUBLISH.
    AnswersSent,
    /// Payload bytes of received PUBLISH packets.
    PublishBytesReceived,
    /// Payload bytes of sent PUBLISH packets.
    PublishBytesSent,
    /// Connections that were accepted.
    ConnectionsOpened,
    /// CONNECT packets that were accepted.
    ConnectsAccepted,
    /// Connections that were closed.
    ConnectionsClosed,
    /// CONNECT packets that were refused.
    ConnectionsRefused,
    /// Connections refused because of a limit of connections.
    ConnectionsOverLimit,
    /// Times that accepting connections was deferred by the connect rate of the node.
    ConnectRateDeferred,
    /// Connections closed because no CONNECT arrived in time.
    ConnectTimeouts,
    /// Connections closed because the keep alive expired.
    KeepAliveTimeouts,
    /// Connections closed because of a protocol error.
    Violations,
    /// Connections closed because the same client connected again.
    Takeovers,
    /// Connections handed over to the worker that owns the session.
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
    /// Messages that were queued because the window of the session was full, its output was
    /// congested or its client was disconnected.
    Queued,
    /// Connections closed because a packet exceeded the maximum packet size.
    LimitPacket,
    /// PUBLISH packets refused because the payload was too long.
    LimitPayload,
    /// CONNECT packets refused because of their client identifier.
    LimitClientId,
    /// Topics and filters refused because of their length or number of levels.
    LimitTopic,
    /// CONNECT packets refused because of the limit of sessions of the node.
    LimitSessions,
    /// CONNECT packets refused because of the limit of sessions of a user.
    LimitUserSessions,
    /// CONNECT packets refused because of the limit of sessions of an address.
    LimitAddressSessions,
    /// Filters refused because their packet had too many.
    LimitPacketFilters,
    /// Filters refused because of the limit of subscriptions of a client.
    LimitSubscriptions,
    /// Filters refused because of the limit of shared subscriptions of a client.
    LimitSharedSubscriptions,
    /// Filters refused because of the memory limit of the subscriptions of a client.
    LimitSubscriptionBytes,
    /// Messages sent in several copies because they have more subscription identifiers than one
    /// message may have.
    LimitMessageIdentifiers,
    /// Connections closed because the client exceeded the receive maximum.
    LimitReceiveMaximum,
    /// Connections closed because of an invalid topic alias.
    LimitTopicAlias,
    /// Times that the output of a connection exceeded its limit.
    LimitOutput,
    /// Measurements, one in each second, that found memory full.
    LimitMemory,
    /// PUBLISH packets that waited for a full queue until their deadline.
    LimitQueueHold,
    /// Clients refused because memory was short.
    LimitMemorySessions,
    /// Filters refused because memory was short.
    LimitMemorySubscriptions,
    /// Pauses of a connection because of the message rate of its client, if that limit caused the
    /// longest wait.
    LimitClientMessages,
    /// Pauses of a connection because of the byte rate of its client.
    LimitClientBytes,
    /// Pauses of a connection because of the message rate of its user.
    LimitUserMessages,
    /// Pauses of a connection because of the byte rate of its user.
    LimitUserBytes,
    /// Pauses of a connection because of the message rate of its address.
    LimitAddressMessages,
    /// Pauses of a connection because of the byte rate of its address.
    LimitAddressBytes,
    /// Pauses of a connection because of the message rate of its listener.
    LimitListenerMessages,
    /// Pauses of a connection because of the byte rate of its listener.
    LimitListenerBytes,
    /// Connections refused because of the connect rate of their user.
    LimitUserConnects,
    /// Connections refused because of the connect rate of their address.
    LimitAddressConnects,
    /// Times that accepting connections was deferred by the connect rate of a listener.
    LimitListenerConnects,
    /// Rate accounts of users and addresses that were dropped because there were too many.
    RateAccountsForgotten,
    /// Connections closed because TLS, WebSocket or the proxy header was not complete in time.
    HandshakeTimeouts,
    /// CONNECT packets refused because their client identifier is banned.
    BannedClientIds,
    /// CONNECT packets refused because their user name is banned.
    BannedUsernames,
    /// Connections refused because their address is banned.
    BannedAddresses,
    /// Clients that were disconnected because of a new ban.
    BannedDisconnected,
    /// Temporary bans of clients that reconnected too often.
    FlappingBans,
    /// Temporary bans that were not created because there were too many.
    FlappingForgotten,
    /// Logins that failed.
    LoginsFailed,
    /// Times that failed logins caused a wait before the next login.
    LoginWaits,
    /// Logins refused because of earlier failed logins.
    LoginsRefused,
    /// Times that a worker began to defer work because its turns were late.
    OverloadLag,
    /// Times that a worker began to defer work because its turns were late for long.
    OverloadLongLag,
    /// Times that memory began to be short.
    OverloadMemory,
    /// Times that a worker began to defer connections because of unfinished handshakes.
    OverloadHandshakes,
    /// Gauge: workers that leave new connections in the backlog.
    OverloadDeferring,
    /// Gauge: workers that read publishers less.
    OverloadSlowing,
    /// Times that accepting connections was deferred by overload.
    OverloadDeferred,
    /// Pauses of a publisher because of overload.
    OverloadPaused,
    /// Messages dropped because the queue of the session was full.
    DroppedQueueFull,
    /// Messages dropped from a full queue by the policy `drop_oldest`.
    DroppedQueueOldest,
    /// Messages dropped because they had waited too long in a queue.
    DroppedQueueAge,
    /// Messages dropped because the client was disconnected.
    DroppedOffline,
    /// Messages with QoS 0 dropped because the output of the client was congested.
    DroppedSlowConsumer,
    /// Messages dropped because they exceed the maximum packet size of the client.
    DroppedTooLarge,
    /// Messages dropped because they expired.
    DroppedExpired,
    /// Messages dropped because their topic is outside the mount point of the client.
    DroppedOutsideMount,
    /// Messages dropped because the rules do not allow the client to receive them.
    DroppedNotAllowed,
    /// Messages dropped because memory was short.
    DroppedMemoryShort,
    /// Messages dropped because no member of a shared group accepted them.
    DroppedNoSharedMember,
    /// PUBLISH packets refused because the rules or the gatekeeper deny them.
    RefusedNotAllowed,
    /// PUBLISH packets refused because their topic is reserved for the broker.
    RefusedReservedTopic,
    /// PUBLISH packets refused because their topic is too long behind the mount point.
    RefusedTopicTooLong,
    /// PUBLISH packets refused because the payload was too long.
    RefusedPayloadTooLarge,
    /// PUBLISH packets refused because no receiver had room.
    RefusedQueuesFull,
    /// PUBLISH packets refused because memory was short.
    RefusedMemoryShort,
    /// PUBLISH packets refused because of a limit of retained messages.
    RefusedRetainedLimit,
    /// PUBLISH packets refused because the disk was full.
    RefusedDiskFull,
    /// PUBLISH packets refused because a sink was full.
    RefusedSinkFull,
    /// Refused PUBLISH packets whose publisher was not told: QoS 0, and clients of MQTT 3.1.1 that
    /// keep their connection.
    RefusedUntold,
    /// Messages that were not retained because of a limit of retained messages, or because memory
    /// was full.
    RetainedRefused,
    /// Of these, those that were delivered all the same: their publishers could not be told.
    RetainedLost,
    /// Requests refused because the storage is full or cannot be written.
    StorageRefused,
    /// Connections whose TLS or WebSocket failed before the end of the handshake.
    HandshakesFailed,
    /// Connections whose TLS or WebSocket failed after the handshake.
    LayersFailed,
    /// Connections refused because the proxy header was missing, invalid or from a proxy that is
    /// not trusted.
    ProxyRefused,
    /// Clients refused because the session of their client identifier belongs to another user.
    ClientIdsOfOthers,
    /// Clients refused because their user may not have the client identifier.
    ClientIdsNotOfUser,
    /// Clients that were disconnected because they are no longer admitted.
    AdmissionsRevoked,
    /// Questions about topics that were sent to the gatekeeper.
    DecisionsAsked,
    /// PUBLISH packets decided by an earlier answer of the gatekeeper.
    DecisionsRemembered,
    /// PUBLISH packets denied by the rules or the gatekeeper.
    PublishDenied,
    /// Log lines about connecting and disconnecting clients that were omitted because there were
    /// too many.
    ClientLinesLeftOut,
    /// Client events that were not published because the queue of events was full.
    EventsLeftOut,
    /// Events of clients that the timelines have forgotten for later ones.
    TimelineEventsForgotten,
    /// PUBLISH packets refused because a sink was full.
    SinkRefused,
    /// Filters denied by the rules or the gatekeeper.
    SubscribeDenied,
    /// Wills that were denied at the CONNECT or when they were due.
    WillsDenied,
    /// Subscriptions that ended because the rules changed.
    SubscriptionsRevoked,
    /// Messages of shared groups that were sent to another member.
    SharedRedispatched,
    /// PUBLISH packets that waited for a full queue.
    PublishesHeld,
    /// Gauge: publishers that wait for a full queue.
    PublishersHeld,
    /// Gauge: bytes of the PUBLISH packets that wait for a full queue.
    BytesHeld,
    /// Pauses of a publisher because a receiver or the worker was overloaded.
    PublishersPaused,
    /// Times that a mailbox was full after mail was pushed.
    MailboxFull,
    /// Times that a worker dropped its cache of routes because of its memory limit.
    RoutesForgotten,
    /// Writes to sockets.
    Writes,
    /// Reads from sockets.
    Reads,
    /// Turns of workers.
    Turns,
    /// Times that a connection used up its portion of a turn before all of its packets were
    /// handled.
    PortionsUsedUp,
    /// Turns that left connections to read for the next turn.
    ReadersPutOff,
    /// Turns that left mail for the next turn.
    MailPutOff,
    /// Turns that left timers for the next turn.
    TimersPutOff,
    /// Clients whose CONNACK waited for the review of the session that they resume.
    ReviewsAwaited,
    /// Turns that left connections to write for the next turn.
    WritesPutOff,
    /// Clients that were disconnected by the operator.
    ClientsKicked,
    /// Requests of the operator to the node.
    QuestionsAsked,
    /// Requests of the operator that were refused because there were too many.
    QuestionsRefused,
    /// Requests of the operator that a worker abandoned because the requester no longer waited.
    QuestionsGivenUp,
    /// Messages whose topic found no room among the observed ones.
    TopicMessagesUntold,
    /// Live streams that were refused because there were too many.
    StreamsRefused,
    /// Live streams that ended because their reader took nothing for too long.
    StreamsCut,
    /// States that a live stream did not send because its reader or its share was too slow: a newer
    /// one followed.
    StreamStatesSkipped,
}

const COUNTERS: usize = Counter::StreamStatesSkipped as usize + 1;

/// The counters of one worker, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Row([AtomicU64; COUNTERS]);

impl Row {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Adds to a counter; only the worker that owns the row may call it, so no atomic
    /// read-modify-write is needed.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(
            cell.load(Ordering::Relaxed).wrapping_add(amount),
            Ordering::Relaxed,
        );
    }

    /// The value of a counter.
    #[inline]
    pub fn count(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    /// Sets each counter to a different number from 1 on, and returns the last one.
    #[cfg(any(test, feature = "testing"))]
    pub fn number(&self) -> u64 {
        for (cell, number) in self.0.iter().zip(1..) {
            cell.store(number, Ordering::Relaxed);
        }
        self.0.len() as u64
    }

    /// Subtracts from a gauge; only the worker that owns the row may call it.
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
    /// The counters of threads that are not workers.
    elsewhere: Row,
}

impl Metrics {
    /// Creates the counters of a node with that many workers.
    pub fn new(workers: usize) -> Self {
        Self {
            rows: (0..workers).map(|_| Row::new()).collect(),
            elsewhere: Row::new(),
        }
    }

    /// Adds to a counter; for threads that are not workers.
    pub fn add_elsewhere(&self, counter: Counter, amount: u64) {
        self.elsewhere.0[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// The counters of one worker.
    pub fn row(&self, worker: usize) -> &Row {
        &self.rows[worker]
    }

    /// The sum of a counter over all workers and other threads.
    pub fn total(&self, counter: Counter) -> u64 {
        let rows = self.rows.iter();
        rows.map(|row| row.count(counter))
            .fold(self.elsewhere.count(counter), u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_has_what_all_workers_and_other_threads_have_counted() {
        let metrics = Metrics::new(2);
        metrics.row(0).add(Counter::Queued, 5);
        metrics.row(1).add(Counter::Queued, 3);
        metrics.row(1).subtract(Counter::Queued, 1);
        metrics.add_elsewhere(Counter::Queued, 10);
        assert_eq!(metrics.total(Counter::Queued), 17);
        assert_eq!(metrics.total(Counter::BytesSent), 0);
        let last = metrics.row(0).number();
        assert!(last > 50);
        assert_eq!(metrics.row(0).count(Counter::BytesReceived), 1);
        assert_eq!(metrics.row(0).count(Counter::BytesSent), 2);
    }
}
