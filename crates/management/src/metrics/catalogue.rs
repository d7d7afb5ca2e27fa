//! The counters of the broker, which it names as its `$SYS` topics, and their metrics.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::family::{Family, Kind, Sample, Value};

/// Where the series of a metric come from.
enum Source {
    /// One series without labels: that counter.
    One(&'static str),
    /// A label, and for each of its values the counter.
    Each(&'static str, &'static [(&'static str, &'static str)]),
    /// A label, whose values are the names of all counters below that one.
    Below(&'static str, &'static str),
}

/// A metric of counters.
struct Entry {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    source: Source,
}

/// A metric that only increases.
const fn counter(name: &'static str, help: &'static str, source: Source) -> Entry {
    Entry {
        name,
        kind: Kind::Counter,
        help,
        source,
    }
}

/// A metric that goes up and down.
const fn gauge(name: &'static str, help: &'static str, source: Source) -> Entry {
    Entry {
        name,
        kind: Kind::Gauge,
        help,
        source,
    }
}

/// Counters that no metric here has: `work/turns` is a metric of the workers, and the others are a
/// limit or an overload under a second name.
#[cfg(test)]
const ELSEWHERE: [&str; 4] = [
    "work/turns",
    "connections/over_limit",
    "connections/rate_deferred",
    "protection/overload/handshakes",
];

const CLIENTS: [Entry; 16] = [
    gauge(
        "thrum_clients_connected",
        "Clients that are connected.",
        Source::One("clients/connected"),
    ),
    gauge(
        "thrum_sessions",
        "Sessions, with and without a connection.",
        Source::One("clients/total"),
    ),
    gauge(
        "thrum_sessions_persistent",
        "Sessions that outlive their connection.",
        Source::One("clients/persistent"),
    ),
    counter(
        "thrum_sessions_expired",
        "Sessions that ended because their expiry passed.",
        Source::One("clients/expired"),
    ),
    counter(
        "thrum_clients_accepted",
        "CONNECT packets that were accepted.",
        Source::One("connections/accepted"),
    ),
    counter(
        "thrum_clients_refused",
        "CONNECT packets that were refused.",
        Source::One("connections/refused"),
    ),
    counter(
        "thrum_connections_opened",
        "Connections that were accepted.",
        Source::One("connections/opened"),
    ),
    counter(
        "thrum_connections_closed",
        "Connections that were closed.",
        Source::One("connections/closed"),
    ),
    counter(
        "thrum_connections_handed_over",
        "Connections that one worker accepted and whose session another worker owns.",
        Source::One("connections/handed_over"),
    ),
    counter(
        "thrum_disconnects",
        "Connections that the broker ended, by reason.",
        Source::Each(
            "reason",
            &[
                ("connect_timeout", "connections/connect_timeouts"),
                ("keep_alive", "connections/keep_alive_timeouts"),
                ("protocol_error", "connections/violations"),
                ("taken_over", "connections/takeovers"),
                ("kicked", "connections/kicked"),
                ("handshake", "connections/handshakes_failed"),
                ("tls_or_websocket", "connections/layers_failed"),
                ("proxy_header", "connections/proxy_refused"),
                ("not_admitted", "authentication/turned_away"),
                ("banned", "protection/bans/disconnected"),
            ],
        ),
    ),
    counter(
        "thrum_client_ids_refused",
        "Clients refused because of their client identifier, by reason.",
        Source::Each(
            "reason",
            &[
                (
                    "of_another_user",
                    "authentication/client_ids/of_another_user",
                ),
                ("not_of_user", "authentication/client_ids/not_of_user"),
            ],
        ),
    ),
    gauge(
        "thrum_subscriptions",
        "Subscriptions, shared ones included.",
        Source::One("subscriptions/count"),
    ),
    gauge(
        "thrum_shared_subscriptions",
        "Memberships in shared groups.",
        Source::One("shared_subscriptions/count"),
    ),
    counter(
        "thrum_shared_messages_redispatched",
        "Messages given to another member of a shared group because the first one disconnected.",
        Source::One("shared_subscriptions/redispatched"),
    ),
    counter(
        "thrum_events_left_out",
        "Client events that were not published because too many of one worker waited.",
        Source::One("events/left_out"),
    ),
    counter(
        "thrum_client_log_lines_left_out",
        "Lines about connecting and disconnecting clients that were not logged because there were too many.",
        Source::One("log/clients/left_out"),
    ),
];

const MESSAGES: [Entry; 16] = [
    counter(
        "thrum_messages_received",
        "PUBLISH packets received from clients.",
        Source::One("publish/messages/received"),
    ),
    counter(
        "thrum_messages_sent",
        "PUBLISH packets sent to clients.",
        Source::One("publish/messages/sent"),
    ),
    counter(
        "thrum_messages_dropped",
        "Messages not delivered to one receiver, by reason.",
        Source::Below("reason", "publish/messages/dropped/"),
    ),
    counter(
        "thrum_publishes_refused",
        "PUBLISH packets that were refused or discarded instead of routed, by reason.",
        Source::Below("reason", "publish/messages/refused/"),
    ),
    counter(
        "thrum_publishes_refused_untold",
        "Of these, those whose publisher does not know it: QoS 0, and MQTT 3.1.1.",
        Source::One("publish/messages/refused_untold"),
    ),
    counter(
        "thrum_messages_held",
        "PUBLISH packets that waited for room in a queue.",
        Source::One("publish/messages/held"),
    ),
    gauge(
        "thrum_publishers_held",
        "Publishers whose PUBLISH waits for room in a queue.",
        Source::One("publish/held/clients"),
    ),
    gauge(
        "thrum_held_bytes",
        "Bytes of the PUBLISH packets that wait for room in a queue.",
        Source::One("publish/held/bytes"),
    ),
    counter(
        "thrum_payload_received_bytes",
        "Payload bytes of PUBLISH packets received.",
        Source::One("publish/bytes/received"),
    ),
    counter(
        "thrum_payload_sent_bytes",
        "Payload bytes of PUBLISH packets sent.",
        Source::One("publish/bytes/sent"),
    ),
    counter(
        "thrum_packets_received",
        "Packets of all kinds received from clients.",
        Source::One("messages/received"),
    ),
    counter(
        "thrum_packets_sent",
        "Packets sent to clients, by kind.",
        Source::Each(
            "kind",
            &[
                ("publish", "publish/messages/sent"),
                ("other", "answers/sent"),
            ],
        ),
    ),
    counter(
        "thrum_received_bytes",
        "Bytes read from clients.",
        Source::One("bytes/received"),
    ),
    counter(
        "thrum_sent_bytes",
        "Bytes written to clients.",
        Source::One("bytes/sent"),
    ),
    counter(
        "thrum_sink_messages_refused",
        "PUBLISH packets refused because a sink was full that refuses publishers.",
        Source::One("sinks/refused"),
    ),
    counter(
        "thrum_limit_reached",
        "How often a limit was reached, by its name in the configuration below limits.",
        Source::Below("limit", "limits/"),
    ),
];

const PROTECTION: [Entry; 21] = [
    counter(
        "thrum_authorization_denied",
        "PUBLISH packets, filters and wills denied by the rules or a service, by action.",
        Source::Each(
            "action",
            &[
                ("publish", "authorization/publish/denied"),
                ("subscribe", "authorization/subscribe/denied"),
                ("will", "authorization/wills/denied"),
            ],
        ),
    ),
    counter(
        "thrum_authorization_questions",
        "Questions to services about topics.",
        Source::One("authorization/asked"),
    ),
    counter(
        "thrum_authorization_remembered",
        "PUBLISH packets decided by an earlier answer of a service.",
        Source::One("authorization/remembered"),
    ),
    counter(
        "thrum_subscriptions_revoked",
        "Subscriptions that ended because the rules changed.",
        Source::One("authorization/subscriptions/revoked"),
    ),
    counter(
        "thrum_banned_clients_refused",
        "Clients refused because of a ban, by what is banned.",
        Source::Each(
            "banned",
            &[
                ("client_id", "protection/bans/client_id"),
                ("username", "protection/bans/username"),
                ("address", "protection/bans/address"),
            ],
        ),
    ),
    counter(
        "thrum_flapping_bans",
        "Bans of clients that connected too often.",
        Source::One("protection/flapping/bans"),
    ),
    counter(
        "thrum_flapping_bans_forgotten",
        "Bans of such clients that were not made because there are too many.",
        Source::One("protection/flapping/forgotten"),
    ),
    counter(
        "thrum_logins_failed",
        "Logins that failed because of the client's credentials.",
        Source::One("protection/logins/failed"),
    ),
    counter(
        "thrum_login_waits",
        "Times that an address or user had to wait because of failed logins.",
        Source::One("protection/logins/waits"),
    ),
    counter(
        "thrum_logins_refused",
        "Logins refused during such a wait.",
        Source::One("protection/logins/refused"),
    ),
    counter(
        "thrum_overloads",
        "Times that a worker began to defer work, by cause.",
        Source::Each(
            "cause",
            &[
                ("lag", "protection/overload/lag"),
                ("long_lag", "protection/overload/long_lag"),
                ("memory", "protection/overload/memory"),
                ("handshakes", "limits/handshakes"),
            ],
        ),
    ),
    gauge(
        "thrum_overloaded_workers",
        "Workers that defer work because of overload, by action.",
        Source::Each(
            "action",
            &[
                ("defers_connections", "protection/overload/deferring"),
                ("slows_publishers", "protection/overload/slowing"),
            ],
        ),
    ),
    counter(
        "thrum_accepts_deferred",
        "Times that accepting connections was deferred because of overload.",
        Source::One("protection/overload/deferred"),
    ),
    counter(
        "thrum_publishers_paused",
        "Times that a publisher was not read for a moment because of overload.",
        Source::One("protection/overload/publishers_paused"),
    ),
    counter(
        "thrum_operator_queries",
        "Queries of operators to the workers.",
        Source::One("questions/asked"),
    ),
    counter(
        "thrum_operator_queries_refused",
        "Queries of operators that were refused because too many were under way.",
        Source::One("questions/refused"),
    ),
    counter(
        "thrum_operator_queries_given_up",
        "Queries that a worker gave up because nobody waited for the answer.",
        Source::One("questions/given_up"),
    ),
    counter(
        "thrum_topic_messages_untold",
        "Messages whose topic found no room in the live tree of topics.",
        Source::One("topics/messages_untold"),
    ),
    counter(
        "thrum_live_streams_refused",
        "Live streams and traces refused because too many were open.",
        Source::One("streams/refused"),
    ),
    counter(
        "thrum_live_streams_cut",
        "Live streams and traces ended because their reader took nothing for too long.",
        Source::One("streams/cut"),
    ),
    counter(
        "thrum_live_states_skipped",
        "States that a live stream left out because its reader or its share was too slow; a newer one followed.",
        Source::One("streams/states_skipped"),
    ),
];

const WORK: [Entry; 7] = [
    counter(
        "thrum_socket_reads",
        "Reads of client sockets.",
        Source::One("work/reads"),
    ),
    counter(
        "thrum_socket_writes",
        "Writes to client sockets.",
        Source::One("work/writes"),
    ),
    counter(
        "thrum_work_put_off",
        "Turns that left work for the next one because their share was used up, by kind of work.",
        Source::Each(
            "work",
            &[
                ("readers", "work/readers_put_off"),
                ("mail", "work/mail_put_off"),
                ("timers", "work/timers_put_off"),
                ("writes", "work/writes_put_off"),
            ],
        ),
    ),
    counter(
        "thrum_portions_used_up",
        "Times that a client had used up its portion of a turn.",
        Source::One("work/portions_used_up"),
    ),
    counter(
        "thrum_routes_forgotten",
        "Times that a worker forgot the routes of all topics because they took too much memory.",
        Source::One("work/routes_forgotten"),
    ),
    counter(
        "thrum_timeline_events_forgotten",
        "Events of the timelines of clients that were forgotten for later ones.",
        Source::One("timelines/forgotten"),
    ),
    counter(
        "thrum_session_reviews_awaited",
        "Times that a client waited for CONNACK because its session was checked against changed rules.",
        Source::One("work/reviews_awaited"),
    ),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    let groups: [&[Entry]; 4] = [&MESSAGES, &CLIENTS, &PROTECTION, &WORK];
    groups.into_iter().flatten()
}

/// The metrics of the counters, whose names and values those are.
pub(super) fn families(counters: &[(String, u64)]) -> Vec<Family> {
    let by_name = counters.iter().map(|(name, value)| (&**name, *value));
    let by_name: BTreeMap<&str, u64> = by_name.collect();
    entries().map(|entry| family(entry, &by_name)).collect()
}

fn family(entry: &Entry, counters: &BTreeMap<&str, u64>) -> Family {
    let family = Family::new(entry.name, entry.kind, entry.help);
    match entry.source {
        Source::One(name) => {
            let values = counters.get(name).map(|value| Sample {
                labels: Vec::new(),
                value: Value::Whole(*value),
            });
            Family {
                samples: values.into_iter().collect(),
                ..family
            }
        }
        Source::Each(label, values) => family.with_each(label, values, |(value, name)| {
            Some((Cow::Borrowed(*value), *counters.get(*name)?))
        }),
        Source::Below(label, prefix) => family.with_each(label, counters, |(name, value)| {
            let name = name.strip_prefix(prefix)?;
            Some((Cow::Owned(name.replace('/', ".")), *value))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::figures_of_a_broker;
    use super::*;

    #[test]
    fn every_counter_of_the_broker_has_a_metric_and_every_metric_a_counter() {
        let counters = figures_of_a_broker().counters;
        let names: BTreeSet<&str> = counters.iter().map(|(name, _)| &**name).collect();
        let mut used: BTreeSet<&str> = ELSEWHERE.into_iter().collect();
        for entry in entries() {
            match entry.source {
                Source::One(name) => {
                    used.insert(name);
                }
                Source::Each(_, values) => used.extend(values.iter().map(|(_, name)| name)),
                Source::Below(_, prefix) => {
                    used.extend(names.iter().filter(|name| name.starts_with(prefix)));
                }
            }
        }
        assert_eq!(used, names);
        let empty = families(&counters);
        assert!(empty.iter().all(|family| !family.samples.is_empty()));
    }

    #[test]
    fn counters_below_a_name_are_values_of_a_label() {
        let counters = [
            ("limits/client/queue".to_owned(), 3),
            ("limits/memory".to_owned(), 4),
        ];
        let all = families(&counters);
        let limits = all.iter().find(|one| one.name == "thrum_limit_reached");
        let samples = limits.unwrap().samples.iter();
        let told: Vec<_> = samples
            .map(|sample| {
                let Value::Whole(value) = sample.value else {
                    panic!("{sample:?}");
                };
                (sample.labels.clone(), value)
            })
            .collect();
        let label = |value| vec![("limit", Cow::Borrowed(value))];
        assert_eq!(told, [(label("client.queue"), 3), (label("memory"), 4)]);
    }
}
