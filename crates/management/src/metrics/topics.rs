//! Metrics of the filters that an operator has chosen.

use thrum_broker::TopicMetric;

use super::family::{Family, Kind, Label, Value};

fn label(metric: &TopicMetric) -> Label {
    ("filter", metric.figures.filter.to_string().into())
}

/// A counter of each filter.
fn of_each(
    metrics: &[TopicMetric],
    name: &'static str,
    help: &'static str,
    value: fn(&TopicMetric) -> u64,
) -> Family {
    let family = Family::new(name, Kind::Counter, help);
    metrics.iter().fold(family, |family, metric| {
        family.with_labels(vec![label(metric)], Value::Whole(value(metric)))
    })
}

/// All of them.
pub(super) fn families(metrics: &[TopicMetric]) -> Vec<Family> {
    let mut received = Family::new(
        "thrum_topic_messages_received",
        Kind::Counter,
        "Messages that were published to topics of a filter, by quality of service.",
    );
    for metric in metrics {
        for (qos, count) in ["0", "1", "2"].into_iter().zip(metric.figures.received) {
            let labels = vec![label(metric), ("qos", qos.into())];
            received = received.with_labels(labels, Value::Whole(count));
        }
    }
    vec![
        received,
        of_each(
            metrics,
            "thrum_topic_received_bytes",
            "Payload bytes of messages that were published to topics of a filter.",
            |metric| metric.figures.received_bytes,
        ),
        of_each(
            metrics,
            "thrum_topic_messages_delivered",
            "Messages with topics of a filter that sessions took: sent, or queued.",
            |metric| metric.figures.delivered,
        ),
        of_each(
            metrics,
            "thrum_topic_delivered_bytes",
            "Payload bytes of messages with topics of a filter that sessions took.",
            |metric| metric.figures.delivered_bytes,
        ),
        of_each(
            metrics,
            "thrum_topic_messages_dropped",
            "Messages with topics of a filter that sessions did not get.",
            |metric| metric.figures.dropped,
        ),
    ]
}
