//! Reports of a run whose every figure is known.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::monitor::{Memory, Usage};
use crate::outcome::{Broker, Clients, Outcome};
use crate::record::{Counts, Latencies, SecondCounts, enter};
use crate::run::{Stage, Status};
use crate::scenario::find;
use crate::swarm::Progress;
use crate::validity::{Health, ThreadLoad};
use crate::verdict::{Delivery, Fault};

const MIB: u64 = 1024 * 1024;

/// A run whose every figure is known.
fn outcome() -> Outcome {
    let mut latencies = Latencies::new();
    for ns in [800_000, 900_000, 3_900_000, 41_000_000] {
        enter(&mut latencies.response, ns);
        enter(&mut latencies.service, ns / 2);
    }
    enter(&mut latencies.publish_ack, 70_000);
    enter(&mut latencies.connect, 1_100_000);
    enter(&mut latencies.subscribe, 36_000);
    enter(&mut latencies.lag, 200_000);
    Outcome {
        scenario: find("p2p-1K").unwrap(),
        target: "mqtt://127.0.0.1:1883".to_owned(),
        started_unix: 1_795_252_323,
        was_interrupted: false,
        clients: Clients {
            wanted: 2_000,
            ready: 2_000,
            failed: 0,
            ramp: Duration::from_secs(2),
        },
        hold: Duration::from_secs(10),
        latencies,
        counts: Counts {
            sent: 15_000,
            sent_in_hold: 9_998,
            received: 15_000,
            received_in_hold: 10_000,
            expected: 15_000,
            distinct: 15_000,
            acknowledged: 15_000,
            ..Counts::default()
        },
        series: vec![
            SecondCounts {
                sent: 1_000,
                received: 999,
                acknowledged: 998
            };
            2
        ],
        delivery: Delivery {
            expected: 15_000,
            ..Delivery::default()
        },
        faults: Vec::new(),
        reasons: BTreeMap::new(),
        broker: Some(Broker {
            pid: 42,
            usage: usage(),
        }),
        generator: Some(Usage {
            cores_avg: 0.07,
            cpu_user_seconds: 0.7,
            cpu_us_per_message: Some(70.0),
            bytes_per_connection: Some(0.0),
            ..Usage::default()
        }),
        health: Health {
            lag_p99_ns: 200_000,
            offered: 10_000,
            sent: 9_998,
            held_back: 0,
            threads: vec![ThreadLoad {
                busy: 0.07,
                waited: 0.015,
            }],
        },
    }
}

fn usage() -> Usage {
    let memory = |rss_bytes| Memory {
        rss_bytes,
        pss_bytes: rss_bytes / 2,
    };
    Usage {
        cpu_user_seconds: 0.2,
        cpu_system_seconds: 0.3,
        cores_avg: 0.05,
        cores_max: 0.061,
        cpu_us_per_message: Some(50.0),
        waited_for_core_seconds: 0.25,
        memory_before: memory(4 * MIB),
        memory_connected: memory(6 * MIB),
        memory_end: memory(7 * MIB),
        bytes_per_connection: Some(1_048.576),
        rss_max_bytes: 8 * MIB,
        rss_avg_bytes: 7 * MIB,
        threads_max: 2,
        voluntary_context_switches: 500,
        involuntary_context_switches: 20,
        ..Usage::default()
    }
}

#[test]
fn the_summary_says_it_all_in_a_screenful() {
    let expected = "  \
  singlenode-p2p-1K-1K-1K-1K   2 000 clients · 10s hold · QoS1 · 16 B · MQTT 3.1.1   VALID  (generator lag p99 0.2ms)
  █ VERDICT      PASS   all 15 000 deliveries arrived in order, each once
  █ RESULTS      rate       1 000/s achieved of 1 000/s offered · 1 000/s received
                 e2e        p50 0.9ms  p75 3.9ms  p90 41ms  p95 41ms  p99 41ms  p99.9 41ms  max 41ms  mean 12ms
                 service    p50 0.45ms  p75 2ms  p90 21ms  p95 21ms  p99 21ms  p99.9 21ms  max 21ms  mean 5.8ms
                 ack        p50 70µs  p75 70µs  p90 70µs  p95 70µs  p99 70µs  p99.9 70µs  max 70µs  mean 70µs
                 connect    p50 1.1ms  p99 1.1ms  max 1.1ms · 1 000/s · failures 0
                 subscribe  p50 36µs  p75 36µs  p90 36µs  p95 36µs  p99 36µs  p99.9 36µs  max 36µs  mean 36µs
                 delivery   lost 0  duplicated 0  out of order 0
                 broker     cpu avg 0.05 cores max 0.06 · 50µs/message · rss max 8 MiB · 1 KiB/connection · pid 42
                 generator  cpu avg 0.07 cores max 0 · 70µs/message · 0 B/connection · busiest thread 7 % · waited for a core 1.5 %
";
    assert_eq!(summary(&outcome()), expected);
}

#[test]
fn a_failed_and_invalid_run_says_why_and_what_to_do() {
    let mut outcome = outcome();
    outcome.health.lag_p99_ns = 12_000_000;
    outcome.delivery.lost = 3;
    outcome.faults = vec![Fault::Lost(3), Fault::CutOff(2)];
    outcome.reasons.insert("reset by the broker".to_owned(), 2);
    outcome.broker = None;
    let text = summary(&outcome);
    let lines: Vec<&str> = text.lines().take(5).collect();
    assert!(
        lines[0].ends_with("INVALID  (generator lag p99 12ms)"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("  █ INVALID      generator lag p99 12ms, more than 10ms: stop other")
    );
    assert_eq!(
        lines[2],
        "  █ VERDICT      FAIL   messages lost: 3, connections lost: 2"
    );
    assert_eq!(lines[3], "                 2 × reset by the broker");
    assert!(text.contains("broker     not measured (give --pid"));
}

#[test]
fn a_run_that_ended_in_the_ramp_has_no_verdict() {
    let mut outcome = outcome();
    outcome.was_interrupted = true;
    outcome.clients.ready = 651;
    let text = summary(&outcome);
    assert!(
        text.contains("NONE   ended while clients were connecting: 651 of 2 000 ready"),
        "{text}"
    );
    assert!(
        text.lines().next().unwrap().ends_with("interrupted"),
        "{text}"
    );
}

#[test]
fn losses_that_qos_0_allows_are_told_and_pass() {
    let mut outcome = outcome();
    outcome.delivery.lost = 150;
    assert!(
        summary(&outcome)
            .contains("PASS   150 of 15 000 deliveries lost (1 %), which QoS 0 allows")
    );
}

#[test]
fn exit_codes_name_the_most_serious_thing() {
    let mut outcome = outcome();
    assert_eq!(outcome.exit_code(), 0);
    outcome.faults = vec![Fault::Lost(1)];
    assert_eq!(outcome.exit_code(), 1);
    outcome.health.lag_p99_ns = 12_000_000;
    assert_eq!(outcome.exit_code(), 7);
    outcome.was_interrupted = true;
    assert_eq!(outcome.exit_code(), 130);
}

#[test]
fn a_suite_ends_with_one_table() {
    let mut idle = outcome();
    idle.scenario = find("conn-tcp-10K-100").unwrap();
    idle.broker = None;
    let expected = "  \
  scenario          verdict  received    p50    p99    max  lost  cpu avg/max  µs/msg  rss max  B/conn
  p2p-1K            PASS      1 000/s  0.9ms   41ms   41ms     0    0.05/0.06      50    8 MiB   1 049
  conn-tcp-10K-100  PASS            -  1.1ms  1.1ms  1.1ms     -            -       -        -       -
";
    assert_eq!(table(&[outcome(), idle]), expected);
}

#[test]
fn progress_names_the_stage_and_the_rates_since_the_last_look() {
    let at = |seconds, sent, received| Status {
        stage: Stage::Hold,
        elapsed: Duration::from_secs(seconds),
        planned: Duration::from_mins(1),
        clients: 2_000,
        progress: Progress {
            ready: 1_999,
            failed: 1,
            lost: 0,
            sent,
            received,
            expected: sent,
            distinct: received,
            pending: 0,
        },
    };
    let line = progress_line(Some(&at(10, 10_000, 9_000)), &at(15, 15_000, 14_500));
    assert_eq!(
        line,
        "hold 15s / 1m00s · clients 1 999/2 000 · failed 1 lost 0 · sent 1 000/s received 1 100/s · on the way 500"
    );
    let first = Status {
        stage: Stage::Ramp,
        progress: Progress::default(),
        ..at(0, 0, 0)
    };
    assert_eq!(
        progress_line(None, &first),
        "ramp 0s / 1m00s · clients 0/2 000"
    );
}

#[test]
fn the_schema_of_the_result_is_stable() {
    let result = RunResult::new(&outcome(), "thrum bench run p2p-1K");
    let mut json = serde_json::to_value(&result).unwrap();
    for machine_dependent in ["machine", "tool"] {
        json[machine_dependent] = serde_json::Value::Null;
    }
    let expected: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/result.json")).unwrap();
    // A difference here is a changed schema: fields may be added, anything else needs a new SCHEMA.
    assert_eq!(json, expected, "{json:#}");
    assert_eq!(json["schema"], SCHEMA);
}

#[test]
fn a_run_folder_is_never_overwritten() {
    let parent = std::env::temp_dir().join(format!("thrum-bench-{}", std::process::id()));
    let first = RunFolder::create(&parent, 0, "x").unwrap();
    let second = RunFolder::create(&parent, 0, "x").unwrap();
    assert_eq!(first.path(), parent.join("1970-01-01T000000Z-x"));
    assert_eq!(second.path(), parent.join("1970-01-01T000000Z-x-2"));
    let outcome = outcome();
    second
        .write(&outcome, &RunResult::new(&outcome, ""))
        .unwrap();
    let hgrm = std::fs::read_to_string(second.path().join("latency.hgrm")).unwrap();
    assert!(hgrm.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n"));
    assert!(hgrm.contains("Total count    =            4]"), "{hgrm}");
    let summary_file = std::fs::read_to_string(second.path().join("summary.txt")).unwrap();
    assert_eq!(summary_file, summary(&outcome));
    std::fs::remove_dir_all(parent).unwrap();
}
