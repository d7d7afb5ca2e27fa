//! Settings of the export of metrics, logs and traces to an OpenTelemetry collector.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// Export of metrics, logs and traces by OTLP, the protocol of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Address of a collector: `"http://host:4318"` or, with `protocol = "grpc"`,
    /// `"http://host:4317"`; `https://` for TLS. Over HTTP `/v1/metrics`, `/v1/logs` and
    /// `/v1/traces` are added to it. Default `""`: nothing is exported.
    pub endpoint: String,
    /// How the collector is addressed: `"http/protobuf"` or `"grpc"`. Default `"http/protobuf"`,
    /// which passes every proxy.
    pub protocol: TelemetryProtocol,
    /// File with headers of each request, one `name: value` a line, for a token of the collector.
    /// Only the broker's user should be able to read it; a reload reads it again. Default `""`:
    /// none.
    #[schemars(with = "String")]
    pub headers_file: PathBuf,
    /// File with the certificates (PEM) that the collector's certificate is checked against.
    /// Default `""`: the certificates that the system trusts.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Time limit of one request. Default `"10s"`, as OpenTelemetry has it.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 300))]
    pub timeout: Duration,
    /// Attributes of this broker, as `"name=value"`, beside `service.name` (`thrum`),
    /// `service.instance.id` (`node.name`) and `service.version`, which they may replace. Default
    /// `[]`.
    pub resource: Vec<String>,
    /// Exports the metrics of `/metrics`. Default `true`.
    pub metrics: bool,
    /// Time between two exports of the metrics. Default `"1m"`, as OpenTelemetry has it.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 86_400))]
    pub interval: Duration,
    /// Exports the lines of the log. Default `true`.
    pub logs: bool,
    /// Which messages are traced.
    pub traces: MessageTracesConfig,
}

/// Which messages are traced: those that a trace of the publisher continues to here, and a share of
/// the others.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MessageTracesConfig {
    /// One of this many messages that match `filters` and `clients` is traced; 1 traces all of
    /// them. A traced message grows by up to 71 bytes, and is dropped for receivers with a smaller
    /// maximum packet size. Default `0`: none.
    #[schemars(range(max = 1_000_000_000))]
    pub every: u32,
    /// A message with the user property `traceparent` is traced if its publisher traces it, and
    /// only then. With `false` such a message is chosen as any other. Default `false`: clients do
    /// not decide what the broker exports.
    pub follow_parent: bool,
    /// Topic filters, one of which has to match the topic. Default `[]`: all topics.
    pub filters: Vec<String>,
    /// Client identifiers of publishers, `*` for any characters, one of which has to match. Default
    /// `[]`: all clients.
    pub clients: Vec<String>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            protocol: TelemetryProtocol::default(),
            headers_file: PathBuf::new(),
            ca: PathBuf::new(),
            timeout: Duration::from_secs(10),
            resource: Vec::new(),
            metrics: true,
            interval: Duration::from_mins(1),
            logs: true,
            traces: MessageTracesConfig::default(),
        }
    }
}

impl TelemetryConfig {
    /// Whether anything is exported.
    pub fn is_on(&self) -> bool {
        !self.endpoint.is_empty() && (self.metrics || self.logs || self.traces.is_on())
    }
}

impl MessageTracesConfig {
    /// Whether any message can be traced.
    pub const fn is_on(&self) -> bool {
        self.every > 0 || self.follow_parent
    }
}

/// How a collector is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TelemetryProtocol {
    /// Protobuf in requests of HTTP.
    #[default]
    #[serde(rename = "http/protobuf")]
    Http,
    /// gRPC.
    #[serde(rename = "grpc")]
    Grpc,
}
