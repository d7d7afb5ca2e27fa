//! Command lines as people publish them, and what becomes of them.

use toml_edit::DocumentMut;

use super::{ImportError, import};

/// The file of an import, read again.
#[track_caller]
fn read(text: &str) -> DocumentMut {
    let imported = import(text).unwrap();
    imported
        .toml
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {}", imported.toml))
}

#[track_caller]
fn check(text: &str, path: &[&str], expected: &str) {
    let document = read(text);
    let mut item = document.as_item();
    for key in path {
        item = item
            .get(key)
            .unwrap_or_else(|| panic!("no {key} in {document}"));
    }
    assert_eq!(
        item.to_string().trim().trim_matches('"'),
        expected,
        "{document}"
    );
}

#[track_caller]
fn check_note(text: &str, part: &str) {
    let imported = import(text).unwrap();
    assert!(
        imported.notes.iter().any(|note| note.contains(part)),
        "{:?}",
        imported.notes
    );
}

const PUBLISH: &str = "emqtt_bench pub -h 10.0.0.5 -c 1000 -I 10 -t bench/%i -s 256 -q 1";

#[test]
fn a_publisher_line_becomes_a_group_that_publishes() {
    check(PUBLISH, &["target"], "mqtt://10.0.0.5:1883");
    check(PUBLISH, &["connect_rate"], "100");
    check(PUBLISH, &["groups", "publishers", "clients"], "1000");
    check(PUBLISH, &["groups", "publishers", "version"], "5.0");
    check(PUBLISH, &["groups", "publishers", "keep_alive"], "300");
    check(
        PUBLISH,
        &["groups", "publishers", "publish", "topic"],
        "bench/{i}",
    );
    check(
        PUBLISH,
        &["groups", "publishers", "publish", "rate"],
        "100/s",
    );
    check(PUBLISH, &["groups", "publishers", "publish", "qos"], "1");
    check(
        PUBLISH,
        &["groups", "publishers", "publish", "payload"],
        "256B",
    );
}

#[test]
fn the_file_explains_the_open_loop_and_repeats_the_command() {
    let toml = import(PUBLISH).unwrap().toml;
    assert!(toml.contains("#   emqtt_bench pub -h 10.0.0.5"), "{toml}");
    assert!(
        toml.contains("# - -F/--inflight: emqtt_bench waits for"),
        "{toml}"
    );
    assert!(
        toml.lines().all(|line| line.chars().count() <= 120),
        "{toml}"
    );
}

#[test]
fn several_lines_become_groups_of_one_scenario() {
    let lines = "./emqtt_bench sub -c 500 -R 50 -t bench/# -q 1 -V 4 &\n\
                 ./emqtt_bench sub -c 5 -t '$share/g/bench/+' &\n\
                 ./emqtt_bench pub -c 500 -i 20 -t bench/%i";
    check(lines, &["connect_rate"], "200");
    check(
        lines,
        &["groups", "subscribers", "subscribe", "filter"],
        "bench/#",
    );
    check(lines, &["groups", "subscribers", "version"], "3.1.1");
    check(
        lines,
        &["groups", "subscribers-2", "subscribe", "filter"],
        "$share/g/bench/+",
    );
    check(lines, &["groups", "publishers", "publish", "rate"], "1/s");
}

#[test]
fn different_hosts_become_named_targets() {
    let lines = "emqtt_bench sub -h a -t x\nemqtt_bench pub -h b -p 1884 -t x";
    check(lines, &["targets", "broker-2"], "mqtt://b:1884");
    check(lines, &["groups", "publishers", "target"], "broker-2");
}

#[test]
fn transports_are_part_of_the_url() {
    let url = |flags: &str, expected: &str| {
        check(
            &format!("emqtt_bench conn -p 99 {flags}"),
            &["target"],
            expected,
        );
    };
    url("", "mqtt://localhost:99");
    url("-S", "mqtts://localhost:99");
    url("--ssl true --ws", "wss://localhost:99/mqtt");
    url("--ws=true", "ws://localhost:99/mqtt");
    url("--ssl-version tlsv1.3", "mqtts://localhost:99");
    url("-h ::1", "mqtt://[::1]:99");
}

#[test]
fn sessions_and_identifiers_are_kept() {
    let group = |flags: &str, key: &str, expected: &str| {
        check(
            &format!("emqtt_bench conn {flags}"),
            &["groups", "connections", key],
            expected,
        );
    };
    group("--prefix p", "client_id", "p_bench_conn_{i}");
    group("--prefix p --shortids", "client_id", "p{i}");
    group("-C false -x 600", "session_expiry", "600s");
    group("-C false -V 4", "session_expiry", "1h");
    group("-u %i -P secret", "username", "{i}");
    group("-k 60", "keep_alive", "60");
    check(
        "emqtt_bench conn --reconnect 3",
        &["groups", "connections", "reconnect", "delay"],
        "1s",
    );
}

#[test]
fn topic_variables_are_those_of_scenarios() {
    let topic = |flags: &str, expected: &str| {
        let line = format!("emqtt_bench pub {flags}");
        check(
            &line,
            &["groups", "publishers", "publish", "topic"],
            expected,
        );
    };
    topic("-t a/%i/b", "a/{i}/b");
    topic("-t a/%c --prefix p", "a/p_bench_pub_{i}");
    topic("-t a/%c", "a/{i}");
    topic("-t a/%u -u joe", "a/joe");
    topic("-t a/%rand_20/b", "a/{i%20}/b");
    topic("-t a/%s", "a/0");
}

#[test]
fn rates_are_written_as_whole_numbers_where_possible() {
    let rate = |interval: u32, expected: &str| {
        let line = format!("emqtt_bench pub -t a -I {interval}");
        check(
            &line,
            &["groups", "publishers", "publish", "rate"],
            expected,
        );
    };
    rate(1, "1000/s");
    rate(1_000, "1/s");
    rate(30_000, "2/m");
    rate(3_600_000, "1/h");
    rate(7, "142.857143/s");
}

#[test]
fn a_limit_becomes_the_length_of_the_hold() {
    let line = "emqtt_bench pub -c 10 -I 100 -L 1000 -t a";
    assert!(import(line).unwrap().toml.contains("hold 10s"));
}

#[test]
fn as_fast_as_possible_becomes_a_closed_loop() {
    let line = "emqtt_bench pub -c 10 -I 0 -q 1 -F 32 -t a";
    check(line, &["groups", "publishers", "publish", "window"], "32");
    check_note(line, "as fast as possible");
}

#[test]
fn every_option_without_counterpart_is_explained() {
    for (flags, part) in [
        (
            "--ifaddr 10.0.0.1,10.0.0.2",
            "--ifaddr: write the addresses as source_addresses",
        ),
        ("-n 500", "-n/--startnumber: clients of a group"),
        ("--quic true", "no QUIC"),
        ("-l", "-l/--lowmem"),
        ("-Q true --qoelog a", "--qoelog"),
        ("--prometheus --restapi 9091", "--restapi"),
        ("--ciphers A,B", "cannot be narrowed"),
        ("--cacertfile ca.pem --ssl", "--cafile"),
        ("--num-retry-connect 3", "not tried again"),
        ("-h a,b", "the first is the target"),
        ("-P x", "--password-file"),
        ("--max-random-wait 100", "spread evenly"),
        ("--retry-interval 5", "sent again only after a reconnect"),
        ("--payload-hdrs cnt64,ts", "always carries"),
        ("-m %TIMESTAMP%", "variables have other names"),
        ("-s 8", "at least 16 bytes"),
    ] {
        check_note(&format!("emqtt_bench pub -t a {flags}"), part);
    }
}

#[test]
fn a_message_and_a_template_become_payloads() {
    let payload = |flags: &str| {
        read(&format!("emqtt_bench pub -t a {flags}"))["groups"]["publishers"]["publish"]["payload"]
            .to_string()
    };
    assert_eq!(
        payload("-m 'hello \"you\"'").trim(),
        r#"{ text = 'hello "you"' }"#
    );
    assert_eq!(payload("-m template://p.json").trim(), r#""file:p.json""#);
}

#[test]
fn mistakes_are_those_of_the_command_line() {
    let refused = |text: &str| import(text).unwrap_err();
    assert_eq!(refused(""), ImportError::Lines);
    assert_eq!(refused("emqtt_bench pub 'a"), ImportError::Quote);
    assert_eq!(
        refused("emqtt_bench"),
        ImportError::NoCommand("emqtt_bench".to_owned())
    );
    assert_eq!(refused("emqtt_bench pub -c 5"), ImportError::NoTopic("pub"));
    assert_eq!(
        refused("emqtt_bench sub -t a --wrong"),
        ImportError::UnknownOption("--wrong".to_owned())
    );
    assert_eq!(
        refused("emqtt_bench sub -t"),
        ImportError::NoValue("-t".to_owned())
    );
    assert!(
        refused("emqtt_bench conn -c many")
            .to_string()
            .contains("-c/--count 'many'")
    );
    assert!(
        refused("emqtt_bench conn -V 9")
            .to_string()
            .contains("3, 4 or 5")
    );
    assert!(
        refused("emqtt_bench sub -t a -q 3")
            .to_string()
            .contains("0, 1 or 2")
    );
}

#[test]
fn old_program_names_and_joined_values_are_understood() {
    check(
        "./emqtt_bench_pub -c5 --topic=a --interval_of_msg=500",
        &["groups", "publishers", "publish", "rate"],
        "2/s",
    );
    check(
        "./emqtt_bench_pub -c5 -ta",
        &["groups", "publishers", "clients"],
        "5",
    );
}

#[test]
fn an_import_never_panics_and_its_file_is_always_toml() {
    let pieces = [
        "emqtt_bench",
        "pub",
        "sub",
        "-t",
        "%rand_",
        "%rand_0",
        "a\u{7}b",
        "-m",
        "\"\"\"",
        "'",
        "-c",
        "99999999999",
        "-I",
        "0",
        "-L",
        "18446744073709551615",
        "\\",
        "\n",
    ];
    let mut seed = 7_usize;
    for _ in 0..3_000 {
        let mut text = String::from("emqtt_bench pub -t x ");
        for _ in 0..6 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(seed >> 33) % pieces.len()]);
            text.push(' ');
        }
        if let Ok(imported) = import(&text) {
            let parsed = imported.toml.parse::<DocumentMut>();
            assert!(parsed.is_ok(), "{text}: {}", imported.toml);
        }
    }
}
