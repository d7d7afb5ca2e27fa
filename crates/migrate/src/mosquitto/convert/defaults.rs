//! Defaults of mosquitto that differ from thrum's, and limits that listeners share.

use super::super::draft::{Draft, Origin};
use super::super::scope::Setting;
use super::find;
use super::general::size;
use super::listener::Converted;

/// Highest quality of service.
const QOS_MAX: i64 = 2;
/// Least and greatest `limits.max_packet`.
const PACKET_BYTES: (i64, i64) = (128, 268_435_460);
/// Default largest packet of mosquitto 2.1.
const PACKET_BYTES_DEFAULT: i64 = 2_000_000;
/// Room for topic and properties in addition to a payload.
const PACKET_BYTES_BESIDE: i64 = 64 * 1024;
/// Default largest payload that thrum retains.
const RETAINED_BYTES_DEFAULT: i64 = 1 << 20;

/// Sets the limits that mosquitto has for each listener and thrum for all of them.
pub(super) fn across_listeners(listeners: &[Converted<'_>], draft: &mut Draft) {
    let of = |listener: &Converted<'_>| {
        find(listener.settings, "max_qos").map_or(QOS_MAX, |set| set.value.number())
    };
    let highest = listeners.iter().map(of).max().unwrap_or(QOS_MAX);
    for setting in listeners
        .iter()
        .filter_map(|listener| find(listener.settings, "max_qos"))
    {
        let keys = setting.entry.fate.keys();
        if setting.value.number() < highest {
            draft.dropped(
                setting,
                format!("{keys} applies to all listeners, and another one needs {highest}"),
            );
        } else {
            draft.carried(setting, if highest < QOS_MAX { keys } else { "" });
        }
    }
    let lowered = |listener: &&Converted<'_>| highest < QOS_MAX && of(listener) == highest;
    if let Some(setting) = listeners
        .iter()
        .find(lowered)
        .and_then(|listener| find(listener.settings, "max_qos"))
    {
        draft.set("limits", "max_qos", highest, setting);
    }
    let settings = listeners.iter().flat_map(|listener| listener.settings);
    let aliases: Vec<&Setting> = settings
        .filter(|setting| setting.entry.name.starts_with("max_topic_alias"))
        .collect();
    for setting in &aliases {
        draft.by_entry(setting);
    }
    if let Some(most) = aliases.iter().max_by_key(|setting| setting.value.number()) {
        draft.set("limits.client", "topic_aliases", most.value.number(), *most);
    }
}

/// Sets what would otherwise be less than devices are used to.
pub(super) fn convert(general: &[Setting], draft: &mut Draft) {
    let packet = packet(general, draft);
    if packet > RETAINED_BYTES_DEFAULT {
        draft.set(
            "limits",
            "retained_payload",
            size(packet),
            Origin::Default("as max_packet"),
        );
    }
    if find(general, "persistent_client_expiration").is_none() {
        let why = Origin::Default("mosquitto without persistent_client_expiration");
        draft.set("limits", "session_expiry", "never", why);
    }
}

/// Sets the sizes of packets and payloads.
fn packet(general: &[Setting], draft: &mut Draft) -> i64 {
    let (least, most) = PACKET_BYTES;
    let payload = payload(general, draft);
    let Some(setting) = find(general, "max_packet_size") else {
        // Mosquitto 2.0 has no limit of packets: the limit of payloads alone applies.
        let needed = payload + PACKET_BYTES_BESIDE;
        let given = PACKET_BYTES_DEFAULT.max(needed).min(most);
        let why = if given == PACKET_BYTES_DEFAULT {
            "mosquitto 2.1 without max_packet_size"
        } else {
            "room for message_size_limit"
        };
        draft.set("limits", "max_packet", size(given), Origin::Default(why));
        return given;
    };
    let asked = setting.value.number();
    let given = asked.clamp(least, most);
    draft.set("limits", "max_packet", size(given), setting);
    if asked == given {
        draft.carried(setting, setting.entry.fate.keys());
    } else {
        let note = format!("{given} bytes is the nearest possible value");
        draft.noted(setting, setting.entry.fate.keys(), note);
    }
    given
}

/// Sets the size of payloads; 0 is no limit, as in mosquitto.
fn payload(general: &[Setting], draft: &mut Draft) -> i64 {
    let Some(setting) = find(general, "message_size_limit") else {
        return 0;
    };
    let limit = setting.value.number();
    if limit == 0 {
        draft.carried(setting, "");
        return 0;
    }
    draft.set("limits", "max_payload", size(limit), setting);
    draft.carried(setting, setting.entry.fate.keys());
    limit
}
