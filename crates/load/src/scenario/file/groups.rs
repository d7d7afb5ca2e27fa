//! Reads the groups: connecting, publishing and subscribing of their clients.

use super::super::{
    ClientSpec, Group, Network, PAYLOAD_BYTES_MIN, PayloadSpec, PublishSpec, Rate, Reconnect,
    SubscribeSpec, TargetSpec, WillSpec,
};
use super::CLIENTS_MAX;
use super::reader::{Reader, Section};
use super::values;

/// Most groups.
const GROUPS_MAX: usize = 64;

/// Default of the longest wait between two reconnect attempts.
const RECONNECT_DELAY_MAX: std::time::Duration = std::time::Duration::from_secs(10);

pub(super) const GROUP_KEYS: [&str; 16] = [
    "clients",
    "target",
    "version",
    "keep_alive",
    "client_id",
    "session_expiry",
    "username",
    "password",
    "will",
    "user_properties",
    "receive_maximum",
    "reconnect",
    "network",
    "read_rate",
    "publish",
    "subscribe",
];

pub(super) const PUBLISH_KEYS: [&str; 11] = [
    "topic",
    "rate",
    "shape",
    "arrivals",
    "window",
    "qos",
    "retain",
    "payload",
    "user_properties",
    "expiry",
    "response",
];

pub(super) const SUBSCRIBE_KEYS: [&str; 5] =
    ["filter", "filters", "qos", "respond", "strip_prefix"];

/// All groups in the order of the file.
pub(super) fn read(
    reader: &mut Reader<'_>,
    root: &Section<'_>,
    targets: &[TargetSpec],
) -> Vec<Group> {
    let Some(named) = reader.open_table(root, "groups") else {
        return Vec::new();
    };
    let names = named.keys();
    if names.len() > GROUPS_MAX {
        reader.blame("groups", &format!("more than {GROUPS_MAX} groups"));
        return Vec::new();
    }
    let mut groups = Vec::with_capacity(names.len());
    for name in names {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if name.is_empty() || !name.chars().all(fits) {
            let message = format!("group name {name:?}: use letters, digits, - and _ only");
            reader.blame("groups", &message);
        } else if let Some(section) = reader.table(&named, name, &GROUP_KEYS) {
            groups.push(group(reader, &section, name, targets));
        }
    }
    groups
}

fn group(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    name: &str,
    targets: &[TargetSpec],
) -> Group {
    Group {
        name: name.to_owned(),
        clients: reader
            .required(section, "clients", values::count(CLIENTS_MAX))
            .unwrap_or(1),
        target: target(reader, section, targets),
        client: client(reader, section),
        publish: publish(reader, section),
        subscribe: subscribe(reader, section),
    }
}

fn target(reader: &mut Reader<'_>, section: &Section<'_>, targets: &[TargetSpec]) -> usize {
    let Some(name) = reader.value(section, "target", values::text) else {
        return 0;
    };
    let found = targets.iter().position(|target| target.name == name);
    if found.is_none() || name.is_empty() {
        let known: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let message = match known.as_slice() {
            [""] => format!("no target named '{name}': [targets] lists them, this file has none"),
            known => format!("no target named '{name}': there are {}", known.join(", ")),
        };
        reader.blame(&section.path_of("target"), &message);
    }
    found.unwrap_or(0)
}

fn client(reader: &mut Reader<'_>, section: &Section<'_>) -> ClientSpec {
    ClientSpec {
        version: reader.value(section, "version", values::version),
        keep_alive: reader.value(section, "keep_alive", values::seconds),
        id: reader.value(section, "client_id", values::text),
        session_expiry: reader
            .value(section, "session_expiry", values::seconds::<u32>)
            .map(|seconds| std::time::Duration::from_secs(seconds.into())),
        username: reader.value(section, "username", values::text),
        password: reader.value(section, "password", values::text),
        will: will(reader, section),
        user_properties: reader
            .value(section, "user_properties", values::properties)
            .unwrap_or_default(),
        receive_maximum: reader.value(section, "receive_maximum", values::count(u16::MAX)),
        reconnect: reconnect(reader, section),
        network: network(reader, section),
        read_rate: reader.value(section, "read_rate", values::byte_rate),
    }
}

fn will(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<WillSpec> {
    let will = reader.table(section, "will", &["topic", "payload", "qos", "retain"])?;
    Some(WillSpec {
        topic: reader.required(&will, "topic", values::text)?,
        payload: reader
            .value(&will, "payload", values::text)
            .unwrap_or_default(),
        qos: reader.value(&will, "qos", values::qos).unwrap_or_default(),
        retain: reader
            .value(&will, "retain", values::flag)
            .unwrap_or_default(),
    })
}

fn reconnect(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Reconnect> {
    let reconnect = reader.table(section, "reconnect", &["delay", "delay_max"])?;
    let delay = reader
        .value(&reconnect, "delay", values::span)
        .unwrap_or_default();
    let delay_max = reader.value(&reconnect, "delay_max", values::span);
    let delay_max = delay_max.unwrap_or_else(|| RECONNECT_DELAY_MAX.max(delay));
    if delay_max < delay {
        reader.blame(
            &reconnect.path_of("delay_max"),
            "shorter than the delay before the first attempt",
        );
    }
    Some(Reconnect { delay, delay_max })
}

fn network(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Network> {
    let keys = ["delay", "jitter", "bandwidth", "cut_after"];
    let network = reader.table(section, "network", &keys)?;
    let read = Network {
        delay: reader
            .value(&network, "delay", values::span)
            .unwrap_or_default(),
        jitter: reader
            .value(&network, "jitter", values::span)
            .unwrap_or_default(),
        bandwidth: reader.value(&network, "bandwidth", values::byte_rate),
        cut_after: reader.value(&network, "cut_after", values::span),
    };
    if read.jitter > read.delay {
        reader.blame(
            &network.path_of("jitter"),
            "more than the delay, which cannot become negative",
        );
    }
    if read.cut_after.is_some_and(|span| span.is_zero()) {
        reader.blame(&network.path_of("cut_after"), "must be longer than 0s");
    }
    Some(read)
}

fn publish(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<PublishSpec> {
    let publish = reader.table(section, "publish", &PUBLISH_KEYS)?;
    let smallest = PayloadSpec::Size(PAYLOAD_BYTES_MIN);
    Some(PublishSpec {
        topic: reader.required(&publish, "topic", values::text)?,
        rate: reader
            .value(&publish, "rate", values::rate)
            .unwrap_or(Rate::per_second(1)),
        shape: reader
            .value(&publish, "shape", values::shape)
            .unwrap_or_default(),
        arrivals: reader
            .value(&publish, "arrivals", values::arrivals)
            .unwrap_or_default(),
        window: reader.value(&publish, "window", values::count(u16::MAX)),
        qos: reader
            .value(&publish, "qos", values::qos)
            .unwrap_or_default(),
        retain: reader
            .value(&publish, "retain", values::flag)
            .unwrap_or_default(),
        payload: reader
            .value(&publish, "payload", values::payload)
            .unwrap_or(smallest),
        user_properties: reader
            .value(&publish, "user_properties", values::properties)
            .unwrap_or_default(),
        expiry: reader.value(&publish, "expiry", values::seconds),
        response: reader.value(&publish, "response", values::text),
    })
}

fn subscribe(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<SubscribeSpec> {
    let subscribe = reader.table(section, "subscribe", &SUBSCRIBE_KEYS)?;
    let key = match (subscribe.has("filter"), subscribe.has("filters")) {
        (true, true) => {
            let message = "there are 'filters' too, leave out one of both";
            reader.blame(&subscribe.path_of("filter"), message);
            return None;
        }
        (false, true) => "filters",
        _ => "filter",
    };
    Some(SubscribeSpec {
        filters: reader.required(&subscribe, key, values::texts)?,
        qos: reader
            .value(&subscribe, "qos", values::qos)
            .unwrap_or_default(),
        respond: reader
            .value(&subscribe, "respond", values::flag)
            .unwrap_or_default(),
        strip_prefix: reader.value(&subscribe, "strip_prefix", values::text),
    })
}
