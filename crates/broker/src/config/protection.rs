//! Bans, limits of failed logins, and the load at which the node defers new work.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_protection::{
    FlappingLimits, LoginLimits, OverloadLimits, Paces, ProtectionSettings, Rate,
};

use super::{LimitsConfig, units};

/// Settings of protection.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProtectionConfig {
    /// File of the bans, as `thrum bans` writes it; it is read again within a second after a
    /// change. Its name is read at the start only. Default `""`: `bans.jsonl` in `node.data_dir`,
    /// and without a data directory no such file.
    #[schemars(with = "String")]
    pub bans: PathBuf,
    /// Clients that reconnect continually.
    pub flapping: FlappingConfig,
    /// Failed logins, by the address of the client.
    pub logins: LoginsConfig,
    /// Load at which new work waits so that old work does not suffer.
    pub overload: OverloadConfig,
}

impl ProtectionConfig {
    /// These and the rates among the limits, as settings of protection.
    pub fn settings(&self, limits: &LimitsConfig) -> ProtectionSettings {
        let (client, user, address) = (&limits.client, &limits.user, &limits.address);
        ProtectionSettings {
            client: Paces::new(&Rate::NONE, &client.messages, &client.bytes),
            user: Paces::new(&user.connects, &user.messages, &user.bytes),
            address: Paces::new(&address.connects, &address.messages, &address.bytes),
            flapping: self.flapping.limits(),
            logins: self.logins.limits(),
            overload: self.overload.limits(limits.handshakes),
        }
    }
}

/// Settings against clients that reconnect continually.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlappingConfig {
    /// Clients that connect too often are banned for a time. Default `false`: a device on a bad
    /// link looks the same as a broken one.
    pub enabled: bool,
    /// Time in which the connections are counted. Default `"1m"`, as EMQX.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 86_400))]
    pub window: Duration,
    /// Connections of one client in the window; one more and it is banned. A client is a client
    /// identifier together with its user, without user name together with its address (IPv6: the
    /// network of 64 bits): a client that connects under the identifier of another bans only
    /// itself. Failed logins do not count. 0 is no limit. Default `15`, as EMQX.
    pub connects: u32,
    /// Connections of one user in the window; one more and the user is banned. 0 is no limit.
    /// Default `0`: many devices may share a user.
    pub user_connects: u32,
    /// Connections from one address in the window, including failed logins; one more and the
    /// address is banned, for IPv6 its network of 64 bits. 0 is no limit. Default `0`: many clients
    /// may share an address.
    pub address_connects: u32,
    /// Duration of a ban (0x8A). The ban is kept in memory. Default `"5m"`, as EMQX.
    #[serde(with = "units::duration")]
    #[schemars(
        with = "units::DurationSchema",
        range(min = 1, max = 4_294_967_294_u64)
    )]
    pub ban: Duration,
}

impl Default for FlappingConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            window: Duration::from_mins(1),
            connects: 15,
            user_connects: 0,
            address_connects: 0,
            ban: Duration::from_mins(5),
        }
    }
}

impl FlappingConfig {
    fn limits(&self) -> FlappingLimits {
        let if_enabled = |connects_max| if self.enabled { connects_max } else { 0 };
        FlappingLimits {
            window: self.window,
            connects: if_enabled(self.connects),
            user_connects: if_enabled(self.user_connects),
            address_connects: if_enabled(self.address_connects),
            ban: self.ban,
        }
    }
}

/// Settings against password guessing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginsConfig {
    /// Failed logins of one address (for IPv6 its network of 64 bits) in the window, after which it
    /// has to wait. A user that has logged in from that address before is counted alone and does
    /// not wait for the others, and so is each client identifier that the user has logged in with
    /// from there, so that neither a device with a wrong password nor an attacker locks out other
    /// clients behind a shared address; loopback addresses do not wait. 0 is no limit. Default
    /// `30`: 30 guesses a minute find no sane password, and a handful of devices with a wrong one
    /// do not reach it.
    pub failures: u32,
    /// Time in which they are counted. Default `"1m"`: the interval at which devices retry.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 86_400))]
    pub window: Duration,
    /// Time for which logins are refused (0x9F) from then on. Default `"1m"`: halves the rate of
    /// guessing, and is over before a person gives up.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 86_400))]
    pub wait: Duration,
}

impl Default for LoginsConfig {
    fn default() -> Self {
        Self {
            failures: 30,
            window: Duration::from_mins(1),
            wait: Duration::from_mins(1),
        }
    }
}

impl LoginsConfig {
    fn limits(&self) -> LoginLimits {
        LoginLimits {
            failures: self.failures,
            window: self.window,
            wait: self.wait,
        }
    }
}

/// Settings of overload: when new connections wait in the backlog of the system, and when
/// publishers are read less. `limits.memory` and `limits.handshakes` are two more reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OverloadConfig {
    /// A turn of a worker's event loop of this duration is late: all its clients wait for it. After
    /// `turns` of them in a row new connections wait. 0 is off. Default `"200ms"`: far above a busy
    /// turn, and clients notice it.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 3600))]
    pub turn: Duration,
    /// The same for publishers: they are read less after `turns` turns of this length. 0 is off.
    /// Default `"1s"`: it costs throughput, and by then new connections have waited for a while.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 3600))]
    pub publish_turn: Duration,
    /// Late turns in a row. Default `5`: one slow turn is no overload.
    #[schemars(range(min = 1))]
    pub turns: u32,
    /// Overload is over when for this time every turn took less than half of the limit. Default
    /// `"5s"`: overload does not begin and end continually.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 3600))]
    pub calm: Duration,
}

impl Default for OverloadConfig {
    fn default() -> Self {
        Self {
            turn: Duration::from_millis(200),
            publish_turn: Duration::from_secs(1),
            turns: 5,
            calm: Duration::from_secs(5),
        }
    }
}

impl OverloadConfig {
    fn limits(&self, handshakes: u32) -> OverloadLimits {
        OverloadLimits {
            turn: self.turn,
            publish_turn: self.publish_turn,
            turns: self.turns,
            calm: self.calm,
            handshakes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_only_failed_logins_are_limited() {
        let limits = LimitsConfig::default();
        let settings = ProtectionConfig::default().settings(&limits);
        let free = Paces::default();
        assert_eq!(
            [settings.client, settings.user, settings.address],
            [free; 3]
        );
        let flapping = settings.flapping;
        assert_eq!(
            [
                flapping.connects,
                flapping.user_connects,
                flapping.address_connects
            ],
            [0; 3]
        );
        assert_eq!(settings.logins.failures, 30);
        assert_eq!(settings.overload.handshakes, limits.handshakes);
    }

    #[test]
    fn connections_are_counted_once_that_is_enabled() {
        let mut config = ProtectionConfig::default();
        config.flapping.enabled = true;
        config.flapping.address_connects = 7;
        let flapping = config.settings(&LimitsConfig::default()).flapping;
        assert_eq!((flapping.connects, flapping.user_connects), (15, 0));
        assert_eq!(flapping.address_connects, 7);
    }
}
