//! TLS of all listeners.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// Settings of TLS that hold for all listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFilesConfig {
    /// Interval of checks of the files of certificates, keys, authorities and revocation lists. A
    /// listener of which one has changed reads all of them again, for its next connections; if they
    /// cannot be used it keeps those it has. 0 leaves that to SIGHUP. Default `"1m"`: a renewed
    /// certificate is in use without an action of the operator.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 86_400))]
    pub reload_interval: Duration,
}

impl Default for TlsFilesConfig {
    fn default() -> Self {
        Self {
            reload_interval: Duration::from_mins(1),
        }
    }
}
