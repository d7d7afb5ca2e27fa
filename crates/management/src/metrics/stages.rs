//! Histograms of the time that messages take in the broker.

use thrum_broker::{MessageStage, STAGE_PARTS, StageFigures, StageSeries};

use super::family::{Family, Histogram, Kind, Value};

/// Upper bounds of the buckets in nanoseconds: 1, 2 and 5 of each power of ten, from a microsecond
/// to a second, and ten seconds.
const BOUNDS_NS: [u64; 20] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// Stages with a metric of their own.
const WHOLE: [(&str, MessageStage, &str); 7] = [
    (
        "thrum_message_seconds",
        MessageStage::Broker,
        "Time of stamped deliveries from the read of the PUBLISH to the last byte written to the receiver.",
    ),
    (
        "thrum_message_socket_seconds",
        MessageStage::Waited,
        "Longest time for which stamped PUBLISH packets can have lain in the socket while the worker served others.",
    ),
    (
        "thrum_message_fan_out_seconds",
        MessageStage::FannedOut,
        "Time from the match of stamped messages until the last receiver on a worker has them in its output.",
    ),
    (
        "thrum_message_mail_seconds",
        MessageStage::Mail,
        "Part of the stage queue in which stamped deliveries are on the way to another worker.",
    ),
    (
        "thrum_message_acknowledge_seconds",
        MessageStage::Acknowledged,
        "Time from the last byte of stamped deliveries to the PUBACK or PUBCOMP of the receiver.",
    ),
    (
        "thrum_publish_answer_seconds",
        MessageStage::Answered,
        "Time from the read of stamped PUBLISH packets to the PUBACK or PUBREC written to the publisher.",
    ),
    (
        "thrum_publish_answer_sync_seconds",
        MessageStage::AnswerSync,
        "Part of thrum_publish_answer_seconds in which the answer waits for the disk.",
    ),
];

/// The metrics of stamped messages; without samples if none is stamped.
pub(super) fn families(figures: Option<&StageFigures>) -> Vec<Family> {
    let mut parts = Family::new(
        "thrum_message_stage_seconds",
        Kind::Histogram,
        "Parts of thrum_message_seconds, which sum to it, by stage.",
    );
    let mut unfollowed = Family::new(
        "thrum_stamped_messages_unfollowed",
        Kind::Counter,
        "Stamped messages, deliveries and answers without a time, by reason.",
    );
    let mut stamped = Family::new(
        "thrum_stamped_messages",
        Kind::Counter,
        "PUBLISH packets that were stamped to be followed.",
    );
    let mut families = WHOLE.map(|(name, _, help)| Family::new(name, Kind::Histogram, help));
    if let Some(figures) = figures {
        for (name, stage) in STAGE_PARTS {
            let labels = vec![("stage", name.into())];
            parts = parts.with_labels(labels, histogram(figures.series(stage)));
        }
        families = WHOLE.map(|(name, stage, help)| {
            Family::new(name, Kind::Histogram, help).with(histogram(figures.series(stage)))
        });
        stamped = stamped.with(Value::Whole(figures.stamped));
        let reasons = [
            ("unreceived", figures.unreceived),
            ("table_full", figures.table_full),
            ("unfinished", figures.unfinished),
        ];
        unfollowed = unfollowed.with_each("reason", &reasons, |(reason, count)| {
            Some(((*reason).into(), *count))
        });
    }
    let mut all = vec![parts];
    all.extend(families);
    all.extend([stamped, unfollowed]);
    all
}

fn histogram(series: &StageSeries) -> Value {
    let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(BOUNDS_NS.len());
    let mut cells = series.cells().peekable();
    let (mut count, mut exact) = (0, Vec::new());
    for bound in BOUNDS_NS {
        while let Some((highest, number)) = cells.next_if(|(highest, _)| *highest <= bound) {
            count += number;
            exact.push((seconds(highest), number));
        }
        buckets.push((seconds(bound), count));
    }
    for (highest, number) in cells {
        count += number;
        exact.push((seconds(highest), number));
    }
    Value::Histogram(Histogram {
        buckets,
        count,
        sum: seconds(series.sum_ns),
        cells: Some(exact),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times need no more than 15 digits"
)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_the_buckets_from_its_own_on() {
        let full = StageFigures::full(2);
        let series = full.series(MessageStage::Read);
        let Value::Histogram(found) = histogram(series) else {
            panic!("no histogram");
        };
        assert_eq!(found.count, series.count());
        let up_to = |bound: u64| {
            let cells = series.cells().filter(|(highest, _)| *highest <= bound);
            cells.map(|(_, count)| count).sum::<u64>()
        };
        for ((bound, count), ns) in found.buckets.iter().zip(BOUNDS_NS) {
            assert_eq!((*bound, *count), (seconds(ns), up_to(ns)));
        }
        let cells = found.cells.unwrap();
        assert_eq!(
            cells.iter().map(|(_, count)| count).sum::<u64>(),
            found.count
        );
        assert!(found.buckets[19].1 < found.count, "there are longer ones");
    }

    #[test]
    fn nothing_is_told_while_no_message_is_stamped() {
        assert!(
            families(None)
                .iter()
                .all(|family| family.samples.is_empty())
        );
    }
}
