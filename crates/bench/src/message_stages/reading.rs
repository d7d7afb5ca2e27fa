//! What a broker tells about the stages of its messages since its start.

use std::collections::BTreeMap;

use serde::Deserialize;
use thrum_report::result::{MessageStages, StageFigures};

/// Most buckets of a stage that are read; two digits up to a minute have 4,000.
const BUCKETS_MAX: usize = 100_000;

/// A reading of `$SYS/broker/stages`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct StageReading {
    every: u32,
    stamped: u64,
    unreceived: u64,
    table_full: u64,
    unfinished: u64,
    stages: BTreeMap<String, Series>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Series {
    count: u64,
    sum_ns: u64,
    /// The highest value of each bucket, and its count.
    counts: Vec<(u64, u64)>,
}

impl StageReading {
    /// None if it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let reading: Self = serde_json::from_str(text).ok()?;
        let all = reading.stages.values();
        let is_sound = |series: &Series| series.counts.len() <= BUCKETS_MAX;
        (reading.every > 0 && all.into_iter().all(is_sound)).then_some(reading)
    }

    /// The stages of the messages between an earlier reading and this one; none if the broker
    /// counts anew since, or stamps another share.
    pub(super) fn since(&self, earlier: &Self) -> Option<MessageStages> {
        if self.every != earlier.every {
            return None;
        }
        let mut stages = BTreeMap::new();
        for (name, series) in &self.stages {
            let before = earlier.stages.get(name).cloned().unwrap_or_default();
            let figures = series.since(&before)?;
            if figures.count > 0 {
                stages.insert(name.clone(), figures);
            }
        }
        Some(MessageStages {
            every: self.every,
            stamped: self.stamped.checked_sub(earlier.stamped)?,
            unreceived: self.unreceived.checked_sub(earlier.unreceived)?,
            table_full: self.table_full.checked_sub(earlier.table_full)?,
            unfinished: self.unfinished.checked_sub(earlier.unfinished)?,
            stages,
            split: None,
        })
    }
}

impl Series {
    fn since(&self, earlier: &Self) -> Option<StageFigures> {
        let count = self.count.checked_sub(earlier.count)?;
        let sum_ns = self.sum_ns.checked_sub(earlier.sum_ns)?;
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for (value, count) in &self.counts {
            *buckets.entry(*value).or_default() += count;
        }
        for (value, count) in &earlier.counts {
            let bucket = buckets.get_mut(value)?;
            *bucket = bucket.checked_sub(*count)?;
        }
        let at = |share: f64| {
            let wanted = thrum_figures::whole((thrum_figures::fraction(count) * share).ceil());
            let mut seen = 0;
            let mut values = buckets.iter();
            let found = values.find(|(_, count)| {
                seen += **count;
                seen >= wanted.max(1)
            });
            found.map_or(0, |(value, _)| *value)
        };
        Some(StageFigures {
            count,
            mean_ns: sum_ns.checked_div(count).unwrap_or(0),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            max_ns: at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(counts: &[(u64, u64)]) -> StageReading {
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let sum_ns: u64 = counts.iter().map(|(value, count)| value * count).sum();
        let counts: Vec<String> = counts
            .iter()
            .map(|(value, count)| format!("[{value},{count}]"))
            .collect();
        let text = format!(
            r#"{{"every":10,"stamped":{count},"unreceived":0,"table_full":0,"unfinished":0,
                "stages":{{"queued":{{"count":{count},"sum_ns":{sum_ns},"mean_ns":0,"p50_ns":0,
                "p99_ns":0,"counts":[{}]}}}}}}"#,
            counts.join(",")
        );
        StageReading::parse(&text).unwrap()
    }

    #[test]
    fn the_stages_of_a_time_are_the_difference_of_its_readings() {
        let first = reading(&[(100, 90), (5_000, 10)]);
        let last = reading(&[(100, 90), (200, 98), (5_000, 11), (9_000, 1)]);
        let stages = last.since(&first).unwrap();
        assert_eq!((stages.every, stages.stamped), (10, 100));
        let queued = &stages.stages["queued"];
        assert_eq!((queued.count, queued.mean_ns), (100, 336));
        assert_eq!(
            (queued.p50_ns, queued.p99_ns, queued.max_ns),
            (200, 5_000, 9_000)
        );
    }

    #[test]
    fn a_stage_that_no_message_passed_is_left_out() {
        let reading = reading(&[(100, 90)]);
        assert!(reading.since(&reading).unwrap().stages.is_empty());
    }

    #[test]
    fn a_broker_that_counts_anew_has_no_stages() {
        let (first, restarted) = (reading(&[(100, 90)]), reading(&[(100, 20)]));
        assert_eq!(restarted.since(&first), None);
        let other = StageReading {
            every: 1,
            ..first.clone()
        };
        assert_eq!(other.since(&first), None);
        assert_eq!(StageReading::parse("{}"), None);
        assert_eq!(StageReading::parse("PASS"), None);
    }
}
