//! Properties of the processes by which messages arrive.

use proptest::prelude::*;
use thrum_figures::{SECOND_NS, fraction};

use super::tests::{HOUR_NS, due, load, rate};
use super::*;
use crate::scenario::{Arrivals, Shape};

/// The messages of a publisher in the order of their sequence, until one is due after the span.
fn counted(pace: &Pace, publisher: u32, span_ns: u64) -> u32 {
    let sequences = (0..).take_while(|sequence| pace.offset_ns(publisher, *sequence) < span_ns);
    u32::try_from(sequences.count()).unwrap()
}

/// Mean and index of dispersion (variance by mean) of the messages of all publishers in windows of
/// a length.
fn dispersion(pace: &Pace, publishers: u32, window_ns: u64, windows: u64) -> (f64, f64) {
    let until = |window: u64| due(pace, publishers, window * window_ns);
    let counts: Vec<f64> = (0..windows)
        .map(|window| fraction(until(window + 1) - until(window)))
        .collect();
    let mean = counts.iter().sum::<f64>() / fraction(windows);
    let squares = counts.iter().map(|count| (count - mean) * (count - mean));
    (mean, squares.sum::<f64>() / fraction(windows - 1) / mean)
}

fn arriving(arrivals: Arrivals, publishers: u32) -> Pace {
    Pace::new(rate(SECOND_NS), &Shape::Constant, publishers, 0, HOUR_NS).arriving(arrivals, 0)
}

#[test]
fn random_arrivals_have_the_dispersion_of_a_poisson_process_and_the_mean_of_the_rate() {
    for (publishers, window_ns, windows) in [
        // A tenth of a second, a hundredth, and a millisecond of 1 000 publishers; one alone.
        (1_000, SECOND_NS / 10, 2_000),
        (1_000, SECOND_NS / 100, 4_000),
        (1_000, SECOND_NS / 1_000, 4_000),
        (1, SECOND_NS / 2, 20_000),
    ] {
        let pace = arriving(Arrivals::Poisson, publishers);
        let (mean, index) = dispersion(&pace, publishers, window_ns, windows);
        let expected = f64::from(publishers) * fraction(window_ns) / 1e9;
        assert!(
            (mean / expected - 1.0).abs() < 0.02,
            "{publishers} {window_ns}: {mean}"
        );
        // The block of eight periods takes an eighth of a window of one period away.
        let part = 1.0 - fraction(window_ns) / 8e9;
        // Three standard deviations of the estimate.
        let error = 3.0 * (2.0 / fraction(windows)).sqrt();
        assert!(
            (index - part).abs() < error + 0.03,
            "{publishers} {window_ns}: {index}"
        );
    }
}

#[test]
fn even_arrivals_have_no_dispersion_and_bursts_have_the_most() {
    let window_ns = SECOND_NS / 100;
    let (_, even) = dispersion(&arriving(Arrivals::Even, 1_000), 1_000, window_ns, 1_000);
    assert!(even < 0.001, "{even}");
    let (mean, burst) = dispersion(&arriving(Arrivals::Burst, 1_000), 1_000, window_ns, 1_000);
    assert!(
        (mean - 10.0).abs() < 1e-9 && burst > 900.0,
        "{mean} {burst}"
    );
}

#[test]
fn gaps_between_random_arrivals_are_exponential() {
    let (publishers, span_ns) = (500, 40 * SECOND_NS);
    let pace = arriving(Arrivals::Poisson, publishers);
    let mut ring = Ring::new(pace, (0..publishers).zip(0..), span_ns);
    let mut times = Vec::new();
    while let Some(tick) = ring.next() {
        times.push(tick.offset_ns);
        ring.advance();
    }
    let mean = fraction(span_ns) / fraction(u64::try_from(times.len()).unwrap());
    for (factor, expected) in [
        (0.1, 0.905),
        (0.5, 0.607),
        (1.0, 0.368),
        (2.0, 0.135),
        (4.0, 0.018),
    ] {
        let longer = times
            .windows(2)
            .filter(|pair| fraction(pair[1] - pair[0]) > factor * mean);
        let part = fraction(u64::try_from(longer.count()).unwrap())
            / fraction(u64::try_from(times.len()).unwrap());
        assert!(
            (part - expected).abs() < 0.012,
            "longer than {factor} means: {part}"
        );
    }
}

#[test]
fn the_mean_rate_of_random_arrivals_is_exact_in_each_eight_periods() {
    let pace = arriving(Arrivals::Poisson, 16);
    for publisher in 0..16 {
        // The first span of a publisher is shorter, so that not all end together.
        let first = 8 - u64::from(publisher % 8);
        for spans in 0..200 {
            let periods = first + 8 * spans;
            let due = u64::from(pace.due_within(publisher, periods * SECOND_NS));
            assert_eq!(due, periods, "publisher {publisher}");
        }
    }
}

#[test]
fn groups_have_random_arrivals_of_their_own_and_runs_have_the_same() {
    let pace = |group| {
        let pace = Pace::new(rate(SECOND_NS), &Shape::Constant, 3, 0, HOUR_NS);
        pace.arriving(Arrivals::Poisson, group)
    };
    assert_eq!(pace(1), pace(1));
    let same = (0..1_000).filter(|sequence| {
        let [one, other] = [0, 1].map(|group| pace(group).offset_ns(2, *sequence));
        one == other
    });
    assert_eq!(same.count(), 0);
    let same = (0..1_000).filter(|sequence| {
        let pace = pace(0);
        // Publishers 0 and 8 have spans of the same lengths.
        pace.offset_ns(0, *sequence) == pace.offset_ns(8, *sequence)
    });
    assert_eq!(same.count(), 0);
}

#[test]
fn the_arrivals_of_a_hash_do_not_change_between_versions() {
    // Results of different versions are compared.
    let pace = arriving(Arrivals::Poisson, 2);
    let offsets = [(0, 0), (0, 1), (0, 8), (1, 0), (1, 7)]
        .map(|(publisher, sequence)| pace.offset_ns(publisher, sequence));
    assert_eq!(
        offsets,
        [
            1_169_877_249,
            2_254_090_381,
            8_659_786_040,
            316_798_984,
            8_184_281_325
        ]
    );
}

#[test]
fn a_burst_is_due_at_the_start_of_each_period() {
    let pace = arriving(Arrivals::Burst, 3);
    let mut ring = Ring::new(pace.clone(), (0..3).zip(0..), 2 * SECOND_NS + 1);
    let mut ticks = Vec::new();
    while let Some(tick) = ring.next() {
        ticks.push((tick.offset_ns / SECOND_NS, tick.sequence, tick.slot));
        assert_eq!(tick.offset_ns % SECOND_NS, 0);
        ring.advance();
    }
    let expected: Vec<_> = (0..3)
        .flat_map(|s: u32| (0..3).map(move |p| (u64::from(s), s, p)))
        .collect();
    assert_eq!(ticks, expected);
    assert_eq!(pace.due_of_all(3, SECOND_NS), 3);
    assert_eq!(pace.due_of_all(3, SECOND_NS + 1), 6);
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        Just(Arrivals::Even),
        Just(Arrivals::Poisson),
        Just(Arrivals::Burst)
    ]
}

proptest! {
    #[test]
    fn messages_of_a_publisher_ascend_and_are_counted_as_a_naive_count_does(
        load in load(),
        arrivals in arrivals(),
        group in 0_u32..3,
        spans in prop::collection::vec(0..5_000_000_u64, 1..8),
    ) {
        let (period_ns, shape, publishers, stages) = load;
        // Up to 5 000 messages in a span.
        let stages = (stages.0 / 40, stages.1 / 40 + 1);
        let pace = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
        let pace = pace.arriving(arrivals, group);
        for publisher in 0..publishers {
            let offsets = (0..200).map(|sequence| pace.offset_ns(publisher, sequence));
            let offsets: Vec<u64> = offsets.collect();
            prop_assert!(offsets.is_sorted(), "{:?}", offsets);
        }
        for span_ns in spans {
            let naive = |publisher| u64::from(counted(&pace, publisher, span_ns));
            let mut sum = 0;
            for publisher in 0..publishers.min(9) {
                prop_assert_eq!(u64::from(pace.due_within(publisher, span_ns)), naive(publisher));
            }
            for publisher in 0..publishers {
                sum += u64::from(pace.due_within(publisher, span_ns));
            }
            prop_assert_eq!(pace.due_of_all(publishers, span_ns), sum);
        }
    }

    #[test]
    fn late_messages_of_random_arrivals_are_counted_exactly(
        load in load(),
        sequences in prop::collection::vec(0_u32..3_000_000_000, 1..20),
        publisher in 0_u32..40,
    ) {
        let (period_ns, shape, publishers, stages) = load;
        let pace = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
        let pace = pace.arriving(Arrivals::Poisson, 7);
        for sequence in sequences {
            let offset_ns = pace.offset_ns(publisher, sequence);
            prop_assert!(pace.offset_ns(publisher, sequence + 1) >= offset_ns);
            // Messages of one publisher may be due in the same nanosecond.
            prop_assert!(pace.due_within(publisher, offset_ns) <= sequence);
            prop_assert!(pace.due_within(publisher, offset_ns + 1) > sequence);
            let due = pace.due_within(publisher, offset_ns);
            prop_assert!(pace.offset_ns(publisher, due) >= offset_ns);
            prop_assert!(due == 0 || pace.offset_ns(publisher, due - 1) < offset_ns);
            // A message stays within the eight periods that it is placed in.
            let even = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
            prop_assert!(offset_ns >= even.offset_ns(0, sequence.saturating_sub(8)));
            prop_assert!(offset_ns <= even.offset_ns(0, sequence + 8));
        }
    }

    #[test]
    fn threads_together_send_every_load_in_its_order(
        load in load(),
        arrivals in arrivals(),
        threads in 1_usize..4,
    ) {
        let (_, shape, publishers, stages) = load;
        let pace = Pace::new(rate(1_000_000), &shape, publishers, stages.0, stages.1);
        let pace = pace.arriving(arrivals, 1);
        let span_ns = 20_000_000;
        let mut merged = Vec::new();
        for thread in 0..threads {
            let members = (0..publishers).skip(thread).step_by(threads);
            let members = members.map(|publisher| (publisher, publisher));
            let mut ring = Ring::new(pace.clone(), members, span_ns);
            let first = merged.len();
            while let Some(tick) = ring.next() {
                merged.push((tick.offset_ns, tick.sequence, tick.slot));
                ring.advance();
            }
            prop_assert!(merged[first..].is_sorted());
        }
        merged.sort_unstable();
        let mut expected: Vec<(u64, u32, u32)> = (0..publishers)
            .flat_map(|publisher| {
                let pace = &pace;
                (0..pace.due_within(publisher, span_ns))
                    .map(move |sequence| (pace.offset_ns(publisher, sequence), sequence, publisher))
            })
            .collect();
        expected.sort_unstable();
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn messages_due_under_a_changing_speed_are_those_whose_real_time_is_before(
        arrivals in arrivals(),
        factors in prop::collection::vec(0_u32..30, 1..5),
        real_spans in prop::collection::vec(0..40_000_000_u64, 1..8),
    ) {
        let pace = Pace::new(rate(1_000_000), &Shape::Constant, 5, 0, 40_000_000);
        let pace = pace.arriving(arrivals, 0);
        let mut warp = Warp::identity();
        for (at, tenths) in (1_u64..).zip(factors) {
            warp.change(at * 5_000_000, f64::from(tenths) / 10.0).unwrap();
        }
        for real_ns in real_spans {
            for publisher in 0..5 {
                let due = pace.due_within(publisher, warp.virtual_span_ns(real_ns));
                let due_ns = |sequence: u32| warp.real_ns(pace.offset_ns(publisher, sequence));
                let naive = (0..200).take_while(|sequence| due_ns(*sequence) < real_ns).count();
                prop_assert_eq!(due, u32::try_from(naive).unwrap());
            }
        }
    }
}
