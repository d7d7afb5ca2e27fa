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

/// The text last published; none while no message is stamped.
#[derive(Debug, Default)]
pub(crate) struct StageTopic {
    last: Option<String>,
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
    /// Publishes the figures if they have changed, and removes them when stamping is turned off.
    pub(crate) fn publish(&mut self, engine: &mut Engine) {
        let every = engine.core.settings.stamp_every;
        let figures = engine.core.node.stages.merged().filter(|_| every > 0);
        let text = figures.and_then(|figures| body(every, &figures));
        if text == self.last {
            return;
        }
        let payload = text.as_deref().unwrap_or_default();
        let message = Message::new(&Publication {
            retain: true,
            ..Publication::new(TOPIC, payload.as_bytes(), QoS::AtMostOnce)
        });
        engine.publish_message(&Arc::new(message), None);
        self.last = text;
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
    let histogram = &series.histogram;
    let count = histogram.len();
    let buckets = histogram.iter_recorded();
    StageBody {
        count,
        sum_ns: series.sum_ns,
        mean_ns: series.sum_ns.checked_div(count).unwrap_or(0),
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        counts: buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    }
}
