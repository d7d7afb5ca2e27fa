//! Storage of durable state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// Settings of the durable state, which exists if `node.data_dir` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageConfig {
    /// Guarantee of an acknowledgement to a durable session: `"fsync"` (the data survives the loss
    /// of power), `"os"` (it survives the end of the broker, and the loss of power except for the
    /// last seconds) or `"memory"` (nothing is kept on disk, even with `node.data_dir`). Default
    /// `"fsync"`: acknowledged data is safe.
    pub durability: Durability,
    /// Most bytes of the state on the disk; three quarters of it can be messages and sessions. When
    /// it is reached, new durable sessions, messages for them and retained messages are refused
    /// (0x97). Default `"16GiB"`.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(min = 1_048_576))]
    pub max_disk: u64,
    /// Wills that survive the end of the broker without a stop (`kill -9`, loss of power): `"all"`,
    /// also those of sessions that end with their connection, or `"persistent"`, only those of
    /// sessions with an expiry. Default `"all"`: a will reports that a client is gone, also when
    /// the broker ended first. With it the CONNACK of a client that leaves a will waits for the
    /// disk; clients without a will pay nothing.
    pub wills: Wills,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            max_disk: 16 * 1024 * 1024 * 1024,
            wills: Wills::All,
        }
    }
}

/// The time from which a change counts as safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Durability {
    /// When the disk has it.
    #[default]
    Fsync,
    /// When the operating system has it.
    Os,
    /// Nothing is written.
    Memory,
}

/// Which wills are kept on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Wills {
    /// Every will.
    #[default]
    All,
    /// Those of sessions that outlive their connection.
    Persistent,
}
