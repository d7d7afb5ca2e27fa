//! Files in, scenarios or explanations out.

use std::time::Duration;

use proptest::prelude::*;
use thrum_codec::{QoS, Version};

use super::super::{
    Arrivals, FaultKind, Network, PayloadSpec, Rate, Reconnect, Scenario, Shape, catalogue,
    find_document,
};
use super::*;

/// The smallest file.
const SMALL: &str = "[groups.a]\nclients = 1\n";

fn one(text: &str) -> Scenario {
    let mut document = load(text, "dir/my test.toml").unwrap();
    assert_eq!(document.scenarios.len(), 1);
    document.scenarios.remove(0)
}

/// The errors of a file, as they are displayed.
fn check(text: &str, expected: &str) {
    let error = load(text, "my.toml").unwrap_err();
    assert_eq!(error.to_string(), expected);
}

/// The errors of a publishing and subscribing file of which one part is replaced.
fn check_part(part: &str, replacement: &str, expected: &str) {
    const FILE: &str = "version = 4\n[groups.a]\nclients = 2\npublish = { topic = \"t/{i}\" }\nsubscribe = { filter = \"t/#\" }\n";
    assert!(load(FILE, "my.toml").is_ok());
    assert!(FILE.contains(part), "{part}");
    let error = load(&FILE.replace(part, replacement), "my.toml").unwrap_err();
    let messages: Vec<&str> = error
        .0
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(messages, [expected], "{replacement}");
}

#[test]
fn a_short_file_gets_the_defaults() {
    let scenario = one(SMALL);
    assert_eq!(scenario.name, "my-test");
    assert_eq!(scenario.alias, "my-test");
    assert_eq!(scenario.version, Version::V311);
    assert_eq!((scenario.keep_alive, scenario.connect_rate), (300, 1_000));
    assert_eq!(scenario.stages, document::STAGES);
    assert_eq!(scenario.targets, [super::super::TargetSpec::default()]);
    assert!(scenario.groups[0].publish.is_none());
}

const FULL: &str = r#"
# Every key.
name = "full"
alias = "f"
summary = "all of it"
version = 5
keep_alive = "2m"
stages = ["ramp 30s", "warmup 10s", "hold 5m", "drain 10s"]
source_addresses = ["127.0.0.2-127.0.0.9", "fd00::1"]

[targets]
a = "mqtt://127.0.0.1:1883"
b = ""

[groups.pub]
clients = 300
version = "5.0"
keep_alive = 60
client_id = "dev-{run}-{i}"
session_expiry = "10m"
username = "u{i}"
password = "secret"
will = { topic = "gone/{i}", payload = "bye", qos = 1, retain = true }
user_properties = { site = "north" }
receive_maximum = 20
reconnect = { delay = "100ms", delay_max = "10s" }
network = { delay = "50ms", jitter = "20ms", bandwidth = "1MB/s", cut_after = "30s" }

[groups.pub.publish]
topic = "t/{i}"
rate = "6/m"
shape = { steps = ["100/s", "200/s"] }
arrivals = "poisson"
window = 8
qos = 2
retain = true
payload = "random:8KiB"
user_properties = { kind = "test" }
expiry = "1m"
response = "r/{i}"

[groups.sub]
clients = 30
target = "b"
read_rate = "10KB/s"
subscribe = { filters = ["remote/t/{i%10}", "$share/g/remote/+"], qos = 1, respond = true, strip_prefix = "remote/" }

[thresholds]
"e2e.p99" = "< 50ms"
"delivered" = "== 100%"

[[faults]]
at = "10s"
lasts = "5s"
stop_reading = { group = "sub", share = "50%" }

[[faults]]
at = "20s"
disconnect = { how = "reset" }

[[faults]]
at = "30s"
lasts = 2
freeze = { share = 0.1 }

[[faults]]
at = "40s"
hook = "systemctl restart broker"
"#;

#[test]
fn every_key_of_the_top_and_of_clients_is_read() {
    let scenario = one(FULL);
    assert_eq!(scenario.toml, FULL);
    assert_eq!(
        (scenario.name.as_str(), scenario.alias.as_str()),
        ("full", "f")
    );
    assert_eq!((scenario.connect_rate, scenario.keep_alive), (11, 120));
    assert_eq!(scenario.stages.hold, Duration::from_mins(5));
    let sources = scenario.source_addresses.iter().map(ToString::to_string);
    let sources: Vec<String> = sources.collect();
    assert_eq!(sources, ["127.0.0.2-127.0.0.9", "fd00::1"]);
    let urls: Vec<Option<&str>> = scenario.targets.iter().map(|t| t.url.as_deref()).collect();
    assert_eq!(urls, [Some("mqtt://127.0.0.1:1883"), None]);
    let publishers = &scenario.groups[0];
    let client = &publishers.client;
    assert_eq!(
        (client.version, client.keep_alive),
        (Some(Version::V5), Some(60))
    );
    assert_eq!(client.id.as_deref(), Some("dev-{run}-{i}"));
    assert_eq!(client.session_expiry, Some(Duration::from_mins(10)));
    assert_eq!(client.password.as_deref(), Some("secret"));
    let will = client.will.as_ref().unwrap();
    assert_eq!(
        (will.topic.as_str(), will.payload.as_str()),
        ("gone/{i}", "bye")
    );
    assert_eq!((will.qos, will.retain), (QoS::AtLeastOnce, true));
    assert_eq!(
        client.user_properties,
        [("site".to_owned(), "north".to_owned())]
    );
    assert_eq!(client.receive_maximum, Some(20));
    assert_eq!(
        client.reconnect,
        Some(Reconnect {
            delay: Duration::from_millis(100),
            delay_max: Duration::from_secs(10),
        })
    );
    assert_eq!(
        client.network,
        Some(Network {
            delay: Duration::from_millis(50),
            jitter: Duration::from_millis(20),
            bandwidth: Some(1_000_000),
            cut_after: Some(Duration::from_secs(30)),
        })
    );
}

#[test]
fn every_key_of_messages_and_faults_is_read() {
    let scenario = one(FULL);
    let [publishers, subscribers] = scenario.groups.as_slice() else {
        panic!("two groups")
    };
    let publish = publishers.publish.as_ref().unwrap();
    assert_eq!(Some(publish.rate), Rate::parse("0.1"));
    let rates = vec![Rate::per_second(100), Rate::per_second(200)];
    assert_eq!(publish.shape, Shape::Steps { rates });
    assert_eq!(publish.arrivals, Arrivals::Poisson);
    assert_eq!((publish.window, publish.qos), (Some(8), QoS::ExactlyOnce));
    assert_eq!((publish.retain, publish.expiry), (true, Some(60)));
    assert_eq!(publish.payload, PayloadSpec::Random(8_192));
    assert_eq!(publish.user_properties.len(), 1);
    assert_eq!(publish.response.as_deref(), Some("r/{i}"));
    assert_eq!(
        (subscribers.target, subscribers.client.read_rate),
        (1, Some(10_000))
    );
    let subscribe = subscribers.subscribe.as_ref().unwrap();
    assert_eq!(subscribe.filters, ["remote/t/{i%10}", "$share/g/remote/+"]);
    assert_eq!((subscribe.qos, subscribe.respond), (QoS::AtLeastOnce, true));
    assert_eq!(subscribe.strip_prefix.as_deref(), Some("remote/"));
    assert_eq!(scenario.thresholds.len(), 2);
    let shares: Vec<_> = scenario
        .faults
        .iter()
        .map(|fault| match &fault.kind {
            FaultKind::Disconnect {
                victims,
                reset: true,
            } => (fault.lasts.as_secs(), victims.share),
            FaultKind::StopReading { victims } | FaultKind::Freeze { victims } => {
                (fault.lasts.as_secs(), victims.share)
            }
            other => {
                let command = "systemctl restart broker".to_owned();
                assert_eq!(*other, FaultKind::Hook { command });
                (0, 0.0)
            }
        })
        .collect();
    assert_eq!(shares, [(5, 0.5), (0, 1.0), (2, 0.1), (0, 0.0)]);
}

#[test]
fn an_unknown_key_shows_its_place_and_the_nearest_name() {
    check(
        "[groups.a]\nclients = 1\npublish = { topic = \"t\", qso = 1 }\n",
        "my.toml:3:26: unknown key \"qso\" in [groups.a.publish], did you mean \"qos\"?\n  3 | publish = { topic = \"t\", qso = 1 }\n    |                          ^^^",
    );
    check(
        "colour = 1\n[groups.a]\nclients = 1\nwill = { topic = \"t\", x = 1 }",
        "my.toml:1:1: unknown key \"colour\"; keys here are name, alias, summary, target, targets, version, keep_alive, connect_rate, source_addresses, stages, scale, groups, thresholds, faults, steps\n  1 | colour = 1\n    | ^^^^^^\nerror: my.toml:4:23: unknown key \"x\" in [groups.a.will]; keys here are topic, payload, qos, retain\n  4 | will = { topic = \"t\", x = 1 }\n    |                       ^",
    );
}

#[test]
fn a_wrong_value_shows_its_place_and_the_expected_form() {
    check(
        "[groups.a]\nclients = 0\n",
        "my.toml:2:11: groups.a.clients: expected a whole number from 1 to 10000000, found 0\n  2 | clients = 0\n    |           ^",
    );
    check(
        "[groups.a]\nclients = 1\npublish = { topic = \"t\", payload = \"8B\" }\n",
        "my.toml:3:36: groups.a.publish.payload: 8 bytes are too few: each message carries its publisher, its sequence and its send time, 16 bytes in all\n  3 | publish = { topic = \"t\", payload = \"8B\" }\n    |                                    ^^^^",
    );
    check(
        "[groups.a]\nclients = 1\n\n[[faults]]\nat = \"1s\"\n\n[[faults]]\nat = \"2m\"\nfreeze = { share = 2 }\n",
        "my.toml:4:1: faults.0: give exactly one of disconnect, stop_reading, freeze, hook\n  4 | [[faults]]\n    | ^^^^^^^^^^\nerror: my.toml:9:20: faults.1.freeze.share: expected a share above 0 % and up to \"100%\" (1.0), found 2\n  9 | freeze = { share = 2 }\n    |                    ^",
    );
    check(
        "[groups.a]\nclients = 1\n\n[[faults]]\nat = \"1s\"\nhook = \"x\"\n\n[[faults]]\nat = \"2m\"\nlasts = \"1s\"\nfreeze = {}\n",
        "my.toml:9:6: faults.1.at: the hold is over by then: the time counts from its start\n  9 | at = \"2m\"\n    |      ^^^^",
    );
    check(
        "source_addresses = [\"10.0.0.1\", \"10.0.0\"]\n[groups.a]\nclients = 1\n",
        "my.toml:1:20: source_addresses: '10.0.0' is not an address or a range: write one like 10.0.0.7, 127.0.0.2-127.0.0.33 or fd00::1-fd00::20\n  1 | source_addresses = [\"10.0.0.1\", \"10.0.0\"]\n    |                    ^^^^^^^^^^^^^^^^^^^^^^",
    );
    check(
        "name = \n",
        "my.toml:1:8: string values must be quoted, expected literal string\n  1 | name = \n    |        ^",
    );
    check(
        "",
        "my.toml: groups: there are no clients: add [groups.NAME] with clients",
    );
}

/// A part of the file, its replacement, and the resulting error.
const MISFITS: [(&str, &str, &str); 23] = [
    (
        "\"t/{i}\"",
        "\"t/+\"",
        "groups.a.publish.topic: 't/+' is not a topic name",
    ),
    (
        "\"t/#\"",
        "\"t#\"",
        "groups.a.subscribe.filter: 't#' is not a topic filter",
    ),
    (
        "t/{i}",
        "t/{n}",
        "groups.a.publish.topic: unknown placeholder '{n}': the placeholders are {i}, {run}, {i%N}",
    ),
    (
        "filter = \"t/#\"",
        "qos = 1",
        "groups.a.subscribe: 'filter' is missing",
    ),
    ("clients = 2\n", "", "groups.a: 'clients' is missing"),
    (
        "clients = 2",
        "clients = 2\nreceive_maximum = 9",
        "groups.a.receive_maximum: only MQTT 5.0 has it: set version = 5",
    ),
    (
        "topic = \"t/{i}\"",
        "topic = \"t/{i}\", expiry = 9",
        "groups.a.publish.expiry: only MQTT 5.0 has it: set version = 5",
    ),
    (
        "\"t/#\"",
        "\"t/#\", respond = true",
        "groups.a.subscribe.respond: no group sends requests: set version = 5, or 'response' where the requests are published",
    ),
    (
        "topic = \"t/{i}\"",
        "topic = \"t/{i}\", response = \"r\"",
        "groups.a.publish.response: all clients would get each other's answers: write {i} in it",
    ),
    (
        "\"t/#\"",
        "\"t/#\", strip_prefix = \"remote/\"",
        "groups.a.subscribe.strip_prefix: 't/#' does not begin with 'remote/'",
    ),
    (
        "clients = 2",
        "clients = 2\nclient_id = \"x\"",
        "groups.a.client_id: all clients would have the same identifier: write {i} in it",
    ),
    (
        "clients = 2",
        "clients = 2\npassword = \"x\"",
        "groups.a.password: before MQTT 5.0 a password needs a username",
    ),
    (
        "clients = 2",
        "clients = 2\ntarget = \"b\"",
        "groups.a.target: no target named 'b': [targets] lists them, this file has none",
    ),
    (
        "subscribe = { filter = \"t/#\" }",
        "read_rate = \"1KB/s\"",
        "groups.a.read_rate: the group subscribes to nothing, so it has nothing to read",
    ),
    (
        "version = 4",
        "stages = [\"ramp 1s\"]\nconnect_rate = 1",
        "connect_rate: the ramp of the stages sets the connect rate, leave out one of both",
    ),
    (
        "clients = 2",
        "clients = 2\nreconnect = { delay = \"2s\", delay_max = \"1s\" }",
        "groups.a.reconnect.delay_max: shorter than the delay before the first attempt",
    ),
    (
        "clients = 2",
        "clients = 2\nnetwork = { jitter = \"1s\" }",
        "groups.a.network.jitter: more than the delay, which cannot become negative",
    ),
    (
        "t/#\" }\n",
        "t/#\" }\n[[faults]]\nat = 1\nlasts = 1\nfreeze = { group = \"b\" }\n",
        "faults.0.freeze.group: no group named 'b': there are a",
    ),
    (
        "t/#\" }\n",
        "t/#\" }\n[[faults]]\nat = 1\nfreeze = {}\n",
        "faults.0: freeze needs a duration: lasts = \"10s\"",
    ),
    (
        "version = 4",
        "name = \"../up\"",
        "name: \"../up\" is not a name: use up to 120 letters, digits and -_. only, no dot first",
    ),
    (
        "t/#\" }\n",
        "t/#\" }\n[thresholds]\nlost = 5\n",
        "thresholds: expected a condition such as \"< 50ms\"",
    ),
    (
        "clients = 2",
        "clients = 10_000_000\n[groups.b]\nclients = 1\n[groups.c]\nclients = 2",
        "groups: 10000003 clients in all, 10000000 is the limit",
    ),
    (
        "version = 4",
        "target = \"gopher://x\"",
        "target: cannot connect to 'gopher://x': use mqtt://, mqtts://, ws://, wss:// or quic://",
    ),
];

#[test]
fn parts_that_do_not_fit_each_other_are_explained() {
    for (part, replacement, expected) in MISFITS {
        check_part(part, replacement, expected);
    }
}

const GUIDE: &str = include_str!("../../../../../docs/guide/scenarios.md");

#[test]
fn the_example_of_the_guide_is_a_scenario() {
    let example = GUIDE.split("```toml\n").nth(1).unwrap();
    let scenario = one(example.split("```").next().unwrap());
    assert_eq!((scenario.clients(), scenario.connect_rate), (50_500, 1_684));
    assert_eq!(scenario.thresholds.len(), 3);
}

#[test]
fn the_guide_explains_every_key() {
    let faults: [&str; 6] = faults::KEYS;
    let keys = document::KEYS.iter().chain(&groups::GROUP_KEYS);
    let keys = keys
        .chain(&groups::PUBLISH_KEYS)
        .chain(&groups::SUBSCRIBE_KEYS);
    for key in keys.chain(&faults) {
        assert!(GUIDE.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn a_metric_without_a_name_is_refused_in_thresholds() {
    let text = format!("{SMALL}[thresholds]\n\"e2e.p42\" = \"< 1ms\"\n");
    let error = load(&text, "my.toml").unwrap_err();
    assert_eq!(error.0.len(), 1);
    let shown = error.to_string();
    let start = "my.toml:4:13: thresholds: no figure named 'e2e.p42'";
    assert!(shown.starts_with(start), "{shown}");
}

const SWEEP: &str = "# Why.\nname = \"s\"\nalias = \"short\"\n\n[groups.a]\nclients = 2 # two\npublish = { topic = \"t\" }\n\n[[steps]]\nname = \"slow\"\nset = { \"groups.a.publish.rate\" = \"2/s\" }\n\n[[steps]]\nname = \"many\"\nset = { \"groups.a.clients\" = 50, \"thresholds.lost\" = \"== 0\" }\n";

#[test]
fn each_step_is_a_complete_scenario() {
    let document = load(SWEEP, "my.toml").unwrap();
    let [slow, many] = document.scenarios.as_slice() else {
        panic!("two steps")
    };
    assert_eq!(
        (slow.name.as_str(), slow.alias.as_str()),
        ("s/slow", "short/slow")
    );
    assert_eq!(
        slow.toml,
        "# Why.\nname = \"s/slow\"\nalias = \"short/slow\"\n\n[groups.a]\nclients = 2 # two\npublish = { topic = \"t\", rate = \"2/s\" }\n"
    );
    assert!((slow.offered_rate() - 4.0).abs() < 1e-9);
    assert_eq!((many.clients(), many.thresholds.len()), (50, 1));
}

#[test]
fn an_invalid_step_is_named() {
    check(
        &SWEEP.replace("\"2/s\"", "\"fast\""),
        "my.toml, step slow:7:33: groups.a.publish.rate: expected a rate such as 10, \"10/s\", \"6/m\", \"1/h\", found \"fast\"\n  7 | publish = { topic = \"t\", rate = \"fast\" }\n    |                                 ^^^^^^",
    );
    check(
        &SWEEP.replace("\"many\"", "\"slow\""),
        "my.toml:14:8: steps.1.name: another step has this name, each needs its own\n  14 | name = \"slow\"\n     |        ^^^^^^",
    );
    check(
        &SWEEP.replace("\"groups.a.clients\"", "groups.a.clients"),
        "my.toml:15:7: steps.1.set: 'groups.…' is a key of several parts: put the whole key in quotes\n  15 | set = { groups.a.clients = 50, \"thresholds.lost\" = \"== 0\" }\n     |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    );
}

#[test]
fn keys_are_set_from_outside_the_file() {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let sets = [
        set("groups.a.publish.topic", "t/{i}"),
        set("groups.a.publish.rate", "20/s"),
        set("version", "5"),
        set("stages", "[\"hold 2s\"]"),
    ];
    let document = load_with(SMALL, "my.toml", &sets).unwrap();
    let scenario = &document.scenarios[0];
    assert_eq!(
        (scenario.version, scenario.stages.hold),
        (Version::V5, Duration::from_secs(2))
    );
    assert!((scenario.offered_rate() - 20.0).abs() < 1e-9);
    assert_eq!(load(&scenario.toml, "other").unwrap(), document);

    let error = load_with(SMALL, "my.toml", &[set("groups.a.cleints", "5")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "my.toml with --set:3:1: unknown key \"cleints\" in [groups.a], did you mean \"clients\"?\n  3 | cleints = 5\n    | ^^^^^^^"
    );
    let error = load_with(SMALL, "my.toml", &[set("groups.a.clients.x", "5")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "my.toml, --set: groups.a.clients.x: 'clients' has no keys below it"
    );
}

#[test]
fn a_step_wins_over_a_key_set_from_outside() {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let sets = [
        set("groups.a.clients", "7"),
        set("groups.a.publish.rate", "9/s"),
    ];
    let document = load_with(SWEEP, "my.toml", &sets).unwrap();
    let scenarios = document.scenarios.iter();
    let loads: Vec<(u32, f64)> = scenarios
        .map(|scenario| (scenario.clients(), scenario.offered_rate().round()))
        .collect();
    assert_eq!(loads, [(7, 14.0), (50, 450.0)]);
}

#[test]
fn a_file_without_a_name_gives_its_own() {
    for (origin, name) in [
        ("a/b/load test.toml", "load-test"),
        ("..", "scenario"),
        ("C:\\runs\\x.toml", "x"),
        ("-", "-"),
    ] {
        let document = load(SMALL, origin).unwrap();
        assert_eq!(document.scenarios[0].name, name);
        assert_eq!(
            load(&document.scenarios[0].toml, "other").unwrap(),
            document
        );
    }
}

#[test]
fn the_file_of_every_scenario_gives_the_same_scenario() {
    for entry in catalogue() {
        for scenario in find_document(entry.name).unwrap().scenarios {
            let again = load(&scenario.toml, "again").unwrap();
            assert_eq!(again.scenarios, [scenario], "{}", entry.name);
        }
    }
}

#[test]
fn a_written_file_gives_the_same_scenario() {
    let mut scenarios = vec![one(FULL), one(SMALL)];
    for entry in catalogue() {
        scenarios.append(&mut find_document(entry.name).unwrap().scenarios);
    }
    for mut scenario in scenarios {
        scenario.toml = to_toml(&scenario);
        let again = load(&scenario.toml, "again").unwrap();
        assert_eq!(again.scenarios, [scenario]);
    }
}

proptest! {
    #[test]
    fn any_rate_span_and_text_survives_writing(
        period_ns in 1..Rate::PERIOD_NS_MAX,
        delay_ns in 0..1_000_000_000_000_u64,
        text in "\\PC{0,20}",
    ) {
        let mut scenario = one(FULL);
        let group = &mut scenario.groups[0];
        group.publish.as_mut().unwrap().rate = Rate { period_ns };
        group.client.username = Some(text.clone());
        group.client.user_properties = vec![(text.clone(), text.clone())];
        let delay = Duration::from_nanos(delay_ns);
        group.client.reconnect = Some(Reconnect { delay, delay_max: delay });
        scenario.summary = text;
        let again = one(&to_toml(&scenario));
        prop_assert_eq!(&again.summary, &scenario.summary);
        prop_assert_eq!(&again.groups, &scenario.groups);
    }

    #[test]
    fn no_text_makes_the_loader_fall(text in "\\PC{0,80}", key in "[a-z.0-9\"]{0,20}") {
        drop(load(&text, "my.toml"));
        drop(load_with(FULL, "my.toml", &[(key, text)]));
    }
}
