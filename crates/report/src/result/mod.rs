//! `result.json`: every figure of a run. Times are in the unit that ends the field's name, memory
//! in bytes, rates per second. The schema only grows; its name changes when it breaks.

mod conclusion;
mod histogram;
mod latency;
mod metrics;
mod resources;
mod scenario;
mod series;
mod stages;
mod withheld;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use latency::{Distribution, Latencies, Quantiles};
pub use resources::{MachineUse, Memory, Resources, ThreadLoad, Usage};
pub use scenario::{GroupDescription, LoadModel, ScenarioDescription, StageSeconds};
pub use series::{Delays, Mark, MarkKind, Second, Stage};
pub use stages::{LatencySplit, MessageStages, StageFigures, Unsplit};
pub use withheld::{
    BOUND_NS_MIN, BOUND_SHARE_IN_USE_MAX, BOUND_SHARE_MAX, FIGURES_IN_USE, VALUES_BEYOND_MIN,
    VALUES_MIN, Withheld,
};

use crate::threshold::ThresholdResult;

/// Name and version of the schema.
pub const SCHEMA: &str = "thrum-bench-result/2";

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// The tool.
    pub tool: Tool,
    /// The generator's machine.
    pub machine: Machine,
    /// UTC, `2026-11-21T09:12:03Z`.
    pub started: String,
    /// Ended early from outside.
    pub interrupted: bool,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Whether the figures are the broker's.
    pub validity: Validity,
    /// Whether the broker kept the promises of the protocol.
    pub verdict: Verdict,
    /// Whether it met the limits that the scenario sets.
    pub thresholds: Vec<ThresholdResult>,
    /// The scenario.
    pub scenario: ScenarioDescription,
    /// The ramp of the clients.
    pub clients: Clients,
    /// Messages per second of the hold.
    pub rates: Rates,
    /// Latencies of the hold, in nanoseconds.
    pub latency_ns: Latencies,
    /// The deliveries.
    pub delivery: Delivery,
    /// The broker's resources during the hold; one per broker, none if it was not visible.
    pub brokers: Vec<Broker>,
    /// The generator's resources during the hold.
    pub generator: Generator,
    /// Other machines that took part.
    pub agents: Vec<Agent>,
    /// Errors by reason.
    pub errors: Vec<ErrorCount>,
    /// Intended faults of the broker or the network, and notes, in order of time.
    pub marks: Vec<Mark>,
    /// Second by second, from the first connection on.
    pub series: Vec<Second>,
    /// Every figure of the run by its name; [`crate::metric::METRICS`] has their units and meaning.
    pub metrics: BTreeMap<String, f64>,
}

/// The tool that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// `thrum bench`.
    pub name: String,
    /// Version.
    pub version: String,
    /// The command line that repeats the run.
    pub command: String,
}

/// The machine of the generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Model of the CPU.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory.
    pub memory_bytes: u64,
    /// Open files that one process may have.
    pub open_files_max: u64,
    /// Kernel settings that bear on the result, by name.
    pub settings: BTreeMap<String, String>,
    /// The source of the times.
    pub clock: String,
}

/// Name of the setting with the cores that the generator is bound to, if it is.
pub const AFFINITY: &str = "cpu.affinity";

impl Machine {
    /// A command line with what binds it to the same cores.
    pub fn bound(&self, command: &str) -> String {
        let cores = self.settings.get(AFFINITY).map(String::as_str);
        cores.map_or_else(
            || command.to_owned(),
            |cores| format!("taskset -c {cores} {command}"),
        )
    }
}

/// Whether the figures are the broker's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validity {
    /// The generator was not the limit.
    pub valid: bool,
    /// Limits of the generator that showed.
    pub limits: Vec<String>,
    /// The remedy for each of them.
    pub advice: Vec<String>,
    /// Figures other than latencies that are not to be used, each with the reason; latencies have
    /// theirs with them.
    pub withheld: BTreeMap<String, String>,
}

/// Whether the broker kept the promises of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// It kept all of them.
    pub pass: bool,
    /// One sentence, as the summary shows it.
    pub text: String,
    /// Promises that were broken.
    pub faults: Vec<String>,
}

/// The ramp of the clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clients {
    /// Clients of the scenario.
    pub wanted: u64,
    /// Connected and subscribed.
    pub ready: u64,
    /// Did not get that far.
    pub failed: u64,
    /// Connections lost afterwards, without those that the scenario cut.
    pub lost: u64,
    /// Connections that the scenario cut on purpose.
    pub cut: u64,
    /// Connections that were restored.
    pub reconnected: u64,
    /// From the first connection to the last client ready.
    pub ramp_seconds: f64,
    /// Clients that got ready per second of the ramp.
    pub connect_rate: f64,
}

/// Messages per second of the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Due.
    pub offered: f64,
    /// Sent.
    pub sent: f64,
    /// Received.
    pub received: f64,
    /// Messages that the broker did not take when they were due.
    pub held_back_messages: u64,
}

/// Deliveries; messages of the whole load, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivery {
    /// PUBLISH packets sent, repetitions left out.
    pub sent_messages: u64,
    /// PUBACK or PUBCOMP received.
    pub acknowledged: u64,
    /// Deliveries that the messages sent ought to cause.
    pub expected: u64,
    /// Deliveries that happened.
    pub delivered: u64,
    /// Deliveries that were promised and did not happen by the end of the drain.
    pub lost: u64,
    /// Deliveries that did not happen and were not promised: never acknowledged, or the subscriber
    /// of a clean session was disconnected.
    pub excused: u64,
    /// Deliveries that happened again.
    pub duplicated: u64,
    /// Messages that arrived after a later one of their publisher.
    pub reordered: u64,
    /// Messages that arrived more than the longest drain after they were due.
    pub late: u64,
    /// Messages that reached a subscriber that did not ask for them.
    pub misdelivered: u64,
    /// Messages that this run did not send.
    pub foreign: u64,
    /// Messages with another quality of service than the lower one of publisher and subscription.
    pub wrong_qos: u64,
    /// Messages on another topic than they were published to.
    pub wrong_topic: u64,
    /// Messages with the retain flag that were published without it.
    pub wrong_retain: u64,
    /// Messages with another payload than they were published with.
    pub wrong_payload: u64,
    /// Messages that the broker refused.
    pub refused: u64,
    /// Subscriptions granted with a lower quality of service than requested.
    pub downgraded_subscriptions: u64,
    /// Bytes written to sockets.
    pub bytes_sent: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
}

/// A broker that was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Broker {
    /// Name of its target in the scenario; empty if it is the only one.
    pub target: String,
    /// Name and version, if known.
    pub version: String,
    /// Its configuration, if it is known.
    pub configuration: String,
    /// Host, if it is another machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// CPU, memory and the rest, with its children.
    #[serde(flatten)]
    pub usage: Usage,
}

/// The generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// Its threads.
    pub threads: Vec<ThreadLoad>,
    /// CPU, memory and the rest.
    #[serde(flatten, deserialize_with = "resources::measured")]
    pub usage: Option<Usage>,
}

/// Another machine that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its machine.
    pub machine: Machine,
    /// Clients that it had.
    pub clients: u64,
    /// Its clock minus the coordinator's.
    pub clock_offset_ns: i64,
    /// The offset is wrong by at most this much.
    pub clock_error_ns: u64,
    /// Its generator.
    pub generator: Generator,
}

/// Errors of one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorCount {
    /// As text.
    pub reason: String,
    /// Number of occurrences.
    pub count: u64,
    /// Seconds from the first connection of the run to the first and to the last one.
    pub first_seconds: f64,
    /// See `first_seconds`.
    pub last_seconds: f64,
}
