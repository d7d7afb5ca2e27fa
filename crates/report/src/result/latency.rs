//! Distributions of latencies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageStages, Withheld};

/// Latencies of a run; none where nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    /// Response time: from the intended send time to the arrival; of a request, to the arrival of
    /// its answer.
    pub e2e: Option<Distribution>,
    /// Service time: from the actual send to the arrival.
    pub service: Option<Distribution>,
    /// From PUBLISH to PUBACK (QoS 1) or PUBCOMP (QoS 2).
    pub publish_ack: Option<Distribution>,
    /// From the intended send time to PUBACK (QoS 1) or PUBCOMP (QoS 2).
    pub publish_response: Option<Distribution>,
    /// From the time at which the connection was to be opened to CONNACK.
    pub connect: Option<Distribution>,
    /// From SUBSCRIBE to SUBACK.
    pub subscribe: Option<Distribution>,
    /// From the loss of a connection to being ready again.
    pub reconnect: Option<Distribution>,
    /// From the intended to the actual send, where the broker did not hold the publisher back.
    pub generator_lag: Option<Distribution>,
    /// How long the generator may have left a message in its socket before it read it: an upper
    /// bound.
    pub receive_lag: Option<Distribution>,
    /// From the scheduled to the actual opening of a connection.
    pub open_lag: Option<Distribution>,
    /// What the errors of all these follow from, by name: the latencies without the time that may
    /// be the generator's, and what makes these too high. Histograms in the form of
    /// [`Distribution::hdr`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub floors: BTreeMap<String, String>,
    /// The stages of messages inside the broker; none if it stamps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<MessageStages>,
}

/// A distribution in nanoseconds, exact to 0.1 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// Its usual quantiles.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// How much of each quantile may be the generator's, at most; none if it is not known.
    pub bound: Option<Quantiles>,
    /// Values that are not known, because what was waited for never happened.
    pub missing: u64,
    /// Every missing value is more than this.
    pub missing_over: u64,
    /// Figures that are not to be used, each with the reason.
    pub withheld: BTreeMap<String, Withheld>,
    /// Points of the percentile plot: (fraction of the values, nanoseconds), both ascending, at
    /// most 120.
    pub curve: Vec<(f64, u64)>,
    /// The histogram in the HDR V2 format with deflate, as base64: can be merged.
    pub hdr: String,
}

/// Quantiles in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct Quantiles {
    pub count: u64,
    pub min: u64,
    pub mean: u64,
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    pub max: u64,
}
