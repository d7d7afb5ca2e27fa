//! The JSON of benchmarks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A scenario of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkScenario {
    /// Its name, as a run takes it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its purpose, in one line.
    pub text: String,
    /// `basic`, `enterprise`, `scenario` or `try`.
    pub group: String,
    /// Its file.
    pub toml: String,
    /// Clients in all.
    pub clients: u32,
    /// Messages that its clients publish.
    pub messages_per_sec_in: f64,
    /// Messages that they receive.
    pub messages_per_sec_out: f64,
    /// All stages.
    pub duration_secs: f64,
}

/// The scenarios of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkScenarioList {
    /// Those that one broker can have.
    pub items: Vec<BenchmarkScenario>,
}

/// What a benchmark may take of this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkLimits {
    /// Whether a run can be started here.
    pub available: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// Cores that a run may use.
    pub cores: u32,
    /// Cores of the machine that the broker may use.
    pub cores_of: u32,
    /// A run that takes more memory is ended.
    pub memory_bytes: u64,
    /// Longest time of all stages together.
    pub duration_secs_max: f64,
    /// Most clients of a run.
    pub clients_max: u32,
    /// Runs that are kept; the oldest one that is no baseline makes room.
    pub runs_kept: u32,
    /// By how much the threads of the broker come before those of a run.
    pub nice: i32,
}

/// What a run would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkPlan {
    /// Clients in all.
    pub clients: u32,
    /// Messages that its clients publish.
    pub messages_per_sec_in: f64,
    /// Messages that they receive.
    pub messages_per_sec_out: f64,
    /// All stages.
    pub duration_secs: f64,
    /// Bytes of a message; null if there are none, or if they differ.
    pub payload_bytes: Option<u32>,
    /// Quality of service of deliveries.
    pub qos: Option<u8>,
}

/// Something that speaks against a run, or that its reader should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkFinding {
    /// `error`: there can be no run; `warning`; `note`.
    pub level: String,
    /// What it is.
    pub what: String,
    /// What helps.
    pub remedy: String,
}

/// The check of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkCheck {
    /// No finding is an error.
    pub ok: bool,
    /// The broker that is loaded, without password.
    pub target: String,
    /// Null if the scenario cannot be read, or has too many clients to be planned.
    pub plan: Option<BenchmarkPlan>,
    /// The scenario with all changes; empty if it cannot be read.
    pub toml: String,
    /// What was found.
    pub findings: Vec<BenchmarkFinding>,
}

/// The number of a run that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkStarted {
    /// Its identifier.
    pub id: String,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkVerdict {
    /// Whether the figures measure the broker rather than the generator.
    pub valid: bool,
    /// Whether the broker kept the promises of the protocol and all limits.
    pub pass: bool,
    /// Whether somebody changed its rate or its length while it went on, or paused it.
    #[serde(default)]
    pub changed: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

/// The figures of the measured part of a run; null where nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkFigures {
    /// What the latencies are of: `end_to_end`, `acknowledgement` or `connect`.
    pub latency: Option<String>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 99 of 100 latencies are lower.
    pub p99_ms: Option<f64>,
    /// 999 of 1000 latencies are lower.
    pub p999_ms: Option<f64>,
    /// Highest latency.
    pub max_ms: Option<f64>,
    /// Messages that were published.
    pub sent_per_sec: f64,
    /// Messages that were received.
    pub received_per_sec: f64,
    /// Deliveries that happened as a part of those that were due.
    pub delivered_ratio: Option<f64>,
    /// Deliveries that were promised and did not happen.
    pub lost: u64,
    /// Deliveries that happened again.
    pub duplicates: u64,
    /// Messages that arrived after a later one of their publisher.
    pub out_of_order: u64,
    /// Cores that the broker used, the mean.
    pub broker_cores: Option<f64>,
    /// Highest resident memory of the broker.
    pub broker_rss_bytes: Option<u64>,
    /// Why a latency, which may be there all the same, is not one of the broker: by its name here.
    #[serde(default)]
    pub withheld: BTreeMap<String, String>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkRun {
    /// Its identifier.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The broker that is loaded.
    pub target: String,
    /// `preparing`, `running`, `done`, `failed` or `stopped`.
    pub state: String,
    /// The stage that it is in: `ramp`, `warm-up`, `hold` or `drain`.
    pub stage: Option<String>,
    /// When it began.
    #[schema(format = DateTime)]
    pub began_at: String,
    /// When it ended; null until then.
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    /// The measured part.
    pub duration_secs: f64,
    /// All stages.
    pub planned_secs: f64,
    /// Clients in all.
    pub clients: u32,
    /// Who started it.
    pub by: String,
    /// A note of whoever started it.
    pub note: Option<String>,
    /// Null until it has ended.
    pub verdict: Option<BenchmarkVerdict>,
    /// Null until it has ended, and if it ended before its measured part.
    pub figures: Option<BenchmarkFigures>,
    /// Others are compared with it; it never makes room.
    pub baseline: bool,
    /// Names of its files.
    pub files: Vec<String>,
    /// The command that makes the same run elsewhere.
    pub command: String,
    /// Why it failed.
    pub error: Option<String>,
    /// What helps.
    pub remedy: Option<String>,
}

/// The runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkRunList {
    /// All that are kept, the newest first.
    pub items: Vec<BenchmarkRun>,
}

/// A limit and the figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkThreshold {
    /// Name of the figure.
    pub what: String,
    /// The condition: `< 50ms`.
    pub limit: String,
    /// The figure, in the unit of its name; null if there is none.
    pub value: Option<f64>,
    /// The figure with its unit.
    pub value_text: String,
    /// Whether it is kept; null while there is no figure.
    pub pass: Option<bool>,
}

/// A stage that a run had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkStage {
    /// `ramp`, `warm-up`, `hold` or `drain`.
    pub name: String,
    /// From the first connection to its beginning.
    pub from_secs: f64,
    /// From the first connection to its end.
    pub to_secs: f64,
}

/// A run with all that is kept of it but samples and files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkRunInFull {
    /// The run.
    #[serde(flatten)]
    pub run: BenchmarkRun,
    /// The scenario with all changes.
    pub toml: String,
    /// Its limits, judged when it has ended.
    pub thresholds: Vec<BenchmarkThreshold>,
    /// Those that it had so far.
    pub stages: Vec<BenchmarkStage>,
    /// What it may take.
    pub limits: BenchmarkLimits,
}

/// Latencies from `low` to `high` in milliseconds, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkBucket(pub f64, pub f64, pub u64);

/// A second of a run, or several. A figure that was not measured is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkSample {
    /// Its number, from 1.
    pub n: u64,
    /// From the first connection to its beginning.
    pub at_secs: f64,
    /// `ramp`, `warm-up`, `hold` or `drain`.
    pub stage: String,
    /// Clients connected and subscribed at its end.
    pub clients: u64,
    /// Messages that were due.
    pub offered_per_sec: f64,
    /// Messages that were published.
    pub sent_per_sec: f64,
    /// Messages that were received.
    pub received_per_sec: f64,
    /// What the latencies are of: `end_to_end`, `acknowledgement` or `connect`.
    pub latency: Option<String>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 99 of 100 latencies are lower.
    pub p99_ms: Option<f64>,
    /// 999 of 1000 latencies are lower.
    pub p999_ms: Option<f64>,
    /// Highest latency.
    pub max_ms: Option<f64>,
    /// Errors since the sample before, by their reason.
    pub errors: BTreeMap<String, u64>,
    /// Cores that the broker used.
    pub broker_cores: Option<f64>,
    /// Resident memory of the broker.
    pub broker_rss_bytes: Option<u64>,
    /// Cores that the benchmark used.
    pub generator_cores: Option<f64>,
    /// The limits with the figures of the run so far; empty where they were not judged.
    pub thresholds: Vec<BenchmarkThreshold>,
    /// Faults, changes of the load and notes since the sample before.
    #[serde(default)]
    pub marks: Vec<BenchmarkMark>,
    /// Latencies by buckets of a fifth of a decade: low and high end in milliseconds, count.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub histogram: Vec<BenchmarkBucket>,
}

/// A fault, a change of the load or a note.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkMark {
    /// From the first connection.
    pub at_secs: f64,
    /// `note`, `rate`, `paused`, `resumed`, `extended`, `not_changed`, `stopped`, or `other`: a
    /// fault or its end.
    pub kind: String,
    /// The factor of a rate, the seconds of an extension.
    pub value: Option<f64>,
    /// What happened.
    pub text: String,
}

/// Samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkSamples {
    /// By their numbers.
    pub items: Vec<BenchmarkSample>,
    /// `after` of the next question.
    pub next: u64,
    /// The state of the run.
    pub state: String,
}

/// A figure of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkComparisonRow {
    /// Name of the figure.
    pub what: String,
    /// Its unit: `ns`, `per_sec`, `bytes`, `ratio`, `cores`, `count`.
    pub unit: String,
    /// `higher` or `lower`; null if neither is better.
    pub better: Option<String>,
    /// Of each run.
    pub values: Vec<Option<f64>>,
    /// Of each further run: its difference as a part of the first one's figure.
    pub delta_ratio: Vec<Option<f64>>,
    /// Of each further run: what differences noise explains.
    pub noise_ratio: Vec<Option<f64>>,
    /// Of each further run: `better`, `worse`, `same` or `unknown`.
    pub verdict: Vec<String>,
}

/// Runs compared with the first of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkComparison {
    /// The runs.
    pub runs: Vec<BenchmarkRun>,
    /// A sentence for each further run.
    pub conclusions: Vec<String>,
    /// Their figures.
    pub rows: Vec<BenchmarkComparisonRow>,
    /// What differs in the conditions of the runs.
    pub why_not_comparable: Vec<String>,
}
