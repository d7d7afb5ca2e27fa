//! A run that never was, for tests: 50 000 messages per second with a slow moment in its middle.

use std::time::Duration;

use thrum_report::RunResult;
use thrum_report::result::{
    Broker, Clients, Distribution, ErrorCount, Latencies, Mark, Quantiles, Resources,
    ScenarioDescription, Second, Stage, ThreadLoad,
};
use thrum_report::threshold::ThresholdResult;

use super::snapshot::{Figures, Now, Snapshot};

/// Clients of the run.
const CLIENTS: u64 = 50_500;

/// A frame's figures after this many seconds of the hold, which is planned to take 5 minutes.
pub(super) fn snapshot(seconds: u32) -> Snapshot {
    Snapshot {
        title: "fan-in-50k → mqtt://10.0.0.5:1883".into(),
        series: None,
        now: Some(Now {
            stage: Stage::Hold,
            elapsed: Duration::from_secs(u64::from(seconds)),
            planned: Duration::from_mins(5),
            clients: CLIENTS,
            ready: CLIENTS,
            failed: 0,
            lost: 2,
            in_flight: 41,
        }),
        figures: Some(Figures::new(&result(seconds)).into()),
    }
}

/// A result so far.
pub(super) fn result(seconds: u32) -> RunResult {
    let mut result = RunResult {
        scenario: ScenarioDescription {
            name: "fan-in-50k".to_owned(),
            targets: vec!["mqtt://10.0.0.5:1883".to_owned()],
            mqtt_version: "5.0".to_owned(),
            qos: Some(1),
            payload_bytes: Some(16),
            payload: "binary".to_owned(),
            transport: "tcp".to_owned(),
            ..ScenarioDescription::default()
        },
        clients: Clients {
            wanted: CLIENTS,
            ready: CLIENTS,
            lost: 2,
            reconnected: 2,
            ..Clients::default()
        },
        latency_ns: latencies(),
        thresholds: thresholds(),
        errors: vec![
            error("connection reset by peer", 2, 61.0),
            error("publish refused: quota exceeded", 1_204, 70.0),
        ],
        marks: vec![
            mark(45.0, "rate +10 %"),
            mark(90.0, "note: new queue length"),
        ],
        brokers: vec![Broker {
            host: "10.0.0.5".to_owned(),
            ..Broker::default()
        }],
        series: series(seconds),
        ..RunResult::default()
    };
    result.validity.valid = true;
    result.generator.threads = vec![ThreadLoad {
        busy: 0.41,
        busy_max: 0.47,
        waited_for_core: 0.01,
    }];
    result
}

/// Its seconds.
pub(super) fn series(seconds: u32) -> Vec<Second> {
    (0..seconds).map(second).collect()
}

fn second(number: u32) -> Second {
    let at = f64::from(number);
    let wave = u64::from(number % 7) * 90;
    let slow = u64::from(number.abs_diff(70) < 8) * 30_000_000;
    let resources = |cores| Resources {
        cores_user: cores,
        cores_system: cores / 2.0,
        rss_bytes: 1_181_116_006,
        threads: 9,
        open_files: 50_512,
        network_in_bytes: 64e6,
        network_out_bytes: 61e6,
        ..Resources::default()
    };
    Second {
        at,
        span: 1.0,
        stage: Stage::Hold,
        up: CLIENTS,
        offered: 50_000,
        sent: 49_998 - wave - slow / 3_000,
        received: 49_997 - wave - slow / 2_000,
        e2e: Some(Quantiles {
            count: 50_000,
            p50: 810_000 + wave * 100,
            p99: 3_900_000 + wave * 3_000 + slow,
            p99_9: 11_000_000 + wave * 9_000 + slow * 3,
            ..Quantiles::default()
        }),
        broker: Some(resources(2.75)),
        generator: Some(resources(0.25)),
        ..Second::default()
    }
}

fn latencies() -> Latencies {
    let distribution = |scale: u64| Distribution {
        quantiles: Quantiles {
            count: 6_000_000,
            min: 90 * scale,
            mean: 900 * scale,
            p50: 810 * scale,
            p90: 1_620 * scale,
            p99: 3_900 * scale,
            p99_9: 11_000 * scale,
            max: 41_000 * scale,
            ..Quantiles::default()
        },
        curve: [
            (0.0, 90),
            (0.05, 300),
            (0.25, 600),
            (0.5, 810),
            (0.9, 1_620),
            (0.99, 3_900),
            (0.999, 11_000),
            (1.0, 41_000),
        ]
        .map(|(part, value)| (part, value * scale))
        .to_vec(),
        hdr: String::new(),
        ..Distribution::default()
    };
    Latencies {
        e2e: Some(Distribution {
            bound: Some(bound()),
            ..distribution(1_000)
        }),
        generator_lag: Some(distribution(51)),
        receive_lag: Some(distribution(33)),
        ..Latencies::default()
    }
}

/// What of the response time may be the generator's.
fn bound() -> Quantiles {
    Quantiles {
        p50: 61_000,
        p90: 120_000,
        p99: 290_000,
        p99_9: 700_000,
        max: 2_000_000,
        mean: 70_000,
        ..Quantiles::default()
    }
}

fn thresholds() -> Vec<ThresholdResult> {
    let threshold = |metric: &str, condition: &str, measured, pass| ThresholdResult {
        metric: metric.to_owned(),
        condition: condition.to_owned(),
        measured,
        pass,
        ..ThresholdResult::default()
    };
    vec![
        threshold("e2e.p99", "< 50ms", Some(3.9e6), true),
        threshold("delivered", "== 100%", Some(1.0), true),
        threshold("broker.rss", "< 1GB", Some(1_181_116_006.0), false),
        threshold("connect.errors", "== 0", None, false),
    ]
}

fn error(reason: &str, count: u64, first_seconds: f64) -> ErrorCount {
    ErrorCount {
        reason: reason.to_owned(),
        count,
        first_seconds,
        last_seconds: first_seconds + 20.0,
    }
}

fn mark(at: f64, text: &str) -> Mark {
    Mark {
        at,
        text: text.to_owned(),
        ..Mark::default()
    }
}

/// A frame of a run that only connects: 3 of 5 000 new clients a second failed in each.
pub(super) fn connecting(seconds: u32) -> Snapshot {
    let mut result = result(0);
    result.thresholds.clear();
    result.errors.clear();
    result.marks.clear();
    (result.scenario.payload, result.scenario.payload_bytes) = (String::new(), None);
    result.scenario.qos = None;
    result.clients.reconnected = 0;
    result.latency_ns = Latencies {
        connect: result.latency_ns.e2e.take(),
        ..Latencies::default()
    };
    let connected = |number| Second {
        stage: Stage::Ramp,
        up: u64::from(number + 1) * 4_997,
        connected: 4_997,
        offered: 0,
        sent: 0,
        received: 0,
        connect: second(number).e2e,
        e2e: None,
        ..second(number)
    };
    result.series = (0..seconds).map(connected).collect();
    Snapshot {
        title: "conn-tcp-1M-5K → mqtt://10.0.0.5:1883".into(),
        series: Some("run 1/4 · 10s gone · about 41m left".into()),
        now: Some(Now {
            stage: Stage::Ramp,
            elapsed: Duration::from_secs(u64::from(seconds)),
            planned: Duration::from_secs(200),
            clients: 1_000_000,
            ready: u64::from(seconds) * 4_997,
            failed: u64::from(seconds) * 3,
            ..Now::default()
        }),
        figures: Some(Figures::new(&result).into()),
    }
}
