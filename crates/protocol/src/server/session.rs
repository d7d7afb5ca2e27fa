//! CONTRACT SKELETON: bodies are to be written; split over handshake.rs, inbound.rs, outbound.rs, will.rs.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Auth, Connect, Packet, Publish, Subscribe, Unsubscribe};
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use crate::{Limits, Message, Outgoing, Time, Violation};

/// Number of a shared group on the node.
pub type GroupId = u32;

/// What the node has to do because of one packet. Replies are in the output buffer already.
#[derive(Debug)]
pub enum Action<'p> {
    /// Nothing beyond the replies.
    None,
    /// Route this message, then call [`Session::publish_done`].
    Publish {
        /// The packet; its topic is empty if `alias` holds it.
        publish: Publish<'p>,
        /// Topic from the alias table.
        alias: Option<Rc<str>>,
    },
    /// Subscribe each filter, then call [`Session::suback`] with one code per filter.
    Subscribe(Subscribe<'p>),
    /// Unsubscribe each filter, then call [`Session::unsuback`].
    Unsubscribe(Unsubscribe<'p>),
    /// The client said goodbye: close the connection, then call [`Session::connection_lost`].
    Disconnected,
    /// Enhanced authentication step.
    Authenticate(Auth<'p>),
}

/// A client that passed the checks of the handshake but has no session yet.
#[derive(Debug)]
pub struct Handshake {
    // version, clean start, expiry, keep alive, receive maximum, packet size, alias maximum, problem/response
    // information flags, client id (given or assigned), will; everything the session needs, owned
}

impl Handshake {
    /// Checks a CONNECT against the limits. `assigned` is the identifier to use if the client sent none.
    ///
    /// # Errors
    /// The refusal to encode with [`refuse`]: reason and words.
    pub fn new(_connect: &Connect<'_>, _assigned: &str, _limits: &Limits) -> Result<Self, Violation> {
        todo!()
    }
    /// Client identifier.
    pub fn client_id(&self) -> &str {
        todo!()
    }
    /// Protocol version.
    pub fn version(&self) -> Version {
        todo!()
    }
    /// Clean start.
    pub fn clean_start(&self) -> bool {
        todo!()
    }
}

/// Appends the CONNACK of a refusal, in the form the version allows (3.x has fewer codes, none for some).
pub fn refuse(_version: Version, _violation: &Violation, _out: &mut Vec<u8>) {
    todo!()
}

/// How and to whom one message is delivered.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryOptions<'a> {
    /// Already the lower one of message and subscription.
    pub qos: QoS,
    /// Retain flag to send.
    pub retain: bool,
    /// Subscription identifiers of the matched subscriptions.
    pub identifiers: &'a [u32],
    /// Shared group it was chosen for; such a message is kept until acknowledged, to be given to another member.
    pub group: Option<GroupId>,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// In the output buffer.
    Sent,
    /// In the session's queue.
    Queued,
    /// Not delivered.
    Dropped(DropReason),
}

/// Why a message was not delivered to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Queue full by count or bytes.
    QueueFull,
    /// QoS 0 while the client is away.
    Offline,
    /// QoS 0 while the output is congested.
    SlowConsumer,
    /// Over the client's maximum packet size. [MQTT-3.1.2-24]
    TooLarge,
    /// Message expiry passed.
    Expired,
}

/// Server limits plus texts that go into CONNACK.
#[derive(Clone, Copy, Debug)]
pub struct Welcome<'a> {
    /// The node kept a session for this client.
    pub session_present: bool,
    /// Sent if the client asked for response information.
    pub response_information: Option<&'a str>,
}

/// What is left to do when a connection ended.
#[derive(Debug, Default)]
pub struct Farewell {
    /// Will to publish now.
    pub will: Option<Message>,
    /// The session ended with the connection: remove it and its subscriptions.
    pub session_ended: bool,
}

/// What a deadline brought.
#[derive(Debug)]
pub enum Timeout {
    /// Nothing yet.
    Pending,
    /// Nothing came for one and a half keep alives: close with 0x8D.
    KeepAlive,
    /// The delayed will is due.
    Will(Message),
    /// The session expired (its will, if still pending, is due too).
    Expired(Option<Message>),
}

/// Protocol state of one client; outlives connections. Small when idle: at most ~250 bytes without queue.
#[derive(Debug)]
pub struct Session {}

impl Session {
    /// A session for a client that has none (or starts clean). `id` is unique on the node and never 0.
    pub fn new(_id: u64, _handshake: &Handshake, _limits: &Arc<Limits>) -> Self {
        todo!()
    }
    /// Number on the node.
    pub fn id(&self) -> u64 {
        todo!()
    }
    /// Client identifier.
    pub fn client_id(&self) -> &str {
        todo!()
    }
    /// Has a connection.
    pub fn is_connected(&self) -> bool {
        todo!()
    }
    /// Version of the connection (of the last one when away).
    pub fn version(&self) -> Version {
        todo!()
    }
    /// The session can outlive its connection (expiry above 0).
    pub fn is_persistent(&self) -> bool {
        todo!()
    }
    /// The connection is up: CONNACK, then redelivery of what is inflight, then the queue, into `out`.
    pub fn connect(&mut self, _handshake: Handshake, _welcome: Welcome<'_>, _now: Time, _out: &mut Vec<u8>) {
        todo!()
    }
    /// One packet from the client. Any packet counts as a sign of life.
    ///
    /// # Errors
    /// The client broke the protocol: call [`Session::disconnect`] and close.
    pub fn handle_packet<'p>(&mut self, _packet: Packet<'p>, _now: Time, _out: &mut Vec<u8>) -> Result<Action<'p>, Violation> {
        todo!()
    }
    /// Outcome of [`Action::Publish`]: PUBACK or PUBREC with it (nothing for QoS 0).
    pub fn publish_done(&mut self, _qos: QoS, _packet_id: Option<PacketId>, _outcome: ReasonCode, _out: &mut Vec<u8>) {
        todo!()
    }
    /// SUBACK.
    pub fn suback(&mut self, _packet_id: PacketId, _codes: &[ReasonCode], _out: &mut Vec<u8>) {
        todo!()
    }
    /// UNSUBACK.
    pub fn unsuback(&mut self, _packet_id: PacketId, _codes: &[ReasonCode], _out: &mut Vec<u8>) {
        todo!()
    }
    /// A message for this client: into `out` if there is a connection, a window and room, else queued or dropped.
    pub fn deliver(&mut self, _outgoing: &mut Outgoing<'_>, _options: DeliveryOptions<'_>, _now: Time, _out: &mut Vec<u8>) -> Delivered {
        todo!()
    }
    /// The connection's output is over its soft limit (or no longer): while set, nothing but acknowledgements is
    /// encoded, QoS 0 is dropped and QoS 1 and 2 are queued.
    pub fn set_congested(&mut self, _congested: bool) {
        todo!()
    }
    /// Moves queued messages into `out` while the window is open and `out` is below `bytes_max`; true if more could follow at once.
    pub fn pump(&mut self, _now: Time, _bytes_max: usize, _out: &mut Vec<u8>) -> bool {
        todo!()
    }
    /// The server ends the connection: DISCONNECT with the reason (5.0; nothing in 3.x). Then close, then `connection_lost`.
    pub fn disconnect(&mut self, _reason: ReasonCode, _what: Option<&str>, _out: &mut Vec<u8>) {
        todo!()
    }
    /// The connection is gone, for whatever cause.
    pub fn connection_lost(&mut self, _now: Time) -> Farewell {
        todo!()
    }
    /// Another connection with the same client identifier takes over, or the session is being removed by an
    /// administrator: what remains of the will.
    pub fn take_will(&mut self) -> Option<Message> {
        todo!()
    }
    /// When [`Session::handle_timeout`] wants to be called; may be earlier than needed, never later.
    pub fn next_deadline(&self) -> Option<Time> {
        todo!()
    }
    /// Time has passed.
    pub fn handle_timeout(&mut self, _now: Time) -> Timeout {
        todo!()
    }
    /// Takes the messages of shared groups that are queued or unacknowledged, to give them to other members: called when the
    /// session ends, and for `group` when it leaves one.
    pub fn take_shared(&mut self, _group: Option<GroupId>) -> Vec<(GroupId, Arc<Message>)> {
        todo!()
    }
    /// Messages dropped inside the session since the last call (expired or too large when their turn came), by reason.
    pub fn take_dropped(&mut self) -> Vec<(DropReason, u32)> {
        todo!()
    }
    /// Messages queued, bytes queued, messages inflight.
    pub fn backlog(&self) -> (usize, usize, usize) {
        todo!()
    }
    /// Client identifier, boxed.
    pub fn into_client_id(self) -> Box<str> {
        todo!()
    }
}
