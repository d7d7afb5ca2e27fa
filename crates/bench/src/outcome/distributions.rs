//! Latencies in the form of the result: with what of them may be the generator's, and with what
//! never arrived.

use hdrhistogram::Histogram;
use thrum_load::floors::Measured;
use thrum_load::histogram;
use thrum_report::result::{Distribution, Latencies, Quantiles};

use crate::record;

/// What was waited for and never happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Deliveries of messages that were due in the hold.
    pub(crate) deliveries: Wait,
    /// Acknowledgements of messages that were due in the hold.
    pub(crate) acknowledgements: Wait,
    /// Clients that were not accepted.
    pub(crate) connections: Wait,
}

/// Events that did not happen, however long they were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) events: u64,
    /// They would have taken longer than this.
    pub(crate) over_ns: u64,
}

/// The distributions of all latencies; none where nothing was measured.
pub(super) fn distributions(
    latencies: &record::Latencies,
    missing: Missing,
    clock_error_ns: u64,
) -> Latencies {
    let floors = &latencies.floors;
    let response_floor = sum(&floors.delivery, &floors.held_response);
    let service_floor = sum(&floors.delivery, &floors.held_service);
    let message = |seen, floor, missing: Wait| {
        let measured = Measured {
            seen,
            floor,
            excess: [Some(&floors.handing_over), Some(&floors.answering)],
            clock_error_ns,
            missing: missing.events,
        };
        distribution(measured, missing)
    };
    let exchange = |seen, floor, excess, missing: Wait| {
        let measured = Measured {
            seen,
            floor,
            excess: [excess, None],
            clock_error_ns: 0,
            missing: missing.events,
        };
        distribution(measured, missing)
    };
    let none = Wait::default();
    let of_generator =
        |seen: &Histogram<u64>| (!seen.is_empty()).then(|| Distribution::from_histogram(seen));
    Latencies {
        stages: None,
        e2e: message(&latencies.response, &response_floor, missing.deliveries),
        service: message(&latencies.service, &service_floor, missing.deliveries),
        publish_ack: exchange(
            &latencies.publish_ack,
            &floors.publish_ack,
            Some(&floors.handing_over),
            missing.acknowledgements,
        ),
        publish_response: exchange(
            &latencies.publish_response,
            &floors.publish_response,
            Some(&floors.handing_over),
            missing.acknowledgements,
        ),
        connect: exchange(
            &latencies.connect,
            &floors.connect,
            None,
            missing.connections,
        ),
        subscribe: exchange(&latencies.subscribe, &floors.subscribe, None, none),
        reconnect: exchange(&latencies.reconnect, &floors.reconnect, None, none),
        generator_lag: of_generator(&latencies.lag),
        receive_lag: of_generator(&latencies.receive_lag),
        open_lag: of_generator(&latencies.open_lag),
    }
}

/// A latency of the result; none if it was not measured.
fn distribution(measured: Measured<'_>, missing: Wait) -> Option<Distribution> {
    let seen = measured.seen;
    (!seen.is_empty()).then(|| {
        Distribution::with_missing(seen, missing.events, missing.over_ns)
            .with_bound(measured.bound())
    })
}

/// What of each response time may be the generator's, clocks of several machines left out. What
/// senders and responders had of the messages is known of more of them than these, perhaps.
pub(crate) fn response_bound(
    latencies: &record::Latencies,
    handing_over: &Histogram<u64>,
    answering: &Histogram<u64>,
) -> Option<Quantiles> {
    let floors = &latencies.floors;
    let floor = sum(&floors.delivery, &floors.held_response);
    let measured = Measured {
        seen: &latencies.response,
        floor: &floor,
        excess: [Some(handing_over), Some(answering)],
        clock_error_ns: 0,
        missing: 0,
    };
    measured.bound()
}

/// The bounds of figures between machines whose clocks are known this well.
pub(crate) fn between_clocks(mut bound: Quantiles, clock_error_ns: u64) -> Quantiles {
    for of in [
        &mut bound.min,
        &mut bound.mean,
        &mut bound.p50,
        &mut bound.p75,
        &mut bound.p90,
        &mut bound.p95,
        &mut bound.p99,
        &mut bound.p99_9,
        &mut bound.p99_99,
        &mut bound.max,
    ] {
        *of = of.saturating_add(clock_error_ns);
    }
    bound
}

fn sum(left: &Histogram<u64>, right: &Histogram<u64>) -> Histogram<u64> {
    let mut sum = left.clone();
    histogram::add(&mut sum, right);
    sum
}
