//! `[management.benchmarks]`: what a benchmark that is started over the interface may take.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_settings::{ByteSizeSchema, DurationSchema};

/// Limits of benchmarks; a run keeps those that it began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BenchmarkConfig {
    /// Whether runs can be started. Default `true`: one needs the scope `benchmarks:write`, and
    /// takes no more than the limits here.
    pub enabled: bool,
    /// Whether runs may load other brokers than this one. Default `true`: the program is a
    /// benchmark for any broker.
    pub other_targets: bool,
    /// Cores of a run; never more than half of those that the broker may use, and at least one.
    /// Default `0`: half of them, so that the other half is the broker's.
    #[schemars(range(max = 4096))]
    pub cores: u32,
    /// By how much the threads of the broker come before those of a run, 0 to 19. Default `5`: on
    /// a core that both want the broker gets three quarters.
    #[schemars(range(min = 0, max = 19))]
    pub nice: i32,
    /// A run whose process takes more memory is ended, at least 32 MiB. Default `"1GiB"`: about
    /// 500,000 clients.
    #[serde(with = "thrum_settings::byte_size")]
    #[schemars(
        with = "ByteSizeSchema",
        range(min = 33_554_432, max = 1_099_511_627_776_u64)
    )]
    pub memory: u64,
    /// Longest run, all stages together, 1 s to 7 days. Default `"1h"`: a run that was forgotten
    /// ends while somebody remembers it.
    #[serde(with = "thrum_settings::duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 604_800))]
    pub duration: Duration,
    /// Most clients of a run. Default `50000`: each takes an open file of both processes, and a
    /// broker with the usual limits has place for more.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub clients: u32,
}

impl Default for BenchmarkConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            other_targets: true,
            cores: 0,
            nice: 5,
            memory: 1024 * 1024 * 1024,
            duration: Duration::from_hours(1),
            clients: 50_000,
        }
    }
}
