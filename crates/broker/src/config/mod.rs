//! Settings of one node: plain data with defaults and the reason for each, no I/O.
//!
//! Every doc comment of a field is the reference text of its key; it ends with its default and says
//! why.

mod alarms;
mod limits;
mod listener;
mod priorities;
mod protection;
mod rate;
mod restart;
mod sinks;
mod storage;
mod telemetry;
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

pub use alarms::AlarmsConfig;
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
pub use rate::{ByteRateSchema, RateSchema, byte_rate_text, rate_text};
pub use sinks::{SinkConfig, SinkKind, WhenFull};
pub use storage::{Durability, StorageConfig, Wills};
pub use telemetry::{MessageTracesConfig, TelemetryConfig, TelemetryProtocol};
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
    /// Listeners of clients: a table for each, with a name of your choice (`a-z`, `0-9`, `_`, `-`).
    /// With any table here, only the listeners that have one are open. Without one, it is `mqtt` on
    /// port 1883 of every address.
    pub listeners: BTreeMap<String, ListenerConfig>,
    /// Certificates of all listeners.
    pub tls: TlsFilesConfig,
    /// Authentication of clients.
    pub auth: AuthConfig,
    /// Storage of the durable state.
    pub storage: StorageConfig,
    /// Sinks, which receive messages without a client: a table for each sink, with a name of your
    /// choice (`a-z`, `0-9`, `_`, `-`), at most 64.
    pub sinks: BTreeMap<String, SinkConfig>,
    /// Limits of clients. Every limit has a counter of how often it was reached.
    pub limits: LimitsConfig,
    /// Bans, and the limits of load at which new work waits for old work.
    pub protection: ProtectionConfig,
    /// Shared subscriptions (`$share/group/filter`).
    pub shared: SharedConfig,
    /// The `$SYS/broker/…` topics.
    pub sys: SysConfig,
    /// The log, on standard error.
    pub log: LogConfig,
    /// Export of metrics, logs and traces.
    pub telemetry: TelemetryConfig,
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
            sinks: BTreeMap::new(),
            limits: LimitsConfig::default(),
            protection: ProtectionConfig::default(),
            shared: SharedConfig::default(),
            sys: SysConfig::default(),
            log: LogConfig::default(),
            telemetry: TelemetryConfig::default(),
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
    /// Directory of the state that survives a restart: sessions with an expiry above 0, their
    /// subscriptions and messages, wills, and retained messages. One broker at a time uses it.
    /// Default `""`: nothing is kept on disk.
    #[schemars(with = "String")]
    pub data_dir: PathBuf,
    /// Worker threads, 1 to 256, or `"auto"`: one per core that this process may use, but a single
    /// one on a machine of two cores. Each owns its connections and sessions. Default `"auto"`:
    /// more threads than cores only add switches.
    #[serde(with = "units::workers")]
    #[schemars(with = "units::WorkersSchema")]
    pub workers: Workers,
    /// Time for which an idle worker polls for work before it sleeps. It occupies a core and saves
    /// the time to wake up. Default `0`: sleep at once.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 1))]
    pub busy_poll: Duration,
    /// One of this many PUBLISH packets is stamped on its way through the broker, up to 1,000,000;
    /// the times are metrics, are published as `$SYS/broker/stages` each second, and `thrum bench`
    /// reports them. `1` stamps every message, `0` none. Default `1000`: it costs less than 0.2 %
    /// of the work of a message.
    #[schemars(range(max = 1_000_000))]
    pub stamp_messages: u32,
    /// Memory of each worker for the timelines of its clients: their last events with the causes,
    /// also of clients that have gone. The timeline that has not changed for the longest time is
    /// forgotten for a new event. Default `"8MiB"`: the events of some 30,000 clients; `0` keeps
    /// none.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(max = 4_294_967_295_u64))]
    pub timeline_bytes: u32,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: "thrum".to_owned(),
            data_dir: PathBuf::new(),
            workers: Workers::Auto,
            busy_poll: Duration::ZERO,
            stamp_messages: 1000,
            timeline_bytes: 8 << 20,
        }
    }
}

/// Number of worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Workers {
    /// One per core that this process may use; a single one on two cores.
    #[default]
    Auto,
    /// This many.
    Count(u16),
}

/// Settings of authentication.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Clients that may connect without credentials: `"loopback"` (clients of this machine), `true`
    /// (all) or `false` (none). Default `"loopback"`: works without configuration and admits no
    /// remote client.
    #[serde(with = "units::anonymous")]
    #[schemars(with = "units::AnonymousSchema")]
    pub anonymous: Anonymous,
    /// Users that may take over a client identifier that has a session, connected or not:
    /// `"same_user"` (the user that the session belongs to; another one is refused with 0x85, in
    /// 3.x with return code 2) or `"any_user"` (the session of the earlier user ends, and its
    /// queued messages are discarded). A session of a client without user name has no owner.
    /// Default `"same_user"`: no user can end the session of another by knowing its identifier.
    pub takeover: Takeover,
    /// Form of client identifiers, such as `"%u-*"`: `%u` is the user name, `*` any characters; a
    /// form with `%u` does not apply to clients without user name. Others are refused with 0x85
    /// (3.x: return code 2), except identifiers that the broker assigns. Default `""`: any, and the
    /// first client that uses an identifier owns it.
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
    /// Level of the log: `error`, `warn`, `info`, `debug` or `trace`, also by part:
    /// `"info,thrum_broker=debug"`. The variable `RUST_LOG` sets it too. Default `"info"`: changes
    /// of state, nothing per message.
    pub level: String,
    /// Form of a line: `"text"` for people or `"json"` for machines. Default `"text"`.
    pub format: LogFormat,
    /// Lines a second, at the level `info`, about clients: one when a client connects, and one when
    /// it disconnects, with the reason. Omitted lines are counted. 0 is none. Default `100`: enough
    /// for every client in normal operation, and a mass reconnect does not fill the disk.
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

/// A port on every address of the machine, in both families.
fn wildcard(port: u16) -> Vec<SocketAddr> {
    vec![
        (Ipv4Addr::UNSPECIFIED, port).into(),
        (Ipv6Addr::UNSPECIFIED, port).into(),
    ]
}
