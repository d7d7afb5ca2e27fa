//! Flags that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thrum_bench::{BrokerProcess, preflight};
use thrum_client::TlsArgs;
use thrum_codec::{QoS, Version};
use thrum_load::scenario::{AddressRange, Arrivals, Changes, Overrides, Rate};

use super::values;

/// Default address of the broker.
pub(super) const DEFAULT_TARGET: &str = "mqtt://127.0.0.1:1883";

/// How to reach the broker.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Broker")]
pub(super) struct TargetArgs {
    /// The broker by mqtt://, mqtts://, ws://, wss:// or quic://; NAME=URL for a scenario with
    /// several [default: 127.0.0.1:1883].
    #[arg(long, value_name = "[NAME=]mqtt://HOST:PORT")]
    pub(super) target: Vec<String>,
    /// User name of all clients that the scenario gives none.
    #[arg(long, value_name = "NAME")]
    pub(super) username: Option<String>,
    /// File with the password; its first line counts.
    #[arg(long, value_name = "FILE", requires = "username")]
    pub(super) password_file: Option<PathBuf>,
    #[command(flatten, next_help_heading = "TLS")]
    pub(super) tls: TlsArgs,
}

/// The measured process, and the sampling.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Measuring")]
pub(super) struct MeasureArgs {
    /// The broker's process, to measure its CPU and memory with its children; `none` to skip it
    /// [default: the process that listens on the target's port on this machine].
    #[arg(long, value_name = "PID", value_parser = values::broker_process)]
    pub(super) pid: Option<BrokerProcess>,
    /// Threads of the generator
    /// [default: half of the cores; one more for the publishers of a fan-out].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Option<u32>,
    /// Let this many agents on other machines generate the load (`thrum bench agent`).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) agents: Option<u32>,
    /// The MQTT 5.0 control broker [default: one that thrum starts for the run].
    #[arg(long, value_name = "URL", requires = "agents")]
    pub(super) control: Option<String>,
    /// File whose first line is the secret of the agents
    /// [default: `THRUM_AGENT_SECRET`, else one that thrum makes and prints].
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub(super) secret_file: Option<PathBuf>,
    /// Command for the hooks of the scenario that name none, for example one that restarts the
    /// broker.
    #[arg(long, value_name = "COMMAND")]
    pub(super) on_fault: Option<String>,
}

/// Lengths and version, which fit every scenario.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Scenario")]
pub(super) struct StageArgs {
    /// Length of the part that counts (30s, 5m); the published runs take 30m [default: 60s].
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(super) duration: Option<Duration>,
    /// Load before that, which does not count [default: 5s; none for connections only].
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(super) warmup: Option<Duration>,
    /// Longest wait for the last messages [default: 5s].
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(super) drain: Option<Duration>,
    /// MQTT version [default: the scenario's].
    #[arg(long, value_name = "3.1.1|5", value_parser = values::version)]
    pub(super) mqtt: Option<Version>,
    /// Addresses that the clients connect from in turn, such as 127.0.0.2-127.0.0.33; separated by
    /// commas or repeated [default: this machine's choice].
    #[arg(long, value_name = "ADDRESS|FROM-TO", value_delimiter = ',')]
    pub(super) source_addresses: Vec<AddressRange>,
    /// Run a part of the scenario: 0.1 is a tenth of its clients.
    #[arg(long, value_name = "FACTOR", value_parser = values::factor)]
    pub(super) scale: Option<f64>,
    /// Scale the scenario to about this many clients.
    #[arg(long, value_name = "N", conflicts_with_all = ["scale", "fit"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) clients: Option<u32>,
    /// Scale a scenario down that needs more open files than this machine allows; the factor is
    /// reported.
    #[arg(long, conflicts_with = "scale")]
    pub(super) fit: bool,
    /// Set a key of the scenario, as its file names it; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(super) sets: Vec<(String, String)>,
    /// Refuse a scenario that runs commands, reads files or names passwords: for one of somebody
    /// else.
    #[arg(long)]
    pub(super) confined: bool,
    /// A limit that the run must keep ('e2e.p99 < 5ms'), else exit code 99; may be repeated.
    #[arg(long = "threshold", value_name = "CONDITION")]
    pub(super) thresholds: Vec<String>,
}

/// Sizes, which fit only scenarios with clients of that kind.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Scenario")]
pub(super) struct SizeArgs {
    /// Publishers.
    #[arg(long, value_name = "N")]
    pub(super) publishers: Option<u32>,
    /// Subscribers.
    #[arg(long, value_name = "N")]
    pub(super) subscribers: Option<u32>,
    /// Connections, where the scenario has nothing else.
    #[arg(long, value_name = "N")]
    pub(super) connections: Option<u32>,
    /// Messages of each publisher: 50, 50/s, 0.5, 6/m.
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(super) rate: Option<Rate>,
    /// How the messages of all publishers arrive: spread evenly, at random, or all of a period at
    /// once [default: the scenario's, else even].
    #[arg(long, value_name = "even|poisson|burst", value_parser = values::arrivals)]
    pub(super) arrivals: Option<Arrivals>,
    /// Size of a message in bytes, at least 16.
    #[arg(long, value_name = "BYTES")]
    pub(super) payload: Option<u32>,
    /// Quality of service of publishing and subscribing.
    #[arg(long, value_name = "0|1|2", value_parser = values::qos)]
    pub(super) qos: Option<QoS>,
    /// Connections opened per second.
    #[arg(long, value_name = "N")]
    pub(super) connect_rate: Option<u32>,
}

/// Display and output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = super::folders::RUNS)]
    pub(super) out: PathBuf,
    /// Print the result as JSON instead of the summary.
    #[arg(long)]
    pub(super) json: bool,
    /// Lines of progress instead of the live view.
    #[arg(long)]
    pub(super) no_tui: bool,
    /// A note that is kept with the result.
    #[arg(long, value_name = "TEXT")]
    pub(super) note: Option<String>,
}

/// Additional outputs of a run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ReportArgs {
    /// Compare with this earlier run: its folder, its name or `latest`.
    #[arg(long, value_name = "RUN")]
    pub(super) baseline: Option<String>,
    /// Write report.html with this template instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    pub(super) template: Option<PathBuf>,
    /// Write report.png too.
    #[arg(long)]
    pub(super) png: bool,
    /// Write run.mbench too: the run in one file, for `thrum bench verify`, `rerun` and `diff`.
    #[arg(long)]
    pub(super) bundle: bool,
    /// Print a line of JSON for each second and one for the end instead of the summary, and no
    /// other progress.
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "json")]
    pub(super) progress: Option<ProgressForm>,
    /// Change the run while it goes on by lines of JSON on standard input: `{"rate":1.1}`, a factor
    /// for all publishers, `"pause"`, `"resume"`, `{"extend_secs":60}`, `{"note":"TEXT"}`.
    #[arg(long, requires = "progress")]
    pub(super) changes: bool,
    /// Show after the summary what another tool would have shown of this run.
    #[arg(long, value_enum, value_name = "TOOL")]
    pub(super) compat: Option<CompatTool>,
}

/// A form of progress for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressForm {
    /// Lines of JSON on standard output.
    Jsonl,
}

/// A tool with published tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CompatTool {
    /// Whole milliseconds, a closed loop, a prefix of 24 B.
    Xmeter,
}

impl StageArgs {
    /// The changes of these flags to a scenario.
    pub(super) fn changes(&self, size: &SizeArgs) -> Changes {
        let overrides = Overrides {
            publishers: size.publishers,
            subscribers: size.subscribers,
            connections: size.connections,
            rate: size.rate,
            arrivals: size.arrivals,
            payload_bytes: size.payload,
            qos: size.qos,
            connect_rate: size.connect_rate,
            source_addresses: (!self.source_addresses.is_empty())
                .then(|| self.source_addresses.clone()),
            version: self.mqtt,
            warm_up: self.warmup,
            hold: self.duration,
            drain: self.drain,
            scale: self.scale,
        };
        Changes {
            overrides,
            clients: self.clients,
            confined: self.confined,
            clients_max: self.fit.then(preflight::clients_max),
            sets: self.sets.clone(),
            thresholds: self.thresholds.clone(),
        }
    }
}
