//! `result.json`: every figure of a run for programs. The schema only grows; its name changes when it breaks.

use std::collections::BTreeMap;
use std::fs;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{qos_number, version_text};
use crate::clock::utc_text;
use crate::monitor::{Memory, Usage};
use crate::outcome::Outcome;
use crate::record::SecondCounts;
use crate::units::whole;

/// Name and version of the schema.
pub const SCHEMA: &str = "thrum-bench-result/1";

/// A whole run. Times are in the unit that ends the field's name, memory in bytes, rates per second;
/// docs/guide/bench.md says what each figure means.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    schema: &'static str,
    tool: Tool,
    machine: Machine,
    started: String,
    interrupted: bool,
    exit_code: u8,
    validity: Validity,
    verdict: Verdict,
    scenario: ScenarioResult,
    clients: ClientsResult,
    rates: Rates,
    latency_ns: LatencyResults,
    delivery: DeliveryResult,
    broker: Option<BrokerResult>,
    generator: GeneratorResult,
    reasons: BTreeMap<String, u64>,
    seconds: Seconds,
}

/// Who measured.
#[derive(Clone, Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
    command: String,
}

/// Where the generator ran.
#[derive(Clone, Debug, Default, Serialize)]
struct Machine {
    kernel: String,
    cpu: String,
    cores: usize,
    memory_bytes: u64,
}

/// Whether the figures are the broker's.
#[derive(Clone, Debug, Serialize)]
struct Validity {
    valid: bool,
    limits: Vec<String>,
    advice: Vec<&'static str>,
}

/// Whether the broker kept its promises.
#[derive(Clone, Debug, Serialize)]
struct Verdict {
    pass: bool,
    faults: Vec<String>,
}

/// What was run.
#[derive(Clone, Debug, Serialize)]
struct ScenarioResult {
    name: String,
    target: String,
    mqtt_version: &'static str,
    qos: Option<u8>,
    payload_bytes: Option<u32>,
    keep_alive_seconds: u16,
    connect_rate: u32,
    warm_up_seconds: f64,
    hold_seconds: f64,
    drain_seconds: f64,
    groups: Vec<GroupResult>,
}

/// Clients that behave alike.
#[derive(Clone, Debug, Serialize)]
struct GroupResult {
    name: String,
    clients: u32,
    publish_topic: Option<String>,
    publish_rate: Option<f64>,
    subscribe_filter: Option<String>,
}

/// How the clients got ready.
#[derive(Clone, Debug, Serialize)]
struct ClientsResult {
    wanted: u64,
    ready: u64,
    failed: u64,
    lost: u64,
    ramp_seconds: f64,
    connect_rate: f64,
}

/// Messages per second of the hold.
#[derive(Clone, Debug, Serialize)]
struct Rates {
    offered: f64,
    sent: f64,
    received: f64,
    held_back_messages: u64,
}

/// All latencies.
#[derive(Clone, Debug, Serialize)]
struct LatencyResults {
    e2e: Option<LatencyResult>,
    service: Option<LatencyResult>,
    publish_ack: Option<LatencyResult>,
    connect: Option<LatencyResult>,
    subscribe: Option<LatencyResult>,
    generator_lag: Option<LatencyResult>,
}

/// A distribution in nanoseconds, exact to 0.1 %.
#[derive(Clone, Debug, Serialize)]
struct LatencyResult {
    count: u64,
    min: u64,
    mean: u64,
    p50: u64,
    p75: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p99_9: u64,
    max: u64,
}

/// What arrived.
#[derive(Clone, Debug, Serialize)]
struct DeliveryResult {
    sent_messages: u64,
    expected: u64,
    delivered: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    misdelivered: u64,
    foreign: u64,
    refused: u64,
    downgraded_subscriptions: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

/// What the broker used during the hold.
#[derive(Clone, Debug, Serialize)]
struct BrokerResult {
    pid: u32,
    #[serde(flatten)]
    usage: UsageResult,
}

/// What the generator used during the hold.
#[derive(Clone, Debug, Serialize)]
struct GeneratorResult {
    threads: Vec<ThreadResult>,
    #[serde(flatten)]
    usage: Option<UsageResult>,
}

/// One thread of the generator, as shares of the hold.
#[derive(Clone, Debug, Serialize)]
struct ThreadResult {
    busy: f64,
    waited_for_core: f64,
}

/// CPU and memory of a process and its children.
#[derive(Clone, Debug, Serialize)]
struct UsageResult {
    cpu_user_seconds: f64,
    cpu_system_seconds: f64,
    cores_avg: f64,
    cores_max: f64,
    cpu_us_per_message: Option<f64>,
    waited_for_core_seconds: f64,
    rss_max_bytes: u64,
    rss_avg_bytes: u64,
    rss_end_bytes: u64,
    memory_before: MemoryResult,
    memory_connected: MemoryResult,
    memory_end: MemoryResult,
    bytes_per_connection: Option<f64>,
    threads_max: u64,
    voluntary_context_switches: u64,
    involuntary_context_switches: u64,
}

/// Memory at one moment.
#[derive(Clone, Debug, Serialize)]
struct MemoryResult {
    rss_bytes: u64,
    pss_bytes: u64,
}

/// Counts of each second of the load, from the first message on.
#[derive(Clone, Debug, Serialize)]
struct Seconds {
    sent: Vec<u64>,
    received: Vec<u64>,
    acknowledged: Vec<u64>,
}

impl RunResult {
    /// The figures of a run; `command` is the line that repeats it.
    pub fn new(outcome: &Outcome, command: &str) -> Self {
        let limits = outcome.limits();
        Self {
            schema: SCHEMA,
            tool: Tool {
                name: "thrum bench",
                version: env!("CARGO_PKG_VERSION"),
                command: command.to_owned(),
            },
            machine: Machine::read(),
            started: utc_text(outcome.started_unix),
            interrupted: outcome.was_interrupted,
            exit_code: outcome.exit_code(),
            validity: Validity {
                valid: limits.is_empty(),
                limits: limits.iter().map(ToString::to_string).collect(),
                advice: limits.iter().map(|limit| limit.advice()).collect(),
            },
            verdict: Verdict {
                pass: outcome.faults.is_empty(),
                faults: outcome.faults.iter().map(ToString::to_string).collect(),
            },
            scenario: scenario(outcome),
            clients: ClientsResult {
                wanted: outcome.clients.wanted,
                ready: outcome.clients.ready,
                failed: outcome.clients.failed,
                lost: outcome.counts.connections_lost,
                ramp_seconds: outcome.clients.ramp.as_secs_f64(),
                connect_rate: outcome.connect_rate(),
            },
            rates: Rates {
                offered: outcome.offered_rate(),
                sent: outcome.sent_rate(),
                received: outcome.received_rate(),
                held_back_messages: outcome.counts.held_back,
            },
            latency_ns: latencies(outcome),
            delivery: delivery(outcome),
            broker: outcome.broker.as_ref().map(|broker| BrokerResult {
                pid: broker.pid,
                usage: usage(&broker.usage),
            }),
            generator: generator(outcome),
            reasons: outcome.reasons.clone(),
            seconds: Seconds {
                sent: seconds(outcome, |second| second.sent),
                received: seconds(outcome, |second| second.received),
                acknowledged: seconds(outcome, |second| second.acknowledged),
            },
        }
    }
}

impl Machine {
    fn read() -> Self {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            let value = line
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim());
            value.unwrap_or_default().to_owned()
        };
        let memory = value(&file("/proc/meminfo"), "MemTotal");
        let memory_kib: u64 = memory
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        Self {
            kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: value(&file("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: memory_kib * 1024,
        }
    }
}

fn scenario(outcome: &Outcome) -> ScenarioResult {
    let scenario = &outcome.scenario;
    let groups = scenario.groups.iter().map(|group| GroupResult {
        name: group.name.clone(),
        clients: group.clients,
        publish_topic: group.publish.as_ref().map(|publish| publish.topic.clone()),
        publish_rate: group
            .publish
            .as_ref()
            .map(|publish| publish.rate.messages_per_second()),
        subscribe_filter: group
            .subscribe
            .as_ref()
            .map(|subscribe| subscribe.filters.join(" ")),
    });
    ScenarioResult {
        name: scenario.name.clone(),
        target: outcome.target.clone(),
        mqtt_version: version_text(scenario.version),
        qos: scenario.delivery_qos().map(qos_number),
        payload_bytes: scenario.payload_bytes(),
        keep_alive_seconds: scenario.keep_alive,
        connect_rate: scenario.connect_rate,
        warm_up_seconds: scenario.stages.warm_up.as_secs_f64(),
        hold_seconds: outcome.hold.as_secs_f64(),
        drain_seconds: scenario.stages.drain.as_secs_f64(),
        groups: groups.collect(),
    }
}

fn latencies(outcome: &Outcome) -> LatencyResults {
    let latencies = &outcome.latencies;
    LatencyResults {
        e2e: latency(&latencies.response),
        service: latency(&latencies.service),
        publish_ack: latency(&latencies.publish_ack),
        connect: latency(&latencies.connect),
        subscribe: latency(&latencies.subscribe),
        generator_lag: latency(&latencies.lag),
    }
}

fn latency(histogram: &Histogram<u64>) -> Option<LatencyResult> {
    (!histogram.is_empty()).then(|| LatencyResult {
        count: histogram.len(),
        min: histogram.min(),
        mean: whole(histogram.mean()),
        p50: histogram.value_at_quantile(0.5),
        p75: histogram.value_at_quantile(0.75),
        p90: histogram.value_at_quantile(0.9),
        p95: histogram.value_at_quantile(0.95),
        p99: histogram.value_at_quantile(0.99),
        p99_9: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    })
}

fn delivery(outcome: &Outcome) -> DeliveryResult {
    let (delivery, counts) = (&outcome.delivery, &outcome.counts);
    DeliveryResult {
        sent_messages: counts.sent,
        expected: delivery.expected,
        delivered: delivery.delivered(),
        lost: delivery.lost,
        duplicated: delivery.duplicated,
        reordered: delivery.reordered,
        misdelivered: delivery.misdelivered,
        foreign: delivery.foreign,
        refused: counts.refused,
        downgraded_subscriptions: counts.downgraded,
        bytes_sent: counts.bytes_out,
        bytes_received: counts.bytes_in,
    }
}

fn generator(outcome: &Outcome) -> GeneratorResult {
    let threads = outcome.health.threads.iter();
    let threads = threads.map(|load| ThreadResult {
        busy: load.busy,
        waited_for_core: load.waited,
    });
    GeneratorResult {
        threads: threads.collect(),
        usage: outcome.generator.as_ref().map(usage),
    }
}

fn usage(usage: &Usage) -> UsageResult {
    let memory = |memory: Memory| MemoryResult {
        rss_bytes: memory.rss_bytes,
        pss_bytes: memory.pss_bytes,
    };
    UsageResult {
        cpu_user_seconds: usage.cpu_user_seconds,
        cpu_system_seconds: usage.cpu_system_seconds,
        cores_avg: usage.cores_avg,
        cores_max: usage.cores_max,
        cpu_us_per_message: usage.cpu_us_per_message,
        waited_for_core_seconds: usage.waited_for_core_seconds,
        rss_max_bytes: usage.rss_max_bytes,
        rss_avg_bytes: usage.rss_avg_bytes,
        rss_end_bytes: usage.memory_end.rss_bytes,
        memory_before: memory(usage.memory_before),
        memory_connected: memory(usage.memory_connected),
        memory_end: memory(usage.memory_end),
        bytes_per_connection: usage.bytes_per_connection,
        threads_max: usage.threads_max,
        voluntary_context_switches: usage.voluntary_context_switches,
        involuntary_context_switches: usage.involuntary_context_switches,
    }
}

fn seconds(outcome: &Outcome, of: fn(&SecondCounts) -> u64) -> Vec<u64> {
    outcome.series.iter().map(of).collect()
}
