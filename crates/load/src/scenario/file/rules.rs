//! Rules between the parts of a scenario.

use thrum_codec::topic::is_valid_name;
use thrum_codec::{TopicFilter, Version};

use super::super::pattern::{fill, unknown_place};
use super::super::{FaultKind, Group, PublishSpec, Scenario, SubscribeSpec};
use super::CLIENTS_MAX;
use super::reader::Reader;

/// Most filters that a file gives a client.
const FILTERS_MAX: usize = 1_000;

/// Reports everything that does not fit together.
pub(super) fn check(scenario: &Scenario, reader: &mut Reader<'_>) {
    if scenario.groups.is_empty() {
        reader.blame(
            "groups",
            "there are no clients: add [groups.NAME] with clients",
        );
    }
    let clients: u64 = scenario
        .groups
        .iter()
        .map(|group| u64::from(group.clients))
        .sum();
    if clients > u64::from(CLIENTS_MAX) {
        let message = format!("{clients} clients in all, {CLIENTS_MAX} is the limit");
        reader.blame("groups", &message);
    }
    for group in &scenario.groups {
        check_client(scenario, group, reader);
        if let Some(publish) = &group.publish {
            check_publish(group, publish, reader);
        }
        if let Some(subscribe) = &group.subscribe {
            check_subscribe(scenario, group, subscribe, reader);
        }
    }
    check_faults(scenario, reader);
}

/// Stands for the text of a run.
const RUN: &str = "0";

fn check_client(scenario: &Scenario, group: &Group, reader: &mut Reader<'_>) {
    let path = |key: &str| format!("groups.{}.{key}", group.name);
    let client = &group.client;
    if let Some(id) = &client.id {
        check_places(id, &["{i}", "{run}"], &path("client_id"), reader);
        if group.clients > 1 && !id.contains("{i}") {
            let message = "all clients would have the same identifier: write {i} in it";
            reader.blame(&path("client_id"), message);
        }
    }
    if version_of(scenario, group) != Version::V5 {
        let publish = group.publish.as_ref();
        let properties = |properties: &[(String, String)]| !properties.is_empty();
        let fields = [
            ("user_properties", properties(&client.user_properties)),
            ("receive_maximum", client.receive_maximum.is_some()),
            (
                "publish.user_properties",
                publish.is_some_and(|publish| properties(&publish.user_properties)),
            ),
            (
                "publish.expiry",
                publish.is_some_and(|publish| publish.expiry.is_some()),
            ),
        ];
        for (key, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
            reader.blame(&path(key), "only MQTT 5.0 has it: set version = 5");
        }
        if client.password.is_some() && client.username.is_none() {
            let message = "before MQTT 5.0 a password needs a username";
            reader.blame(&path("password"), message);
        }
    }
    if let Some(will) = &client.will {
        check_topic(&will.topic, &path("will.topic"), reader);
    }
    if client.read_rate.is_some() && group.subscribe.is_none() {
        let message = "the group subscribes to nothing, so it has nothing to read";
        reader.blame(&path("read_rate"), message);
    }
}

fn check_publish(group: &Group, publish: &PublishSpec, reader: &mut Reader<'_>) {
    let path = |key: &str| format!("groups.{}.publish.{key}", group.name);
    check_topic(&publish.topic, &path("topic"), reader);
    if let Some(response) = &publish.response {
        check_topic(response, &path("response"), reader);
        if group.clients > 1 && !response.contains("{i}") {
            let message = "all clients would get each other's answers: write {i} in it";
            reader.blame(&path("response"), message);
        }
    }
}

fn check_subscribe(
    scenario: &Scenario,
    group: &Group,
    subscribe: &SubscribeSpec,
    reader: &mut Reader<'_>,
) {
    let path = |key: &str| format!("groups.{}.subscribe.{key}", group.name);
    let filters_path = if reader.has(&path("filters")) {
        path("filters")
    } else {
        path("filter")
    };
    if subscribe.filters.is_empty() || subscribe.filters.len() > FILTERS_MAX {
        reader.blame(&filters_path, &format!("give 1 to {FILTERS_MAX} filters"));
    }
    for filter in &subscribe.filters {
        check_places(filter, &["{i}", "{p}", "{run}"], &filters_path, reader);
        let filled = fill(filter, 1, RUN).replace("{p}", "1");
        let Ok(parsed) = TopicFilter::parse(&filled) else {
            let message = format!("'{filter}' is not a topic filter");
            reader.blame(&filters_path, &message);
            continue;
        };
        if let Some(prefix) = &subscribe.strip_prefix
            && (prefix.is_empty() || !parsed.matched_part().starts_with(prefix.as_str()))
        {
            let message = format!("'{filter}' does not begin with '{prefix}'");
            reader.blame(&path("strip_prefix"), &message);
        }
    }
    let asks = |group: &Group| {
        let publish = group.publish.as_ref();
        publish.is_some_and(|publish| publish.response.is_some())
    };
    if subscribe.respond
        && version_of(scenario, group) != Version::V5
        && !scenario.groups.iter().any(asks)
    {
        let message = "no group sends requests: set version = 5, or 'response' where the requests are published";
        reader.blame(&path("respond"), message);
    }
}

fn check_faults(scenario: &Scenario, reader: &mut Reader<'_>) {
    for (index, fault) in scenario.faults.iter().enumerate() {
        if fault.at >= scenario.stages.hold {
            let message = "the hold is over by then: the time counts from its start";
            reader.blame(&format!("faults.{index}.at"), message);
        }
        let (kind, victims) = match &fault.kind {
            FaultKind::Disconnect { victims, .. } => ("disconnect", victims),
            FaultKind::StopReading { victims } => ("stop_reading", victims),
            FaultKind::Freeze { victims } => ("freeze", victims),
            FaultKind::Hook { .. } => continue,
        };
        if kind != "disconnect" && fault.lasts.is_zero() {
            let message = format!("{kind} needs a duration: lasts = \"10s\"");
            reader.blame(&format!("faults.{index}"), &message);
        }
        let Some(wanted) = &victims.group else {
            continue;
        };
        if !scenario.groups.iter().any(|group| group.name == *wanted) {
            let names = scenario.groups.iter().map(|group| group.name.as_str());
            let names: Vec<&str> = names.collect();
            let message = format!("no group named '{wanted}': there are {}", names.join(", "));
            reader.blame(&format!("faults.{index}.{kind}.group"), &message);
        }
    }
}

fn check_topic(topic: &str, path: &str, reader: &mut Reader<'_>) {
    check_places(topic, &["{i}", "{run}"], path, reader);
    if !is_valid_name(&fill(topic, 1, RUN)) {
        reader.blame(path, &format!("'{topic}' is not a topic name"));
    }
}

fn check_places(pattern: &str, known: &[&str], path: &str, reader: &mut Reader<'_>) {
    if let Some(place) = unknown_place(pattern, known) {
        let known = known.join(", ");
        let message =
            format!("unknown placeholder '{place}': the placeholders are {known}, {{i%N}}");
        reader.blame(path, &message);
    }
}

/// The protocol version of a group's clients.
fn version_of(scenario: &Scenario, group: &Group) -> Version {
    group.client.version.unwrap_or(scenario.version)
}
