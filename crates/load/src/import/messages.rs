//! Publishing and subscribing of clients: topics with variables, rates, payloads.

use super::ImportError;
use super::emqtt_bench::{INTERVAL_OF_MSG_MS, client_id, qos, username};
use super::notes::Notes;
use super::options::{Kind, Line, shown};
use super::toml;
use crate::scenario::PAYLOAD_BYTES_MIN;

/// Bytes of a message without `-s`.
const SIZE: u64 = 256;

/// Messages per second of each client where the line asks for as many as possible.
const FASTEST: &str = "10000/s";

/// The topic with its variables in the form of a scenario.
pub(super) fn topic(line: &Line, notes: &mut Notes) -> Result<Option<String>, ImportError> {
    let Some(topic) = line.value("topic") else {
        return Ok(None);
    };
    let mut filled = topic.replace("%i", "{i}");
    if filled.contains("%u") {
        filled = filled.replace(
            "%u",
            &username(line).unwrap_or_else(|| "undefined".to_owned()),
        );
    }
    if filled.contains("%c") {
        let id = client_id(line).unwrap_or_else(|| {
            notes.add("topic", "%c was the client identifier, which differs here; the number of the client replaces it");
            "{i}".to_owned()
        });
        filled = filled.replace("%c", &id);
    }
    if line.kind == Kind::Publish && filled.contains("%s") {
        notes.add(
            "topic",
            "%s was the number of the message; each publisher has one topic here",
        );
        filled = filled.replace("%s", "0");
    }
    while let Some((before, rest)) = filled.split_once("%rand_") {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let (space, after) = rest.split_at(digits);
        if space.parse().unwrap_or(0) == 0_u32 {
            return Err(ImportError::Malformed {
                option: shown("topic"),
                value: topic.to_owned(),
                expected: "a number after %rand_",
            });
        }
        notes.add("topic", "%rand_N drew a topic for each message; here the clients are spread evenly over N topics");
        filled = format!("{before}{{i%{space}}}{after}");
    }
    Ok(Some(filled))
}

pub(super) fn publish(
    line: &Line,
    notes: &mut Notes,
) -> Result<Vec<(&'static str, String)>, ImportError> {
    let topic = match topic(line, notes)? {
        Some(topic) => topic,
        // The file of topics has no counterpart; its note names the alternative.
        None if line.value("topics-payload").is_some() => "bench/{i}".to_owned(),
        None => return Err(ImportError::NoTopic("pub")),
    };
    let (qos, inflight) = (qos(line)?, line.number("inflight", 1)?);
    let interval_ms = line.number("interval_of_msg", INTERVAL_OF_MSG_MS)?;
    let mut fields = vec![("topic", toml::text(&topic))];
    if interval_ms == 0 {
        notes.add(
            "interval_of_msg",
            "0 is as fast as possible; the rate is a limit that a person has to choose",
        );
        fields.push(("rate", toml::text(FASTEST)));
    } else {
        fields.push(("rate", toml::text(&rate(interval_ms))));
    }
    if qos != "0" {
        let why = "emqtt_bench waits for acknowledgements when so many are missing (closed loop); here the load is an open \
                   loop, which keeps the rate and shows the waiting as latency; `window` in publish gives the closed loop";
        notes.add("inflight", why);
        if interval_ms == 0 && inflight > 0 {
            fields.push(("window", inflight.min(u64::from(u16::MAX)).to_string()));
        }
    }
    fields.push(("qos", qos));
    if line.flag("retain") {
        fields.push(("retain", "true".to_owned()));
    }
    fields.push(("payload", payload(line, notes)?));
    if !line.flag("wait-before-publishing") {
        notes.add(
            "wait-before-publishing",
            "publishers always start when every client is ready",
        );
    }
    Ok(fields)
}

/// Messages per second, minute or hour that a period makes.
fn rate(interval_ms: u64) -> String {
    for (per_ms, unit) in [(1_000, "s"), (60_000, "m"), (3_600_000, "h")] {
        if per_ms % interval_ms == 0 {
            return format!("{}/{unit}", per_ms / interval_ms);
        }
    }
    format!("{:.6}/s", 1_000.0 / thrum_figures::fraction(interval_ms))
}

fn payload(line: &Line, notes: &mut Notes) -> Result<String, ImportError> {
    let size = line.number("size", SIZE)?;
    if let Some(message) = line.value("message") {
        if message.contains('%') || message.starts_with("template://") {
            notes.add(
                "message",
                "its variables have other names here; see the payload templates of scenarios",
            );
        }
        return Ok(match message.strip_prefix("template://") {
            Some(path) => toml::text(&format!("file:{path}")),
            None => format!("{{ text = {} }}", toml::text(message)),
        });
    }
    let least = u64::from(PAYLOAD_BYTES_MIN);
    if size < least {
        notes.add(
            "size",
            "a message has at least 16 bytes: publisher, sequence and send time",
        );
    }
    Ok(toml::text(&format!("{}B", size.max(least))))
}
