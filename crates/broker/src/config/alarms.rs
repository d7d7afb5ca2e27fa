//! Thresholds of the alarms.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// From when on something is an alarm. Alarms are looked at every ten seconds by the management
/// interface; they are in its list, in `/metrics` and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlarmsConfig {
    /// Percentage of `limits.memory` that is in use; 0 is no alarm. Default `80`: from there on
    /// publishers are read less.
    #[schemars(range(max = 100))]
    pub memory: u8,
    /// Percentage of the cores of this machine that the broker keeps busy for ten seconds; 0 is no
    /// alarm. Default `90`: little is left for a burst.
    #[schemars(range(max = 100))]
    pub cpu: u8,
    /// Percentage of `limits.connections`, or of a listener's `max_connections`, that is in use; 0
    /// is no alarm. Default `80`: time to raise the limit before clients are refused.
    #[schemars(range(max = 100))]
    pub connections: u8,
    /// Percentage of the open files of the process that is in use; 0 is no alarm. Default `80`.
    #[schemars(range(max = 100))]
    pub open_files: u8,
    /// Percentage of `storage.max_disk` that is in use; 0 is no alarm. Default `70`: from three
    /// quarters on new messages and sessions are refused.
    #[schemars(range(max = 100))]
    pub disk: u8,
    /// Free space on the disk of `node.data_dir` below which there is an alarm; 0 is none. Default
    /// `"1GiB"`: the log and its cleaning need some segments.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema")]
    pub disk_free: u64,
    /// Time before the end of a certificate, or a third of its whole time if that is less; 0 is no
    /// alarm. Default `"14d"`: time to renew it.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema")]
    pub certificate: Duration,
    /// Number of clients whose queue is four fifths full; 0 is no alarm. It is counted once a
    /// minute. Default `1`: the next step is that messages are dropped.
    pub queues: u32,
    /// Messages that are dropped a minute; 0 is no alarm. Default `1`: every lost message has a
    /// reason.
    pub drops: u32,
    /// Messages that are refused to their publishers a minute, or discarded with QoS 0, because a
    /// queue, memory, the disk, a sink or a limit of retained messages is full; 0 is no alarm.
    /// Messages that their publishers may not publish, or that are too large, do not count. Default
    /// `1`: a refused publisher waits, or loses the message.
    pub refusals: u32,
}

impl Default for AlarmsConfig {
    fn default() -> Self {
        Self {
            memory: 80,
            cpu: 90,
            connections: 80,
            open_files: 80,
            disk: 70,
            disk_free: 1 << 30,
            certificate: Duration::from_hours(14 * 24),
            queues: 1,
            drops: 1,
            refusals: 1,
        }
    }
}
