//! The built-in scenarios have the parameters of the published benchmarks, and the guide names them
//! all.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use thrum_load::plan::Plan;
use thrum_load::scenario::{Overrides, Scenario, catalogue, find, find_document, sets};

/// None of the built-in scenarios has a payload from a file.
fn planned(scenario: Scenario) -> Plan {
    let no_files = |path: &Path| panic!("{} is read", path.display());
    Plan::new(scenario, "t", &no_files).unwrap()
}

/// A scenario's run, in a line.
fn parameters(scenario: &Scenario) -> String {
    format!(
        "{} {:?} clients {} connect {}/s pubs {} subs {} offered {:.0}/s qos {:?} payload {:?}",
        scenario.alias,
        scenario.version,
        scenario.clients(),
        scenario.connect_rate,
        scenario.publishers(),
        scenario.subscribers(),
        scenario.offered_rate(),
        scenario.delivery_qos(),
        planned(scenario.clone()).payload_bytes(),
    )
}

/// Each scenario that is published, with its published parameters.
const PUBLISHED: [&str; 19] = [
    "conn-tcp-10K-100 V311 clients 10000 connect 100/s pubs 0 subs 0 offered 0/s qos None payload None",
    "fanout-1-1K V311 clients 1001 connect 1000/s pubs 1 subs 1000 offered 1/s qos Some(AtLeastOnce) payload Some(16)",
    "p2p-1K V311 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtLeastOnce) payload Some(16)",
    "sharedsub-1K-5 V5 clients 1005 connect 1000/s pubs 1000 subs 5 offered 1000/s qos Some(AtLeastOnce) payload Some(16)",
    "conn-tcp-1M-5K V311 clients 1000000 connect 5000/s pubs 0 subs 0 offered 0/s qos None payload None",
    "fanout-5-1000-5-250K V311 clients 1005 connect 1000/s pubs 5 subs 1000 offered 250/s qos Some(AtLeastOnce) payload Some(16)",
    "p2p-50K V311 clients 100000 connect 1000/s pubs 50000 subs 50000 offered 50000/s qos Some(AtLeastOnce) payload Some(16)",
    "sharedsub-50K-500 V5 clients 50500 connect 1000/s pubs 50000 subs 500 offered 50000/s qos Some(AtLeastOnce) payload Some(16)",
    "emqx-latency-1K-1K-qos0 V311 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtMostOnce) payload Some(50)",
    "emqx-latency-1K-1K-qos1 V311 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtLeastOnce) payload Some(50)",
    "emqx-latency-1K-1K-qos2 V311 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(ExactlyOnce) payload Some(50)",
    "emqx-fanout-20-1000-2M V311 clients 1020 connect 1000/s pubs 20 subs 1000 offered 2000/s qos Some(AtMostOnce) payload Some(16)",
    "emqx-ci-gate V311 clients 20000 connect 1000/s pubs 10000 subs 10000 offered 10000/s qos Some(ExactlyOnce) payload Some(1024)",
    "emqtt-bench-throughput V311 clients 520 connect 1000/s pubs 20 subs 500 offered 200/s qos Some(AtMostOnce) payload Some(256)",
    "xmeter-conn V311 clients 1000 connect 100/s pubs 0 subs 0 offered 0/s qos None payload None",
    "xmeter-publish V311 clients 1000 connect 100/s pubs 1000 subs 0 offered 1000/s qos None payload Some(256)",
    "xmeter-one-to-one V311 clients 1000 connect 100/s pubs 500 subs 500 offered 500/s qos Some(AtLeastOnce) payload Some(256)",
    "xmeter-fan-out V311 clients 1000 connect 100/s pubs 1 subs 999 offered 1/s qos Some(AtLeastOnce) payload Some(256)",
    "xmeter-fan-in V311 clients 1000 connect 100/s pubs 995 subs 5 offered 995/s qos Some(AtLeastOnce) payload Some(256)",
];

/// Each scenario of ours.
const OURS: [&str; 13] = [
    "composite V311 clients 110000 connect 5000/s pubs 5000 subs 5000 offered 5000/s qos Some(AtLeastOnce) payload Some(16)",
    "reconnect-storm V5 clients 5000 connect 1000/s pubs 2500 subs 2500 offered 2500/s qos Some(AtLeastOnce) payload Some(64)",
    "persistent-session V5 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtLeastOnce) payload Some(64)",
    "broker-restart V5 clients 1000 connect 500/s pubs 500 subs 500 offered 1000/s qos Some(AtLeastOnce) payload Some(64)",
    "half-open V5 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtLeastOnce) payload Some(64)",
    "slow-reader V311 clients 110 connect 100/s pubs 10 subs 100 offered 100/s qos Some(AtMostOnce) payload Some(1024)",
    "stalled-reader V311 clients 105 connect 100/s pubs 5 subs 100 offered 25/s qos Some(AtLeastOnce) payload Some(128)",
    "weak-network V5 clients 400 connect 100/s pubs 200 subs 200 offered 200/s qos Some(AtLeastOnce) payload Some(64)",
    "request-response V5 clients 110 connect 100/s pubs 100 subs 10 offered 1000/s qos Some(AtLeastOnce) payload Some(128)",
    "payload-json V5 clients 1005 connect 1000/s pubs 1000 subs 5 offered 1000/s qos Some(AtLeastOnce) payload Some(123)",
    "durable-publish V5 clients 300 connect 1000/s pubs 100 subs 200 offered 2000/s qos Some(AtLeastOnce) payload Some(100)",
    "ramp-to-limit V311 clients 200 connect 100/s pubs 100 subs 100 offered 1000/s qos Some(AtLeastOnce) payload Some(16)",
    "devices V5 clients 108 connect 50/s pubs 100 subs 8 offered 100/s qos Some(AtLeastOnce) payload Some(178)",
];

#[test]
fn parameters_are_those_of_the_published_benchmarks() {
    for expected in PUBLISHED.into_iter().chain(OURS) {
        let name = expected.split(' ').next().unwrap();
        assert_eq!(parameters(&find(name).unwrap()), expected);
    }
    let sweeps = catalogue()
        .iter()
        .filter(|entry| !entry.steps.is_empty())
        .count();
    assert_eq!(PUBLISHED.len() + OURS.len() + sweeps, catalogue().len());
}

#[test]
fn single_scenarios_hold_a_minute_and_keep_alive_as_published() {
    for expected in PUBLISHED {
        let scenario = find(expected.split(' ').next().unwrap()).unwrap();
        assert_eq!(scenario.keep_alive, 300, "{expected}");
        assert_eq!(scenario.stages.hold.as_secs(), 60, "{expected}");
        let is_idle = scenario.publishers() == 0;
        let warm_up = if is_idle { 0 } else { 5 };
        assert_eq!(scenario.stages.warm_up.as_secs(), warm_up, "{expected}");
    }
}

/// The steps of a sweep, each with its offered rate, QoS and payload.
fn steps(name: &str) -> Vec<String> {
    let scenarios = find_document(name).unwrap().scenarios;
    let lines = scenarios.iter().map(|scenario| {
        assert_eq!(scenario.stages.hold.as_secs(), 300, "{}", scenario.name);
        assert!((19..=20).contains(&scenario.ramp().as_secs()));
        format!(
            "{} pubs {} subs {} offered {:.0} qos {} payload {}",
            scenario.name.split('/').nth(1).unwrap(),
            scenario.publishers(),
            scenario.subscribers(),
            scenario.offered_rate(),
            scenario.delivery_qos().unwrap() as u8,
            planned(scenario.clone()).payload_bytes().unwrap(),
        )
    });
    lines.collect()
}

#[test]
fn the_qos_sweep_publishes_half_of_each_load() {
    let mut expected = Vec::new();
    for (qos, last) in [(0, 6), (1, 5), (2, 3)] {
        expected.extend((1..=last).map(|load| {
            format!(
                "qos{qos}-{load}0K pubs 1000 subs 1000 offered {} qos {qos} payload 128",
                load * 5_000
            )
        }));
    }
    assert_eq!(steps("docs-qos-sweep"), expected);
    let symmetric: Vec<String> = expected[6..11]
        .iter()
        .map(|step| step.replace("qos1-", ""))
        .collect();
    assert_eq!(steps("docs-symmetric"), symmetric);
}

#[test]
fn the_payload_sweep_goes_up_to_eight_kibibytes() {
    let expected = [
        ("128B", 128),
        ("1KiB", 1_024),
        ("2KiB", 2_048),
        ("4KiB", 4_096),
    ];
    let expected = expected
        .into_iter()
        .chain([("6KiB", 6_144), ("8KiB", 8_192)]);
    let expected: Vec<String> = expected
        .map(|(name, bytes)| {
            format!("{name} pubs 1000 subs 1000 offered 20000 qos 1 payload {bytes}")
        })
        .collect();
    assert_eq!(steps("docs-payload-sweep"), expected);
}

#[test]
fn fan_in_fan_out_and_bridge_have_their_loads() {
    for (name, clients, last, offered) in [
        ("docs-fanin", "pubs 2000 subs 100", 5, 5_000),
        ("docs-fanout", "pubs 10 subs 2000", 6, 50),
        ("docs-bridge", "pubs 1000 subs 1000", 3, 5_000),
    ] {
        let expected: Vec<String> = (1..=last)
            .map(|load| {
                let offered = load * offered;
                format!("{load}0K {clients} offered {offered} qos 1 payload 128")
            })
            .collect();
        assert_eq!(steps(name), expected);
    }
}

#[test]
fn patterns_lead_every_message_to_its_subscribers() {
    let overrides = Overrides {
        scale: Some(0.1),
        ..Overrides::default()
    };
    for (name, delivered) in [
        ("p2p-50K", 5_000.0),
        ("sharedsub-50K-500", 5_000.0),
        ("emqx-fanout-20-1000-2M", 20_000.0),
        ("docs-fanin/40K", 2_000.0),
        ("docs-fanout/40K", 400.0),
        ("emqtt-bench-throughput", 1_000.0),
        // Each request is delivered, and so is its answer.
        ("request-response", 200.0),
    ] {
        let scenario = find(name).unwrap().with(&overrides).unwrap();
        let plan = planned(scenario);
        assert!(
            (plan.messages_per_second().1 - delivered).abs() < 1.0,
            "{name}"
        );
    }
}

#[test]
fn the_bridge_has_a_broker_at_each_end() {
    let scenario = find("docs-bridge/10K").unwrap();
    let names: Vec<&str> = scenario.targets.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(scenario.targets.iter().all(|target| target.url.is_none()));
    let groups = scenario.groups.iter();
    let groups: Vec<String> = groups
        .map(|group| format!("{}@{}", group.name, names[group.target]))
        .collect();
    assert_eq!(
        groups,
        [
            "subscribers-b@b",
            "subscribers-a@a",
            "publishers-a@a",
            "publishers-b@b"
        ]
    );
}

#[test]
fn the_guide_names_every_scenario_and_every_set() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scenarios.md");
    let guide = fs::read_to_string(guide).unwrap();
    for entry in catalogue() {
        assert!(
            guide.contains(&format!("| `{}` |", entry.alias)),
            "{}",
            entry.alias
        );
        assert!(guide.contains(entry.name), "{}", entry.name);
    }
    for set in sets() {
        let name = set.name;
        assert!(guide.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn two_runs_at_once_share_neither_topics_nor_identifiers() {
    let of_run = |scenario: &Scenario, tag: &str| {
        let no_files = |path: &Path| panic!("{} is read", path.display());
        let plan = Plan::new(scenario.clone(), tag, &no_files).unwrap();
        let publishers = plan.publishers().iter();
        let mut names: Vec<String> = publishers
            .flat_map(|publisher| [Some(&publisher.topic), publisher.response.as_ref()])
            .flatten()
            .map(|topic| format!("topic {topic}"))
            .collect();
        for client in (0..plan.clients()).step_by(997) {
            let part = plan.part(client);
            names.push(format!("client {}", plan.client_id(client)));
            let filters = plan.filters(part.group, part.number).into_iter();
            names.extend(filters.map(|filter| format!("topic {filter}")));
            let will = plan.client_options(part.group, part.number).will.clone();
            names.extend(will.map(|will| format!("topic {}", will.topic)));
        }
        names.sort_unstable();
        names.dedup();
        names
    };
    // Its topics are for people who look at them, and the same in every run.
    let for_people = ["devices"];
    let entries = catalogue().into_iter();
    for entry in entries.filter(|entry| !for_people.contains(&entry.name)) {
        for scenario in find_document(entry.name).unwrap().scenarios {
            let [one, other] = ["0a1b2c", "0a1b2d"].map(|tag| of_run(&scenario, tag));
            let shared: Vec<_> = {
                let one = one.iter();
                one.filter(|name| other.binary_search(name).is_ok())
                    .collect()
            };
            assert!(shared.is_empty(), "{}: {shared:?}", scenario.name);
        }
    }
}

#[test]
fn every_scenario_can_be_given_another_length_and_connect_rate() {
    let overrides = Overrides {
        hold: Some(std::time::Duration::from_secs(61)),
        warm_up: Some(std::time::Duration::from_secs(1)),
        connect_rate: Some(500),
        ..Overrides::default()
    };
    for entry in catalogue() {
        for scenario in find_document(entry.name).unwrap().scenarios {
            let alias = scenario.alias.clone();
            let changed = scenario.with(&overrides);
            assert!(changed.is_ok(), "{alias}: {:?}", changed.err());
        }
    }
}
