//! The contents of a run: groups of clients, their publishing and subscribing, the stages, the
//! faults. Data only.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thrum_codec::{QoS, Version};
use thrum_report::Threshold;

use super::{AddressRange, Rate, wire};

/// One benchmark, complete but for the brokers' addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Full name, the same as in the published benchmarks.
    pub name: String,
    /// Shorter name accepted on the command line.
    pub alias: String,
    /// Its purpose, in one line.
    pub summary: String,
    /// The brokers; at least one, groups that name none use the first.
    pub targets: Vec<TargetSpec>,
    /// Protocol version of clients that have none of their own.
    #[serde(with = "wire::version")]
    pub version: Version,
    /// Connections opened per second.
    pub connect_rate: u32,
    /// Addresses that the clients connect from in turn, of all machines that make the load; the
    /// machine's choice if none.
    pub source_addresses: Vec<AddressRange>,
    /// Keep alive in seconds of clients that have none of their own; 0 turns it off.
    pub keep_alive: u16,
    /// Lengths of the stages; the ramp follows from clients and connect rate.
    pub stages: Stages,
    /// The clients.
    pub groups: Vec<Group>,
    /// Limits that the run must keep.
    #[serde(with = "wire::thresholds")]
    pub thresholds: Vec<Threshold>,
    /// Faults of clients, network and broker during the hold.
    pub faults: Vec<Fault>,
    /// Part of the full scenario that this is, where it was scaled; 1 is all of it.
    pub scale: f64,
    /// The scenario as a file, including changes on the command line: for repeating and editing.
    pub toml: String,
}

/// A broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Its name in the scenario; empty if it is the only one.
    pub name: String,
    /// Its URL, if the scenario names it.
    pub url: Option<String>,
}

/// Lengths of the stages after the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Load that is not counted in rates and latencies.
    pub warm_up: Duration,
    /// Load that is counted.
    pub hold: Duration,
    /// Longest wait for messages that are still on their way.
    pub drain: Duration,
}

/// Clients that behave alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Name, unique in the scenario.
    pub name: String,
    /// Number of clients, numbered from 1 in patterns.
    pub clients: u32,
    /// Its broker: index into the scenario's targets.
    pub target: usize,
    /// The connection of each of them.
    pub client: ClientSpec,
    /// The publishing of each of them.
    pub publish: Option<PublishSpec>,
    /// The subscriptions of each of them.
    pub subscribe: Option<SubscribeSpec>,
}

/// The connection of a client. Its texts are patterns of [`super::fill`], with `{run}` a short text
/// that differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSpec {
    /// Protocol version; the scenario's if none.
    #[serde(with = "wire::version_if_any")]
    pub version: Option<Version>,
    /// Keep alive in seconds; the scenario's if none.
    pub keep_alive: Option<u16>,
    /// Client identifier; a unique one of at most 23 characters if none.
    pub id: Option<String>,
    /// Keeps the session over a reconnect: clean start is off after the first connection and the
    /// session expires after this time (5.0; before that the flag alone counts).
    pub session_expiry: Option<Duration>,
    /// User name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Will message.
    pub will: Option<WillSpec>,
    /// User properties of CONNECT (5.0).
    pub user_properties: Vec<(String, String)>,
    /// Receive maximum (5.0).
    pub receive_maximum: Option<u16>,
    /// Comes back after a connection is lost.
    pub reconnect: Option<Reconnect>,
    /// The network between the client and the broker; unchanged if none.
    pub network: Option<Network>,
    /// Bytes per second that the client reads at most: a slow consumer.
    pub read_rate: Option<u64>,
}

/// The will of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WillSpec {
    /// Topic.
    pub topic: String,
    /// Payload, UTF-8.
    pub payload: String,
    /// Quality of service.
    #[serde(with = "wire::qos")]
    pub qos: QoS,
    /// Publish as retained.
    pub retain: bool,
}

/// The reconnecting of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconnect {
    /// Wait before the first attempt.
    pub delay: Duration,
    /// Longest wait: it doubles with each failed attempt.
    pub delay_max: Duration,
}

/// A network made worse by a proxy between client and broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// One-way delay.
    pub delay: Duration,
    /// The delay varies by up to this much in both directions; bytes stay in order.
    pub jitter: Duration,
    /// Bytes per second of each connection and direction; unlimited if none.
    pub bandwidth: Option<u64>,
    /// Mean time until a connection is cut, exponentially distributed; never if none.
    pub cut_after: Option<Duration>,
}

/// The publishing of each client of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishSpec {
    /// Topic, a pattern of [`super::fill`].
    pub topic: String,
    /// Messages per second.
    pub rate: Rate,
    /// The shape of the rate during the load.
    pub shape: Shape,
    /// The process by which the messages of all of them arrive.
    pub arrivals: Arrivals,
    /// Closed loop: most messages without acknowledgement; the rate then plays no part. Open loop
    /// if none.
    pub window: Option<u16>,
    /// Quality of service.
    #[serde(with = "wire::qos")]
    pub qos: QoS,
    /// Publish as retained.
    pub retain: bool,
    /// The payload.
    pub payload: PayloadSpec,
    /// User properties of each message (5.0).
    pub user_properties: Vec<(String, String)>,
    /// Message expiry in seconds (5.0).
    pub expiry: Option<u32>,
    /// Each message is a request: the topic of its answer; the client subscribes to it itself.
    pub response: Option<String>,
}

/// The shape of a rate over the load (warm-up and hold).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// It does not.
    #[default]
    Constant,
    /// From the rate of the group, linearly, to this one at the end of the hold.
    Ramp {
        /// The rate at the end.
        to: Rate,
    },
    /// Each of these rates in turn for an equal part of the hold; the first one also in the
    /// warm-up.
    Steps {
        /// At least one.
        rates: Vec<Rate>,
    },
}

/// The process by which the messages of a group's publishers arrive at the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Publishers are spread evenly over the period, each at the same place of each period.
    #[default]
    Even,
    /// At random, as messages of independent publishers do.
    Poisson,
    /// All publishers' messages of a period at once.
    Burst,
}

/// The contents of a message besides its mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PayloadSpec {
    /// Filled with dots.
    Size(u32),
    /// Filled with random bytes: cannot be compressed.
    Random(u32),
    /// A text with places to fill in; JSON if it starts with `{`.
    Template(String),
    /// Contents of a file.
    File(PathBuf),
}

/// The subscriptions of each client of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscribeSpec {
    /// Filters, patterns of [`super::fill`]; `{p}` stands for one filter per publisher.
    pub filters: Vec<String>,
    /// Highest quality of service to receive with.
    #[serde(with = "wire::qos")]
    pub qos: QoS,
    /// Answers each request at its response topic with the request's own payload.
    pub respond: bool,
    /// A bridge prepends this to the topic: a message that arrives at `PREFIX` + topic was
    /// published to topic.
    pub strip_prefix: Option<String>,
}

/// Something done on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// From the start of the hold.
    pub at: Duration,
    /// Its duration; zero for an instantaneous one.
    pub lasts: Duration,
    /// The action.
    pub kind: FaultKind,
}

/// The kinds of intended faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FaultKind {
    /// Cuts connections all at once; clients reconnect as their group is set.
    Disconnect {
        /// The affected clients.
        victims: Victims,
        /// True: with a reset; false: closed without DISCONNECT.
        reset: bool,
    },
    /// Stops reading from sockets, so that the broker has to queue.
    StopReading {
        /// The affected clients.
        victims: Victims,
    },
    /// Neither reads nor writes, and does not close: a half-open peer.
    Freeze {
        /// The affected clients.
        victims: Victims,
    },
    /// Runs a command in a shell, for example one that kills and restarts the broker; if empty the
    /// one of `--on-fault`.
    Hook {
        /// The command.
        command: String,
    },
}

/// The clients that a fault affects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Victims {
    /// Name of the group; all groups if none.
    pub group: Option<String>,
    /// Part of the clients, spread evenly; 1 is all of them.
    pub share: f64,
}

/// A scenario, or the steps of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// A scenario without steps is single; steps are complete scenarios named `NAME/STEP`.
    pub scenarios: Vec<Scenario>,
}
