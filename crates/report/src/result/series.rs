//! The run second by second.

use serde::{Deserialize, Serialize};

use super::{Quantiles, Resources};

/// The stage of a run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names of the stages are self-explanatory")]
pub enum Stage {
    #[default]
    Ramp,
    WarmUp,
    Hold,
    Drain,
}

/// About a second of a run, all threads and agents together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Seconds from the first connection to its beginning.
    pub at: f64,
    /// Its length in seconds: 1, or shorter at the end of a stage.
    pub span: f64,
    /// The stage it belongs to.
    pub stage: Stage,
    /// Clients connected and subscribed at its end.
    pub up: u64,
    /// Clients that got ready in it.
    pub connected: u64,
    /// Clients that failed to connect in it.
    pub failed: u64,
    /// Connections lost in it, those cut on purpose included.
    pub lost: u64,
    /// Messages due in it.
    pub offered: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Messages that were due and not taken by the broker.
    pub held_back: u64,
    /// Bytes written to sockets.
    pub bytes_sent: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Response times of the messages that arrived in it.
    pub e2e: Option<Quantiles>,
    /// Service times.
    pub service: Option<Quantiles>,
    /// Times to the acknowledgement.
    pub publish_ack: Option<Quantiles>,
    /// Connect times.
    pub connect: Option<Quantiles>,
    /// Reconnection delays.
    pub reconnect: Option<Quantiles>,
    /// What kept the generator from its schedule.
    #[serde(flatten)]
    pub delays: Delays,
    /// The first broker that is watched.
    pub broker: Option<Resources>,
    /// The generator.
    pub generator: Option<Resources>,
}

/// Delays that the generator caused in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delays {
    /// Messages sent late.
    #[serde(rename = "generator_lag")]
    pub sending: Option<Quantiles>,
    /// Messages read late, at most.
    #[serde(rename = "receive_lag")]
    pub reading: Option<Quantiles>,
    /// Connections opened late.
    #[serde(rename = "open_lag")]
    pub opening: Option<Quantiles>,
    /// How much of the response times of the messages that arrived in it may be the generator's.
    pub e2e_bound: Option<Quantiles>,
}

/// Something that happened at one moment: a fault, its end, a change of the load, a note.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// Seconds from the first connection.
    pub at: f64,
    /// What it is.
    #[serde(skip_serializing_if = "MarkKind::is_other")]
    pub kind: MarkKind,
    /// The factor of a rate, the seconds of an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// As text.
    pub text: String,
}

/// What a mark is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A note of a person.
    Note,
    /// The rate is another one: `value` times the planned one.
    Rate,
    /// Nothing is sent.
    Paused,
    /// The rate from before the pause.
    Resumed,
    /// The hold is longer by `value` seconds.
    Extended,
    /// A change that was asked for and not made.
    NotChanged,
    /// The hold ends early.
    Stopped,
    /// A fault, its end, or something that a newer program knows.
    #[default]
    #[serde(other)]
    Other,
}

impl MarkKind {
    /// The load is another one than planned.
    pub(crate) const fn changes_the_load(self) -> bool {
        matches!(self, Self::Rate | Self::Paused | Self::Extended)
    }

    /// Nothing else is known of it.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    const fn is_other(&self) -> bool {
        matches!(self, Self::Other)
    }
}
