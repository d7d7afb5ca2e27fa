//! The protocol state of one client, and how connections come and go.

use alloc::boxed::Box;
use alloc::sync::Arc;

use thrum_codec::ReasonCode;
use thrum_codec::packet::Packet;

use super::deliver::burst_end;
use super::link::LinkState;
use super::received::Received;
use super::will::PendingWill;
use super::{
    Farewell, Handshake, Inbound, Lifetime, Link, Outbound, SessionJournal, Stored, Timeout,
    Welcome, WillView, connack,
};
use crate::{Limits, Message, Output, Time};

/// Protocol state of one client; outlives connections. Small when idle: at most 184 bytes without
/// queue.
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
    /// A session for a client that has none (or starts clean). `id` is unique on the node and never
    /// 0.
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

    /// A session that was written down: away and durable.
    ///
    /// What cannot be true any more is left out and noted as [`Step::Removed`](super::Step): a
    /// delivery without its message, and one whose packet identifier a later delivery has.
    pub fn restore(stored: Stored, limits: &Arc<Limits>) -> Self {
        let mut deliveries = stored.deliveries;
        deliveries.sort_by_key(|delivery| delivery.seq);
        let mut journal = SessionJournal::behind(&deliveries, stored.seq_max);
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

    /// Other limits, for a session that is about to be resumed: they hold from its next connection
    /// on, so call it before [`Session::connect`].
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

    /// Client identifier, boxed.
    pub fn into_client_id(self) -> Box<str> {
        self.client_id
    }

    /// The limits that hold for the session.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Steps are noted.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.journal.is_on()
    }

    /// What the session tells the node to write down.
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

    /// How long the connection and the session last.
    pub fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    /// What the client publishes.
    pub fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// What goes to the client.
    pub fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// What goes to the client.
    pub fn outbound_mut(&mut self) -> &mut Outbound {
        &mut self.outbound
    }

    /// The will, to be written down.
    pub fn will(&self) -> Option<WillView<'_>> {
        self.will.view()
    }

    /// The connection is up: CONNACK, then redelivery of what is inflight, then the queue, into
    /// `out`.
    ///
    /// At most about 256 KiB of messages are written at once; the rest follows with the client's
    /// acknowledgements or by [`Session::pump`].
    pub fn connect(
        &mut self,
        mut handshake: Handshake,
        welcome: Welcome<'_>,
        now: Time,
        out: &mut Output,
    ) {
        if self.link.is_connected() {
            self.link.end();
            self.inbound.end_connection();
        }
        connack::append_welcome(&handshake, welcome, &self.limits, out);
        // A pending will of the last connection ends here, and this connection's takes its place.
        // [MQTT-3.1.3-9]
        self.will = PendingWill::new(handshake.will.take());
        self.lifetime.begin_connection(&handshake, now);
        let inflight = &mut self.outbound.inflight;
        inflight.begin_connection(handshake.receive_maximum, &self.limits);
        self.link.begin(handshake, &self.limits, now);
        // What is inflight comes first. [MQTT-4.4.0-1] [MQTT3-4.4.0-1]
        // PUBREL is no part of the window: a client may get all of them at once. [MQTT-3.3.4-10]
        for packet_id in self.outbound.inflight.released() {
            let reason = ReasonCode::Success;
            self.link.append_ack(Packet::PubRel, packet_id, reason, out);
        }
        self.pump(now, burst_end(out), out);
    }

    /// The server ends the connection: DISCONNECT with the reason (5.0; nothing in 3.x). Then
    /// close, then `connection_lost`.
    pub fn disconnect(&mut self, reason: ReasonCode, what: Option<&str>, out: &mut Output) {
        // [MQTT-3.14.0-1]
        if !self.link.is_up() {
            return;
        }
        // "Do not send the will message" is what 0x00 means from either side.
        if reason == ReasonCode::Success {
            self.will.take(&mut self.journal);
        }
        self.link.disconnect(reason, what, out);
    }

    /// The connection is gone, for whatever cause.
    pub fn connection_lost(&mut self, now: Time) -> Farewell {
        if !self.link.is_connected() {
            return Farewell::default();
        }
        self.link.end();
        self.inbound.end_connection();
        self.lifetime.saw_client(now);
        // [MQTT-3.1.2-23] [MQTT-4.1.0-2] [MQTT3-3.1.2-6]
        let session_ended = !self.lifetime.is_persistent();
        // [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT3-3.1.2-8] [MQTT3-3.1.2-10]
        let will = if session_ended {
            self.will.take(&mut self.journal)
        } else {
            self.will.take_undelayed(&mut self.journal)
        };
        Farewell {
            will: will.map(|will| will.into_message(self.id, now)),
            session_ended,
        }
    }

    /// What remains of the will, to be published now: another connection with the same client
    /// identifier takes over, or the session is being removed by an administrator.
    pub fn take_will_at(&mut self, now: Time) -> Option<Message> {
        let will = self.will.take(&mut self.journal)?;
        Some(will.into_message(self.id, now))
    }

    /// When [`Session::handle_timeout`] wants to be called; may be earlier than needed, never
    /// later.
    pub fn next_deadline(&self) -> Option<Time> {
        let (one, other) = match self.link.state() {
            LinkState::New | LinkState::Closing => return None,
            LinkState::Up => (self.lifetime.keep_alive_deadline(), self.link.valid_until()),
            LinkState::Away => (
                self.will.due(self.lifetime.seen()),
                self.lifetime.expiry_deadline(),
            ),
        };
        [one, other].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) -> Timeout {
        let is_over = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        let (lifetime, will_due) = (&self.lifetime, self.will.due(self.lifetime.seen()));
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
