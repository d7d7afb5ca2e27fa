//! A client in full, as text.

use thrum_figures::{bytes, count, fraction, latency};
use thrum_management::api::{Client, ClientDetail, Connection, Subscription, Will};

use crate::command::shown::{NOTHING, name, seconds};

/// The lines of a client.
pub(super) fn text(detail: &ClientDetail) -> String {
    let mut lines = of_client(detail);
    if let Some(connection) = &detail.connection {
        lines.extend(of_connection(connection));
    }
    let dropped = detail.dropped.iter();
    let dropped = dropped.map(|one| format!("{} {}", count(one.messages), one.reason));
    let dropped: Vec<String> = dropped.collect();
    lines.push(("dropped", listed(&dropped)));
    let will = detail.will.as_ref().map(of_will);
    lines.push(("will", will.unwrap_or_else(|| NOTHING.to_owned())));
    let mut text = String::new();
    for (heading, value) in lines {
        text.extend([format!("{heading:<16} {value}\n")]);
    }
    let all = detail.client.subscriptions;
    text.extend([format!("\nsubscriptions ({all})\n")]);
    for one in &detail.subscription_list {
        text.push_str(&of_subscription(one));
    }
    let rest = all.saturating_sub(detail.subscription_list.len());
    if rest > 0 {
        text.extend([format!("… and {rest} more\n")]);
    }
    text
}

fn of_client(detail: &ClientDetail) -> Vec<(&'static str, String)> {
    let client = &detail.client;
    let expiry = client.session_expiry_secs.unwrap_or(u32::MAX);
    let limit = detail.queue_limit;
    vec![
        ("client id", name(&client.client_id).into_owned()),
        ("user", named(client.user.as_deref())),
        ("state", state(client)),
        ("version", client.protocol_version.clone()),
        (
            "session",
            format!(
                "expires after {}, {}, {}, on worker {}",
                seconds(expiry),
                if detail.durable {
                    "on the disk"
                } else {
                    "in memory"
                },
                if detail.clean_start {
                    "began clean"
                } else {
                    "taken up"
                },
                detail.worker
            ),
        ),
        (
            "queue",
            format!(
                "{} of {} messages, {} of {}",
                count(client.queued_messages),
                count(limit.messages),
                bytes(fraction(client.queued_bytes)),
                bytes(fraction(limit.bytes))
            ),
        ),
        (
            "in flight",
            format!(
                "{} to it, {} from it",
                client.inflight, detail.inflight_received
            ),
        ),
        (
            "messages",
            format!(
                "{} from it, {} to it on this connection or the last one",
                count(client.messages_received.into()),
                count(client.messages_sent.into())
            ),
        ),
    ]
}

fn named(text: Option<&str>) -> String {
    text.map_or_else(|| NOTHING.to_owned(), |text| name(text).into_owned())
}

fn state(client: &Client) -> String {
    let unknown = || NOTHING.to_owned();
    if !client.connected {
        let since = client.away_since.clone().unwrap_or_else(unknown);
        return format!("away since {since}");
    }
    let since = client.connected_at.clone().unwrap_or_else(unknown);
    let peer = client.peer.clone().unwrap_or_else(unknown);
    let listener = client.listener.clone().unwrap_or_else(unknown);
    format!("connected since {since} from {peer} through {listener}")
}

fn of_connection(connection: &Connection) -> Vec<(&'static str, String)> {
    let carried = |bytes_of: Option<u64>| {
        bytes_of.map_or_else(|| NOTHING.to_owned(), |count| bytes(fraction(count)))
    };
    let keep_alive = match connection.keep_alive_secs {
        0 => "no keep alive".to_owned(),
        secs => format!("keep alive {}", seconds(secs.into())),
    };
    let scheme = connection.scheme.as_deref().unwrap_or(NOTHING);
    let round_trip = connection.round_trip_micros;
    let round_trip = round_trip.map(|micros| latency(u64::from(micros) * 1000));
    let certificate = connection.certificate.as_deref();
    vec![
        (
            "connection",
            format!(
                "{scheme}, {keep_alive}, round trip {}",
                round_trip.as_deref().unwrap_or(NOTHING)
            ),
        ),
        (
            "bytes",
            format!(
                "{} from it, {} to it, {} not sent yet",
                carried(connection.bytes_received),
                carried(connection.bytes_sent),
                bytes(fraction(connection.output_bytes))
            ),
        ),
        ("certificate", named(certificate)),
        ("slowed", listed(&connection.limited)),
    ]
}

fn listed(texts: &[String]) -> String {
    if texts.is_empty() {
        NOTHING.to_owned()
    } else {
        texts.join(", ")
    }
}

fn of_will(will: &Will) -> String {
    let retained = if will.retain {
        "retained"
    } else {
        "not retained"
    };
    format!(
        "{}, qos {}, {retained}, {}, published {} after the connection",
        name(&will.topic),
        will.qos,
        bytes(fraction(will.payload_bytes)),
        seconds(will.delay_secs)
    )
}

fn of_subscription(one: &Subscription) -> String {
    let mut text = format!("qos {}  {}", one.qos, name(&one.filter));
    let identifier = one.identifier.map(|number| format!("identifier {number}"));
    let handling = match one.retain_handling {
        1 => Some("retained messages only if new"),
        2 => Some("no retained messages"),
        _ => None,
    };
    for what in [
        one.no_local.then_some("no local"),
        one.retain_as_published.then_some("retain as published"),
        handling,
        identifier.as_deref(),
    ]
    .into_iter()
    .flatten()
    {
        text.extend([", ", what]);
    }
    text.push('\n');
    text
}
