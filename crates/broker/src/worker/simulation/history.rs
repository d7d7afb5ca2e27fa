//! The history of one run: actions and observations of clients, no state of the node.

use thrum_codec::{QoS, ReasonCode};

/// Number of a client, counted from 0.
pub(super) type ClientNumber = usize;
/// Number of a message, over all publishers; it begins the payload.
pub(super) type MessageNumber = u32;
/// Virtual time in milliseconds since the Unix epoch.
pub(super) type Millis = u64;

/// Most clients, the watcher and the inspector included.
pub(super) const CLIENTS_MAX: usize = 10;
/// Topics of plain messages.
pub(super) const PLAIN: [&str; 3] = ["t/0", "t/1", "t/2"];
/// Topics of retained messages: each row is written by the client of that number. They are more
/// than a slow client reads at a time.
pub(super) const RETAINED: [[&str; 4]; CLIENTS_MAX] = [
    ["r/0", "r/0/a", "r/0/b", "r/0/c"],
    ["r/1", "r/1/a", "r/1/b", "r/1/c"],
    ["r/2", "r/2/a", "r/2/b", "r/2/c"],
    ["r/3", "r/3/a", "r/3/b", "r/3/c"],
    ["r/4", "r/4/a", "r/4/b", "r/4/c"],
    ["r/5", "r/5/a", "r/5/b", "r/5/c"],
    ["r/6", "r/6/a", "r/6/b", "r/6/c"],
    ["r/7", "r/7/a", "r/7/b", "r/7/c"],
    ["r/8", "r/8/a", "r/8/b", "r/8/c"],
    ["r/9", "r/9/a", "r/9/b", "r/9/c"],
];
/// Topics of wills: each of the client of that number.
pub(super) const WILLS: [&str; CLIENTS_MAX] = [
    "w/0", "w/1", "w/2", "w/3", "w/4", "w/5", "w/6", "w/7", "w/8", "w/9",
];
/// Topics of shared groups: each group has one topic.
pub(super) const SHARED: [&str; 2] = ["s/0", "s/1"];

/// A message as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) number: MessageNumber,
    pub(super) topic: &'static str,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// An empty payload, which removes the retained message.
    pub(super) is_empty: bool,
    /// Seconds (5.0).
    pub(super) expiry_secs: Option<u32>,
}

/// A will as sent in CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentWill {
    pub(super) number: MessageNumber,
    pub(super) delay_secs: u32,
    pub(super) qos: QoS,
}

/// How a connection ended, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The network closed it; the node notices it at the next read.
    Cut,
    /// The client went silent; the node notices it by the keep alive, between these two times, or
    /// by the next CONNECT.
    Silent(Option<(Millis, Millis)>),
    /// The client sent DISCONNECT.
    Disconnect {
        with_will: bool,
        expiry_secs: Option<u32>,
    },
    /// The node ended it.
    ByBroker,
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// CONNECT was sent.
    Connecting {
        client: ClientNumber,
        clean_start: bool,
        expiry_secs: u32,
        will: Option<SentWill>,
    },
    /// CONNACK arrived.
    Connected {
        client: ClientNumber,
        session_present: bool,
    },
    /// CONNACK arrived, with an error.
    Refused {
        client: ClientNumber,
        reason: ReasonCode,
    },
    Disconnected {
        client: ClientNumber,
        how: Ending,
    },
    Subscribing {
        client: ClientNumber,
        filter: &'static str,
        qos: QoS,
    },
    Subscribed {
        client: ClientNumber,
        filter: &'static str,
        granted: Option<QoS>,
    },
    Unsubscribing {
        client: ClientNumber,
        filter: &'static str,
    },
    Unsubscribed {
        client: ClientNumber,
        filter: &'static str,
    },
    /// PUBLISH was sent, maybe again.
    Sent {
        client: ClientNumber,
        message: Message,
    },
    /// PUBACK or PUBREC arrived.
    Accepted {
        client: ClientNumber,
        number: MessageNumber,
        outcome: ReasonCode,
    },
    /// The application received a message.
    Received {
        client: ClientNumber,
        number: MessageNumber,
        topic: &'static str,
        qos: QoS,
        dup: bool,
        retain: bool,
    },
    /// A silent connection was closed; `connection` is the connection number of the client, from 1.
    SilenceDetected {
        client: ClientNumber,
        connection: u32,
    },
    /// The sink has written a message.
    Written {
        number: MessageNumber,
        topic: &'static str,
        qos: QoS,
    },
    /// The sink was removed.
    SinkRemoved,
    /// All packets of clients and all ends of connections but silent ones have reached the node,
    /// and all packets of the node have reached the clients.
    Settled,
    /// As before, and every client whose session may exist is connected.
    Drained,
    /// The client has received the retained messages of all topics.
    Inspected {
        client: ClientNumber,
    },
    /// The node was killed and restarted from its disk.
    Restarted,
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: Millis,
    pub(super) event: Event,
}

/// The topic of the simulation with that text.
pub(super) fn known_topic(text: &str) -> Option<&'static str> {
    let retained = RETAINED.as_flattened();
    let all = PLAIN.iter().chain(retained).chain(&WILLS).chain(&SHARED);
    all.copied().find(|topic| *topic == text)
}
