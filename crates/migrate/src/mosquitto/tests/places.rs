//! Which listener a line belongs to, and where listeners are.

use super::report::Outcome;
use super::*;

#[test]
fn without_a_listener_it_stays_on_this_machine() {
    check(
        "# nothing",
        &[
            "listeners.mqtt.bind = \"localhost:1883\"",
            "auth.anonymous = \"loopback\"",
        ],
    );
    // Mosquitto takes no listener of its own for an option of one.
    check(
        "max_connections 5",
        &[
            "listeners.mqtt.bind = \"localhost:1883\"",
            "listeners.mqtt.max_connections = 5",
            "auth.anonymous = \"loopback\"",
        ],
    );
}

#[test]
fn with_a_listener_anonymous_clients_are_refused_unless_allowed() {
    let toml = imported("listener 1883").toml;
    assert!(
        toml.contains("anonymous = false  # mosquitto with a listener\n"),
        "{toml}"
    );
    check(
        "listener 1883\nallow_anonymous true",
        &["listeners.mqtt.bind = 1883", "auth.anonymous = true"],
    );
}

#[test]
fn listeners_are_where_they_were() {
    for (lines, bind) in [
        ("listener 1883", "1883"),
        ("listener 1883 # every address", "1883"),
        ("listener 1883 localhost", "\"localhost:1883\""),
        ("listener 1883 192.0.2.1", "\"192.0.2.1:1883\""),
        ("listener 1883 ::1", "\"[::1]:1883\""),
        ("listener 1883\nsocket_domain ipv4", "\"0.0.0.0:1883\""),
        ("listener 1883\nsocket_domain ipv6", "\"[::]:1883\""),
        (
            "listener 1883 localhost\nsocket_domain ipv6",
            "\"[::1]:1883\"",
        ),
        ("listener 1883\nbind_interface lo", "\"localhost:1883\""),
        ("port 1884", "1884"),
        ("bind_address 192.0.2.1", "\"192.0.2.1:1883\""),
        ("port 1884\nbind_address localhost", "\"localhost:1884\""),
    ] {
        check(lines, &[&format!("listeners.mqtt.bind = {bind}")]);
    }
    check(
        "listener 0 /run/m.sock",
        &["listeners.unix.bind = \"unix:/run/m.sock\""],
    );
}

#[test]
fn options_belong_to_the_listener_above_them() {
    check(
        "listener 1883\nmax_connections 1\nlistener 1884\nmax_connections 2\nmount_point a/\nlistener 9001\nprotocol websockets",
        &[
            "listeners.mqtt.bind = 1883",
            "listeners.mqtt.max_connections = 1",
            "listeners.mqtt-1884.bind = 1884",
            "listeners.mqtt-1884.max_connections = 2",
            "listeners.mqtt-1884.mount_point = \"a/\"",
            "listeners.ws.bind = 9001",
            "listeners.ws.transport = \"websocket\"",
        ],
    );
}

#[test]
fn options_above_the_first_listener_make_the_default_one() {
    check(
        "max_connections 5\nlistener 9001\nprotocol websockets\nport 1885",
        &[
            "listeners.mqtt.bind = 1885",
            "listeners.mqtt.max_connections = 5",
            "listeners.ws.bind = 9001",
            "listeners.ws.transport = \"websocket\"",
        ],
    );
}

#[test]
fn an_included_file_starts_over_and_the_main_one_continues() {
    let files = [
        ("d/b.conf", "max_connections 7\n"),
        ("d/a.conf", "listener 2000\nmax_connections 6\n"),
        ("d/notes.txt", "nothing of mosquitto"),
    ];
    let main = "listener 1883\ninclude_dir d\nmax_connections 5\n";
    let imported = import_with(main, &files).unwrap();
    assert_eq!(
        keys(&imported.toml),
        [
            "listeners.mqtt.bind = 1883",
            "listeners.mqtt.max_connections = 7",
            "listeners.mqtt-1883.bind = 1883",
            "listeners.mqtt-1883.max_connections = 5",
            "listeners.mqtt-2000.bind = 2000",
            "listeners.mqtt-2000.max_connections = 6",
        ]
    );
    assert!(
        imported.toml.contains("# d/b.conf:1\n"),
        "{}",
        imported.toml
    );
}

#[test]
fn a_file_that_is_included_includes_no_others() {
    let files = [("d/a.conf", "include_dir missing\n")];
    assert!(import_with("include_dir d", &files).is_ok());
    let problems = import_with("\ninclude_dir missing\n", &[])
        .unwrap_err()
        .to_string();
    assert!(
        problems.starts_with("m.conf:2:13: cannot read missing: "),
        "{problems}"
    );
}

#[test]
fn a_listener_that_would_be_open_to_others_is_left_out() {
    for (lines, why) in [
        (
            "bind_interface eth0",
            "bind_interface: write the address of the interface in place of its name",
        ),
        ("psk_hint x", "TLS with pre-shared keys: use certificates"),
        ("protocol http_api", "protocol http_api: it serves no MQTT"),
        (
            "certfile a\nkeyfile b\ntls_engine x",
            "its private key is in an OpenSSL engine: put it into a PEM file",
        ),
        (
            "certfile a\nkeyfile b\ncapath c\nrequire_certificate true",
            "capath: put the certificates of the authorities into one file, and name it with cafile",
        ),
    ] {
        let text = format!("listener 2000\n{lines}");
        check(&text, &["listeners.mqtt.bind = \"localhost:1883\""]);
        check_note(
            &text,
            "listener",
            Outcome::Dropped,
            &format!("left out: {why}"),
        );
        assert!(imported(&text).toml.contains("#   listener 2000\n"));
    }
    let text = "listener 2000 example.com\nlistener 2001";
    check(text, &["listeners.mqtt.bind = 2001"]);
    // An address is equivalent to the interface.
    check(
        "listener 2000 192.0.2.1\nbind_interface eth0",
        &["listeners.mqtt.bind = \"192.0.2.1:2000\""],
    );
}

#[test]
fn lines_that_mosquitto_refuses_are_refused_all_at_once() {
    let text = "\tport 1\n #x\nport\nlistener 0\nlistener x\nallow_anonymous maybe\ntopic a\nplugin_opt_a b\n\
                listener 1\ncertfile a\nmount_point a/#\nlistener 65536";
    check_wrong(
        text,
        &[
            "a space, not a tab, separates  from its value",
            "a comment begins in the first column: remove the spaces before the #",
            "port has no value; expected a whole number from 1 to 65535",
            "listener 0 is a Unix socket: put its path behind the 0, or give a port",
            "listener: expected a port from 1 to 65535, or 0 and the path of a Unix socket, found \"x\"",
            "allow_anonymous: expected true or false, found \"maybe\"",
            "topic belongs to a bridge: put it below a connection line",
            "plugin_opt_a belongs to a plugin: put it below a plugin line",
            "mount_point: expected the beginning of a topic, without + and #",
            "listener: expected a port from 1 to 65535, or 0 and the path of a Unix socket, found \"65536\"",
        ],
    );
    check_wrong(
        "listener 1\nkeyfile a",
        &["keyfile without certfile is no TLS: add a line certfile FILE below it"],
    );
    check_wrong(
        "acl_file a\nper_listener_settings true",
        &["per_listener_settings must precede all security options: move it to the top"],
    );
}

#[test]
fn an_unknown_option_is_kept_and_reported() {
    let text = "listener 1883\nrequire_certificte true\nfrobnicate x";
    check_note(
        text,
        "require_certificte",
        Outcome::Unknown,
        "did you mean require_certificate?",
    );
    check_note(
        text,
        "frobnicate",
        Outcome::Unknown,
        "neither mosquitto 2.0 nor 2.1 has it",
    );
    let imported = imported(text);
    assert!(
        imported
            .toml
            .contains("\n# Unknown options:\n#   require_certificte true\n#   frobnicate x\n")
    );
    let problems: Vec<_> = imported
        .unknown
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(
        problems,
        [
            "unknown option require_certificte, did you mean require_certificate?",
            "unknown option frobnicate"
        ]
    );
}

#[test]
fn files_of_mosquitto_are_distinguished_from_files_of_thrum() {
    for (path, text, expected) in [
        ("a.conf", "listener 1883\n", true),
        ("a.conf", "# only a comment\n", true),
        ("a.conf", "frobnicate x\n", true),
        ("a.conf", "# x\n[node]\nname = \"a\"\n", false),
        ("a.conf", "limits.max_qos = 1\n", false),
        ("a.conf", "limits.max_qos=1\n", false),
        ("mosquitto", "\nlistener 1883\n", true),
        ("a", "persistence = 1\n", false),
        ("a", "frobnicate x\n", false),
        ("a", "", false),
        ("a.toml", "listener 1883\n", false),
    ] {
        let source = Source::new(PathBuf::from(path), text.to_owned());
        assert_eq!(is_mosquitto(&source), expected, "{path} {text:?}");
    }
}
