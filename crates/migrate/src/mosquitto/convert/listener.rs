//! Listeners: where they are and what they carry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thrum_settings::problem::Problem;
use toml_edit::Value as Toml;

use super::super::draft::{Draft, Origin};
use super::super::options::Scope;
use super::super::scope::{Configuration, ListenerLines, Setting};
use super::{find, text, tls};

/// The port that IANA assigned to MQTT.
const MQTT_PORT: u16 = 1883;
/// Proxies that are believed until others are named.
const OWN_PROXIES: [&str; 2] = ["127.0.0.0/8", "::1"];

/// A listener that is in the new configuration.
#[derive(Debug)]
pub(super) struct Converted<'a> {
    /// Its new name.
    pub(super) name: String,
    /// Its lines.
    pub(super) settings: &'a [Setting],
}

/// The address of a listener.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Unix(&'a str),
    Port(u16, Host<'a>),
}

/// The binding of a listener.
#[derive(Debug, PartialEq, Eq)]
enum Host<'a> {
    Every,
    Loopback,
    Address(IpAddr),
    Name(&'a str),
}

/// Converts all listeners and returns those that are not left out.
pub(super) fn convert<'a>(
    configuration: &'a Configuration,
    draft: &mut Draft,
    problems: &mut Vec<Problem>,
) -> Vec<Converted<'a>> {
    let mut converted: Vec<Converted<'a>> = Vec::new();
    for lines in &configuration.listeners {
        if !exists(lines, configuration) {
            ownerless(lines, draft);
            continue;
        }
        let place = match place(lines, configuration) {
            Ok(place) => place,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        problems.extend(wrong(lines));
        if let Some(why) = obstacle(lines, &place) {
            leave_out(lines, &why, draft);
            continue;
        }
        let name = name(lines, &place, &converted);
        one(lines, &place, &name, draft);
        converted.push(Converted {
            name,
            settings: &lines.settings,
        });
    }
    if converted.is_empty() {
        let why = Origin::Default("no listener of mosquitto.conf could be carried over");
        draft.set("listeners.mqtt", "bind", "localhost:1883", why);
    }
    converted
}

/// The default listener exists if it has an option of its own, or if there is no other.
fn exists(lines: &ListenerLines, configuration: &Configuration) -> bool {
    let brings_it = |setting: &Setting| {
        matches!(
            setting.entry.scope,
            Scope::Listener | Scope::DefaultListener
        ) || ["password_file", "psk_file"].contains(&setting.entry.name)
    };
    lines.start.is_some() || !configuration.has_listener || lines.settings.iter().any(brings_it)
}

/// Security options above the first listener, where each listener has its own.
fn ownerless(lines: &ListenerLines, draft: &mut Draft) {
    for setting in &lines.settings {
        draft.dropped(
            setting,
            "it precedes the first listener, and so applies to none",
        );
    }
}

fn place<'a>(
    lines: &'a ListenerLines,
    configuration: &Configuration,
) -> Result<Place<'a>, Problem> {
    let Some(start) = &lines.start else {
        let port = find(&lines.settings, "port").map(|setting| setting.value.number());
        let port = port.and_then(|port| u16::try_from(port).ok());
        let host = match text(&lines.settings, "bind_address") {
            Some(address) => host(address),
            None if configuration.has_listener => Host::Every,
            None => Host::Loopback,
        };
        return Ok(Place::Port(port.unwrap_or(MQTT_PORT), host));
    };
    let statement = &start.statement;
    let second = statement.after_word().split(' ').next();
    let second = second.filter(|word| !word.is_empty() && !word.starts_with('#'));
    match (statement.word().parse::<u16>(), second) {
        (Ok(0), Some(path)) => Ok(Place::Unix(path)),
        (Ok(0), None) => Err(statement.wrong_value(
            "listener 0 is a Unix socket: put its path behind the 0, or give a port".to_owned(),
        )),
        (Ok(port), Some(address)) => Ok(Place::Port(port, host(address))),
        (Ok(port), None) => Ok(Place::Port(port, Host::Every)),
        (Err(_), _) => Err(statement.wrong_value(format!(
            "listener: expected a port from 1 to 65535, or 0 and the path of a Unix socket, found {:?}",
            statement.value
        ))),
    }
}

fn host(text: &str) -> Host<'_> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(address) => Host::Address(address),
        Err(_) if text == "localhost" => Host::Loopback,
        Err(_) => Host::Name(text),
    }
}

/// Errors that mosquitto reports too.
fn wrong(lines: &ListenerLines) -> Option<Problem> {
    let mount_point = find(&lines.settings, "mount_point");
    let wild = mount_point.filter(|setting| setting.value.text().contains(['+', '#']));
    let wild = wild.map(|setting| {
        let message = "mount_point: expected the beginning of a topic, without + and #";
        setting.statement.wrong_value(message.to_owned())
    });
    let versions_setting = find(&lines.settings, "accept_protocol_versions");
    let unknown = versions_setting.filter(|setting| versions(setting).is_none());
    let unknown = unknown.map(|setting| {
        let message = "accept_protocol_versions: expected some of 3, 4 and 5 with commas between";
        setting.statement.wrong_value(message.to_owned())
    });
    wild.or(unknown).or_else(|| tls::wrong(&lines.settings))
}

/// The versions of a list of mosquitto; none if it contains anything else.
fn versions(setting: &Setting) -> Option<Vec<&'static str>> {
    let names = setting
        .value
        .text()
        .split(',')
        .map(|number| match number.trim() {
            "3" => Some("3.1"),
            "4" => Some("3.1.1"),
            "5" => Some("5.0"),
            _ => None,
        });
    names.collect()
}

/// Why a listener is impossible, or would admit forbidden clients.
fn obstacle(lines: &ListenerLines, place: &Place<'_>) -> Option<String> {
    let settings = &lines.settings;
    let has = |name: &str| find(settings, name).is_some();
    if let Place::Port(_, Host::Name(name)) = place {
        return Some(format!("it is bound to the name {name}: write its address"));
    }
    let is_wide = matches!(place, Place::Port(_, Host::Every));
    if is_wide && text(settings, "bind_interface").is_some_and(|name| name != "lo") {
        return Some(
            "bind_interface: write the address of the interface in place of its name".to_owned(),
        );
    }
    if has("psk_hint") {
        return Some("TLS with pre-shared keys: use certificates".to_owned());
    }
    if text(settings, "protocol") == Some("http_api") {
        return Some("protocol http_api: it serves no MQTT".to_owned());
    }
    tls::obstacle(settings)
}

fn leave_out(lines: &ListenerLines, why: &str, draft: &mut Draft) {
    if let Some(start) = &lines.start {
        draft.dropped(start, format!("left out: {why}"));
    }
    for setting in &lines.settings {
        draft.dropped(setting, format!("its listener is left out: {why}"));
    }
    let settings = lines.start.iter().chain(&lines.settings);
    let statements = settings.map(|setting| &setting.statement);
    draft.remark(format!("A listener that is left out: {why}"), statements);
}

/// A name that describes its transport; the second of a kind has its port too.
fn name(lines: &ListenerLines, place: &Place<'_>, others: &[Converted<'_>]) -> String {
    let is_websocket = text(&lines.settings, "protocol") == Some("websockets");
    let kind = match (place, is_websocket, tls::is_on(&lines.settings)) {
        (Place::Unix(_), false, _) => "unix",
        (_, true, true) => "wss",
        (_, true, false) => "ws",
        (_, false, true) => "mqtts",
        (_, false, false) => "mqtt",
    };
    let with_port = match place {
        Place::Port(port, _) => format!("{kind}-{port}"),
        Place::Unix(_) => format!("{kind}-socket"),
    };
    let numbered = (2_u32..).map(|number| format!("{with_port}-{number}"));
    let mut names = [kind.to_owned(), with_port.clone()]
        .into_iter()
        .chain(numbered);
    let is_free = |name: &String| others.iter().all(|other| other.name != *name);
    names.find(is_free).unwrap_or(with_port)
}

fn one(lines: &ListenerLines, place: &Place<'_>, name: &str, draft: &mut Draft) {
    let table = format!("listeners.{name}");
    let settings = &lines.settings;
    let origin = match (
        &lines.start,
        find(settings, "port").or_else(|| find(settings, "bind_address")),
    ) {
        (Some(line), _) | (None, Some(line)) => Origin::from(line),
        (None, None) => Origin::Default("mosquitto without a listener"),
    };
    draft.set(&table, "bind", bind(place, settings), origin);
    if let Some(start) = &lines.start {
        draft.carried(start, format!("{table}.bind"));
    }
    let origins = settings
        .iter()
        .filter(|setting| setting.entry.name == "websockets_origin");
    let origins: Vec<&Setting> = origins.collect();
    if let Some(first) = origins.first() {
        let list: toml_edit::Array = origins.iter().map(|setting| setting.value.text()).collect();
        draft.set(&table, "origins", list, *first);
    }
    for setting in settings {
        option(setting, &table, place, draft);
    }
    tls::convert(settings, &table, draft);
}

/// All options but those of TLS and security, and of limits that all listeners share.
fn option(setting: &Setting, table: &str, place: &Place<'_>, draft: &mut Draft) {
    let keys = |key: &str| format!("{table}.{key}");
    match setting.entry.name {
        "port" | "bind_address" | "socket_domain" => draft.carried(setting, keys("bind")),
        "bind_interface" if setting.value.text() == "lo" => draft.carried(setting, keys("bind")),
        "bind_interface" => draft.dropped(setting, "the address beside it is what counts"),
        "max_connections" if setting.value.number() <= 0 => draft.carried(setting, ""),
        "max_connections" => {
            let most = setting.value.number().min(u32::MAX.into());
            draft.set(table, "max_connections", most, setting);
            draft.carried(setting, keys("max_connections"));
        }
        "accept_protocol_versions" => {
            let list: toml_edit::Array =
                versions(setting).unwrap_or_default().into_iter().collect();
            draft.set(table, "accept_protocol_versions", list, setting);
            draft.carried(setting, keys("accept_protocol_versions"));
        }
        "mount_point" => {
            draft.set(table, "mount_point", setting.value.text(), setting);
            draft.noted(setting, keys("mount_point"), setting.entry.fate.note());
            if setting.value.text().contains('%') {
                draft.add_note(
                    setting,
                    "%u and %c in it stand for user name and client identifier",
                );
            }
        }
        "protocol" if setting.value.text() == "mqtt" => draft.carried(setting, ""),
        "protocol" => {
            draft.set(table, "transport", "websocket", setting);
            let note = "its path is /mqtt, where mosquitto accepts any; for another one set path";
            draft.noted(setting, keys("transport"), note);
        }
        "enable_proxy_protocol" if matches!(place, Place::Unix(_)) => {
            draft.dropped(setting, "a Unix socket has no proxy before it");
        }
        "enable_proxy_protocol" => {
            draft.set(table, "proxy_protocol", true, setting);
            let own: toml_edit::Array = OWN_PROXIES.into_iter().collect();
            draft.set(table, "proxy_from", own, setting);
            let note = "only proxies of this machine are trusted: write the addresses of others \
                        into proxy_from";
            draft.noted(
                setting,
                format!("{}, {}", keys("proxy_protocol"), keys("proxy_from")),
                note,
            );
        }
        "websockets_origin" => draft.carried(setting, keys("origins")),
        "max_qos" | "maximum_qos" | "max_topic_alias" | "max_topic_alias_broker" => {}
        "listener_allow_anonymous" => {}
        name if tls::OPTIONS.contains(&name) => {}
        _ if setting.entry.scope == Scope::Security => {}
        _ => draft.by_entry(setting),
    }
}

fn bind(place: &Place<'_>, settings: &[Setting]) -> Toml {
    let (port, host) = match place {
        Place::Unix(path) => return format!("unix:{path}").into(),
        Place::Port(port, host) => (*port, host),
    };
    let is_loopback = text(settings, "bind_interface") == Some("lo") || *host == Host::Loopback;
    let address = |address: IpAddr| SocketAddr::from((address, port)).to_string().into();
    match (host, text(settings, "socket_domain")) {
        (Host::Address(own), _) => address(*own),
        (_, Some("ipv4")) if is_loopback => address(Ipv4Addr::LOCALHOST.into()),
        (_, Some("ipv6")) if is_loopback => address(Ipv6Addr::LOCALHOST.into()),
        _ if is_loopback => format!("localhost:{port}").into(),
        (_, Some("ipv4")) => address(Ipv4Addr::UNSPECIFIED.into()),
        (_, Some("ipv6")) => address(Ipv6Addr::UNSPECIFIED.into()),
        _ => i64::from(port).into(),
    }
}
