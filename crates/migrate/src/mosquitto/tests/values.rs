//! Conversion of values.

use super::report::Outcome;
use super::*;

/// Options behind a listener on port 1883.
#[track_caller]
fn check_general(lines: &str, expected: &[&str]) {
    let mut all = vec!["listeners.mqtt.bind = 1883"];
    all.extend(expected);
    check(&format!("listener 1883\n{lines}"), &all);
}

/// Options of a listener with TLS.
#[track_caller]
fn check_tls(lines: &str, expected: &[&str]) {
    let mut all = vec![
        "listeners.mqtts.bind = 8883",
        "listeners.mqtts.tls.cert = \"c\"",
        "listeners.mqtts.tls.key = \"k\"",
    ];
    all.extend(expected);
    check(
        &format!("listener 8883\ncertfile c\nkeyfile k\n{lines}"),
        &all,
    );
}

#[test]
fn limits_have_their_units() {
    check_general(
        "max_inflight_messages 20",
        &[
            "limits.client.inflight = 20",
            "limits.client.receive_maximum = 20",
        ],
    );
    check_general(
        "max_inflight_messages 0",
        &[
            "limits.client.inflight = 65535",
            "limits.client.receive_maximum = 65535",
        ],
    );
    check_general(
        "max_inflight_bytes 65536",
        &["limits.client.inflight_bytes = \"64KiB\""],
    );
    check_general("max_inflight_bytes 0", &[]);
    check_general(
        "upgrade_outgoing_qos true",
        &["limits.client.upgrade_outgoing_qos = true"],
    );
    check_general("upgrade_outgoing_qos false", &[]);
    check_general("max_queued_messages 1000", &["limits.client.queue = 1000"]);
    check_general(
        "max_queued_messages 0",
        &["limits.client.queue = 4294967295"],
    );
    check_general(
        "max_queued_bytes 1048576",
        &["limits.client.queue_bytes = \"1MiB\""],
    );
    check_general(
        "max_queued_bytes 10",
        &["limits.client.queue_bytes = \"1KiB\""],
    );
    check_general("max_keepalive 60", &["limits.keep_alive_max = \"1m\""]);
    check_general("max_keepalive 65535", &["limits.keep_alive_max = 0"]);
    check_general("memory_limit 500000000", &["limits.memory = \"500MB\""]);
    check_general("clientid_prefixes dev-", &["auth.client_id = \"dev-*\""]);
    check_general("clientid_prefixes 100%", &[]);
    check_general("connection_messages true", &[]);
    check_general("connection_messages false", &["log.clients = 0"]);
    check_general("memory_limit 0", &[]);
    check_general("memory_limit 16000000", &[]);
    check_general("global_max_connections 100", &["limits.connections = 100"]);
    check_general("global_max_connections -1", &[]);
    check_general("global_max_clients 100", &["limits.sessions = 100"]);
    check_general("global_max_clients -1", &[]);
    check_general("sys_interval 0", &["sys.interval = 0"]);
    check_general(
        "retain_available false",
        &["limits.retain_available = false"],
    );
    check_general(
        "queue_qos0_messages true",
        &["limits.client.queue_qos0 = true"],
    );
}

/// The keys that bound packets and sessions.
#[track_caller]
fn check_bounds(lines: &str, expected: &[&str]) {
    let toml = imported(lines).toml;
    let (_, limits) = toml.split_once("[limits]\n").unwrap();
    let limits = limits.split("\n\n").next().unwrap();
    let settings = limits.lines().filter_map(|line| line.split_once("  #"));
    let settings: Vec<_> = settings.map(|(setting, _)| setting.trim_end()).collect();
    assert_eq!(settings, expected, "{lines}");
}

#[test]
fn wider_limits_of_mosquitto_are_set_without_a_line() {
    let expiry = "session_expiry = \"never\"";
    check_bounds(
        "",
        &["max_packet = \"2MB\"", "retained_payload = \"2MB\"", expiry],
    );
    check_bounds("max_packet_size 1000", &["max_packet = \"1KB\"", expiry]);
    check_bounds("max_packet_size 20", &["max_packet = 128", expiry]);
    check_bounds(
        "max_packet_size 268435456",
        &[
            "max_packet = \"256MiB\"",
            "retained_payload = \"256MiB\"",
            expiry,
        ],
    );
    check_bounds(
        "message_size_limit 100000",
        &[
            "max_payload = \"100KB\"",
            "max_packet = \"2MB\"",
            "retained_payload = \"2MB\"",
            expiry,
        ],
    );
    check_bounds(
        "message_size_limit 3000000",
        &[
            "max_payload = \"3MB\"",
            "max_packet = 3065536",
            "retained_payload = 3065536",
            expiry,
        ],
    );
    check_bounds(
        "message_size_limit 0",
        &["max_packet = \"2MB\"", "retained_payload = \"2MB\"", expiry],
    );
    check_bounds(
        "message_size_limit 100\nmax_packet_size 1000",
        &["max_payload = 100", "max_packet = \"1KB\"", expiry],
    );
    check_bounds(
        "persistent_client_expiration 2m\nmax_packet_size 1000",
        &["session_expiry = \"60d\"", "max_packet = \"1KB\""],
    );
}

#[test]
fn persistence_is_a_data_directory() {
    for (lines, folder) in [
        (
            "persistence true\npersistence_location /var/lib/mosquitto/",
            "/var/lib/mosquitto",
        ),
        ("persistence true", "."),
        ("persistence_location /\npersistence true", "/"),
        ("plugin /lib/mosquitto_persist_sqlite.so", "."),
    ] {
        check(
            &format!("listener 1883\n{lines}"),
            &[
                &format!("node.data_dir = {folder:?}"),
                "listeners.mqtt.bind = 1883",
            ],
        );
    }
    check_general(
        "persistence false\npersistence_location /var/lib/mosquitto/",
        &[],
    );
}

#[test]
fn the_log_has_one_level() {
    check_general("log_type all", &["log.level = \"debug\""]);
    check_general(
        "log_type error\nlog_type warning",
        &["log.level = \"warn\""],
    );
    check_general("log_type error\nlog_type none", &["log.level = \"off\""]);
    check_general(
        "log_type debug\nlog_type none\nlog_type error",
        &["log.level = \"error\""],
    );
    check_general("log_type information\nlog_type subscribe", &[]);
    check_general("log_dest stdout\nlog_dest none", &["log.level = \"off\""]);
    check_general("log_dest file /var/log/m.log", &[]);
}

#[test]
fn tls_asks_for_certificates_only_if_they_are_required() {
    check_tls(
        "cafile a\ncrlfile r",
        &["listeners.mqtts.tls.chain = \"a\""],
    );
    check_tls(
        "cafile a\ncrlfile r\nrequire_certificate true\ntls_version tlsv1.3\nuse_identity_as_username true",
        &[
            "listeners.mqtts.tls.chain = \"a\"",
            "listeners.mqtts.tls.ca = \"a\"",
            "listeners.mqtts.tls.crl = [\"r\"]",
            "listeners.mqtts.tls.client_cert = \"required\"",
            "listeners.mqtts.tls.min_version = \"1.3\"",
            "listeners.mqtts.tls.username = \"cn\"",
        ],
    );
    check_tls("use_subject_as_username true\ntls_version tlsv1.2", &[]);
    check(
        "listener 1883\nrequire_certificate true\ncafile a",
        &["listeners.mqtt.bind = 1883"],
    );
    let text = "listener 1\ncertfile c\nkeyfile k\ntls_version tlsv1.1";
    let note = "1.2 is the lowest version; older ones are broken";
    check_note(text, "tls_version", Outcome::Noted, note);
}

#[test]
fn listeners_share_global_options() {
    check(
        "listener 1\nmax_qos 1\nmax_topic_alias 20\nlistener 2\nmax_qos 0",
        &[
            "listeners.mqtt.bind = 1",
            "listeners.mqtt-2.bind = 2",
            "limits.max_qos = 1",
            "limits.client.topic_aliases = 20",
        ],
    );
    let text = "listener 1\nlistener 2\nmax_qos 0";
    check(
        text,
        &["listeners.mqtt.bind = 1", "listeners.mqtt-2.bind = 2"],
    );
    let note = "limits.max_qos applies to all listeners, and another one needs 2";
    check_note(text, "max_qos", Outcome::Dropped, note);
}

#[test]
fn a_proxy_of_this_machine_is_believed() {
    check_general(
        "enable_proxy_protocol 2\nwebsockets_origin https://a\nwebsockets_origin https://b",
        &[
            "listeners.mqtt.origins = [\"https://a\", \"https://b\"]",
            "listeners.mqtt.proxy_protocol = true",
            "listeners.mqtt.proxy_from = [\"127.0.0.0/8\", \"::1\"]",
        ],
    );
}

#[test]
fn an_option_that_is_given_again_counts_for_those_before_it() {
    let text = "listener 1883\nsys_interval 5\nsys_interval 7";
    check(
        text,
        &["listeners.mqtt.bind = 1883", "sys.interval = \"7s\""],
    );
    check_note(text, "sys_interval", Outcome::Carried, "");
    let report = imported(text).report.to_string();
    assert!(
        report.contains("m.conf:3 repeats it and takes effect"),
        "{report}"
    );
}

#[test]
fn a_password_file_is_verified_as_it_is() {
    let toml = imported("listener 1883\npassword_file /there/passwd").toml;
    assert!(
        toml.contains("\n[auth.password_file.mosquitto]\npath = \"/there/passwd\"  # m.conf:2\n"),
        "{toml}"
    );
    check_general(
        "acl_file /there/acl",
        &[
            "acl.default = \"deny\"",
            "acl.mosquitto_file = \"/there/acl\"",
            "acl.check_retained_source = true",
        ],
    );
    let text = "listener 1883\npassword_file /gone/passwd # old";
    let note = "there is no file /gone/passwd # old (a comment begins in the first column only)";
    check_note(text, "password_file", Outcome::Noted, note);
}

#[test]
fn plugins_of_mosquitto_are_the_options_they_replace() {
    check(
        "listener 1883\nplugin /lib/mosquitto_password_file.so\nplugin_opt_password_file /there/p\n\
         plugin /lib/mosquitto_acl_file.so\nplugin_opt_acl_file /there/a",
        &[
            "listeners.mqtt.bind = 1883",
            "auth.password_file.mosquitto.path = \"/there/p\"",
            "acl.default = \"deny\"",
            "acl.mosquitto_file = \"/there/a\"",
            "acl.check_retained_source = true",
        ],
    );
    let text =
        "listener 1883\nplugin /lib/mosquitto_dynamic_security.so\nplugin_opt_config_file /d.json";
    check(
        text,
        &[
            "listeners.mqtt.bind = 1883",
            "auth.users = \"users.jsonl\"",
            "acl.default = \"deny\"",
            "acl.check_retained_source = true",
        ],
    );
    let note = "import its users: thrum users import /d.json --format mosquitto-dynsec";
    check_note(text, "plugin_opt_config_file", Outcome::Dropped, note);
    let text = "listener 1883\nauth_plugin /lib/other.so\nauth_opt_password geheim";
    check(
        text,
        &["listeners.mqtt.bind = 1883", "acl.default = \"deny\""],
    );
    let imported = imported(text);
    assert!(
        imported
            .toml
            .contains("#   auth_opt_password (its value is in m.conf:3)\n")
    );
    assert!(!imported.toml.contains("geheim") && !imported.report.to_string().contains("geheim"));
}

#[test]
fn security_of_each_listener_stays_its_own() {
    check(
        "per_listener_settings true\nlistener 1\npassword_file /there/a\nlistener 2\npassword_file /there/b\n\
         listener 3\nallow_anonymous true\nacl_file /there/acl",
        &[
            "listeners.mqtt.bind = 1",
            "listeners.mqtt.auth = [\"users\", \"mosquitto\"]",
            "listeners.mqtt-2.bind = 2",
            "listeners.mqtt-2.auth = [\"users\", \"mosquitto-2\"]",
            "listeners.mqtt-3.bind = 3",
            "listeners.mqtt-3.auth = [\"users\"]",
            "listeners.mqtt-3.anonymous = true",
            "auth.users = \"users.jsonl\"",
            "auth.password_file.mosquitto.path = \"/there/a\"",
            "auth.password_file.mosquitto-2.path = \"/there/b\"",
            "acl.default = \"deny\"",
            "acl.mosquitto_file = \"/there/acl\"",
            "acl.rules = [\"allow listener:mqtt pubsub #\", \"allow listener:mqtt sub $SYS/#\", \
             \"allow listener:mqtt-2 pubsub #\", \"allow listener:mqtt-2 sub $SYS/#\"]",
            "acl.check_retained_source = true",
        ],
    );
}

#[test]
fn the_user_store_is_asked_where_there_is_one() {
    let two = "per_listener_settings true\nlistener 1\npassword_file /there/a\nlistener 2\n\
               password_file /there/b";
    let toml = imported(two).toml;
    assert!(
        toml.contains("\nauth = [\"mosquitto-2\"]  # m.conf:5\n"),
        "{toml}"
    );
    let toml = imported(&format!("{two}\npersistence true")).toml;
    assert!(
        toml.contains("\nauth = [\"users\", \"mosquitto-2\"]  # m.conf:5\n"),
        "{toml}"
    );
    assert!(!toml.contains("users.jsonl"), "{toml}");
}

#[test]
fn a_listener_without_passwords_beside_others_refuses_user_names() {
    let text = "per_listener_settings true\nlistener 1\nallow_anonymous true";
    check_note(text, "allow_anonymous", Outcome::Carried, "");
    let text = format!("{text}\nlistener 2\npassword_file /there/a");
    let note = "a client that sends a user name is refused here, because the name is unknown: leave the name \
                out, or add the user (thrum users add)";
    check_note(&text, "allow_anonymous", Outcome::Noted, note);
}

#[test]
fn an_acl_without_a_password_file_is_noted() {
    let noted = |text: &str| {
        let report = imported(text).report;
        let row = report.rows.iter().find(|row| row.option == "acl_file");
        row.expect("it is in the report")
            .note
            .contains("only a verified one counts")
    };
    assert!(noted("listener 1883\nacl_file /there/acl"));
    assert!(!noted(
        "listener 1883\nacl_file /there/acl\npassword_file /there/passwd"
    ));
    assert!(!noted(
        "listener 8883\nacl_file /there/acl\ncafile /there/ca\ncertfile /there/cert\nkeyfile /there/key\n\
         require_certificate true\nuse_identity_as_username true"
    ));
}

#[test]
fn acl_files_that_differ_leave_everything_denied() {
    let text =
        "per_listener_settings true\nlistener 1\nacl_file /there/a\nlistener 2\nacl_file /there/b";
    check(
        text,
        &[
            "listeners.mqtt.bind = 1",
            "listeners.mqtt-2.bind = 2",
            "acl.default = \"deny\"",
            "acl.check_retained_source = true",
        ],
    );
}

#[test]
fn publishers_of_retained_messages_are_checked_where_mosquitto_checks_them() {
    const KEY: &str = "check_retained_source";
    let key = |lines: &str| {
        let toml = imported(&format!("listener 1883\n{lines}")).toml;
        let line = toml.lines().find(|line| line.starts_with(KEY));
        line.map(|line| line.contains("= true"))
    };
    assert_eq!(key(""), None);
    assert_eq!(key("acl_file /there/acl"), Some(true));
    let dynamic = "plugin /lib/mosquitto_dynamic_security.so\nplugin_opt_config_file /d.json";
    assert_eq!(key(dynamic), Some(true));
    assert_eq!(key("plugin /lib/other.so"), None);
    assert_eq!(key("check_retain_source true"), Some(true));
    let off = "acl_file /there/acl\ncheck_retain_source false";
    assert_eq!(key(off), Some(false));
}

#[test]
fn a_plugin_that_listeners_share_is_a_chain_of_theirs() {
    check(
        "plugin_load passwords /lib/mosquitto_password_file.so\nplugin_opt_password_file /there/p\n\
         listener 1\nplugin_use passwords\nlistener 2\nlistener_allow_anonymous true",
        &[
            "listeners.mqtt.bind = 1",
            "listeners.mqtt-2.bind = 2",
            "listeners.mqtt-2.auth = [\"users\"]",
            "listeners.mqtt-2.anonymous = true",
            "auth.users = \"users.jsonl\"",
            "auth.password_file.mosquitto.path = \"/there/p\"",
        ],
    );
}

#[test]
fn security_above_the_first_listener_belongs_to_none() {
    let text = "per_listener_settings true\nallow_anonymous true\nlistener 1";
    check(text, &["listeners.mqtt.bind = 1"]);
    let note = "it precedes the first listener, and so applies to none";
    check_note(text, "allow_anonymous", Outcome::Dropped, note);
}

#[test]
fn versions_are_those_of_each_listener() {
    check(
        "listener 1883\naccept_protocol_versions 3, 4\nlistener 1884",
        &[
            "listeners.mqtt.bind = 1883",
            "listeners.mqtt.accept_protocol_versions = [\"3.1\", \"3.1.1\"]",
            "listeners.mqtt-1884.bind = 1884",
        ],
    );
    let source = Source::new(
        "m.conf".into(),
        "listener 1\naccept_protocol_versions 6\n".to_owned(),
    );
    let problems = import(&source, &Memory::of(&[])).unwrap_err().to_string();
    assert!(
        problems.contains("expected some of 3, 4 and 5 with commas between"),
        "{problems}"
    );
}

#[test]
fn clients_without_identifier_are_refused_where_every_listener_refuses_them() {
    let off = "limits.allow_zero_length_clientid = false";
    check_general("allow_zero_length_clientid false", &[off]);
    check_general("allow_zero_length_clientid true", &[]);
    let each = |second: &str| {
        format!(
            "per_listener_settings true\nlistener 1\nallow_zero_length_clientid false\n\
             listener 2\nallow_zero_length_clientid {second}"
        )
    };
    assert!(keys(&imported(&each("false")).toml).contains(&off.to_owned()));
    assert!(!keys(&imported(&each("true")).toml).contains(&off.to_owned()));
    let note = "it applies to all listeners, and another one accepts clients without identifier";
    let report = imported(&each("true")).report;
    assert!(report.rows.iter().any(|row| row.note == note), "{report}");
}
