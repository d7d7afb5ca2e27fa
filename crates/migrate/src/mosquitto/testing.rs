//! What the tests of the program need: samples of the options, and the table of the guide.

use super::options::{self, Entry, Scope};
use super::value::Form;

/// Realistic complete configurations.
pub const CONFIGURATIONS: [&str; 3] = [
    include_str!("tests/golden/home.conf"),
    include_str!("tests/golden/tls.conf"),
    include_str!("tests/golden/per_listener.conf"),
];

/// Values that ask for something, where the first one of its form does not.
const VALUES: [(&str, &str); 17] = [
    ("accept_protocol_versions", "4,5"),
    ("allow_zero_length_clientid", "false"),
    ("bind_address", "192.0.2.1"),
    ("bind_interface", "lo"),
    ("check_retain_source", "true"),
    ("listener", "1884"),
    ("log_dest", "none"),
    ("log_type", "debug"),
    ("max_connections", "7"),
    ("max_qos", "1"),
    ("maximum_qos", "1"),
    ("connection_messages", "false"),
    ("memory_limit", "500000000"),
    ("plugin_load", "name /lib/other.so"),
    ("protocol", "websockets"),
    ("retain_available", "false"),
    ("websockets_log_level", "1"),
];

/// A configuration for each option, but for `include_dir`, which needs a folder.
pub fn samples() -> impl Iterator<Item = String> {
    let entries = options::all().filter(|entry| entry.name != "include_dir");
    entries.map(|entry| sample(entry).0)
}

/// The table of options in `docs/guide/from-mosquitto.md`.
pub fn options_table() -> String {
    let mut lines = vec!["\n| Option | Key | |\n| --- | --- | --- |\n".to_owned()];
    let is_bridge = |scope| matches!(scope, Scope::Bridge | Scope::NewBridge);
    let (bridges, mut others): (Vec<_>, Vec<_>) =
        options::all().partition(|entry| is_bridge(entry.scope));
    others.sort_by_key(|entry| entry.name);
    for entry in others {
        let key = match entry.fate.keys() {
            "" => String::new(),
            key => format!("`{key}`"),
        };
        let note = match entry.fate {
            options::Fate::Dropped { why, .. } => format!("not carried over: {why}"),
            fate => fate.note().to_owned(),
        };
        lines.push(format!("| `{}` | {key} | {note} |\n", entry.name));
    }
    let names: Vec<String> = bridges
        .iter()
        .map(|entry| format!("`{}`", entry.name))
        .collect();
    let why = bridges[0].fate.note();
    let names = names.join(", ");
    lines.push(format!("| {names} | | not carried over: {why} |\n"));
    lines.concat()
}

/// A configuration in which an option means something, and the number of its line.
pub(super) fn sample(entry: &Entry) -> (String, usize) {
    let above = match entry.scope {
        Scope::General | Scope::Security if entry.name == "persistence_location" => {
            "persistence true\n"
        }
        Scope::General if entry.name == "per_listener_settings" => "",
        Scope::General | Scope::Security | Scope::NewPlugin => "listener 1883\n",
        Scope::DefaultListener | Scope::NewListener => "",
        Scope::Listener if is_of_tls(entry.name) => {
            "listener 8883\ncertfile c\nkeyfile k\ncafile a\nrequire_certificate true\n"
        }
        Scope::Listener => "listener 1883\n",
        Scope::Plugin => "listener 1883\nplugin /lib/other.so\n",
        Scope::NewBridge | Scope::Bridge => "listener 1883\nconnection b\n",
    };
    let below = match entry.name {
        "per_listener_settings" => "\nlistener 1\npassword_file p\nlistener 2",
        _ => "",
    };
    let name = entry.name.replace('*', "x");
    let value = VALUES.iter().find(|(known, _)| *known == entry.name);
    let value = value.map_or_else(|| any(entry.form), |(_, value)| (*value).to_owned());
    let text = format!("{above}{name} {value}{below}\n");
    (text, above.lines().count() + 1)
}

fn any(form: Form) -> String {
    match form {
        Form::Flag => "true".to_owned(),
        Form::Number(min, max) => 2_000.clamp(min, max).to_string(),
        Form::Choice(words) => words[0].to_owned(),
        Form::Duration => "14d".to_owned(),
        Form::Text => "x".to_owned(),
    }
}

fn is_of_tls(name: &str) -> bool {
    let parts = [
        "cafile",
        "certfile",
        "crl",
        "keyfile",
        "certificate",
        "tls_",
        "_as_username",
    ];
    parts.iter().any(|part| name.contains(part))
}
