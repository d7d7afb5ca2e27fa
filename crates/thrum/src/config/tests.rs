//! Layers, origins and messages of the configuration, from text to text.

use std::time::Duration;

use thrum_auth::config::Anonymous;
use thrum_broker::config::{Bind, LogFormat, QueuePolicy, Rate, Workers};

use super::*;

const FILE: &str = "thrum.toml";

fn source(path: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::new(PathBuf::from(path), text.to_owned()))
}

fn variables(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn read(text: &str) -> Result<Loaded, Problems> {
    compose(&[source(FILE, text)], Vec::new(), &Request::default())
}

fn with_variables(list: &[(&str, &str)]) -> Result<Loaded, Problems> {
    compose(&[], variables(list), &Request::default())
}

/// The text of all that is wrong.
fn check(result: Result<Loaded, Problems>, expected: &str) {
    assert_eq!(result.unwrap_err().to_string(), expected);
}

fn addresses(list: &[&str]) -> Vec<Bind> {
    list.iter()
        .map(|address| Bind::Address(address.parse().unwrap()))
        .collect()
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(read("").unwrap().config, Config::default());
}

#[test]
fn every_form_of_a_value_is_read() {
    let config = read(
        r#"
        node = { name = "edge-1", workers = 4 }
        auth.anonymous = false
        log = { level = "warn,thrum_broker=debug", format = "json" }
        [listeners]
        mqtt = { bind = ["127.0.0.1:1883", 1884] }
        [listeners.local]
        bind = "localhost:1885"
        max_connections = 10
        [limits]
        max_packet = "1MB"
        session_expiry = "2h"
        connect_timeout = 5
        client = { queue = 500, inflight = 64 }
        [shared]
        strategy = "hash_topic"
        "#,
    )
    .unwrap()
    .config;
    assert_eq!(
        (config.node.name.as_str(), config.node.workers),
        ("edge-1", Workers::Count(4))
    );
    assert_eq!(config.auth.anonymous, Anonymous::Deny);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(
        config.listeners["mqtt"].bind,
        addresses(&["127.0.0.1:1883", "0.0.0.0:1884", "[::]:1884"])
    );
    assert_eq!(
        config.listeners["local"].bind,
        addresses(&["127.0.0.1:1885", "[::1]:1885"])
    );
    assert_eq!(config.listeners["local"].max_connections, 10);
    assert_eq!(config.limits.packet.max_packet, 1_000_000);
    assert_eq!(config.limits.session_expiry, Duration::from_hours(2));
    assert_eq!(config.limits.connect_timeout, Duration::from_secs(5));
    assert_eq!(
        (config.limits.client.queue, config.limits.client.inflight),
        (500, 64)
    );
    assert_eq!(config.shared.strategy.name(), "hash_topic");
    assert_eq!(
        config.limits.client.subscriptions,
        Config::default().limits.client.subscriptions
    );
}

#[test]
fn the_policy_of_queues_is_read() {
    let text = r#"
        [limits.client]
        queue_policy = "drop_oldest"
        queue_qos0 = true
        queue_age = "1h"
        queue_priorities = ["alarm/#=200", "a=b=7"]
    "#;
    let client = read(text).unwrap().config.limits.client;
    assert_eq!(client.queue_policy, QueuePolicy::DropOldest);
    assert!(client.queue_qos0);
    assert_eq!(client.queue_age, Duration::from_hours(1));
    let rules = client.queue_priorities.iter();
    let rules: Vec<_> = rules.map(|rule| (&*rule.filter, rule.priority)).collect();
    assert_eq!(rules, [("alarm/#", 200), ("a=b", 7)]);
    for text in ["alarm/#=200", "[\"alarm/#=200\"]"] {
        let loaded = with_variables(&[("THRUM_LIMITS__CLIENT__QUEUE_PRIORITIES", text)]).unwrap();
        assert_eq!(
            loaded.config.limits.client.queue_priorities.len(),
            1,
            "{text}"
        );
    }
}

#[test]
fn rates_are_read_and_shown_as_they_are_written() {
    let text = r#"
        [limits]
        address = { connects = "100/s burst 500", bytes = "10MiB/s" }
        client.messages = 50
        [protection.flapping]
        enabled = true
        ban = "1h"
    "#;
    let loaded = read(text).unwrap();
    let limits = &loaded.config.limits;
    assert_eq!(
        (
            limits.address.connects.amount(),
            limits.address.connects.burst()
        ),
        (100, 500)
    );
    assert_eq!(limits.address.bytes.amount(), 10 << 20);
    assert_eq!(limits.client.messages, Rate::per_second(50));
    assert_eq!(
        loaded.config.protection.flapping.ban,
        Duration::from_hours(1)
    );
    let shown = differences(&loaded);
    for line in [
        "limits.client.messages = \"50/s\" (default 0)  # thrum.toml:4",
        "limits.address.connects = \"100/s burst 500\" (default 0)  # thrum.toml:3",
        "limits.address.bytes = \"10MiB/s\" (default 0)  # thrum.toml:3",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[test]
fn each_layer_wins_over_the_one_before_and_is_named_as_origin() {
    let files = [
        source(
            FILE,
            "[limits]\nmax_packet = 1000\ntopic_levels = 7\nmax_qos = 1\n",
        ),
        source(
            "conf.d/10.toml",
            "limits.max_packet = 2000\nlog.level = \"debug\"\n",
        ),
    ];
    let variables = variables(&[
        ("THRUM_LIMITS__MAX_QOS", "0"),
        ("THRUM_LOG__LEVEL", "warn"),
        ("RUST_LOG", "trace"),
    ]);
    let request = Request {
        flags: vec![("log.level", "error".to_owned(), "--log-level")],
        ..Request::default()
    };
    let loaded = compose(&files, variables.clone(), &request).unwrap();
    assert_eq!(loaded.config.log.level, "error");
    assert_eq!(loaded.config.limits.packet.max_packet, 2000);
    for (key, origin) in [
        ("node.name", "default"),
        ("limits.topic_levels", "thrum.toml:3"),
        ("limits.max_packet", "conf.d/10.toml:1"),
        ("limits.max_qos", "env THRUM_LIMITS__MAX_QOS"),
        ("log.level", "flag --log-level"),
    ] {
        assert_eq!(loaded.origin(key).to_string(), origin, "{key}");
    }
    let without_flags = compose(&files, variables, &Request::default()).unwrap();
    assert_eq!(
        without_flags.config.log.level, "warn",
        "the own name wins over RUST_LOG"
    );
}

#[test]
fn variables_are_read_as_toml_or_as_plain_text() {
    let config = with_variables(&[
        ("THRUM_LISTENERS__MQTT__BIND", "127.0.0.1:1884"),
        ("THRUM_LISTENERS__WIDE__BIND", "[\"10.0.0.1:1\", 2]"),
        ("THRUM_NODE__NAME", "7"),
        ("THRUM_NODE__WORKERS", "2"),
        ("THRUM_AUTH__ANONYMOUS", "true"),
        ("THRUM_LIMITS__CLIENT__QUEUE_BYTES", "1MiB"),
        ("THRUM_SERVICE_HOST", "10.0.0.9"),
        ("THRUM", "x"),
        ("PATH", "/bin"),
    ])
    .unwrap()
    .config;
    assert_eq!(
        config.listeners["mqtt"].bind,
        addresses(&["127.0.0.1:1884"])
    );
    assert_eq!(
        config.listeners["wide"].bind,
        addresses(&["10.0.0.1:1", "0.0.0.0:2", "[::]:2"])
    );
    assert_eq!(
        (config.node.name.as_str(), config.node.workers),
        ("7", Workers::Count(2))
    );
    assert_eq!(config.auth.anonymous, Anonymous::Allow);
    assert_eq!(config.limits.client.queue_bytes, 1 << 20);
}

#[test]
fn naming_a_listener_replaces_the_default_one() {
    let config = read("listeners.other.bind = 1884").unwrap().config;
    assert_eq!(config.listeners.keys().collect::<Vec<_>>(), ["other"]);
}

#[test]
fn easy_mode_is_open_to_everyone_and_stays_on_this_machine() {
    let dev = Request {
        dev: true,
        ..Request::default()
    };
    let loaded = compose(&[], Vec::new(), &dev).unwrap();
    assert_eq!(loaded.config.auth.anonymous, Anonymous::Allow);
    assert_eq!(
        loaded.config.listeners["mqtt"].bind,
        addresses(&["127.0.0.1:1883", "[::1]:1883"])
    );
    assert_eq!(loaded.origin("listeners.mqtt.bind"), &Origin::Flag("--dev"));
    let asked = variables(&[("THRUM_LISTENERS__MQTT__BIND", "0.0.0.0:1883")]);
    let loaded = compose(&[], asked, &dev).unwrap();
    assert_eq!(
        loaded.config.listeners["mqtt"].bind,
        addresses(&["0.0.0.0:1883"])
    );
}

#[test]
fn unknown_keys_are_reported_with_position_and_suggestion() {
    check(
        read("[limits]\nmax_paket = \"1MB\"\n"),
        "thrum.toml:2:1: unknown key \"max_paket\" in [limits], did you mean \"max_packet\"?\n  \
         2 | max_paket = \"1MB\"\n    | ^^^^^^^^^",
    );
    check(
        read("[lisners]\n"),
        "thrum.toml:1:2: unknown key \"lisners\", did you mean \"listeners\"?\n  \
         1 | [lisners]\n    |  ^^^^^^^",
    );
    check(
        read("max_packet = 1000"),
        "thrum.toml:1:1: unknown key \"max_packet\", did you mean \"limits.max_packet\"?\n  \
         1 | max_packet = 1000\n    | ^^^^^^^^^^",
    );
    check(
        read("sys = { colour = 1 }"),
        "thrum.toml:1:9: unknown key \"colour\" in [sys]; keys here are interval\n  \
         1 | sys = { colour = 1 }\n    |         ^^^^^^",
    );
    check(
        read("[listeners.\"my port\"]\nbind = 1"),
        "thrum.toml:1:12: name \"my port\": use the letters a-z, 0-9, _ and - only\n  \
         1 | [listeners.\"my port\"]\n    |            ^^^^^^^^^",
    );
}

/// Each line of a file has one thing wrong with it.
fn check_lines(lines: &[(&str, &str)]) {
    for (line, message) in lines {
        let problems = read(line).unwrap_err();
        let messages: Vec<_> = problems
            .0
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(messages, [*message], "{line}");
    }
}

#[test]
fn wrong_values_are_reported_with_the_expected_ones() {
    check_lines(&[
        (
            "node.name = 5",
            "node.name: expected a text in quotes, found 5",
        ),
        (
            "node.workers = 0",
            "node.workers: expected \"auto\" or a number from 1 to 256, found 0",
        ),
        (
            "auth.anonymous = 1",
            "auth.anonymous: expected \"loopback\", true or false, found 1",
        ),
        (
            "limits.connections = \"many\"",
            "limits.connections: expected a whole number from 1 to 4294967295, found \"many\"",
        ),
        (
            "limits.max_qos = 3",
            "limits.max_qos: expected a whole number from 0 to 2, found 3",
        ),
        (
            "limits.client.inflight = -1",
            "limits.client.inflight: expected a whole number from 1 to 65535, found -1",
        ),
        (
            "limits.max_packet = \"1TB\"",
            "limits.max_packet: expected a size such as \"64KiB\", \"1MB\" or a number of bytes, found \"1TB\"",
        ),
        (
            "limits.max_packet = \"10B\"",
            "limits.max_packet: expected at least 128, found \"10B\"",
        ),
        (
            "limits.mailbox_bytes = 1",
            "limits.mailbox_bytes: expected at least 64KiB, found 1",
        ),
        (
            "limits.connect_timeout = \"500ms\"",
            "limits.connect_timeout: expected at least 1s, found \"500ms\"",
        ),
        (
            "sys.interval = \"2d\"",
            "sys.interval: expected at most 1d, found \"2d\"",
        ),
        (
            "limits.client.messages = \"fast\"",
            "limits.client.messages: expected a rate such as \"1000/s\", \"10/m\", \"100/s burst 500\", or 0 for no limit, \
             found \"fast\"",
        ),
        (
            "limits.user.bytes = \"1MB/w\"",
            "limits.user.bytes: expected a rate of bytes such as \"1MiB/s\", \"64KiB/s burst 1MiB\", or 0 for no limit, \
             found \"1MB/w\"",
        ),
        (
            "sys.interval = 1.5",
            "sys.interval: expected a duration such as \"10s\", \"1h30m\", \"7d\" or a number of seconds, found 1.5",
        ),
    ]);
}

#[test]
fn a_size_too_large_for_its_key_is_refused_with_the_largest_one() {
    check_lines(&[
        (
            "limits.client.queue_bytes = \"8GiB\"",
            "limits.client.queue_bytes: expected at most 4294967295, found \"8GiB\"",
        ),
        (
            "limits.client.queue_bytes = 99999999999",
            "limits.client.queue_bytes: expected at most 4294967295, found 99999999999",
        ),
    ]);
    // No size is answered with examples of sizes.
    for (key, value) in show::values(&Config::default()) {
        let Err(problems) = read(&format!("{key} = \"17179869183GiB\"")) else {
            continue;
        };
        let message = problems.to_string();
        assert!(
            !message.contains("a size such as"),
            "{key} ({value}): {message}"
        );
    }
}

#[test]
fn wrong_words_and_tables_are_reported_with_the_expected_ones() {
    check_lines(&[
        (
            "shared.strategy = \"rr\"",
            "shared.strategy: expected one of \"round_robin\", \"random\", \"sticky\", \"hash_client_id\", \
             \"hash_topic\", \"local\", found \"rr\"",
        ),
        (
            "limits.client.queue_policy = \"newest\"",
            "limits.client.queue_policy: expected one of \"reject_new\", \"drop_oldest\", \"hold\", found \"newest\"",
        ),
        (
            "limits.client.queue_priorities = [\"a=256\"]",
            "limits.client.queue_priorities: expected a list of up to 256 texts \"filter=priority\", with a topic \
             filter and a number from 0 to 255, found [\"a=256\"]",
        ),
        (
            "log.format = \"xml\"",
            "log.format: expected one of \"text\", \"json\", found \"xml\"",
        ),
        (
            "listeners.a.bind = []",
            "listeners.a has no address, set listeners.a.bind",
        ),
        ("limits = 5", "limits: expected a table"),
        (
            "node.name.x = 5",
            "node.name: expected a text in quotes, found a table",
        ),
    ]);
}

#[test]
fn all_problems_of_all_sources_are_reported_at_once() {
    let files = [
        source(FILE, "[sys]\ninterval = \"x\"\n\tmax = 1\n"),
        source("conf.d/a.toml", "x = 1"),
    ];
    let list = variables(&[
        ("THRUM_LIMTS__MAX_PACKET", "1"),
        ("THRUM_LOG__LEVEL", "loud=quiet"),
    ]);
    let management = if cfg!(feature = "management") {
        "management, "
    } else {
        ""
    };
    let expected = format!(
        "thrum.toml:2:12: sys.interval: expected a duration such as \"10s\", \"1h30m\", \"7d\" or a number of \
         seconds, found \"x\"\n  2 | interval = \"x\"\n    |            ^^^\n\
         error: thrum.toml:3:2: unknown key \"max\" in [sys]; keys here are interval\n  \
         3 | \tmax = 1\n    | \t^^^\n\
         error: conf.d/a.toml:1:1: unknown key \"x\"; keys here are node, listeners, tls, auth, acl, storage, sinks, limits, protection, shared, {management}sys, log, alarms, telemetry\n  \
         1 | x = 1\n    | ^\n\
         error: env THRUM_LIMTS__MAX_PACKET: no such key, did you mean THRUM_LIMITS__MAX_PACKET?\n\
         error: env THRUM_LOG__LEVEL: log.level: expected error, warn, info, debug or trace, also by part: \
         \"info,thrum_broker=debug\", found \"loud=quiet\"",
    );
    check(compose(&files, list, &Request::default()), &expected);
}

#[test]
fn a_file_that_is_no_toml_is_reported_with_the_place() {
    let problems = read("[limits]\nmax_packet = \n").unwrap_err();
    let text = problems.to_string();
    assert!(text.starts_with("thrum.toml:2:14: "), "{text}");
    assert!(text.contains("\n  2 | max_packet = \n"), "{text}");
}

#[test]
fn an_address_of_two_listeners_is_refused_but_free_ports_may_repeat() {
    check(
        read("listeners.a.bind = \"127.0.0.1:1883\"\nlisteners.b.bind = \"127.0.0.1:1883\"\n"),
        "thrum.toml:2:20: 127.0.0.1:1883 is already used by the listener \"a\"\n  \
         2 | listeners.b.bind = \"127.0.0.1:1883\"\n    |                    ^^^^^^^^^^^^^^^^",
    );
    assert!(read("listeners.a.bind = [\"127.0.0.1:0\", \"127.0.0.1:0\"]").is_ok());
}

#[test]
fn a_listener_without_an_address_is_refused() {
    check(
        read("listeners.a.max_connections = 5"),
        "thrum.toml:1:31: listeners.a has no address, set listeners.a.bind\n  \
         1 | listeners.a.max_connections = 5\n    |                               ^",
    );
    check(
        read("[listeners.a]"),
        "thrum.toml:1:12: listeners.a has no address, set listeners.a.bind\n  \
         1 | [listeners.a]\n    |            ^",
    );
}

#[test]
fn the_commented_file_is_the_defaults_with_and_without_its_comments() {
    let file = commented_file();
    assert_eq!(read(&file).unwrap().config, Config::default());
    let uncommented: String = file
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting,
            _ => line,
        })
        .fold(String::new(), |text, line| text + line + "\n");
    let loaded = read(&uncommented).unwrap();
    assert_eq!(loaded.config, Config::default());
    for (key, _) in show::values(&Config::default()) {
        assert_ne!(
            loaded.origin(&key),
            &Origin::Default,
            "{key} is not in the file"
        );
    }
}

/// Whether a line of the commented file is a key in its comment.
fn is_commented_key(line: &str) -> bool {
    line.strip_prefix('#')
        .is_some_and(|key| !key.is_empty() && !key.starts_with(' '))
}

#[test]
fn each_key_of_the_commented_file_lands_in_its_table_when_its_comment_goes() {
    let file = commented_file();
    let lines: Vec<&str> = file.lines().collect();
    let keys = show::values(&Config::default());
    let numbers = (0..lines.len()).filter(|number| is_commented_key(lines[*number]));
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers.len(), keys.len());
    for ((key, _), number) in keys.iter().zip(numbers) {
        let mut lines = lines.clone();
        lines[number] = &lines[number][1..];
        let loaded = read(&lines.join("\n")).unwrap();
        let origin = Origin::File(FILE.into(), number + 1);
        assert_eq!(loaded.origin(key), &origin, "{key}");
        assert_eq!(loaded.config, Config::default(), "{key}");
    }
}

#[test]
fn the_default_listener_keeps_its_address_when_another_of_its_keys_is_set() {
    let default = Config::default().listeners["mqtt"].bind.clone();
    for text in ["[listeners.mqtt]", "listeners.mqtt.max_connections = 5"] {
        let loaded = read(text).unwrap();
        assert_eq!(loaded.config.listeners["mqtt"].bind, default, "{text}");
        assert_eq!(loaded.origin("listeners.mqtt.bind"), &Origin::Default);
        let with_another = format!("{text}\n[listeners.b]\nbind = 1\n");
        let listeners = read(&with_another).unwrap().config.listeners;
        assert_eq!(listeners.keys().collect::<Vec<_>>(), ["b", "mqtt"]);
        assert_eq!(listeners["mqtt"].bind, default);
        let dev = Request {
            dev: true,
            ..Request::default()
        };
        let easy = compose(&[source(FILE, text)], Vec::new(), &dev).unwrap();
        let loopback = addresses(&["127.0.0.1:1883", "[::1]:1883"]);
        assert_eq!(easy.config.listeners["mqtt"].bind, loopback, "{text}");
        let easy = compose(&[source(FILE, &with_another)], Vec::new(), &dev).unwrap();
        assert_eq!(easy.config.listeners["mqtt"].bind, loopback, "{text}");
        assert_eq!(easy.config.listeners["b"].bind, listeners["b"].bind);
    }
    let dev = Request {
        dev: true,
        ..Request::default()
    };
    let other = source(FILE, "[listeners.b]\nbind = 1\n");
    let easy = compose(&[other], Vec::new(), &dev).unwrap();
    assert_eq!(easy.config.listeners.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn the_listing_is_a_file_that_gives_the_same_configuration() {
    let loaded = read("limits.max_packet = \"2MB\"\nlisteners.a = { bind = 1 }").unwrap();
    for origin in [false, true] {
        assert_eq!(
            read(&listing(&loaded, origin)).unwrap().config,
            loaded.config
        );
    }
    let with_origins = listing(&loaded, true);
    assert!(
        with_origins.contains("max_packet = \"2MB\"                           # thrum.toml:1\n")
    );
    assert!(with_origins.contains("max_qos = 2                                  # default\n"));
}

#[test]
fn differences_name_value_default_and_origin() {
    assert_eq!(differences(&read("").unwrap()), "");
    let loaded = read("limits.max_packet = \"2MB\"\nlisteners.a = { bind = \"[::1]:1\" }").unwrap();
    assert_eq!(
        differences(&loaded),
        "listeners.a.bind = \"[::1]:1\"  # thrum.toml:2\n\
         limits.max_packet = \"2MB\" (default \"1MiB\")  # thrum.toml:1\n"
    );
}

#[test]
fn changed_keys_are_those_set_removed_or_altered() {
    let before = read("listeners.a.bind = 1\nlimits.max_qos = 1")
        .unwrap()
        .config;
    let after = read("listeners.b.bind = 1\nlimits.max_qos = 0")
        .unwrap()
        .config;
    assert_eq!(changed_keys(&before, &before), Vec::<String>::new());
    assert_eq!(
        changed_keys(&before, &after),
        ["limits.max_qos", "listeners.a", "listeners.b",]
    );
}

#[test]
fn a_word_that_is_no_level_is_refused_but_in_the_variable_that_programs_share() {
    let expected =
        "expected error, warn, info, debug or trace, also by part: \"info,thrum_broker=debug\"";
    check_lines(&[
        (
            "log.level = \"inof\"",
            &format!("log.level: {expected}, found \"inof\""),
        ),
        (
            "log.level = \"\"",
            &format!("log.level: {expected}, found \"\""),
        ),
    ]);
    assert!(read("log.level = \"warn,thrum_broker::worker=trace\"").is_ok());
    assert!(with_variables(&[("RUST_LOG", "someone_else")]).is_ok());
}

/// The listener of the management interface, as a start has it.
fn http(text: &str) -> Option<(Vec<String>, Transport)> {
    let mut loaded = read(text).unwrap();
    add_http(&mut loaded);
    let listener = loaded.config.listeners.get("http")?;
    let addresses = listener.bind.iter().map(ToString::to_string);
    Some((addresses.collect(), listener.transport))
}

#[cfg(feature = "management")]
#[test]
fn the_management_interface_is_on_loopback_unless_it_has_another_address_or_none() {
    let default = ["127.0.0.1:8080", "[::1]:8080"].map(str::to_owned).to_vec();
    for text in [
        "",
        "[listeners.http]",
        "listeners.other.bind = 1884",
        "listeners.http.max_connections = 5",
    ] {
        assert_eq!(
            http(text),
            Some((default.clone(), Transport::Http)),
            "{text}"
        );
    }
    let named = http("listeners.http.bind = \"192.0.2.1:80\"");
    let address = vec!["192.0.2.1:80".to_owned()];
    assert_eq!(named, Some((address, Transport::Http)));
    assert_eq!(http("listeners.http.bind = []"), None);
    let other = http("listeners.http = { bind = \"192.0.2.1:80\", transport = \"websocket\" }");
    assert_eq!(
        other.map(|(_, transport)| transport),
        Some(Transport::WebSocket)
    );
}

#[test]
fn the_listener_of_the_management_interface_replaces_no_other() {
    let config = read("listeners.http.bind = 9090").unwrap().config;
    let listeners: Vec<_> = config.listeners.into_keys().collect();
    assert_eq!(listeners, ["http", "mqtt"]);
}
