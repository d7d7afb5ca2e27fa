//! A made-up run with everything in it that a report can show: waves, a fault, losses, a limit
//! missed.

use std::collections::BTreeMap;

use thrum_report::SCHEMA;
use thrum_report::html::{ComparisonRow, ComparisonTable};
use thrum_report::result::{
    Broker, Clients, Delays, Delivery, Distribution, ErrorCount, Generator, GroupDescription,
    Latencies, LoadModel, Machine, MachineUse, Mark, Memory, Quantiles, Rates, Resources,
    RunResult, ScenarioDescription, Second, Stage, StageSeconds, ThreadLoad, Tool, Usage, Validity,
    Verdict, Withheld,
};
use thrum_report::threshold::ThresholdResult;
use thrum_report::versus::{VersusBroker, VersusReport, VersusScenario};

const MIB: u64 = 1024 * 1024;

/// A run with this many seconds of hold.
pub(crate) fn run(hold_seconds: u32) -> RunResult {
    let total = 20 + hold_seconds;
    RunResult {
        schema: SCHEMA.to_owned(),
        tool: Tool {
            name: "thrum bench".to_owned(),
            version: "0.1.0 (e39873a)".to_owned(),
            command: "thrum bench run fan-in-50k --target mqtt://127.0.0.1:1883 --duration 5m"
                .to_owned(),
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
            text: "every promise of QoS 1 was kept".to_owned(),
            faults: Vec::new(),
        },
        thresholds: thresholds(),
        scenario: scenario(hold_seconds),
        clients: Clients {
            wanted: 50_500,
            ready: 50_500,
            cut: 500,
            reconnected: 500,
            lost: 2,
            ramp_seconds: 10.2,
            connect_rate: 4_950.9,
            ..Clients::default()
        },
        rates: Rates {
            offered: 50_000.0,
            sent: 49_998.2,
            received: 49_990.4,
            held_back_messages: 3_120,
        },
        latency_ns: latencies(),
        delivery: delivery(hold_seconds),
        brokers: vec![broker()],
        generator: generator(),
        errors: errors(),
        marks: vec![
            Mark {
                at: f64::from(20 + hold_seconds / 3),
                text: "500 subscribers cut off".to_owned(),
                ..Mark::default()
            },
            Mark {
                at: f64::from(25 + hold_seconds / 3),
                text: "subscribers may return".to_owned(),
                ..Mark::default()
            },
            Mark {
                at: f64::from(20 + hold_seconds * 3 / 4),
                text: "note: compaction of the store began".to_owned(),
                ..Mark::default()
            },
        ],
        series: (0..total).map(|at| second(at, hold_seconds)).collect(),
        metrics: BTreeMap::from([
            ("broker.rss".to_owned(), 1.1 * 1024.0 * 1024.0 * 1024.0),
            ("rate.received".to_owned(), 49_990.4),
        ]),
        ..RunResult::default()
    }
}

/// A run whose latency the generator spoiled, and whose coordinator was late.
pub(crate) fn invalid() -> RunResult {
    let mut run = run(60);
    run.exit_code = 7;
    run.validity = Validity {
        valid: false,
        limits: vec![
            "up to 12ms of e2e.p99 21ms may be the generator's: its thread bench-1 read its sockets up to 300ms late"
                .to_owned(),
            "the coordinator was up to 180ms late: CPU and memory of the broker belong to another time".to_owned(),
        ],
        advice: vec![
            "use more --threads (and cores), or lower the rate: messages wait for the generator to read them"
                .to_owned(),
            "stop other work on this machine, or leave thrum a core that nothing else uses".to_owned(),
        ],
        withheld: BTreeMap::from(["broker.cores.max", "broker.cpu.max"].map(|name| {
            (name.to_owned(), "the coordinator was up to 180ms late".to_owned())
        })),
    };
    for name in ["e2e", "service"] {
        let Some(mut found) = run.latency_ns.find(name).cloned() else {
            continue;
        };
        found.bound = Some(quantiles(0, 0.8, 0.57));
        for figure in ["p99", "p99.9", "max"] {
            let seen = found.quantiles.figure(figure).unwrap_or(0);
            let why = Withheld::Generator {
                bound: found.bound_of(figure).unwrap_or(0),
                seen,
            };
            found.withheld.insert(figure.to_owned(), why);
        }
        run.latency_ns.set(name, Some(found));
    }
    let threshold = &mut run.thresholds[0];
    (threshold.measured, threshold.pass) = (None, false);
    threshold.withheld = Some("up to 2.8ms of 5ms may be the generator's".to_owned());
    for second in &mut run.series {
        second.delays.e2e_bound = second.e2e.map(|_| quantiles(0, 0.8, 0.57));
    }
    run
}

/// A run in which deliveries never arrived, of few messages.
pub(crate) fn missing() -> RunResult {
    let mut run = run(60);
    run.verdict = Verdict {
        pass: false,
        text: "messages lost: 40".to_owned(),
        faults: vec!["messages lost: 40".to_owned()],
    };
    run.exit_code = 1;
    (run.delivery.expected, run.delivery.delivered) = (1_800, 1_760);
    (run.delivery.sent_messages, run.delivery.lost) = (1_800, 40);
    run.rates = Rates {
        offered: 30.0,
        sent: 30.0,
        received: 29.3,
        held_back_messages: 0,
    };
    for name in ["e2e", "service"] {
        let mut found = distribution(0.8, 1_760);
        (found.missing, found.missing_over) = (40, 5_000_000_000);
        let why = Withheld::Missing {
            missing: 40,
            of: 1_800,
            over: 5_000_000_000,
        };
        for figure in ["p99", "p99.9", "p99.99", "max", "mean"] {
            found.withheld.insert(figure.to_owned(), why);
        }
        run.latency_ns.set(name, Some(found));
    }
    run.latency_ns.publish_ack =
        Some(distribution(0.4, 1_800).with_bound(Some(quantiles(0, 0.03, 1.0))));
    run
}

/// A run of connections without messages.
pub(crate) fn connections() -> RunResult {
    let mut run = run(20);
    "conn-tcp-10K-100".clone_into(&mut run.scenario.name);
    "10 000 connections, 100 new per second".clone_into(&mut run.scenario.summary);
    (run.scenario.qos, run.scenario.payload_bytes) = (None, None);
    (run.rates, run.delivery) = (Rates::default(), Delivery::default());
    run.latency_ns = Latencies {
        connect: Some(distribution(1.1, 10_000).with_bound(Some(quantiles(0, 0.05, 1.0)))),
        open_lag: Some(distribution(0.05, 10_000)),
        ..Latencies::default()
    };
    run.thresholds.clear();
    run.marks.clear();
    run.errors.clear();
    run.exit_code = 0;
    for second in &mut run.series {
        *second = Second {
            at: second.at,
            span: second.span,
            stage: second.stage,
            up: second.up,
            connected: second.connected,
            connect: second.connect,
            broker: second.broker,
            generator: second.generator,
            ..Second::default()
        };
    }
    run.brokers[0].usage.cpu_us_per_message = None;
    run.brokers[0].usage.machine.cpu_us_per_message = None;
    run
}

/// A wave between 0 and 1 that looks irregular and is the same every time.
fn wave(at: u32, salt: f64) -> f64 {
    let x = f64::from(at) + salt;
    (((x * 0.11).sin() + (x * 0.37 + salt).sin() * 0.6 + (x * 2.9).sin() * 0.4) + 2.0) / 4.0
}

fn ns(milliseconds: f64) -> u64 {
    thrum_figures::whole(milliseconds * 1e6)
}

fn quantiles(at: u32, base: f64, spike: f64) -> Quantiles {
    let level = base * (0.8 + 0.5 * wave(at, base)) * spike;
    let tail = 1.0 + wave(at, 3.0);
    Quantiles {
        count: 50_000,
        min: ns(level * 0.3),
        mean: ns(level * 1.1),
        p50: ns(level),
        p75: ns(level * 1.4),
        p90: ns(level * 2.0),
        p95: ns(level * 2.6 * tail),
        p99: ns(level * 3.5 * tail),
        p99_9: ns(level * 8.0 * tail),
        p99_99: ns(level * 14.0 * tail),
        max: ns(level * 20.0 * tail),
    }
}

fn second(at: u32, hold_seconds: u32) -> Second {
    let (stage, load) = match at {
        0..10 => (Stage::Ramp, 0.0),
        10..15 => (Stage::WarmUp, 1.0),
        _ if at < 15 + hold_seconds => (Stage::Hold, 1.0),
        _ => (Stage::Drain, 0.0),
    };
    let fault = 20 + hold_seconds / 3;
    let since = at.checked_sub(fault).unwrap_or(u32::MAX);
    let away = since < 5;
    let spike = if (5..12).contains(&since) {
        12.0 / f64::from(since - 3)
    } else {
        1.0
    };
    let offered = 50_000.0 * load;
    let received = offered
        * if away {
            0.72
        } else if since == 5 {
            1.9
        } else {
            0.995 + 0.005 * wave(at, 1.0)
        };
    let whole = thrum_figures::whole;
    let measured = load > 0.0 && !away;
    Second {
        at: f64::from(at),
        span: 1.0,
        stage,
        up: if at < 10 {
            u64::from(at + 1) * 5_050
        } else if away {
            50_000
        } else {
            50_500
        },
        connected: if at < 10 {
            5_050
        } else if since == 5 {
            500
        } else {
            0
        },
        failed: if since == 6 { 12 } else { 0 },
        lost: if since == 0 {
            500
        } else {
            u64::from(at == 100) * 2
        },
        offered: whole(offered),
        sent: whole(offered * (0.999 + 0.001 * wave(at, 9.0))),
        received: whole(received),
        acknowledged: whole(offered),
        held_back: if since == 5 { 3_120 } else { 0 },
        bytes_sent: whole(offered * 61.0),
        bytes_received: whole(received * 64.0),
        e2e: measured.then(|| quantiles(at, 0.8, spike)),
        service: measured.then(|| quantiles(at, 0.7, spike)),
        publish_ack: (load > 0.0).then(|| quantiles(at, 0.4, 1.0)),
        connect: (at < 10).then(|| quantiles(at, 1.1, 1.0)),
        delays: Delays {
            sending: (load > 0.0).then(|| quantiles(at, 0.02, 1.0)),
            reading: measured.then(|| quantiles(at, 0.04, 1.0)),
            e2e_bound: measured.then(|| quantiles(at, 0.06, 1.0)),
            opening: None,
        },
        broker: Some(resources(at, 0.3 + 3.8 * load, 1_040 * MIB)),
        generator: Some(resources(at + 5, 0.2 + 2.2 * load, 420 * MIB)),
        ..Second::default()
    }
}

fn resources(at: u32, cores: f64, memory: u64) -> Resources {
    Resources {
        cores_user: cores * (0.55 + 0.1 * wave(at, 2.0)),
        cores_system: cores * (0.35 + 0.1 * wave(at, 4.0)),
        rss_bytes: memory * u64::from(at.min(40) + 20) / 60 + u64::from(at) * MIB / 4,
        threads: 9,
        open_files: 50_540,
        context_switches: 41_000.0,
        network_in_bytes: cores * 8e6 * (0.9 + 0.1 * wave(at, 5.0)),
        network_out_bytes: cores * 14e6 * (0.9 + 0.1 * wave(at, 6.0)),
        ..Resources::default()
    }
}

fn distribution(base: f64, count: u64) -> Distribution {
    let fractions = (0..100).map(|step| 1.0 - 10_f64.powf(-f64::from(step) * 0.072));
    let curve = fractions
        .map(|part| {
            let nines = -(1.0 - part).log10();
            (
                part,
                ns(base * 0.4 * (1.0 + nines * 1.1 + nines.powf(2.6) * 0.5)),
            )
        })
        .collect();
    Distribution {
        quantiles: Quantiles {
            count,
            ..quantiles(0, base, 1.0)
        },
        curve,
        hdr: "HISTFAAAACd4nJNpmSzMwMDAxQABzFCaEUoz".repeat(30),
        bound: Some(quantiles(0, base * 0.07, 1.0)),
        ..Distribution::default()
    }
}

fn latencies() -> Latencies {
    Latencies {
        e2e: Some(distribution(0.8, 15_000_000)),
        service: Some(distribution(0.7, 15_000_000)),
        publish_ack: Some(distribution(0.4, 15_000_000)),
        connect: Some(distribution(1.1, 50_500)),
        generator_lag: Some(distribution(0.02, 15_000_000)),
        ..Latencies::default()
    }
}

fn delivery(hold_seconds: u32) -> Delivery {
    let messages = u64::from(hold_seconds) * 50_000;
    Delivery {
        sent_messages: messages,
        acknowledged: messages,
        expected: messages,
        delivered: messages - 1,
        lost: 0,
        excused: 1,
        duplicated: 7,
        bytes_sent: messages * 61,
        bytes_received: messages * 64,
        ..Delivery::default()
    }
}

fn thresholds() -> Vec<ThresholdResult> {
    let result = |metric: &str, condition: &str, limit, measured, pass| ThresholdResult {
        metric: metric.to_owned(),
        condition: condition.to_owned(),
        limit,
        measured,
        withheld: None,
        pass,
    };
    vec![
        result("e2e.p99", "< 50ms", 5e7, Some(5.0e6), true),
        result("delivered", ">= 99.99%", 0.9999, Some(0.999_999_93), true),
        result("connect.errors", "== 0", 0.0, Some(0.0), true),
        result(
            "broker.rss",
            "< 1GiB",
            1_073_741_824.0,
            Some(1_181_116_006.0),
            false,
        ),
        result("reconnect.p99", "< 2s", 2e9, None, false),
    ]
}

fn machine() -> Machine {
    Machine {
        kernel: "6.12.8-amd64".to_owned(),
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        cpu: "AMD EPYC 7B13".to_owned(),
        cores: 8,
        memory_bytes: 32 * 1024 * MIB,
        open_files_max: 1_048_576,
        settings: [
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.ip_local_port_range", "1024 65535"),
            ("net.ipv4.tcp_mem", "383145 510863 766290"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        clock: "CLOCK_MONOTONIC, one machine".to_owned(),
    }
}

fn scenario(hold_seconds: u32) -> ScenarioDescription {
    let group = |name: &str, clients, text: &str| GroupDescription {
        name: name.to_owned(),
        clients,
        text: text.to_owned(),
    };
    ScenarioDescription {
        name: "fan-in-50k".to_owned(),
        summary: "many devices report to a few backends that share the work".to_owned(),
        targets: vec!["mqtt://127.0.0.1:1883".to_owned()],
        mqtt_version: "5.0".to_owned(),
        qos: Some(1),
        payload_bytes: Some(16),
        payload: "random".to_owned(),
        transport: "tcp".to_owned(),
        keep_alive_seconds: 300,
        connect_rate: 5_000,
        source_addresses: vec!["127.0.0.2-127.0.0.9".to_owned()],
        load: LoadModel { closed_loop: false, text: "open loop, constant".to_owned(), arrivals: "even".to_owned() },
        scale: 1.0,
        stages: StageSeconds {
            ramp: 10.0,
            warm_up: 5.0,
            hold: f64::from(hold_seconds),
            drain: 5.0,
        },
        groups: vec![
            group("devices", 50_000, "publish test/{i} 1/s QoS 1 · 16 B random"),
            group("backend", 500, "subscribe $share/bench/test/# QoS 1"),
        ],
        toml: "name    = \"fan-in-50k\"\ntarget  = \"mqtt://127.0.0.1:1883\"\nversion = 5\n\
               stages  = [\"ramp 10s\", \"warmup 5s\", \"hold 5m\", \"drain 5s\"]\n\n\
               [groups.devices]\nclients = 50_000\n\
               publish = { topic = \"test/{i}\", rate = \"1/s\", qos = 1, payload = \"random:16B\" }\n\n\
               [groups.backend]\nclients   = 500\n\
               subscribe = { filter = \"$share/bench/test/#\", qos = 1 }\n\n\
               [thresholds]\n\"e2e.p99\" = \"< 50ms\"\n\"broker.rss\" = \"< 1GiB\"\n"
            .to_owned(),
    }
}

fn usage(cores: f64, memory: u64) -> Usage {
    Usage {
        cpu_user_seconds: cores * 180.0,
        cpu_system_seconds: cores * 120.0,
        cores_avg: cores,
        cores_max: cores * 1.08,
        machine: MachineUse {
            idle: 0.21,
            stolen: 0.002,
            cpu_us_per_message: Some(cores * 23.0),
            kernel_bytes_per_connection: None,
        },
        cpu_us_per_message: Some(cores * 20.0),
        messages_per_core_second: Some(24_400.0),
        cores_idle: Some(0.08),
        waited_for_core_seconds: 1.4,
        rss_max_bytes: memory,
        rss_avg_bytes: memory * 9 / 10,
        rss_stable_seconds: Some(41.0),
        memory_before: Memory {
            rss_bytes: 14 * MIB,
            pss_bytes: 14 * MIB,
            kernel_bytes: 0,
        },
        memory_connected: Memory {
            rss_bytes: memory / 2,
            pss_bytes: memory / 2,
            kernel_bytes: 0,
        },
        memory_end: Memory {
            rss_bytes: memory * 3 / 4,
            pss_bytes: memory * 3 / 4,
            kernel_bytes: 0,
        },
        bytes_per_connection: Some(9_400.0),
        threads_max: 9,
        open_files_max: 50_540,
        voluntary_context_switches: 1_200_000,
        involuntary_context_switches: 40_000,
        network_in_bytes: 33e6,
        network_out_bytes: 61e6,
        ..Usage::default()
    }
}

fn broker() -> Broker {
    Broker {
        version: "thrum 0.1.0".to_owned(),
        configuration:
            "node.workers = 8\nlistener.tcp = \"127.0.0.1:1883\"\npersistence = \"memory\"\n"
                .to_owned(),
        pid: 4_711,
        usage: usage(4.1, 1_126 * MIB),
        ..Broker::default()
    }
}

fn generator() -> Generator {
    Generator {
        threads: vec![
            ThreadLoad {
                busy: 0.61,
                busy_max: 0.68,
                waited_for_core: 0.02,
            },
            ThreadLoad {
                busy: 0.58,
                busy_max: 0.64,
                waited_for_core: 0.01,
            },
        ],
        usage: Some(usage(2.4, 610 * MIB)),
    }
}

fn errors() -> Vec<ErrorCount> {
    let error = |reason: &str, count, first_seconds, last_seconds| ErrorCount {
        reason: reason.to_owned(),
        count,
        first_seconds,
        last_seconds,
    };
    vec![
        error("connection reset by peer", 2, 100.2, 100.9),
        error("CONNACK 0x97 quota exceeded", 12, 126.1, 126.8),
    ]
}

/// The comparison of the run with an earlier one.
pub(crate) fn comparison() -> ComparisonTable {
    let row = |name: &str, before: &str, now: &str, change: &str, note: &str| ComparisonRow {
        name: name.to_owned(),
        cells: [before, now, change].map(str::to_owned).into(),
        note: note.to_owned(),
        class: match note {
            "B wins" => "good",
            "A wins" => "bad",
            _ => "",
        }
        .to_owned(),
        ..ComparisonRow::default()
    };
    ComparisonTable {
        conclusion: "p99 of B is 0.88 ± 0.04 times that of A.".to_owned(),
        markdown: "# Comparison\n\n| figure | A | B |\n".to_owned(),
        columns: ["baseline", "this run", "change"].map(str::to_owned).into(),
        rows: vec![
            row("e2e.p99", "4.4ms", "3.9ms", "−12 % ±4", "B wins"),
            row(
                "rate.received",
                "49 990/s",
                "49 990/s",
                "+0.0 %",
                "no difference shown",
            ),
            row("broker.rss", "1.07 GiB", "1.1 GiB", "+3 % ±1", "A wins"),
        ],
    }
}

/// Three brokers in two scenarios, three rounds each.
pub(crate) fn versus() -> VersusReport {
    let scenario = |name: &str, summary: &str, messages: bool| VersusScenario {
        name: name.to_owned(),
        summary: summary.to_owned(),
        toml: scenario(60).toml,
        brokers: [
            ("thrum", "0.1.0", 1.0),
            ("broker B", "2.1.2", 1.6),
            ("broker C", "5.8.6", 2.9),
        ]
        .map(|(name, version, cost)| versus_broker(name, version, cost, messages))
        .into(),
    };
    VersusReport {
        title: "Three brokers, Basic Set".to_owned(),
        command: "thrum bench versus basic --rounds 3".to_owned(),
        rounds: 3,
        machine: machine(),
        scenarios: vec![
            scenario(
                "p2p-1K",
                "1 000 publishers, each with one subscriber of its own",
                true,
            ),
            scenario(
                "conn-tcp-10K-100",
                "10 000 connections, 100 new per second",
                false,
            ),
        ],
    }
}

/// Two brokers with four rounds each, of which the second one's first and the first one's third are
/// INVALID.
pub(crate) fn versus_invalid() -> VersusReport {
    let mut report = versus();
    "Two brokers, p2p-1K".clone_into(&mut report.title);
    report.rounds = 4;
    report.scenarios.truncate(1);
    let brokers = &mut report.scenarios[0].brokers;
    brokers.truncate(2);
    for (broker, invalid) in brokers.iter_mut().zip([2, 0]) {
        let mut again = broker.runs.clone();
        for run in &mut again {
            run.started = run.started.replace("T09", "T10");
        }
        broker.runs.extend(again);
        broker.runs.truncate(5);
        let validity = &mut broker.runs[invalid].validity;
        validity.valid = false;
        validity.limits = vec!["a generator thread was busy 97 % of the time".to_owned()];
    }
    report.rounds = 5;
    report
}

fn versus_broker(name: &str, version: &str, cost: f64, messages: bool) -> VersusBroker {
    let round = |round: u32| {
        let noise = cost * (1.0 + 0.08 * f64::from(round));
        let mut run = run(5);
        run.series.clear();
        run.brokers[0].usage = usage(noise * 0.4, MIB * u64::from(round + 40) * 2);
        run.rates.received = 1_000.0 - noise;
        run.latency_ns.e2e = messages.then(|| distribution(noise * 0.4, 60_000));
        run.latency_ns.connect = Some(distribution(noise * 0.9, 10_000));
        run.started = format!(
            "2026-11-21T09:{round:02}:{:02}Z",
            u32::from(cost > 1.0) + u32::from(cost > 2.0)
        );
        run.verdict.pass = cost < 2.0 || round > 0;
        if !messages {
            run.rates = Rates::default();
            run.delivery = Delivery::default();
        }
        run.latency_ns.generator_lag = None;
        run.fill_metrics();
        run
    };
    VersusBroker {
        name: name.to_owned(),
        version: version.to_owned(),
        configuration: "persistence false; as it comes".to_owned(),
        note: match name {
            "broker C" => "queues up to 1 000 messages".to_owned(),
            _ => String::new(),
        },
        runs: (0..3).map(round).collect(),
    }
}
