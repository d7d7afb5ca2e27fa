//! Percentiles by law, and what a broker that stops does to them.

use std::time::Duration;

use thrum_bench::{Stage, run};
use thrum_codec::{QoS, ReasonCode};
use thrum_load::mark::Mark;
use thrum_load::scenario::PayloadSpec;
use thrum_report::hlog;
use thrum_report::result::Quantiles;

use crate::bench::{
    NoObserver, SECOND, at_once, count_from, group, lawful, ms, options, pairs, run_against, values,
};
use crate::fake_broker::{FakeBroker, Fate, Laws, Stall};

/// Far above what a busy machine adds.
const DELAY: Duration = ms(600);

/// Surely only delayed messages took this long.
const SLOW: Duration = ms(595);

/// Every tenth message is delayed.
fn a_tenth_late(mark: Mark) -> Fate {
    match mark.sequence % 10 {
        4 => Fate::After(DELAY),
        _ => Fate::Deliver,
    }
}

#[test]
fn percentiles_are_those_of_the_law() {
    let broker = FakeBroker::start(ReasonCode::Success, a_tenth_late);
    let mut scenario = pairs(5, 40, SECOND);
    scenario.stages.warm_up = ms(250);
    let log = std::env::temp_dir().join(format!("thrum-selfcheck-{}.hlog", std::process::id()));
    let mut options = options(broker.address);
    options.latency_log = Some(log.clone());
    let outcome = run(scenario, &options, &mut NoObserver).unwrap();
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (250, 0));
    for histogram in [&outcome.latencies.response, &outcome.latencies.service] {
        assert_eq!(histogram.len(), 200);
        assert_eq!(count_from(histogram, SLOW), 20);
        let slow_ns = u64::try_from(SLOW.as_nanos()).unwrap();
        assert!(histogram.value_at_quantile(0.9) < slow_ns);
        assert!(histogram.value_at_quantile(0.905) >= slow_ns);
    }
    // An acknowledgement does not wait for the delivery.
    assert_eq!(count_from(&outcome.latencies.publish_ack, SLOW), 0);

    let latencies = &outcome.latencies;
    let written = &outcome.result.latency_ns;
    for (name, histogram) in latencies.named() {
        let distribution = written.find(name);
        assert_eq!(distribution.is_none(), histogram.is_empty(), "{name}");
        let Some(distribution) = distribution else {
            continue;
        };
        assert_eq!(
            distribution.quantiles,
            Quantiles::from_histogram(histogram),
            "{name}"
        );
        let decoded = distribution.histogram().unwrap();
        assert_eq!(values(&decoded), values(histogram), "{name}");
    }

    let mut seconds = outcome.result.series.iter();
    let hold = seconds.find(|second| second.stage == Stage::Hold).unwrap();
    // The log keeps three decimals.
    let text = std::fs::read_to_string(&log).unwrap();
    let intervals = hlog::read(&text, |start| start >= hold.at - 0.001).unwrap();
    std::fs::remove_file(&log).unwrap();
    for name in ["e2e", "service", "publish_ack", "generator_lag"] {
        let mut sum = thrum_load::histogram::histogram();
        for interval in intervals.iter().filter(|interval| interval.tag == name) {
            sum.add(&interval.histogram).unwrap();
        }
        let (_, total) = latencies
            .named()
            .into_iter()
            .find(|(tag, _)| *tag == name)
            .unwrap();
        assert_eq!(values(&sum), values(total), "{name}");
    }
}

#[test]
fn the_wait_of_a_pubrec_is_known_of_every_exchange() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut scenario = pairs(3, 50, SECOND);
    let publishers = group(&mut scenario, "publishers");
    publishers.publish.as_mut().unwrap().qos = QoS::ExactlyOnce;
    let latencies = run_against(broker.address, scenario).latencies;
    let floors = &latencies.floors;
    assert_eq!(
        (latencies.publish_ack.len(), floors.releasing.len()),
        (150, 150)
    );
    assert!(floors.finishing.is_empty());
}

#[test]
fn messages_that_a_full_socket_took_in_part_are_known() {
    let broker = stalling();
    // In the stall 20 MB are due, more than the sockets take.
    let mut scenario = pairs(1, 20, 2 * SECOND);
    let publishers = group(&mut scenario, "publishers");
    let publish = publishers.publish.as_mut().unwrap();
    publish.payload = PayloadSpec::Size(1 << 20);
    let outcome = run_against(broker.address, scenario);
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (40, 0));
    let finishing = &outcome.latencies.floors.finishing;
    assert!((1..=40).contains(&finishing.len()), "{}", finishing.len());
}

/// The broker stops from the half of the first second to the half of the second one.
fn stalling() -> FakeBroker {
    FakeBroker::with(Laws {
        connack: ReasonCode::Success,
        fate: lawful,
        granted: QoS::ExactlyOnce,
        stall: Some(Stall {
            from_ms: 500,
            for_ms: 1_000,
        }),
    })
}

#[test]
fn an_open_loop_counts_every_message_that_was_due_during_a_stall() {
    let broker = stalling();
    let outcome = run_against(broker.address, pairs(5, 40, 2 * SECOND));
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (400, 0));
    let response = &outcome.latencies.response;
    assert!(response.max() >= 980_000_000, "{}", response.max());
    // 200 messages are due in the second of the stall, evenly: a tenth of them in its first tenth.
    for (least, expected) in [(ms(250), 150), (ms(500), 100), (ms(750), 50)] {
        let slow = count_from(response, least);
        // A stall is not shorter than the law defines, and on a busy machine it is a little longer.
        let tolerated = expected - 3..=expected + 40;
        assert!(tolerated.contains(&slow), "{slow} took {least:?}");
    }
}

#[test]
fn a_closed_loop_hides_a_stall_but_for_the_messages_of_its_window() {
    at_once(&[1, 3], |window| {
        let broker = stalling();
        let mut scenario = pairs(5, 40, 2 * SECOND);
        group(&mut scenario, "publishers")
            .publish
            .as_mut()
            .unwrap()
            .window = Some(window);
        let outcome = run_against(broker.address, scenario);
        let sent = outcome.counts.sent;
        assert!(sent > 100, "{sent}");
        assert_eq!(
            (outcome.delivery.expected, outcome.delivery.lost),
            (sent, 0)
        );
        assert_eq!(outcome.counts.acknowledged, sent);
        assert!(outcome.result.scenario.load.closed_loop);
        let latencies = &outcome.latencies;
        for histogram in [
            &latencies.response,
            &latencies.service,
            &latencies.publish_ack,
        ] {
            let slow = count_from(histogram, ms(800));
            assert!((5..=5 * u64::from(window)).contains(&slow), "{slow}");
        }
        assert_eq!(values(&latencies.response), values(&latencies.service));
    });
}

/// The tenth message waits for its acknowledgement as long as its connection lives; the broker ends
/// it at once.
fn the_tenth_disconnects(mark: Mark) -> Fate {
    match mark.sequence {
        10 => Fate::Disconnect,
        _ => Fate::Deliver,
    }
}

#[test]
fn messages_held_back_count_from_when_they_were_due() {
    let broker = FakeBroker::start(ReasonCode::Success, the_tenth_disconnects);
    let mut scenario = pairs(5, 50, SECOND);
    scenario.stages.drain = ms(800);
    crate::bench::reconnect_after(&mut scenario, DELAY);
    let outcome = run_against(broker.address, scenario);
    let delivery = &outcome.delivery;
    assert_eq!(
        (delivery.expected, delivery.lost, delivery.excused),
        (250, 0, 5)
    );
    // 30 messages of each publisher were due while it was disconnected.
    let held_back = outcome.counts.held_back;
    assert!((145..=225).contains(&held_back), "{held_back}");
    assert!(outcome.latencies.response.max() >= 570_000_000);
    // The first quarter of them waited for three quarters of the time, though the broker was quick
    // each time.
    assert!(count_from(&outcome.latencies.response, ms(450)) >= 30);
    assert!(outcome.latencies.service.max() < 400_000_000);
    // The broker ended connections: that is a fault, lost messages that it did not take are none.
    assert_eq!(outcome.faults, [thrum_load::verdict::Fault::CutOff(5)]);
}

#[test]
fn a_log_that_cannot_be_written_costs_no_figures() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut options = options(broker.address);
    options.latency_log = Some("/dev/full".into());
    let outcome = run(pairs(2, 20, SECOND), &options, &mut NoObserver).unwrap();
    let error = outcome.log_error.unwrap();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!(outcome.delivery.lost, 0);
    assert!(outcome.latencies.response.len() > 30);
}
