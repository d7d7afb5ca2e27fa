//! Causes of latency as data: all figures that their sentences have.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thrum_broker::WaitPlace;
use thrum_figures::{fraction, ratio};

use super::latency::LatencyCause;
use super::measured::{Measured, SlowClient};
use super::words::{pauses, timeouts};

/// The figures of a cause, whether it is one or not.
pub(super) fn evidence(
    cause: LatencyCause,
    mean_ms: f64,
    measured: &Measured,
) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut put = |name: &str, value: Value| {
        found.insert(name.to_owned(), value);
    };
    put("mean_ms", json!(mean_ms));
    let places = places(cause);
    if !places.is_empty() {
        let waits = places.iter().map(|place| measured.at(*place));
        let (clients, messages) = waits.fold((0.0, 0.0), |(clients, messages), wait| {
            (clients + wait.clients, messages + wait.messages)
        });
        put("waiting_clients", json!(clients));
        put("waiting_messages", json!(messages));
        let worst = measured.worst.iter();
        let worst = worst.filter(|client| places.contains(&client.place));
        put("clients", worst.map(client_evidence).collect());
    }
    found.extend(figures(cause, measured));
    found
}

/// Where the messages of a cause wait.
const fn places(cause: LatencyCause) -> &'static [WaitPlace] {
    match cause {
        LatencyCause::SlowReaders => &[WaitPlace::Socket, WaitPlace::Answers],
        LatencyCause::FullWindows => &[WaitPlace::Window],
        LatencyCause::NetworkLoss => &[WaitPlace::Window, WaitPlace::Socket],
        LatencyCause::Disk => &[WaitPlace::Disk],
        LatencyCause::Mailboxes => &[WaitPlace::Mailbox],
        LatencyCause::Authorization => &[WaitPlace::Backend],
        LatencyCause::RateLimits => &[WaitPlace::Rate],
        LatencyCause::FullQueues => &[WaitPlace::Room],
        LatencyCause::Overload => &[WaitPlace::Overload],
        LatencyCause::Routing | LatencyCause::Handshakes | LatencyCause::Cpu => &[],
    }
}

/// The figures that a cause alone has. A time of stamped messages is the mean of a delivery, null
/// if none was measured.
fn figures(cause: LatencyCause, measured: &Measured) -> BTreeMap<String, Value> {
    let work = &measured.work;
    let times = measured.times.unwrap_or_default();
    let each = |millis: f64| {
        let is_known = times.deliveries > 0;
        json!(is_known.then(|| millis / fraction(times.deliveries)))
    };
    let figures = match cause {
        LatencyCause::SlowReaders => vec![("full_sockets_ms", each(times.slow_write))],
        LatencyCause::FullWindows => vec![("queued_ms", each(times.queue))],
        LatencyCause::NetworkLoss => vec![("machine_resent_share", json!(work.resent))],
        LatencyCause::Disk => disk(measured),
        LatencyCause::Routing => vec![
            ("messages_received", json!(measured.received)),
            ("messages_sent", json!(measured.sent)),
            ("route_ms", each(times.route)),
            ("fan_out_ms", each(times.fan_out)),
            // Those of a part of the clients are not known for each message.
            (
                "receivers_per_message",
                json!((measured.part >= 1.0).then(|| ratio(measured.sent, measured.received))),
            ),
        ],
        LatencyCause::Mailboxes => vec![
            ("mail", json!(work.mail)),
            ("mail_ms", each(times.mail)),
            ("workers", json!(work.workers)),
        ],
        LatencyCause::Authorization => vec![
            ("asked", json!(measured.count("authorization/asked"))),
            ("timeouts", json!(timeouts(measured))),
            ("decision_ms", each(times.authorize)),
        ],
        LatencyCause::RateLimits => {
            let pauses = pauses(measured).into_iter();
            let pauses = pauses.map(|(key, grown)| json!({ "limit": key, "pauses": grown }));
            vec![("pauses", pauses.collect())]
        }
        LatencyCause::Overload => vec![
            ("memory_level", json!(work.memory_level)),
            (
                "late_workers",
                json!(measured.count("protection/overload/lag")),
            ),
        ],
        LatencyCause::Handshakes | LatencyCause::Cpu => machine(measured),
        LatencyCause::FullQueues => Vec::new(),
    };
    figures
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Nothing of a broker that keeps everything in memory.
fn disk(measured: &Measured) -> Vec<(&'static str, Value)> {
    let Some(disk) = measured.work.disk else {
        return Vec::new();
    };
    let busy = ratio(disk.commit_micros, 1000) / measured.millis.max(1.0);
    vec![
        ("commits", json!(disk.commits)),
        ("commit_micros", json!(disk.commit_micros)),
        (
            "longest_commit_micros_below",
            json!(disk.longest_micros_below),
        ),
        ("busy_share", json!(busy.min(1.0))),
        ("healthy", json!(disk.is_healthy)),
    ]
}

/// New connections, and the CPUs that they and the messages need.
fn machine(measured: &Measured) -> Vec<(&'static str, Value)> {
    let (work, now) = (&measured.work, &measured.handshakes);
    let opened = measured.count("connections/opened");
    vec![
        ("handshakes_unfinished", json!(now.open)),
        ("workers_without_place", json!(now.full_workers)),
        ("without_place_secs", json!(now.full_for.as_secs())),
        ("connections_opened", json!(opened)),
        (
            "connections_opened_per_second",
            json!(measured.per_second(opened)),
        ),
        (
            "connections_deferred",
            json!(measured.count("limits/handshakes")),
        ),
        ("worker_running_share", json!(work.worker_running)),
        ("worker_ready_share", json!(work.worker_ready)),
        ("worker_ready_ms", json!(work.cpu_wait_millis)),
        ("machine_busy_share", json!(work.cpu_busy)),
        ("machine_stolen_share", json!(work.cpu_stolen)),
    ]
}

fn client_evidence(client: &SlowClient) -> Value {
    json!({
        "client_id": client.client_id,
        "messages": client.messages,
        "oldest_secs": client.oldest_secs,
        "inflight": client.inflight,
        "output_bytes": client.output_bytes,
        "unsent_bytes": client.unsent_bytes,
        "round_trip_micros": client.round_trip_micros,
        "resent_share": client.resent,
        "delay_ms": client.delay.millis(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::measured::MessageTimes;
    use super::*;

    #[test]
    fn a_time_of_no_delivery_is_not_known() {
        let mut measured = Measured {
            times: Some(MessageTimes {
                deliveries: 4,
                route: 2.0,
                ..MessageTimes::default()
            }),
            ..Measured::default()
        };
        let route = |measured: &Measured| {
            evidence(LatencyCause::Routing, 0.0, measured)["route_ms"].clone()
        };
        assert_eq!(route(&measured), json!(0.5));
        measured.times = None;
        assert_eq!(route(&measured), Value::Null);
    }

    #[test]
    fn what_is_not_the_cause_has_its_figures_as_data() {
        let measured = Measured::default();
        for cause in LatencyCause::ALL {
            let found = evidence(cause, 0.0, &measured);
            assert!(found.contains_key("mean_ms"), "{}", cause.name());
        }
        let found = evidence(LatencyCause::Handshakes, 0.0, &measured);
        assert_eq!(found["connections_deferred"], json!(0));
    }
}
