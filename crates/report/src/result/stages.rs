//! Where the time of messages goes: the generator, the network, the stages of the broker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Distribution;

/// With fewer stamped messages the means say too little about those of the benchmark.
const STAMPED_MIN: u64 = 100;
/// So many percent of the stamped messages may lack stages because the broker followed too many:
/// what is left out are those of a time with much to do.
const LEFT_OUT_PERCENT_MAX: u64 = 3;

/// The stages of messages inside a broker that stamps them, over the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageStages {
    /// One of this many messages was stamped.
    pub every: u32,
    /// Messages that were stamped.
    pub stamped: u64,
    /// Of these, those that nobody received.
    pub unreceived: u64,
    /// Deliveries and answers that the broker did not follow, because it followed too many.
    pub table_full: u64,
    /// Deliveries and answers that ended before they were written.
    pub unfinished: u64,
    /// The mean end-to-end latency by its parts; none where there is none, or where it consists of
    /// two messages.
    pub split: Option<LatencySplit>,
    /// The stages by name; those that no message passed are left out.
    pub stages: BTreeMap<String, StageFigures>,
}

/// The figures of one stage, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct StageFigures {
    pub count: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// The mean end-to-end latency by its parts, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySplit {
    /// The whole mean.
    pub e2e_mean_ns: u64,
    /// What of it may be the generator's, at most.
    pub generator_ns: u64,
    /// The rest: network and kernel, on both sides of the broker. Negative if the generator's part,
    /// which is an upper bound, leaves nothing, or the broker's stages take longer than the whole.
    pub network_ns: i64,
    /// In the broker, until the receivers are known.
    pub routed_ns: u64,
    /// Until the message stands in the output of its receiver.
    pub queued_ns: u64,
    /// Until the system has taken it.
    pub written_ns: u64,
}

impl LatencySplit {
    /// All stages of the broker.
    pub const fn broker_ns(&self) -> u64 {
        self.routed_ns + self.queued_ns + self.written_ns
    }

    /// Generator, network and kernel together; none if the broker's stages take longer than the
    /// whole.
    pub const fn outside_ns(&self) -> Option<u64> {
        self.e2e_mean_ns.checked_sub(self.broker_ns())
    }
}

/// Why the stamped messages do not stand for all of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsplit {
    /// There are fewer than this.
    TooFew(u64),
    /// More than so many percent of them were not followed.
    LeftOut(u64),
}

impl MessageStages {
    /// Splits the mean of the end-to-end latency, unless it is not to be used or the stamped
    /// messages do not stand for all.
    pub fn split(&mut self, e2e: Option<&Distribution>) {
        self.split = match self.unsplit() {
            None => self.parts_of(e2e),
            Some(_) => None,
        };
    }

    /// Why the stamped messages do not stand for all, if they do not.
    pub const fn unsplit(&self) -> Option<Unsplit> {
        if self.stamped < STAMPED_MIN {
            return Some(Unsplit::TooFew(STAMPED_MIN));
        }
        let left_out = self.table_full.saturating_mul(100);
        if left_out > self.stamped.saturating_mul(LEFT_OUT_PERCENT_MAX) {
            return Some(Unsplit::LeftOut(LEFT_OUT_PERCENT_MAX));
        }
        None
    }

    fn parts_of(&self, e2e: Option<&Distribution>) -> Option<LatencySplit> {
        let e2e = e2e.filter(|e2e| !e2e.withheld.contains_key("mean"))?;
        let mean = |name: &str| self.stages.get(name).map(|stage| stage.mean_ns);
        let mut split = LatencySplit {
            e2e_mean_ns: e2e.quantiles.mean,
            generator_ns: e2e.bound.map_or(0, |bound| bound.mean),
            network_ns: 0,
            routed_ns: mean("routed")?,
            queued_ns: mean("queued")?,
            written_ns: mean("written")?,
        };
        let known = split.generator_ns.saturating_add(split.broker_ns());
        split.network_ns = split.e2e_mean_ns.cast_signed() - known.cast_signed();
        Some(split)
    }
}
