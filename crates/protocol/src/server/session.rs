//! The protocol state of one client, and the start and end of its connections.

use alloc::boxed::Box;
use alloc::sync::Arc;

use thrum_codec::ReasonCode;
use thrum_codec::packet::Packet;

use super::deliver::burst_end;
use super::link::LinkState;
use super::received::Received;
use super::will::PendingWill;
use super::{
    ConnAckParts, ConnectionEnd, Handshake, Inbound, Lifetime, Link, Outbound, SessionJournal,
    Stored, Timeout, WillView, connack,
};
use crate::{Limits, Message, Output, Time};

/// Protocol state of one client; outlives connections. At most 184 bytes without queue.
#[derive(Debug)]
pub struct Session {
    pub(super) id: u64,
    pub(super) client_id: Box<str>,
    pub(super) limits: Arc<Limits>,
    pub(super) link: Link,
    pub(super) lifetime: Lifetime,
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
    pub(super) will: PendingWill,
    pub(super) journal: SessionJournal,
}

impl Session {
    /// Creates a session for a client that has none or requests a clean start. `id` is unique on
    /// the node and never 0.
    pub fn new(id: u64, handshake: &Handshake, limits: &Arc<Limits>) -> Self {
        Self {
            id,
            client_id: handshake.client_id.clone(),
            limits: Arc::clone(limits),
            link: Link::new(handshake.version),
            lifetime: Lifetime::new(handshake.session_expiry),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            will: PendingWill::default(),
            journal: SessionJournal::default(),
        }
    }

    /// Restores a persisted session: disconnected and durable.
    ///
    /// Inconsistent deliveries are omitted and recorded as [`Step::Removed`](super::Step): those
    /// without their message, and those whose packet identifier a later delivery has.
    pub fn restore(stored: Stored, limits: &Arc<Limits>) -> Self {
        let mut deliveries = stored.deliveries;
        deliveries.sort_by_key(|delivery| delivery.seq);
        let mut journal = SessionJournal::after(&deliveries, stored.seq_max);
        let last_packet_id = stored.last_packet_id;
        let outbound = Outbound::restore(deliveries, last_packet_id, limits, &mut journal);
        Self {
            id: stored.id,
            client_id: stored.client_id,
            limits: Arc::clone(limits),
            link: Link::restore(stored.version),
            lifetime: Lifetime::restore(stored.session_expiry, stored.away_since),
            inbound: Inbound::restore(Received::restore(stored.received)),
            outbound,
            will: PendingWill::restore(stored.will),
            journal,
        }
    }

    /// Sets other limits for a session that is about to be resumed: they apply from its next
    /// connection on, so call it before [`Session::connect`].
    pub fn set_limits(&mut self, limits: &Arc<Limits>) {
        if self.limits.queue.priorities != limits.queue.priorities {
            self.outbound.queue.prioritise(limits);
        }
        self.limits = Arc::clone(limits);
    }

    /// Number on the node.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Client identifier.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Removes and returns the client identifier.
    pub fn into_client_id(self) -> Box<str> {
        self.client_id
    }

    /// The limits of the session.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether steps are recorded.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.journal.is_on()
    }

    /// The steps for the node to persist.
    pub fn journal_mut(&mut self) -> &mut SessionJournal {
        &mut self.journal
    }

    /// The connection.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The connection.
    pub fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Keep alive and session expiry.
    pub fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// Messages from the client.
    pub fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Messages to the client.
    pub fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// Messages to the client.
    pub fn outbound_mut(&mut self) -> &mut Outbound {
        &mut self.outbound
    }

    /// The will in the form to be persisted.
    pub fn will(&self) -> Option<WillView<'_>> {
        self.will.view()
    }

    /// Starts a connection: writes CONNACK, then retransmissions, then queued messages into `out`.
    ///
    /// At most about 256 KiB of messages are written at once; the rest follows with the client's
    /// acknowledgements or by [`Session::pump`].
    pub fn connect(
        &mut self,
        mut handshake: Handshake,
        parts: ConnAckParts<'_>,
        now: Time,
        out: &mut Output,
    ) {
        if self.link.is_connected() {
            self.link.end();
            self.inbound.end_connection();
        }
        connack::append_accepted(&handshake, parts, &self.limits, out);
        // The will of this connection replaces a pending will of the last one. [MQTT-3.1.3-9]
        self.will = PendingWill::new(handshake.will.take());
        self.lifetime.begin_connection(&handshake, now);
        let inflight = &mut self.outbound.inflight;
        inflight.begin_connection(handshake.receive_maximum, &self.limits);
        self.link.begin(handshake, &self.limits, now);
        // In-flight messages come first. [MQTT-4.4.0-1] [MQTT3-4.4.0-1] PUBREL does not count
        // against the window: a client may get all of them at once. [MQTT-3.3.4-10]
        for packet_id in self.outbound.inflight.released() {
            let reason = ReasonCode::Success;
            self.link.append_ack(Packet::PubRel, packet_id, reason, out);
        }
        self.pump(now, burst_end(out), out);
    }

    /// Writes DISCONNECT with the reason (5.0; nothing in 3.x). The caller then closes the
    /// connection and calls `connection_lost`.
    pub fn disconnect(&mut self, reason: ReasonCode, what: Option<&str>, out: &mut Output) {
        // [MQTT-3.14.0-1]
        if !self.link.is_up() {
            return;
        }
        // 0x00 deletes the will, whichever side sends it.
        if reason == ReasonCode::Success {
            self.will.take(&mut self.journal);
        }
        self.link.disconnect(reason, what, out);
    }

    /// Records that the connection is lost, for any cause.
    pub fn connection_lost(&mut self, now: Time) -> ConnectionEnd {
        if !self.link.is_connected() {
            return ConnectionEnd::default();
        }
        self.link.end();
        self.inbound.end_connection();
        self.lifetime.record_activity(now);
        // [MQTT-3.1.2-23] [MQTT-4.1.0-2] [MQTT3-3.1.2-6]
        let session_ended = !self.lifetime.is_persistent();
        // [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT3-3.1.2-8] [MQTT3-3.1.2-10]
        let will = if session_ended {
            self.will.take(&mut self.journal)
        } else {
            self.will.take_undelayed(&mut self.journal)
        };
        ConnectionEnd {
            will: will.map(|will| will.into_message(self.id, now)),
            session_ended,
        }
    }

    /// The will delay and the session expiry count from this time, if it is later than the one that
    /// [`Session::connection_lost`] was told.
    pub fn count_absence_from(&mut self, at: Time) {
        self.lifetime
            .record_activity(at.max(self.lifetime.last_activity()));
    }

    /// Removes and returns the will, to be published now: another connection with the same client
    /// identifier takes over, or an administrator removes the session.
    pub fn take_will_at(&mut self, now: Time) -> Option<Message> {
        let will = self.will.take(&mut self.journal)?;
        Some(will.into_message(self.id, now))
    }

    /// Time of the next call to [`Session::handle_timeout`]; may be earlier than necessary, never
    /// later.
    pub fn next_deadline(&self) -> Option<Time> {
        let (one, other) = match self.link.state() {
            LinkState::New | LinkState::Closing => return None,
            LinkState::Up => (self.lifetime.keep_alive_deadline(), self.link.valid_until()),
            LinkState::Away => (
                self.will.due(self.lifetime.last_activity()),
                self.lifetime.expiry_deadline(),
            ),
        };
        [one, other].into_iter().flatten().min()
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Time) -> Timeout {
        let is_over = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        let (lifetime, will_due) = (&self.lifetime, self.will.due(self.lifetime.last_activity()));
        match self.link.state() {
            LinkState::Up if is_over(self.link.valid_until()) => Timeout::NotAuthorized,
            // [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
            LinkState::Up if is_over(lifetime.keep_alive_deadline()) => Timeout::KeepAlive,
            // [MQTT-4.1.0-2] [MQTT3-4.1.0-2]
            LinkState::Away if is_over(lifetime.expiry_deadline()) => {
                Timeout::Expired(self.take_will_at(now))
            }
            // [MQTT-3.1.2-8]
            LinkState::Away if is_over(will_due) => self
                .take_will_at(now)
                .map_or(Timeout::Pending, Timeout::Will),
            LinkState::New | LinkState::Up | LinkState::Closing | LinkState::Away => {
                Timeout::Pending
            }
        }
    }
}
