//! Settings of one node: plain data with defaults and the reason for each, no I/O.
//!
//! Every doc comment of a field is the reference text of its key; it ends with its default and says
//! why.

mod limits;
mod listener;
mod priorities;
mod protection;
mod rate;
mod storage;
#[cfg(test)]
mod tests;
mod tls;
pub mod units;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_routing::Strategy;

pub use limits::{
    AddressLimits, ClientLimits, LimitsConfig, PacketLimits, QueuePolicy, RetainedMessageLimits,
    UserLimits,
};
pub use listener::{
    Bind, CertificateConfig, CertificateName, ClientCert, ListenerConfig, ProtocolVersion,
    TlsConfig, TlsVersion, Transport,
};
pub use priorities::PrioritiesSchema;
pub use protection::{FlappingConfig, LoginsConfig, OverloadConfig, ProtectionConfig};
pub use rate::{ByteRateSchema, RateSchema};
pub use storage::{Durability, StorageConfig, Wills};
pub use thrum_protection::Rate;
pub use thrum_settings::{Anonymous, ClientIdPattern, ClientIdPatternSchema, Takeover};
pub use tls::TlsFilesConfig;

/// The port that IANA assigned to MQTT.
const MQTT_PORT: u16 = 1883;

/// Everything that can be set for a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// This node itself.
    pub node: NodeConfig,
    /// Where clients come in: a table for each listener, with a name of your choice (`a-z`, `0-9`,
    /// `_`, `-`). With any table here, only the listeners that have one are open. Without one, it
    /// is `mqtt` on port 1883 of every address.
    pub listeners: BTreeMap<String, ListenerConfig>,
    /// Certificates of all listeners.
    pub tls: TlsFilesConfig,
    /// Who may connect.
    pub auth: AuthConfig,
    /// How the durable state is kept.
    pub storage: StorageConfig,
    /// What clients may use up. Every limit has a counter that says how often it was hit.
    pub limits: LimitsConfig,
    /// Who is kept out for a time, and when new work waits for old work.
    pub protection: ProtectionConfig,
    /// Shared subscriptions (`$share/group/filter`).
    pub shared: SharedConfig,
    /// The `$SYS/broker/…` topics.
    pub sys: SysConfig,
    /// The log, on standard error.
    pub log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        let bind = wildcard(MQTT_PORT).into_iter().map(Bind::Address).collect();
        Self {
            node: NodeConfig::default(),
            listeners: BTreeMap::from([(
                "mqtt".to_owned(),
                ListenerConfig {
                    bind,
                    ..Default::default()
                },
            )]),
            tls: TlsFilesConfig::default(),
            auth: AuthConfig::default(),
            storage: StorageConfig::default(),
            limits: LimitsConfig::default(),
            protection: ProtectionConfig::default(),
            shared: SharedConfig::default(),
            sys: SysConfig::default(),
            log: LogConfig::default(),
        }
    }
}

/// Settings of the node itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// Name of this node, in its start-up message and log. Default `"thrum"`: one node needs no
    /// other name.
    pub name: String,
    /// Folder for what must survive a restart: sessions with an expiry above 0, their subscriptions
    /// and messages, wills, and retained messages. One broker at a time uses it. Default `""`:
    /// nothing is kept on disk.
    #[schemars(with = "String")]
    pub data_dir: PathBuf,
    /// Worker threads, 1 to 256, or `"auto"`: one per core that this process may use, but one alone
    /// on a machine of two cores. Each owns its connections and sessions. Default `"auto"`: more
    /// threads than cores only add switches.
    #[serde(with = "units::workers")]
    #[schemars(with = "units::WorkersSchema")]
    pub workers: Workers,
    /// How long a worker with nothing to do goes on looking for work before it sleeps. It takes a
    /// core for itself and saves the time to wake up. Default `0`: sleep at once.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 1))]
    pub busy_poll: Duration,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: "thrum".to_owned(),
            data_dir: PathBuf::new(),
            workers: Workers::Auto,
            busy_poll: Duration::ZERO,
        }
    }
}

/// Number of worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Workers {
    /// One per core that this process may use; one alone on two cores.
    #[default]
    Auto,
    /// This many.
    Count(u16),
}

/// Settings of authentication.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Who may connect without credentials: `"loopback"` (clients of this machine), `true`
    /// (everyone) or `false` (nobody). Default `"loopback"`: works out of the box and is open to no
    /// stranger.
    #[serde(with = "units::anonymous")]
    #[schemars(with = "units::AnonymousSchema")]
    pub anonymous: Anonymous,
    /// Who may take over a client identifier that has a session, connected or not: `"same_user"`
    /// (the user that the session belongs to; another one is refused with 0x85, in 3.x with return
    /// code 2) or `"any_user"` (the session of the user before ends, and what waited is given to
    /// nobody). What a client without user name left belongs to nobody. Default `"same_user"`:
    /// nobody ends the session of another by knowing its name.
    pub takeover: Takeover,
    /// Form of client identifiers, such as `"%u-*"`: `%u` is the user name, `*` any characters;
    /// with `%u` it says nothing about clients without user name. Others are refused with 0x85
    /// (3.x: return code 2), but for identifiers that the broker gives. Default `""`: any, and who
    /// comes first has it.
    #[schemars(with = "ClientIdPatternSchema")]
    pub client_id: ClientIdPattern,
}

/// Settings of shared subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SharedConfig {
    /// Which member of a group gets a message: `"round_robin"`, `"random"`, `"sticky"` (the same
    /// one until it leaves), `"hash_client_id"` (the same one for all messages of a publisher),
    /// `"hash_topic"` (the same one for all messages of a topic) or `"local"` (one of this node if
    /// there is one). Default `"round_robin"`: spreads work evenly.
    #[serde(with = "units::strategy")]
    #[schemars(with = "units::StrategySchema")]
    pub strategy: Strategy,
}

/// Settings of the `$SYS` topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SysConfig {
    /// Time between two updates of the `$SYS/broker/…` topics; 0 turns them off. Default `"10s"`,
    /// as Mosquitto.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 86_400))]
    pub interval: Duration,
}

impl Default for SysConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
        }
    }
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, also by part:
    /// `"info,thrum_broker=debug"`. The variable `RUST_LOG` sets it too. Default `"info"`: changes
    /// of state, nothing per message.
    pub level: String,
    /// Form of a line: `"text"` for people or `"json"` for machines. Default `"text"`.
    pub format: LogFormat,
    /// Lines a second, at the level `info`, that tell of clients: one when a client comes, and one
    /// when it goes, with the reason. What is left out is counted. 0 is none. Default `100`:
    /// everybody of a quiet day, and no full disk when all come back at once.
    pub clients: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
            clients: 100,
        }
    }
}

/// Form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A port of every address of the machine, in both families.
fn wildcard(port: u16) -> Vec<SocketAddr> {
    vec![
        (Ipv4Addr::UNSPECIFIED, port).into(),
        (Ipv6Addr::UNSPECIFIED, port).into(),
    ]
}
