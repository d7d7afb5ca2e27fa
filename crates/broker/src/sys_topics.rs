//! `$SYS/broker/…`: the figures of the node as retained messages, under the names that Mosquitto
//! uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thrum_access::Gatekeeper;
use thrum_codec::QoS;
use thrum_engine::Engine;
use thrum_engine::node::metrics::{Counter, Metrics};
use thrum_engine::refusals::PublishRefusal;
use thrum_engine::sinks::{SinkCounts, Sinks};
use thrum_protocol::{Message, Publication, Time};
use thrum_storage::{Health, MetricsSnapshot};

use crate::protection;

/// The value of `$SYS/broker/version`.
const VERSION: &str = concat!("thrum version ", env!("CARGO_PKG_VERSION"));

/// Counters and their topics.
const COUNTS: [(&str, Counter); 62] = [
    ("bytes/received", Counter::BytesReceived),
    ("bytes/sent", Counter::BytesSent),
    ("clients/connected", Counter::ClientsConnected),
    ("clients/total", Counter::Sessions),
    ("clients/persistent", Counter::SessionsPersistent),
    ("clients/expired", Counter::SessionsExpired),
    ("messages/received", Counter::PacketsReceived),
    ("publish/messages/received", Counter::PublishReceived),
    ("publish/messages/sent", Counter::PublishSent),
    ("publish/messages/held", Counter::PublishesHeld),
    ("publish/held/clients", Counter::PublishersHeld),
    ("publish/held/bytes", Counter::BytesHeld),
    ("publish/messages/refused_untold", Counter::RefusedUntold),
    ("publish/bytes/received", Counter::PublishBytesReceived),
    ("publish/bytes/sent", Counter::PublishBytesSent),
    ("subscriptions/count", Counter::Subscriptions),
    ("shared_subscriptions/count", Counter::SharedSubscriptions),
    (
        "shared_subscriptions/redispatched",
        Counter::SharedRedispatched,
    ),
    ("connections/opened", Counter::ConnectionsOpened),
    ("connections/closed", Counter::ConnectionsClosed),
    ("connections/refused", Counter::ConnectionsRefused),
    ("connections/over_limit", Counter::ConnectionsOverLimit),
    ("connections/rate_deferred", Counter::ConnectRateDeferred),
    ("connections/connect_timeouts", Counter::ConnectTimeouts),
    (
        "connections/keep_alive_timeouts",
        Counter::KeepAliveTimeouts,
    ),
    ("connections/violations", Counter::Violations),
    ("connections/takeovers", Counter::Takeovers),
    ("connections/handed_over", Counter::Handovers),
    ("connections/kicked", Counter::ClientsKicked),
    ("connections/handshakes_failed", Counter::HandshakesFailed),
    ("connections/layers_failed", Counter::LayersFailed),
    ("connections/proxy_refused", Counter::ProxyRefused),
    ("authentication/turned_away", Counter::AdmissionsRevoked),
    (
        "authentication/client_ids/of_another_user",
        Counter::ClientIdsOfOthers,
    ),
    (
        "authentication/client_ids/not_of_user",
        Counter::ClientIdsNotOfUser,
    ),
    ("authorization/asked", Counter::DecisionsAsked),
    ("authorization/remembered", Counter::DecisionsRemembered),
    ("authorization/publish/denied", Counter::PublishDenied),
    ("authorization/subscribe/denied", Counter::SubscribeDenied),
    (
        "authorization/subscriptions/revoked",
        Counter::SubscriptionsRevoked,
    ),
    ("authorization/wills/denied", Counter::WillsDenied),
    ("log/clients/left_out", Counter::ClientLinesLeftOut),
    ("events/left_out", Counter::EventsLeftOut),
    ("timelines/forgotten", Counter::TimelineEventsForgotten),
    ("sinks/refused", Counter::SinkRefused),
    ("work/reads", Counter::Reads),
    ("work/writes", Counter::Writes),
    ("work/turns", Counter::Turns),
    ("work/routes_forgotten", Counter::RoutesForgotten),
    ("work/portions_used_up", Counter::PortionsUsedUp),
    ("work/readers_put_off", Counter::ReadersPutOff),
    ("work/mail_put_off", Counter::MailPutOff),
    ("work/timers_put_off", Counter::TimersPutOff),
    ("work/reviews_awaited", Counter::ReviewsAwaited),
    ("work/writes_put_off", Counter::WritesPutOff),
    ("questions/asked", Counter::QuestionsAsked),
    ("questions/refused", Counter::QuestionsRefused),
    ("questions/given_up", Counter::QuestionsGivenUp),
    ("topics/messages_untold", Counter::TopicMessagesUntold),
    ("streams/refused", Counter::StreamsRefused),
    ("streams/cut", Counter::StreamsCut),
    ("streams/states_skipped", Counter::StreamStatesSkipped),
];

/// Number of times that each limit of the configuration was reached, under the limit's own name.
const LIMITS: [(&str, Counter); 30] = [
    ("connections", Counter::ConnectionsOverLimit),
    ("sessions", Counter::LimitSessions),
    ("user/sessions", Counter::LimitUserSessions),
    ("address/sessions", Counter::LimitAddressSessions),
    ("connect_rate", Counter::ConnectRateDeferred),
    ("connect_timeout", Counter::ConnectTimeouts),
    ("max_packet", Counter::LimitPacket),
    ("max_payload", Counter::LimitPayload),
    ("client_id_length", Counter::LimitClientId),
    ("topic_length", Counter::LimitTopic),
    ("packet_filters", Counter::LimitPacketFilters),
    ("mailbox", Counter::MailboxFull),
    ("mailbox/publishers_paused", Counter::PublishersPaused),
    ("output_bytes", Counter::LimitOutput),
    ("memory", Counter::LimitMemory),
    ("memory/sessions", Counter::LimitMemorySessions),
    ("memory/subscriptions", Counter::LimitMemorySubscriptions),
    ("retained", Counter::RetainedRefused),
    ("storage", Counter::StorageRefused),
    ("client/subscriptions", Counter::LimitSubscriptions),
    (
        "client/shared_subscriptions",
        Counter::LimitSharedSubscriptions,
    ),
    ("client/subscription_bytes", Counter::LimitSubscriptionBytes),
    (
        "client/message_identifiers",
        Counter::LimitMessageIdentifiers,
    ),
    ("client/receive_maximum", Counter::LimitReceiveMaximum),
    ("client/topic_aliases", Counter::LimitTopicAlias),
    ("client/inflight", Counter::Queued),
    ("client/queue", Counter::DroppedQueueFull),
    ("client/queue_policy", Counter::DroppedQueueOldest),
    ("client/queue_hold", Counter::LimitQueueHold),
    ("client/queue_age", Counter::DroppedQueueAge),
];

/// Messages that were not delivered, by reason.
pub(crate) const DROPS: [(&str, Counter); 12] = [
    ("queue_full", Counter::DroppedQueueFull),
    ("queue_oldest", Counter::DroppedQueueOldest),
    ("queue_age", Counter::DroppedQueueAge),
    ("offline", Counter::DroppedOffline),
    ("slow_consumer", Counter::DroppedSlowConsumer),
    ("too_large", Counter::DroppedTooLarge),
    ("expired", Counter::DroppedExpired),
    ("outside_mount", Counter::DroppedOutsideMount),
    ("not_allowed", Counter::DroppedNotAllowed),
    ("memory_short", Counter::DroppedMemoryShort),
    ("no_shared_member", Counter::DroppedNoSharedMember),
    ("retained_refused", Counter::RetainedLost),
];

/// Counters that `$SYS` shows only as a part of a sum or as a load.
const PARTS: [(&str, Counter); 2] = [
    ("answers/sent", Counter::AnswersSent),
    ("connections/accepted", Counter::ConnectsAccepted),
];

/// A figure that is the sum of several counters.
type Figure = fn(&Metrics) -> u64;

/// Figures with averages over 1, 5 and 15 minutes, per minute.
const LOADS: [(&str, Figure); 9] = [
    ("load/bytes/received", |all| {
        all.total(Counter::BytesReceived)
    }),
    ("load/bytes/sent", |all| all.total(Counter::BytesSent)),
    ("load/connections", |all| {
        all.total(Counter::ConnectsAccepted)
    }),
    ("load/messages/received", |all| {
        all.total(Counter::PacketsReceived)
    }),
    ("load/messages/sent", packets_sent),
    ("load/publish/dropped", dropped),
    ("load/publish/received", |all| {
        all.total(Counter::PublishReceived)
    }),
    ("load/publish/sent", |all| all.total(Counter::PublishSent)),
    ("load/sockets", |all| all.total(Counter::ConnectionsOpened)),
];

const WINDOWS: [(&str, f64); 3] = [("1min", 60.0), ("5min", 300.0), ("15min", 900.0)];

/// The values last published, and the averages.
#[derive(Debug)]
pub(crate) struct SysTopics {
    last: BTreeMap<String, String>,
    loads: [Load; LOADS.len()],
    started: Time,
    sampled_at: Time,
    clients_maximum: u64,
}

/// The source of the topics' values.
#[derive(Debug)]
struct Figures<'a> {
    metrics: &'a Metrics,
    /// Retained messages and their bytes.
    retained: (usize, usize),
    /// Retained messages that new subscribers do not receive.
    withheld: usize,
    storage: Option<(Health, MetricsSnapshot)>,
    sinks: &'a Sinks,
    gatekeeper: Option<&'a dyn Gatekeeper>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    count: u64,
    per_minute: [f64; WINDOWS.len()],
}

impl SysTopics {
    /// The state at the start of a node.
    pub(crate) fn new(started: Time) -> Self {
        Self {
            last: BTreeMap::new(),
            loads: [Load::default(); LOADS.len()],
            started,
            sampled_at: started,
            clients_maximum: 0,
        }
    }

    /// Topics and values that changed since the last call.
    fn changes(&mut self, figures: &Figures<'_>, now: Time) -> Vec<(String, String)> {
        let Figures {
            metrics,
            retained,
            withheld,
            ..
        } = *figures;
        let mut values = Vec::new();
        let mut put =
            |topic: &str, value: String| values.push((format!("$SYS/broker/{topic}"), value));
        put("version", VERSION.to_owned());
        let uptime = now.since(self.started).as_secs();
        put("uptime", format!("{uptime} seconds"));
        for (topic, counter) in COUNTS.into_iter().chain(protection::TOPICS) {
            put(topic, metrics.total(counter).to_string());
        }
        for (limit, counter) in LIMITS {
            put(
                &format!("limits/{limit}"),
                metrics.total(counter).to_string(),
            );
        }
        let connected = metrics.total(Counter::ClientsConnected);
        let away = metrics.total(Counter::Sessions).saturating_sub(connected);
        self.clients_maximum = self.clients_maximum.max(connected);
        put("clients/disconnected", away.to_string());
        put("clients/active", connected.to_string());
        put("clients/inactive", away.to_string());
        put("clients/maximum", self.clients_maximum.to_string());
        put("retained messages/count", retained.0.to_string());
        put("retained messages/withheld", withheld.to_string());
        put("store/messages/count", retained.0.to_string());
        put("store/messages/bytes", retained.1.to_string());
        put("publish/messages/dropped", dropped(metrics).to_string());
        put("messages/sent", packets_sent(metrics).to_string());
        put("messages/stored", retained.0.to_string());
        for (reason, counter) in DROPS {
            put(
                &format!("publish/messages/dropped/{reason}"),
                metrics.total(counter).to_string(),
            );
        }
        put("publish/messages/refused", refused(metrics).to_string());
        for reason in PublishRefusal::ALL {
            put(
                &format!("publish/messages/refused/{}", reason.name()),
                metrics.total(reason.counter()).to_string(),
            );
        }
        if let Some((health, storage)) = &figures.storage {
            storage_values(*health, storage, &mut put);
        }
        for sink in figures.sinks.iter() {
            sink_values(&sink.name, sink.queue.counts(), &mut put);
        }
        if let Some(gatekeeper) = figures.gatekeeper {
            gatekeeper.figures(&mut |topic, value| put(topic, value.to_string()));
        }
        let elapsed = now.since(self.sampled_at);
        self.sampled_at = now;
        for ((topic, figure), load) in LOADS.iter().zip(&mut self.loads) {
            load.sample(figure(metrics), elapsed);
            for ((window, _), per_minute) in WINDOWS.iter().zip(load.per_minute) {
                put(&format!("{topic}/{window}"), format!("{per_minute:.2}"));
            }
        }
        values.retain(|(topic, value)| self.last.get(topic) != Some(value));
        self.last.extend(values.iter().cloned());
        values
    }
}

/// All counters, by the names of their topics.
pub(crate) fn counters(metrics: &Metrics) -> impl Iterator<Item = (String, u64)> {
    let plain = COUNTS.into_iter().chain(protection::TOPICS).chain(PARTS);
    let plain = plain.map(|(name, counter)| (name.to_owned(), counter));
    let limits = LIMITS.map(|(limit, counter)| (format!("limits/{limit}"), counter));
    let drops = DROPS.map(|(reason, counter)| {
        let name = format!("publish/messages/dropped/{reason}");
        (name, counter)
    });
    let refusals = PublishRefusal::ALL.map(|reason| {
        let name = format!("publish/messages/refused/{}", reason.name());
        (name, reason.counter())
    });
    let all = plain.chain(limits).chain(drops).chain(refusals);
    all.map(|(name, counter)| (name, metrics.total(counter)))
}

/// The state of the storage in words.
pub(crate) const fn health_words(health: Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Full => "full",
        Health::Failing => "failing",
    }
}

/// The counters of the storage thread, by the names of their topics.
pub(crate) fn storage_counters(storage: &MetricsSnapshot) -> [(&'static str, u64); 10] {
    [
        ("storage/bytes/needed", storage.usage.live_bytes),
        ("storage/bytes/used", storage.usage.used_bytes),
        ("storage/bytes/maximum", storage.usage.disk_bytes_max),
        ("storage/bytes/written", storage.bytes),
        ("storage/bytes/waiting", storage.queue_bytes),
        ("storage/sessions", storage.usage.sessions as u64),
        ("storage/messages", storage.usage.messages as u64),
        ("storage/commits", storage.commits),
        ("storage/commits/failed", storage.failures),
        ("storage/damaged", storage.usage.damaged_places),
    ]
}

/// The values of the storage: its health and its counters.
fn storage_values(health: Health, storage: &MetricsSnapshot, put: &mut impl FnMut(&str, String)) {
    put("storage/health", health_words(health).to_owned());
    for (topic, value) in storage_counters(storage) {
        put(topic, value.to_string());
    }
    let micros = storage.commit_micros.to_string();
    put("storage/commits/microseconds", micros);
}

/// Counts of a sink.
fn sink_values(name: &str, counts: SinkCounts, put: &mut impl FnMut(&str, String)) {
    let SinkCounts {
        offered,
        written,
        dropped,
        failures,
        waiting,
        waiting_bytes,
    } = counts;
    for (figure, value) in [
        ("offered", offered),
        ("written", written),
        ("dropped", dropped),
        ("failures", failures),
        ("waiting", waiting),
        ("waiting/bytes", waiting_bytes),
    ] {
        put(&format!("sinks/{name}/{figure}"), value.to_string());
    }
}

fn packets_sent(metrics: &Metrics) -> u64 {
    metrics.total(Counter::PublishSent) + metrics.total(Counter::AnswersSent)
}

pub(crate) fn dropped(metrics: &Metrics) -> u64 {
    DROPS
        .iter()
        .map(|(_, counter)| metrics.total(*counter))
        .sum()
}

/// Messages that were refused to their publishers.
pub(crate) fn refused(metrics: &Metrics) -> u64 {
    PublishRefusal::ALL
        .iter()
        .map(|reason| metrics.total(reason.counter()))
        .sum()
}

impl Load {
    /// Adds a sample to an exponentially weighted average, as the load average of a Unix system.
    fn sample(&mut self, count: u64, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate for people needs no 53 bits"
        )]
        let now = count.wrapping_sub(self.count) as f64 * 60.0 / seconds;
        self.count = count;
        for ((_, window), average) in WINDOWS.iter().zip(&mut self.per_minute) {
            let keep = (-seconds / window).exp();
            *average = *average * keep + now * (1.0 - keep);
        }
    }
}

impl SysTopics {
    /// Publishes the changed values as retained messages.
    pub(crate) fn publish(&mut self, engine: &mut Engine) {
        let core = &engine.core;
        let journal = core.durable.journal.as_deref();
        let retained = &core.node.retained;
        let figures = Figures {
            metrics: &core.node.metrics,
            sinks: &core.node.sinks,
            retained: retained.size(),
            withheld: retained.withheld(),
            storage: journal.map(|journal| (journal.health(), journal.metrics())),
            gatekeeper: core.settings.access.access.gatekeeper.as_deref(),
        };
        for (topic, value) in self.changes(&figures, core.turn.now) {
            let message = Message::new(&Publication {
                retain: true,
                ..Publication::new(&topic, value.as_bytes(), QoS::AtMostOnce)
            });
            engine.publish_message(&Arc::new(message), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn figures(metrics: &Metrics) -> Figures<'_> {
        static SINKS: LazyLock<Sinks> = LazyLock::new(Sinks::default);
        Figures {
            metrics,
            sinks: &SINKS,
            retained: (0, 0),
            withheld: 0,
            storage: Some((Health::Healthy, MetricsSnapshot::default())),
            gatekeeper: None,
        }
    }

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let metrics = Metrics::new(1);
        let count = metrics.row(0).number();
        let named: BTreeMap<String, u64> = counters(&metrics).collect();
        let mut shown: Vec<u64> = named.into_values().collect();
        shown.sort_unstable();
        shown.dedup();
        assert_eq!(shown, (1..=count).collect::<Vec<_>>());
    }

    #[test]
    fn a_refusal_to_retain_that_its_publisher_knows_of_is_no_drop() {
        let metrics = Metrics::new(1);
        for counter in [Counter::RetainedRefused, Counter::RefusedRetainedLimit] {
            metrics.row(0).add(counter, 1);
        }
        assert_eq!((dropped(&metrics), refused(&metrics)), (0, 1));
        for counter in [Counter::RetainedRefused, Counter::RetainedLost] {
            metrics.row(0).add(counter, 1);
        }
        assert_eq!((dropped(&metrics), refused(&metrics)), (1, 1));
    }

    #[test]
    fn only_changed_values_are_published_again() {
        let metrics = Metrics::new(2);
        let mut sys = SysTopics::new(Time::from_millis(0));
        let first = sys.changes(&figures(&metrics), Time::from_millis(1000));
        assert!(
            first
                .iter()
                .any(|(topic, _)| topic == "$SYS/broker/version")
        );
        metrics.row(1).add(Counter::PublishReceived, 5);
        let second = sys.changes(&figures(&metrics), Time::from_millis(1000));
        assert_eq!(
            second,
            [(
                "$SYS/broker/publish/messages/received".to_owned(),
                "5".to_owned()
            )]
        );
    }

    #[test]
    fn the_uptime_counts_from_the_start_of_the_node() {
        let (start, now) = (Time::from_millis(90_000), Time::from_millis(102_700));
        let topics = SysTopics::new(start).changes(&figures(&Metrics::new(1)), now);
        let uptime = topics
            .iter()
            .find(|(topic, _)| topic == "$SYS/broker/uptime");
        assert_eq!(uptime.map(|(_, value)| value.as_str()), Some("12 seconds"));
    }

    #[test]
    fn the_guide_lists_every_topic() {
        let guide = include_str!("../../../docs/guide/sys-topics.md");
        let start = Time::from_millis(0);
        let topics = SysTopics::new(start).changes(&figures(&Metrics::new(1)), start);
        for (topic, _) in topics {
            let name = topic.trim_start_matches("$SYS/broker/");
            let name = name.trim_start_matches("limits/");
            let window = WINDOWS
                .iter()
                .find_map(|(window, _)| name.strip_suffix(window)?.strip_suffix('/'));
            let name = window.unwrap_or(name);
            assert!(
                guide.contains(&format!("`{name}`")),
                "{topic} is not in the guide"
            );
        }
    }

    #[test]
    fn a_steady_rate_is_the_load() {
        let mut load = Load::default();
        for second in 1..=3600_u64 {
            load.sample(second * 10, Duration::from_secs(1));
        }
        for average in load.per_minute {
            assert!(
                (average - 600.0).abs() < 15.0,
                "{average} per minute instead of 600"
            );
        }
    }
}
