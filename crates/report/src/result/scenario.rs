//! The scenario of a run, as text.

use serde::{Deserialize, Serialize};

/// A scenario as it was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioDescription {
    /// Name; of a step of a sweep `NAME/STEP`.
    pub name: String,
    /// Its purpose, in one line.
    pub summary: String,
    /// URLs of the brokers, in the order of the scenario's targets.
    pub targets: Vec<String>,
    /// `3.1.1` or `5.0`; both if groups differ.
    pub mqtt_version: String,
    /// Quality of service that messages are delivered with.
    pub qos: Option<u8>,
    /// Size of the largest payload.
    pub payload_bytes: Option<u32>,
    /// Kind of the payload: `binary`, `random`, `json`, `text`, `file`.
    pub payload: String,
    /// `tcp`, `tls`, `ws`, `wss`.
    pub transport: String,
    /// Keep alive.
    pub keep_alive_seconds: u16,
    /// Connections opened per second.
    pub connect_rate: u32,
    /// Addresses and ranges that the clients connected from in turn; the machine's choice if none.
    pub source_addresses: Vec<String>,
    /// The pacing of messages.
    pub load: LoadModel,
    /// Part of the full scenario that was run, where it was scaled; 1 is all of it.
    pub scale: f64,
    /// Lengths of the stages as they were.
    pub stages: StageSeconds,
    /// The clients.
    pub groups: Vec<GroupDescription>,
    /// The complete scenario file.
    pub toml: String,
}

/// The pacing of messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadModel {
    /// True: a message waits for the acknowledgement of earlier ones (closed loop), so latencies
    /// hide waiting.
    pub closed_loop: bool,
    /// As text: `open loop, constant`, `open loop, steps of 5 s: 100/s, 200/s`, `closed loop,
    /// window 10`.
    pub text: String,
    /// The processes by which the messages of open loops arrive at the broker: `even`, `poisson`,
    /// `burst`, separated by commas; empty without one.
    pub arrivals: String,
}

/// Lengths of the stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct StageSeconds {
    pub ramp: f64,
    pub warm_up: f64,
    pub hold: f64,
    pub drain: f64,
}

/// Clients that behave alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupDescription {
    /// Its name.
    pub name: String,
    /// Clients.
    pub clients: u32,
    /// Their activity, in one line: `publish test/{i} 1/s QoS 1 · 16 B random`.
    pub text: String,
}
