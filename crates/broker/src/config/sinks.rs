//! Sinks: outputs of messages without a client that subscribes to them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// One sink: the messages of a topic filter, written to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SinkConfig {
    /// Kind of the sink: `"log"`, a file with one JSON object a line. Default `"log"`.
    #[serde(rename = "type")]
    pub kind: SinkKind,
    /// Messages of the sink: a topic filter as in SUBSCRIBE, not a shared one. Needed.
    pub filter: String,
    /// The file of a log. The broker creates it with mode 0600, appends to it, and opens a new one
    /// if another program has moved it away. Needed.
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// With a data directory, a message of QoS 1 or 2 is on the disk before its publisher gets the
    /// acknowledgement, and stays there until the sink has written it: at least once, also after
    /// `kill -9` and the loss of power. Messages of QoS 0, and all messages without a data
    /// directory or with `false`, only wait in memory: at most once. Default `true`.
    pub durable: bool,
    /// Effect of a full queue: `"refuse"` (a PUBLISH of QoS 1 or 2 is refused with 0x97 and reaches
    /// no subscriber; an MQTT 3.x client is disconnected without acknowledgement; QoS 0 skips the
    /// sink and is counted), `"hold"` (its publishers are not read until the queue is half empty)
    /// or `"drop"` (messages skip the sink and are counted). Default `"refuse"`: an acknowledged
    /// message is in the sink.
    pub when_full: WhenFull,
    /// Most messages in the queue. Default `100000`: a second or two of a busy node.
    #[schemars(range(min = 1))]
    pub queue_messages: u32,
    /// Most bytes of messages in the queue. Default `"64MiB"`.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(min = 1024))]
    pub queue_bytes: u64,
}

impl Default for SinkConfig {
    fn default() -> Self {
        Self {
            kind: SinkKind::Log,
            filter: String::new(),
            path: PathBuf::new(),
            durable: true,
            when_full: WhenFull::Refuse,
            queue_messages: 100_000,
            queue_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Kind of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SinkKind {
    /// A file of JSON lines.
    #[default]
    Log,
}

/// The effect of a full queue on a message for the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WhenFull {
    /// The publisher gets 0x97.
    #[default]
    Refuse,
    /// The publisher is not read.
    Hold,
    /// The sink does not get it.
    Drop,
}

impl From<WhenFull> for thrum_engine::sinks::WhenFull {
    fn from(when_full: WhenFull) -> Self {
        match when_full {
            WhenFull::Refuse => Self::Refuse,
            WhenFull::Hold => Self::Hold,
            WhenFull::Drop => Self::Drop,
        }
    }
}
