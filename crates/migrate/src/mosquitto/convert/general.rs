//! Options of the broker as a whole.

use std::ops::RangeInclusive;
use std::time::Duration;

use thrum_settings::{format_duration, format_size};
use toml_edit::Value as Toml;

use super::super::draft::{Draft, Origin};
use super::super::options::Scope;
use super::super::scope::Setting;
use super::plugin::Plugins;
use super::{find, is_true, text};

/// Stands for "no limit" where thrum has none to switch off.
const NO_LIMIT: i64 = u32::MAX as i64;
/// Most messages in flight that MQTT can count.
const INFLIGHT_MAX: i64 = 65_535;
/// Least that `limits.client.queue_bytes` takes.
const QUEUE_BYTES_MIN: i64 = 1_024;
/// Below that a limit of memory would admit no client: an idle broker takes some tens of MiB.
const MEMORY_MIN: i64 = 64 << 20;

const CLIENT: &str = "limits.client";

/// Sets the keys of all options except those of the log, of security and of the size of packets.
pub(super) fn convert(general: &[Setting], plugins: Plugins, draft: &mut Draft) {
    for setting in general {
        let is_general = setting.entry.scope == Scope::General;
        let elsewhere = [
            "check_retain_source",
            "log_dest",
            "log_type",
            "max_packet_size",
            "message_size_limit",
        ];
        if is_general && !elsewhere.contains(&setting.entry.name) {
            one(setting, general, draft);
        }
    }
    persistence(general, plugins, draft);
}

fn one(setting: &Setting, general: &[Setting], draft: &mut Draft) {
    let keys = setting.entry.fate.keys();
    let number = setting.value.number();
    match setting.entry.name {
        "per_listener_settings" if !setting.value.is_true() => draft.carried(setting, ""),
        "global_max_connections" => of_the_node(setting, "connections", draft),
        "global_max_clients" => of_the_node(setting, "sessions", draft),
        "max_inflight_messages" | "max_inflight_bytes" | "upgrade_outgoing_qos" => {
            in_flight(setting, draft);
        }
        "max_queued_messages" => bounded(setting, "queue", 1..=NO_LIMIT, draft),
        "max_queued_bytes" => bounded(setting, "queue_bytes", QUEUE_BYTES_MIN..=NO_LIMIT, draft),
        "max_keepalive" => {
            // The largest possible value is no limit.
            let seconds = if number == 65_535 { 0 } else { number };
            draft.set(
                "limits",
                "keep_alive_max",
                duration(seconds.unsigned_abs()),
                setting,
            );
            draft.carried(setting, keys);
        }
        "connection_messages" if setting.value.is_true() => draft.carried(setting, ""),
        "connection_messages" => {
            draft.set("log", "clients", 0, setting);
            draft.carried(setting, keys);
        }
        "clientid_prefixes" => prefix(setting, draft),
        "memory_limit" if number == 0 => draft.carried(setting, ""),
        "memory_limit" if number < MEMORY_MIN => draft.dropped(
            setting,
            "thrum counts all memory of the process, and takes about as much by itself: no client could connect; set \
             limits.memory to what the machine has to spare",
        ),
        "memory_limit" => {
            draft.set("limits", "memory", size(number), setting);
            draft.by_entry(setting);
        }
        "persistence" | "retained_persistence" if !setting.value.is_true() => {
            draft.carried(setting, "");
        }
        "persistence_location" if !persists(general) => {
            draft.dropped(setting, "persistence is off, so nothing is kept on disk");
        }
        "persistent_client_expiration" => {
            draft.set(
                "limits",
                "session_expiry",
                duration(setting.value.seconds()),
                setting,
            );
            draft.carried(setting, keys);
        }
        "queue_qos0_messages" => {
            draft.set(CLIENT, "queue_qos0", setting.value.is_true(), setting);
            draft.carried(setting, keys);
        }
        "retain_available" if setting.value.is_true() => draft.carried(setting, ""),
        "retain_available" => {
            draft.set("limits", "retain_available", false, setting);
            draft.by_entry(setting);
        }
        "sys_interval" => {
            draft.set("sys", "interval", duration(number.unsigned_abs()), setting);
            draft.carried(setting, keys);
        }
        _ => draft.by_entry(setting),
    }
}

/// A limit of the node; 0 and below is none.
fn of_the_node(setting: &Setting, key: &str, draft: &mut Draft) {
    let number = setting.value.number();
    if number <= 0 {
        return draft.carried(setting, "");
    }
    draft.set("limits", key, number.min(NO_LIMIT), setting);
    draft.by_entry(setting);
}

/// Options for messages to clients.
fn in_flight(setting: &Setting, draft: &mut Draft) {
    let number = setting.value.number();
    let is_set = number > 0 || setting.value.is_true();
    match setting.entry.name {
        "max_inflight_messages" => {
            bounded(setting, "inflight", 1..=INFLIGHT_MAX, draft);
            // Mosquitto announces the same number as its receive maximum.
            let given = inflight(number);
            return draft.set(CLIENT, "receive_maximum", given, setting);
        }
        _ if !is_set => return draft.carried(setting, ""),
        "max_inflight_bytes" => {
            let bytes = size(number.min(NO_LIMIT - 1));
            draft.set(CLIENT, "inflight_bytes", bytes, setting);
        }
        _ => draft.set(CLIENT, "upgrade_outgoing_qos", true, setting),
    }
    draft.carried(setting, setting.entry.fate.keys());
}

/// Mosquitto takes one prefix of client identifiers.
fn prefix(setting: &Setting, draft: &mut Draft) {
    let prefix = setting.value.text();
    if prefix.contains(['*', '%']) {
        let why = "auth.client_id interprets * and % differently: clients with other identifiers can connect";
        return draft.dropped(setting, why);
    }
    draft.set("auth", "client_id", format!("{prefix}*"), setting);
    draft.carried(setting, setting.entry.fate.keys());
}

/// Messages in flight; 0 and below is no limit.
fn inflight(asked: i64) -> i64 {
    if asked <= 0 {
        INFLIGHT_MAX
    } else {
        asked.min(INFLIGHT_MAX)
    }
}

/// A limit of each client; 0 and below is none in mosquitto.
fn bounded(setting: &Setting, key: &str, range: RangeInclusive<i64>, draft: &mut Draft) {
    let (min, max) = range.into_inner();
    let keys = setting.entry.fate.keys();
    let asked = setting.value.number();
    let given = if asked <= 0 {
        max
    } else {
        asked.clamp(min, max)
    };
    let value = if key == "queue_bytes" {
        size(given)
    } else {
        given.into()
    };
    draft.set(CLIENT, key, value, setting);
    if asked == given {
        draft.carried(setting, keys);
    } else if asked <= 0 {
        draft.noted(
            setting,
            keys,
            format!("no limit in mosquitto; {max} is the most there is"),
        );
    } else {
        draft.noted(setting, keys, format!("{given} is the nearest there is"));
    }
}

/// Whether the state is kept.
pub(super) fn persists(general: &[Setting]) -> bool {
    is_true(general, "persistence")
}

fn persistence(general: &[Setting], plugins: Plugins, draft: &mut Draft) {
    if !persists(general) && !plugins.persist {
        return;
    }
    let location = find(general, "persistence_location");
    let folder = text(general, "persistence_location").unwrap_or(".");
    let folder = match folder.trim_end_matches('/') {
        "" => "/",
        folder => folder,
    };
    let origin = location.or_else(|| find(general, "persistence"));
    let origin = origin.map_or(
        Origin::Default("for the plugin that keeps the state"),
        Origin::from,
    );
    draft.set("node", "data_dir", folder, origin);
}

/// Formats bytes with a unit.
pub(super) fn size(bytes: i64) -> Toml {
    format_size(bytes.unsigned_abs()).map_or_else(|| bytes.into(), Toml::from)
}

/// Formats seconds with a unit.
pub(super) fn duration(seconds: u64) -> Toml {
    // The longest time that a session can have stands for "never".
    let seconds = seconds.min(u32::MAX.into());
    format_duration(Duration::from_secs(seconds)).map_or_else(|| 0.into(), Toml::from)
}
