//! Latencies in the form of the result: with what of them may be the generator's, and with what
//! never arrived.

use hdrhistogram::Histogram;
use thrum_load::floors::Measured;
use thrum_report::result::{Distribution, Latencies, Quantiles};

use crate::record;
use crate::sent_before::Excess;

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
    let of = |name: &str, seen: &Histogram<u64>, missing: Wait| {
        let bound = || {
            let floors = &latencies.floors;
            floors.bound_of(name, seen, missing.events, clock_error_ns)
        };
        (!seen.is_empty()).then(|| {
            Distribution::with_missing(seen, missing.events, missing.over_ns).with_bound(bound())
        })
    };
    let none = Wait::default();
    let of_generator =
        |seen: &Histogram<u64>| (!seen.is_empty()).then(|| Distribution::from_histogram(seen));
    Latencies {
        floors: std::collections::BTreeMap::new(),
        stages: None,
        e2e: of("e2e", &latencies.response, missing.deliveries),
        service: of("service", &latencies.service, missing.deliveries),
        publish_ack: of(
            "publish_ack",
            &latencies.publish_ack,
            missing.acknowledgements,
        ),
        publish_response: of(
            "publish_response",
            &latencies.publish_response,
            missing.acknowledgements,
        ),
        connect: of("connect", &latencies.connect, missing.connections),
        subscribe: of("subscribe", &latencies.subscribe, none),
        reconnect: of("reconnect", &latencies.reconnect, none),
        generator_lag: of_generator(&latencies.lag),
        receive_lag: of_generator(&latencies.receive_lag),
        open_lag: of_generator(&latencies.open_lag),
    }
}

/// What of each response time may be the generator's, clocks of several machines left out. What
/// senders and responders had of the messages is known of more of them than these, perhaps.
pub(crate) fn response_bound(latencies: &record::Latencies, excess: &Excess) -> Option<Quantiles> {
    let floor = latencies.floors.of_response();
    let measured = Measured {
        seen: &latencies.response,
        floor: &floor,
        excess: [
            Some(&excess.handing_over),
            Some(&excess.answering),
            Some(&excess.finishing),
        ],
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

#[cfg(test)]
mod tests {
    use thrum_load::histogram::enter_many;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Latencies of 9 ms, of which the threads that received had nothing.
    fn latencies() -> record::Latencies {
        let mut latencies = record::Latencies::new();
        for histogram in [
            &mut latencies.response,
            &mut latencies.service,
            &mut latencies.publish_ack,
            &mut latencies.publish_response,
            &mut latencies.floors.delivery,
            &mut latencies.floors.publish_ack,
            &mut latencies.floors.publish_response,
        ] {
            enter_many(histogram, 9 * MS, 1_000);
        }
        latencies
    }

    /// The bounds of p50: of the response time, the acknowledgement, the response without
    /// receivers.
    fn bounds(latencies: &record::Latencies) -> [u64; 3] {
        let of = distributions(latencies, Missing::default(), 0);
        [of.e2e, of.publish_ack, of.publish_response]
            .map(|of| of.unwrap().bound.unwrap().p50.div_ceil(MS))
    }

    #[test]
    fn what_a_publisher_had_of_an_exchange_is_in_the_bounds_of_its_latencies() {
        let mut released = latencies();
        enter_many(&mut released.floors.releasing, 4 * MS, 1_000);
        assert_eq!(bounds(&released), [1, 5, 5]);
    }

    #[test]
    fn what_was_written_late_to_a_socket_that_had_been_full_is_in_all_bounds() {
        let mut finished = latencies();
        enter_many(&mut finished.floors.finishing, 4 * MS, 1_000);
        assert_eq!(bounds(&finished), [5, 5, 5]);
        let excess = Excess::of(&finished.floors);
        let of_second = response_bound(&finished, &excess).unwrap();
        assert_eq!(of_second.p50.div_ceil(MS), 5);
    }
}
