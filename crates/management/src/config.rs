//! `[management]`: sessions of administrators, the audit log, the provider at which they log in,
//! and the limits of benchmarks.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_settings::{ByteSizeSchema, DurationSchema};

use crate::api::BenchmarkConfig;
use crate::login::OidcConfig;

/// Settings of the management interface; all of them change with a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ManagementConfig {
    /// A session of an administrator ends after this time without a request, one minute to one day.
    /// Default `"1h"`: the longest that NIST SP 800-63B-4 recommends.
    #[serde(with = "thrum_settings::duration")]
    #[schemars(with = "DurationSchema", range(min = 60, max = 86_400))]
    pub session_idle: Duration,
    /// A session ends after this time, whatever is asked in it, one minute to 30 days. Default
    /// `"24h"`: the longest that NIST SP 800-63B-4 recommends.
    #[serde(with = "thrum_settings::duration")]
    #[schemars(with = "DurationSchema", range(min = 60, max = 2_592_000))]
    pub session_life: Duration,
    /// Size of the audit log in the data directory, at least 2 MiB; the oldest entries make room.
    /// Default `"64MiB"`: about 150,000 changes.
    #[serde(with = "thrum_settings::byte_size")]
    #[schemars(
        with = "ByteSizeSchema",
        range(min = 2_097_152, max = 17_179_869_184_u64)
    )]
    pub audit: u64,
    /// What a benchmark that is started over the interface may take.
    pub benchmarks: BenchmarkConfig,
    /// An OpenID Connect provider at which administrators log in, beside those of the broker.
    pub oidc: OidcConfig,
}

impl Default for ManagementConfig {
    fn default() -> Self {
        Self {
            session_idle: Duration::from_hours(1),
            session_life: Duration::from_hours(24),
            audit: 64 * 1024 * 1024,
            benchmarks: BenchmarkConfig::default(),
            oidc: OidcConfig::default(),
        }
    }
}
