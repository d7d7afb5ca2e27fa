//! `thrum probe`, `doctor`, `cheat` and, without a terminal, `top`.

use serde_json::Value;

use crate::folder::Folder;
use crate::server::Server;

/// What a probe found, by name.
fn found<'a>(probe: &'a Value, name: &str) -> &'a str {
    let findings = probe["findings"].as_array().unwrap();
    let mut named = findings.iter().filter(|one| one["name"] == name);
    let finding = named.next().unwrap_or_else(|| panic!("{name}: {probe}"));
    finding["outcome"].as_str().unwrap()
}

#[test]
fn a_probe_finds_what_this_broker_supports_and_leaves_nothing() {
    let folder = Folder::empty("probe");
    let server = Server::start(&folder, "data");
    let at = format!("mqtt://127.0.0.1:{}", server.port);
    let probe = &folder.json(&format!("probe {at} -o json"))[0];
    for name in [
        "MQTT 5.0",
        "MQTT 3.1.1",
        "MQTT 3.1",
        "round trip",
        "QoS 0",
        "QoS 1",
        "QoS 2",
        "retained messages",
        "wildcards",
        "shared subscriptions",
        "persistent sessions",
        "identifies itself",
        "subscription identifiers",
        "topic aliases",
        "no local",
        "user properties",
        "will delay",
        "session expiry",
        "keep alive",
        "assigned identifiers",
    ] {
        assert_eq!(found(probe, name), "yes", "{name}: {probe}");
    }
    assert_eq!(
        folder.printed("retained ls --data-dir data"),
        "0 retained messages: 0 B\n"
    );
    let sessions = folder.json("sessions ls --data-dir data --json");
    assert!(sessions.is_empty(), "{sessions:?}");
    let output = folder.thrum("probe mqtt://127.0.0.1:1");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn the_doctor_finds_what_a_configuration_exposes() {
    let folder = Folder::empty("doctor");
    std::fs::write(
        folder.path("thrum.toml"),
        "[node]\ndata_dir = \"data\"\n[listeners.mqtt]\nbind = \"0.0.0.0:0\"\n[auth]\nanonymous = true\n",
    )
    .unwrap();
    let output = folder.thrum("doctor -c thrum.toml -o json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let findings: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let level = |check: &str| {
        let mut named = findings.iter().filter(|one| one["check"] == check);
        named.next().unwrap_or_else(|| panic!("{check}: {printed}"))["level"].clone()
    };
    assert_eq!(level("anonymous"), "fail");
    assert_eq!(level("exposure"), "warn");
    assert_eq!(level("data directory"), "fail");
    assert_eq!(level("listeners"), "ok");
    let wrong = folder.thrum("doctor -c none.toml");
    let printed = String::from_utf8_lossy(&wrong.stdout).into_owned();
    assert!(printed.contains("FAIL  configuration"), "{printed}");
    let quiet = folder.thrum("doctor -c thrum.toml --quiet");
    let printed = String::from_utf8_lossy(&quiet.stdout).into_owned();
    assert!(!printed.contains("ok    "), "{printed}");
    assert!(
        printed.contains("cure: auth.anonymous = false"),
        "{printed}"
    );
}

#[test]
fn sheets_are_printed_by_topic() {
    let folder = Folder::empty("cheat");
    let topics = folder.printed("cheat");
    assert!(topics.contains("thrum cheat lost"), "{topics}");
    assert!(
        folder
            .printed("cheat lost")
            .contains("thrum explain publish")
    );
    let output = folder.thrum("cheat lots");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("did you mean lost?"), "{said}");
}

#[cfg(feature = "management")]
#[test]
fn without_a_terminal_top_prints_a_line_for_each_interval() {
    let folder = Folder::empty("top");
    let server = Server::start(&folder, "data");
    server.publish(&folder, "-t a -m b");
    let printed = folder.printed("top --data-dir data --lines 2 --interval 1s");
    assert_eq!(printed.lines().count(), 2, "{printed}");
    for line in printed.lines() {
        assert!(line.contains("Z  clients 0  in "), "{printed}");
    }
}
