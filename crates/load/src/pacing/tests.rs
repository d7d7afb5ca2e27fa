//! Properties of every shape.

use proptest::prelude::*;
use thrum_figures::{SECOND_NS, fraction};

use super::*;
use crate::scenario::{Rate, Shape};

pub(super) const HOUR_NS: u64 = 3_600 * SECOND_NS;

pub(super) fn rate(period_ns: u64) -> Rate {
    Rate { period_ns }
}

fn ramp(to_ns: u64) -> Shape {
    Shape::Ramp { to: rate(to_ns) }
}

fn steps(periods_ns: &[u64]) -> Shape {
    Shape::Steps {
        rates: periods_ns.iter().copied().map(rate).collect(),
    }
}

/// Messages of all publishers within a span.
pub(super) fn due(pace: &Pace, publishers: u32, span_ns: u64) -> u64 {
    (0..publishers)
        .map(|publisher| u64::from(pace.due_within(publisher, span_ns)))
        .sum()
}

/// Messages of one publisher: the area under the curve of the rate.
fn area(from_ns: u64, shape: &Shape, stages: (u64, u64), span_ns: u64) -> f64 {
    let (warm_up_ns, hold_ns) = stages;
    let rate_of = |period_ns: u64| 1.0 / fraction(period_ns);
    let warm = fraction(span_ns.min(warm_up_ns));
    let held = fraction(span_ns.saturating_sub(warm_up_ns).min(hold_ns));
    let rest = fraction(span_ns.saturating_sub(warm_up_ns + hold_ns));
    match shape {
        Shape::Constant => fraction(span_ns) * rate_of(from_ns),
        Shape::Ramp { to } => {
            let (from, to) = (rate_of(from_ns), rate_of(to.period_ns));
            let now = from + (to - from) * held / fraction(hold_ns);
            warm * from + held * f64::midpoint(from, now) + rest * to
        }
        Shape::Steps { rates } => {
            let length = fraction(hold_ns) / fraction(u64::try_from(rates.len()).unwrap());
            let (mut sum, mut start) = (warm * rate_of(rates[0].period_ns), 0.0);
            for rate in rates {
                sum += (held - start).clamp(0.0, length) * rate_of(rate.period_ns);
                start += length;
            }
            sum + rest * rate_of(rates[rates.len() - 1].period_ns)
        }
    }
}

#[test]
fn a_ramp_spreads_its_messages_over_the_square_root_of_time() {
    // From 1 to 5 messages per second within 4 s: t + t^2/2 messages after t seconds.
    let pace = Pace::new(rate(SECOND_NS), &ramp(SECOND_NS / 5), 1, 0, 4 * SECOND_NS);
    let at = |sequence| pace.offset_ns(0, sequence);
    assert_eq!((at(0), at(4), at(12)), (0, 2 * SECOND_NS, 4 * SECOND_NS));
    // The square root of 3, less 1.
    assert_eq!(at(1), 732_050_807);
    assert_eq!(pace.due_within(0, 4 * SECOND_NS), 12);
    // After the hold the last rate continues.
    assert_eq!(at(17), 5 * SECOND_NS);
}

#[test]
fn a_falling_ramp_is_the_rising_one_seen_from_its_end() {
    let pace = Pace::new(rate(SECOND_NS / 5), &ramp(SECOND_NS), 1, 0, 4 * SECOND_NS);
    let at = |sequence| pace.offset_ns(0, sequence);
    assert_eq!((at(0), at(8), at(12)), (0, 2 * SECOND_NS, 4 * SECOND_NS));
    assert_eq!(at(11), 4 * SECOND_NS - 732_050_808);
    assert_eq!(at(14), 6 * SECOND_NS);
}

#[test]
fn the_warm_up_has_the_first_rate() {
    let shapes = [ramp(SECOND_NS / 9), steps(&[SECOND_NS, SECOND_NS / 9])];
    for shape in shapes {
        let pace = Pace::new(rate(SECOND_NS), &shape, 2, 3 * SECOND_NS, 2 * SECOND_NS);
        let offsets: Vec<u64> = (0..3).map(|sequence| pace.offset_ns(1, sequence)).collect();
        assert_eq!(offsets, [500_000_000, 1_500_000_000, 2_500_000_000]);
    }
}

#[test]
fn steps_take_equal_parts_of_the_hold_and_the_last_continues() {
    let shape = steps(&[SECOND_NS, SECOND_NS / 10, SECOND_NS / 2]);
    let pace = Pace::new(rate(1), &shape, 1, SECOND_NS, 6 * SECOND_NS);
    let due: Vec<u32> = [1, 3, 5, 7, 9]
        .into_iter()
        .map(|second| pace.due_within(0, second * SECOND_NS))
        .collect();
    assert_eq!(due, [1, 3, 23, 27, 31]);
}

#[test]
fn a_shape_that_does_not_change_agrees_with_the_constant_rate() {
    for period_ns in [1, 333, 20_000, SECOND_NS / 3, SECOND_NS, 24 * HOUR_NS] {
        let constant = Constant::new(period_ns, 7);
        for shape in [ramp(period_ns), steps(&[period_ns, period_ns, period_ns])] {
            let pace = Pace::new(rate(period_ns), &shape, 7, HOUR_NS + 1, 23 * HOUR_NS);
            for (publisher, sequence) in
                [(0, 0), (1, 1), (6, 3), (3, 1_000_000), (2, 4_000_000_000)]
            {
                let expected_ns = constant.offset_ns(publisher, sequence);
                let offset_ns = pace.offset_ns(publisher, sequence);
                // A nanosecond, or what the fixed point makes of centuries.
                let most_ns = 1 + (expected_ns >> 48);
                assert!(
                    offset_ns.abs_diff(expected_ns) <= most_ns,
                    "{shape:?} {publisher} {sequence}: {offset_ns} for {expected_ns}"
                );
            }
        }
    }
}

#[test]
fn a_day_at_a_million_messages_per_second_does_not_drift() {
    let (publishers, day_ns) = (1_000, 24 * HOUR_NS);
    // 1 000/s each, but for the halves that are 500/s and 1 500/s.
    let shape = steps(&[2_000_000, 666_667]);
    let pace = Pace::new(rate(1), &shape, publishers, 0, day_ns);
    let second_half = 12 * 3_600 * 500;
    assert_eq!(pace.offset_ns(0, second_half), 12 * HOUR_NS);
    let at_ns = pace.offset_ns(0, second_half + 60_000_000);
    assert_eq!(at_ns, 12 * HOUR_NS + 60_000_000 * 666_667);
    // From 0.5 to 1.5 million per second: 86.4e9 messages in all, half a microsecond from one to
    // the next.
    let shape = ramp(SECOND_NS / 1_500);
    let pace = Pace::new(rate(2_000_000), &shape, publishers, 0, day_ns);
    let messages = fraction(due(&pace, publishers, day_ns));
    let expected = area(2_000_000, &shape, (0, day_ns), day_ns) * f64::from(publishers);
    assert!(
        (messages - expected).abs() < 2.0,
        "{messages} for {expected}"
    );
    // t = 2c / (r + sqrt(r^2 + 2 a c)) in double precision for a message late in the day.
    let (slow, fast) = (5e-7, 1.0 / fraction(SECOND_NS / 1_500));
    let count = 80_000_000.25;
    let bend = 2.0 * (fast - slow) / fraction(day_ns);
    let expected_ns = 2.0 * count / (slow + (slow * slow + bend * count).sqrt());
    let offset_ns = fraction(pace.offset_ns(250, 80_000_000));
    assert!(
        (offset_ns - expected_ns).abs() < 10.0,
        "{offset_ns} for {expected_ns}"
    );
}

#[test]
fn the_longest_and_fastest_loads_do_not_overflow() {
    let day_ns = Rate::PERIOD_NS_MAX;
    for (from, to) in [
        (1, day_ns),
        (day_ns, 1),
        (day_ns, day_ns),
        (1, 1),
        (0, u64::MAX),
    ] {
        for shape in [ramp(to), steps(&[from, to])] {
            for publishers in [1, 3, u32::MAX] {
                let pace = Pace::new(rate(from), &shape, publishers, u64::MAX, u64::MAX);
                let last = publishers - 1;
                let offsets = [(0, 0), (last, 0), (0, u32::MAX), (last, u32::MAX)]
                    .map(|(publisher, sequence)| pace.offset_ns(publisher, sequence));
                assert!(
                    offsets.is_sorted(),
                    "{from} {shape:?} {publishers}: {offsets:?}"
                );
                assert_eq!(pace.due_within(0, 0), 0);
                assert!(pace.due_within(last, u64::MAX) >= 200_000);
            }
        }
    }
}

#[test]
fn a_load_without_hold_has_the_last_rate_after_the_warm_up() {
    for shape in [ramp(SECOND_NS / 4), steps(&[SECOND_NS, 7, SECOND_NS / 4])] {
        let pace = Pace::new(rate(SECOND_NS), &shape, 1, 2 * SECOND_NS, 0);
        let due = [2, 3].map(|second| pace.due_within(0, second * SECOND_NS));
        assert_eq!(due, [2, 6]);
    }
}

/// A load of moderate size: period, shape, publishers, warm-up and hold.
pub(super) fn load() -> impl Strategy<Value = (u64, Shape, u32, (u64, u64))> {
    let period = 1_000_u64..50_000_000;
    let shape = prop_oneof![
        Just(Shape::Constant),
        period.clone().prop_map(ramp),
        prop::collection::vec(period.clone(), 1..6).prop_map(|periods| steps(&periods)),
    ];
    (
        period,
        shape,
        1_u32..40,
        (0..50_000_000_u64, 1..200_000_000_u64),
    )
}

proptest! {
    #[test]
    fn offsets_ascend_and_are_counted_exactly(
        load in load(),
        sequences in prop::collection::vec(0_u32..300_000, 1..20),
    ) {
        let (period_ns, shape, publishers, stages) = load;
        let pace = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
        for sequence in sequences {
            for publisher in 0..publishers {
                let offset_ns = pace.offset_ns(publisher, sequence);
                let next = if publisher + 1 < publishers {
                    pace.offset_ns(publisher + 1, sequence)
                } else {
                    pace.offset_ns(0, sequence + 1)
                };
                prop_assert!(offset_ns <= next);
                prop_assert_eq!(pace.due_within(publisher, offset_ns), sequence);
                prop_assert_eq!(pace.due_within(publisher, offset_ns + 1), sequence + 1);
            }
        }
    }

    #[test]
    fn messages_due_are_those_with_a_lower_offset(
        load in load(),
        spans in prop::collection::vec(0..400_000_000_u64, 1..20),
    ) {
        let (period_ns, shape, publishers, stages) = load;
        let pace = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
        for span_ns in spans {
            for publisher in 0..publishers {
                let due = pace.due_within(publisher, span_ns);
                prop_assert!(pace.offset_ns(publisher, due) >= span_ns);
                prop_assert!(due == 0 || pace.offset_ns(publisher, due - 1) < span_ns);
            }
        }
    }

    #[test]
    fn all_messages_are_the_area_under_the_rate(load in load(), span_ns in 0..400_000_000_u64) {
        let (period_ns, shape, publishers, stages) = load;
        let pace = Pace::new(rate(period_ns), &shape, publishers, stages.0, stages.1);
        let expected = area(period_ns, &shape, stages, span_ns) * f64::from(publishers);
        let messages = fraction(due(&pace, publishers, span_ns));
        prop_assert!((messages - expected).abs() <= f64::from(publishers), "{} for {}", messages, expected);
    }

    #[test]
    fn threads_together_send_the_whole_load_in_its_order(load in load(), threads in 1_usize..4) {
        let (_, shape, publishers, stages) = load;
        let pace = Pace::new(rate(1_000_000), &shape, publishers, stages.0, stages.1);
        let span_ns = 20_000_000;
        let mut rings: Vec<Ring> = (0..threads)
            .map(|thread| {
                let members = (0..publishers).skip(thread).step_by(threads);
                Ring::new(pace.clone(), members.map(|publisher| (publisher, publisher)), span_ns)
            })
            .collect();
        let mut merged = Vec::new();
        while let Some((ring, tick)) = (0..)
            .zip(&rings)
            .filter_map(|(index, ring)| Some((index, ring.next()?)))
            .min_by_key(|(_, tick)| (tick.offset_ns, tick.sequence, tick.slot))
        {
            rings[ring].advance();
            merged.push((tick.offset_ns, tick.sequence, tick.slot));
        }
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
}
