//! What the configuration says about protection, in the form that it is used.

use super::overload::OverloadLimits;
use super::rate_table::Paces;
use crate::config::{Config, FlappingConfig, LoginsConfig, Rate};

/// To be held by each worker with its other settings; a reload replaces it.
#[derive(Clone, Copy, Debug)]
pub struct ProtectionSettings {
    /// `limits.client`: of each connection.
    pub client: Paces,
    /// `limits.user`.
    pub user: Paces,
    /// `limits.address`.
    pub address: Paces,
    /// `protection.flapping`.
    pub flapping: FlappingConfig,
    /// `protection.logins`.
    pub logins: LoginsConfig,
    /// `protection.overload` and `limits.handshakes`.
    pub overload: OverloadLimits,
}

impl ProtectionSettings {
    /// From the configuration.
    pub fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let (client, user, address) = (&limits.client, &limits.user, &limits.address);
        Self {
            client: Paces::new(&Rate::NONE, &client.messages, &client.bytes),
            user: Paces::new(&user.connects, &user.messages, &user.bytes),
            address: Paces::new(&address.connects, &address.messages, &address.bytes),
            flapping: config.protection.flapping,
            logins: config.protection.logins,
            overload: OverloadLimits::new(&config.protection.overload, limits),
        }
    }
}
