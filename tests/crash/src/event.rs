//! The clients' actions and observations, in the order of the harness.

use std::collections::BTreeMap;

/// Milliseconds since the run began.
pub type Millis = u64;
/// Index of a client among all.
pub type ClientIndex = usize;
/// Number of a message, counted up over all publishers; a message that is sent again keeps it.
pub type MessageNumber = u64;

/// Seconds of a session expiry that never comes.
pub const NEVER: u32 = u32::MAX;

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When; for a kill a time before it.
    pub at: Millis,
    /// The event.
    pub event: Event,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The broker accepts connections.
    Started,
    /// The broker has ended, and everything that it had sent was read.
    Killed,
    /// An operation of the disk failed, and all that follow will.
    Faulty,
    /// The disk works again.
    Healed,
    /// A client did something or saw something.
    Client(ClientIndex, ClientEvent),
    /// An inspection of all retained messages begins.
    Inspecting,
    /// The look was cut off.
    NotInspected,
    /// The retained messages, by topic.
    Inspected(BTreeMap<String, MessageNumber>),
}

/// One thing that happened to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// CONNECT is sent; also while an earlier connection is open.
    Connecting(Connect),
    /// CONNACK was received, with or without session present.
    Connected(bool),
    /// CONNACK with an error was received.
    Rejected(u8),
    /// DISCONNECT is sent.
    Disconnecting(Disconnect),
    /// The broker closed after DISCONNECT.
    Disconnected,
    /// The client closed without DISCONNECT.
    Vanished,
    /// The broker closed for an unknown reason.
    Dropped,
    /// SUBSCRIBE for one filter is sent.
    Subscribing(String, u8),
    /// SUBACK with success was received.
    Subscribed(String),
    /// SUBACK with an error was received.
    NotSubscribed(String, u8),
    /// UNSUBSCRIBE is sent.
    Unsubscribing(String),
    /// UNSUBACK was received.
    Unsubscribed(String),
    /// PUBLISH is sent, perhaps again.
    Publishing(MessageNumber, Publish),
    /// PUBACK or PUBREC with success was received.
    Accepted(MessageNumber),
    /// PUBACK or PUBREC with an error was received.
    Refused(MessageNumber, u8),
    /// PUBLISH was received.
    Received(Delivery),
    /// PUBACK is sent.
    Acknowledged(u16),
    /// PUBREC is sent.
    Recorded(u16),
    /// PUBREL was received, and PUBCOMP is sent.
    Released(u16),
    /// A packet that no correct broker sends.
    Nonsense(String),
}

/// The parts of a CONNECT that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Clean start or clean session.
    pub clean: bool,
    /// Seconds for which the session outlives the connection.
    pub expiry_secs: u32,
    /// The will, in the form of its publish.
    pub will: Option<Will>,
}

/// A will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Its message.
    pub number: MessageNumber,
    /// Topic and options.
    pub publish: Publish,
    /// Milliseconds between the loss of the connection and the message.
    pub delay: Millis,
}

/// The parts of a DISCONNECT that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect {
    /// The will must be published nevertheless.
    pub with_will: bool,
    /// The session is to end with the connection.
    pub ends_session: bool,
}

/// The parts of a PUBLISH that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// Topic name.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// Its retain flag.
    pub retain: bool,
    /// Whether the payload is empty: such a message has no number that a receiver could read.
    pub is_empty: bool,
}

/// A received PUBLISH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message, unless it is empty.
    pub number: Option<MessageNumber>,
    /// Topic name.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// Sent because it was retained.
    pub retain: bool,
    /// The DUP flag.
    pub dup: bool,
    /// Packet identifier; 0 with `QoS` 0.
    pub packet_id: u16,
}
