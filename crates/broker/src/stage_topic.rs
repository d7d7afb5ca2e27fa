//! `$SYS/broker/stages`: the durations of the stages of stamped messages since the start, for
//! `thrum bench` and for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use thrum_codec::QoS;
use thrum_engine::Engine;
use thrum_engine::stages::{MESSAGE_STAGES, StageFigures, StageSeries};
use thrum_protocol::{Message, Publication};

/// The topic, which is published each second while messages are stamped.
const TOPIC: &str = "$SYS/broker/stages";

/// The figures last published; none while no message is stamped.
#[derive(Debug, Default)]
pub(crate) struct StageTopic {
    last: Option<Published>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Published {
    every: u32,
    changes: u64,
}

#[derive(Serialize)]
struct Body {
    /// One of this many messages is stamped.
    every: u32,
    stamped: u64,
    unreceived: u64,
    table_full: u64,
    unfinished: u64,
    stages: BTreeMap<&'static str, StageBody>,
}

#[derive(Serialize)]
struct StageBody {
    count: u64,
    sum_ns: u64,
    mean_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    /// The histogram: the highest value of each bucket in nanoseconds, and its count.
    counts: Vec<(u64, u64)>,
}

impl StageTopic {
    /// Publishes the figures if they have changed, and removes them when stamping is turned off or
    /// they are not wanted.
    pub(crate) fn publish(&mut self, engine: &mut Engine, is_wanted: bool) {
        let every = engine.core.settings.stamp_every;
        let stages = &engine.core.node.stages;
        let changes = stages.changes().filter(|_| is_wanted && every > 0);
        // The figures of many workers are added up only if they are published.
        let published = changes.map(|changes| Published { every, changes });
        if published == self.last {
            return;
        }
        let figures = stages.merged().filter(|_| published.is_some());
        let payload = figures.and_then(|figures| body(every, &figures));
        let payload = payload.unwrap_or_default();
        let message = Message::new(&Publication {
            retain: true,
            ..Publication::new(TOPIC, payload.as_bytes(), QoS::AtMostOnce)
        });
        engine.publish_message(&Arc::new(message), None);
        self.last = published;
    }
}

fn body(every: u32, figures: &StageFigures) -> Option<String> {
    let stages = MESSAGE_STAGES
        .into_iter()
        .map(|(name, stage)| (name, stage_body(figures.series(stage))));
    let body = Body {
        every,
        stamped: figures.stamped,
        unreceived: figures.unreceived,
        table_full: figures.table_full,
        unfinished: figures.unfinished,
        stages: stages.collect(),
    };
    serde_json::to_string(&body).ok()
}

fn stage_body(series: &StageSeries) -> StageBody {
    let count = series.count();
    StageBody {
        count,
        sum_ns: series.sum_ns,
        mean_ns: series.sum_ns.checked_div(count).unwrap_or(0),
        p50_ns: series.quantile_ns(500),
        p99_ns: series.quantile_ns(990),
        counts: series.cells().collect(),
    }
}

/// Length of the text of figures that contain every duration.
#[cfg(test)]
pub(crate) fn longest_text_bytes() -> usize {
    let figures = StageFigures::full(1_000_000);
    body(u32::MAX, &figures).unwrap_or_default().len()
}
