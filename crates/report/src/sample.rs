//! A run whose every figure is known.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::result::*;
use crate::threshold::Threshold;

const MIB: u64 = 1024 * 1024;

/// A distribution of these nanoseconds.
pub(crate) fn distribution(values: &[u64]) -> Distribution {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    Distribution::from_histogram(&histogram)
}

/// A valid run that keeps its promises and misses one of three limits.
pub(crate) fn run() -> RunResult {
    let mut run = RunResult {
        schema: SCHEMA.to_owned(),
        tool: Tool {
            name: "thrum bench".to_owned(),
            version: "0.1.0".to_owned(),
            command: "thrum bench run p2p-1K --target mqtt://127.0.0.1:1883".to_owned(),
        },
        machine: machine(),
        started: "2026-11-21T09:12:03Z".to_owned(),
        exit_code: 99,
        validity: Validity {
            valid: true,
            ..Validity::default()
        },
        verdict: Verdict {
            pass: true,
            text: "all 15 000 deliveries arrived in order, each once".to_owned(),
            faults: Vec::new(),
        },
        scenario: scenario(),
        clients: clients(),
        rates: Rates {
            offered: 1_000.0,
            sent: 999.8,
            received: 1_000.0,
            held_back_messages: 0,
        },
        latency_ns: latencies(),
        delivery: delivery(),
        brokers: vec![broker()],
        generator: Generator {
            threads: vec![load(0.4, 0.015), load(0.2, 0.002)],
            usage: Some(Usage {
                cores_avg: 0.5,
                cores_max: 0.6,
                cpu_us_per_message: Some(70.0),
                bytes_per_connection: Some(900.0),
                ..Usage::default()
            }),
        },
        errors: vec![ErrorCount {
            reason: "reset by the broker".to_owned(),
            count: 2,
            first_seconds: 4.5,
            last_seconds: 7.25,
        }],
        marks: vec![Mark {
            at: 5.0,
            text: "cut 10 connections".to_owned(),
            ..Mark::default()
        }],
        series: (0..12).map(second).collect(),
        ..RunResult::default()
    };
    run.fill_metrics();
    let limits = [
        ("e2e.p99", "< 50ms"),
        ("delivered", "== 100%"),
        ("broker.rss", "< 4MiB"),
    ];
    for (metric, condition) in limits {
        let threshold = Threshold::parse(metric, condition).unwrap();
        run.thresholds.push(threshold.judge(&run));
    }
    run
}

/// A run of connections without load.
pub(crate) fn idle_run() -> RunResult {
    let mut run = run();
    run.scenario.name = "conn-tcp-10K-100".to_owned();
    run.scenario.qos = None;
    run.scenario.payload_bytes = None;
    run.scenario.payload = String::new();
    run.rates = Rates::default();
    run.delivery = Delivery::default();
    run.thresholds.clear();
    run.brokers.clear();
    run.errors.clear();
    run.marks.clear();
    run.verdict.text = "all 2 000 clients accepted and kept".to_owned();
    run.latency_ns = Latencies {
        connect: Some(distribution(&[1_100_000])),
        ..Latencies::default()
    };
    run.exit_code = 0;
    run.fill_metrics();
    run
}

/// A run that is neither valid nor good.
pub(crate) fn bad_run() -> RunResult {
    let mut run = run();
    run.validity = Validity {
        valid: false,
        limits: vec!["generator lag p99 12ms, more than 10ms".to_owned()],
        advice: vec!["stop other work on this machine".to_owned()],
        ..Validity::default()
    };
    run.verdict = Verdict {
        pass: false,
        text: "messages lost: 3, connections lost: 2".to_owned(),
        faults: vec![
            "messages lost: 3".to_owned(),
            "connections lost: 2".to_owned(),
        ],
    };
    run.delivery.lost = 3;
    run.delivery.delivered -= 3;
    run.clients.lost = 2;
    run.exit_code = 7;
    run.fill_metrics();
    run
}

fn machine() -> Machine {
    Machine {
        kernel: "6.12.0".to_owned(),
        os: "Debian 13".to_owned(),
        cpu: "Xeon E5-2650".to_owned(),
        cores: 4,
        memory_bytes: 8 * 1024 * MIB,
        open_files_max: 1_048_576,
        settings: BTreeMap::from([("net.core.somaxconn".to_owned(), "4096".to_owned())]),
        clock: "CLOCK_MONOTONIC".to_owned(),
    }
}

fn scenario() -> ScenarioDescription {
    ScenarioDescription {
        name: "p2p-1K".to_owned(),
        summary: "one publisher to one subscriber, a thousand times".to_owned(),
        targets: vec!["mqtt://127.0.0.1:1883".to_owned()],
        mqtt_version: "3.1.1".to_owned(),
        qos: Some(1),
        payload_bytes: Some(16),
        payload: "random".to_owned(),
        transport: "tcp".to_owned(),
        keep_alive_seconds: 300,
        connect_rate: 1_000,
        source_addresses: vec!["127.0.0.2-127.0.0.9".to_owned()],
        load: LoadModel {
            closed_loop: false,
            text: "open loop, constant".to_owned(),
            arrivals: "even".to_owned(),
        },
        scale: 1.0,
        stages: StageSeconds {
            ramp: 2.0,
            warm_up: 0.0,
            hold: 10.0,
            drain: 0.0,
        },
        groups: vec![GroupDescription {
            name: "publishers".to_owned(),
            clients: 1_000,
            text: "publish test/{i} 1/s QoS 1 · 16 B random".to_owned(),
        }],
        toml: "target = \"mqtt://127.0.0.1:1883\"\n".to_owned(),
    }
}

fn latencies() -> Latencies {
    Latencies {
        floors: BTreeMap::new(),
        stages: None,
        e2e: Some(Distribution {
            bound: Some(Quantiles {
                mean: 70_000,
                p50: 61_000,
                p75: 80_000,
                p90: 290_000,
                p95: 290_000,
                p99: 290_000,
                p99_9: 290_000,
                p99_99: 290_000,
                max: 290_000,
                ..Quantiles::default()
            }),
            ..distribution(&[800_000, 900_000, 3_900_000, 41_000_000])
        }),
        service: Some(distribution(&[400_000, 450_000, 1_950_000, 20_500_000])),
        publish_ack: Some(distribution(&[70_000])),
        publish_response: Some(distribution(&[90_000])),
        connect: Some(distribution(&[1_100_000])),
        subscribe: Some(distribution(&[36_000])),
        reconnect: Some(distribution(&[5_000_000])),
        generator_lag: Some(distribution(&[200_000])),
        receive_lag: Some(distribution(&[10_000])),
        open_lag: Some(distribution(&[20_000])),
    }
}

fn clients() -> Clients {
    Clients {
        wanted: 2_000,
        ready: 2_000,
        ramp_seconds: 2.0,
        connect_rate: 1_000.0,
        cut: 10,
        reconnected: 10,
        ..Clients::default()
    }
}

fn delivery() -> Delivery {
    Delivery {
        sent_messages: 15_000,
        acknowledged: 15_000,
        expected: 15_000,
        delivered: 15_000,
        bytes_sent: 600_000,
        bytes_received: 610_000,
        ..Delivery::default()
    }
}

fn broker() -> Broker {
    Broker {
        version: "thrum 0.1.0".to_owned(),
        configuration: "[mqtt]\nworkers = 1\n".to_owned(),
        pid: 42,
        usage: Usage {
            cpu_user_seconds: 4.0,
            cpu_system_seconds: 6.0,
            cores_avg: 1.0,
            cores_max: 1.2,
            cpu_us_per_message: Some(50.0),
            machine: MachineUse {
                cpu_us_per_message: Some(130.0),
                kernel_bytes_per_connection: Some(7_800.0),
                ..MachineUse::default()
            },
            messages_per_core_second: Some(2_000.0),
            cores_idle: Some(0.01),
            rss_max_bytes: 8 * MIB,
            rss_avg_bytes: 7 * MIB,
            rss_stable_seconds: Some(3.0),
            memory_before: memory(4),
            memory_connected: memory(6),
            memory_end: memory(7),
            bytes_per_connection: Some(1_048.576),
            threads_max: 2,
            open_files_max: 2_012,
            voluntary_context_switches: 900,
            involuntary_context_switches: 100,
            network_in_bytes: 60_000.0,
            network_out_bytes: 61_000.0,
            ..Usage::default()
        },
        ..Broker::default()
    }
}

fn memory(mib: u64) -> Memory {
    Memory {
        rss_bytes: mib * MIB,
        pss_bytes: mib * MIB / 2,
        kernel_bytes: 0,
    }
}

fn load(busy: f64, waited_for_core: f64) -> ThreadLoad {
    ThreadLoad {
        busy,
        busy_max: busy,
        waited_for_core,
    }
}

/// Two seconds of ramp, ten of hold.
fn second(number: u32) -> Second {
    let is_ramp = number < 2;
    let messages = if is_ramp { 0 } else { 1_000 };
    let resources = Resources {
        cores_user: 0.4,
        cores_system: 0.6,
        rss_bytes: 8 * MIB,
        threads: 2,
        ..Resources::default()
    };
    Second {
        at: f64::from(number),
        span: 1.0,
        stage: if is_ramp { Stage::Ramp } else { Stage::Hold },
        up: match number {
            0 => 1_000,
            5 => 1_990,
            _ => 2_000,
        },
        connected: if is_ramp { 1_000 } else { 0 },
        offered: messages,
        sent: messages,
        received: messages,
        acknowledged: messages,
        e2e: (!is_ramp).then(|| distribution(&[800_000, 3_900_000]).quantiles),
        broker: Some(resources),
        ..Second::default()
    }
}
