//! All settings, combined from the settings of the parts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_auth::config::{AclConfig, AuthConfig};
use thrum_auth::{ListenerSettings, Settings};
use thrum_broker::config::{
    self as broker, AlarmsConfig, LimitsConfig, ListenerConfig, LogConfig, NodeConfig,
    ProtectionConfig, SharedConfig, SinkConfig, StorageConfig, SysConfig, TelemetryConfig,
    TlsFilesConfig,
};
#[cfg(feature = "management")]
use thrum_management::config::ManagementConfig;

/// Everything that can be set for a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// This node itself.
    pub(crate) node: NodeConfig,
    /// The addresses the broker listens on: a table for each listener, with a name of your choice
    /// (`a-z`, `0-9`, `_`, `-`). With any table here, only the listeners that have one are open.
    /// Without one, it is `mqtt` on port 1883 of every address.
    pub(crate) listeners: BTreeMap<String, ListenerConfig>,
    /// Certificates of all listeners.
    pub(crate) tls: TlsFilesConfig,
    /// Authentication.
    pub(crate) auth: AuthConfig,
    /// Rules for publishing and subscribing.
    pub(crate) acl: AclConfig,
    /// Storage of the durable state.
    pub(crate) storage: StorageConfig,
    /// Where messages leave the broker without a client: a table for each sink, with a name of your
    /// choice (`a-z`, `0-9`, `_`, `-`), at most 64.
    pub(crate) sinks: BTreeMap<String, SinkConfig>,
    /// Limits of the resources that clients use. Every limit has a counter of how often it was
    /// reached.
    pub(crate) limits: LimitsConfig,
    /// Clients and addresses that behave badly, and too much of everything.
    pub(crate) protection: ProtectionConfig,
    /// Shared subscriptions (`$share/group/filter`).
    pub(crate) shared: SharedConfig,
    /// The management interface: its sessions, its audit log, and where administrators log in.
    #[cfg(feature = "management")]
    pub(crate) management: ManagementConfig,
    /// The `$SYS/broker/…` topics.
    pub(crate) sys: SysConfig,
    /// The log, on standard error.
    pub(crate) log: LogConfig,
    /// From when on something is an alarm.
    pub(crate) alarms: AlarmsConfig,
    /// Export of metrics, logs and traces by OTLP, the protocol of OpenTelemetry.
    pub(crate) telemetry: TelemetryConfig,
}

impl Default for Config {
    fn default() -> Self {
        let broker = thrum_broker::Config::default();
        Self {
            node: broker.node,
            listeners: broker.listeners,
            tls: broker.tls,
            auth: AuthConfig::default(),
            acl: AclConfig::default(),
            storage: broker.storage,
            sinks: broker.sinks,
            limits: broker.limits,
            protection: broker.protection,
            shared: broker.shared,
            #[cfg(feature = "management")]
            management: ManagementConfig::default(),
            sys: broker.sys,
            log: broker.log,
            alarms: AlarmsConfig::default(),
            telemetry: broker.telemetry,
        }
    }
}

impl Config {
    /// The broker's part of it.
    pub(crate) fn broker(&self) -> thrum_broker::Config {
        thrum_broker::Config {
            node: self.node.clone(),
            listeners: self.listeners.clone(),
            tls: self.tls,
            auth: broker::AuthConfig {
                anonymous: self.auth.anonymous,
                takeover: self.auth.takeover,
                client_id: self.auth.client_id.clone(),
            },
            storage: self.storage,
            sinks: self.sinks.clone(),
            limits: self.limits.clone(),
            protection: self.protection.clone(),
            shared: self.shared,
            sys: self.sys,
            log: self.log.clone(),
            telemetry: self.telemetry.clone(),
        }
    }

    /// Authentication's part of it.
    pub(crate) fn access(&self) -> Settings {
        let of_listener = |listener: &ListenerConfig| ListenerSettings {
            chain: (!listener.auth.is_empty()).then(|| listener.auth.clone()),
            anonymous: listener.anonymous,
        };
        let listeners = self.listeners.iter();
        Settings {
            auth: self.auth.clone(),
            acl: self.acl.clone(),
            listeners: listeners
                .map(|(name, listener)| (name.clone(), of_listener(listener)))
                .collect(),
            data_dir: self.node.data_dir.clone(),
        }
    }
}
