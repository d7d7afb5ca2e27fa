//! The search against simulated brokers whose capacity is known.

use super::*;

/// Draws that are the same on every machine.
struct Draws(u64);

impl Draws {
    /// Uniform from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        f64::from(u32::try_from(bits >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// About normal with deviation 1: the sum of twelve uniform draws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

struct Simulated {
    /// Load that the broker holds in half of the trials.
    capacity: f64,
    /// Relative deviation of that from trial to trial.
    noise: f64,
    /// Load that the generator can offer.
    generator: f64,
    /// Part of the trials that the generator spoils.
    spoilt: f64,
}

impl Simulated {
    fn grade(&self, load: f64, draws: &mut Draws) -> Grade {
        if load > self.generator || draws.uniform() < self.spoilt {
            Grade::Limited
        } else if load <= self.capacity * (1.0 + self.noise * draws.normal()) {
            Grade::Held
        } else {
            Grade::Failed
        }
    }
}

const STEADY: Simulated = Simulated {
    capacity: 47_000.0,
    noise: 0.0,
    generator: f64::INFINITY,
    spoilt: 0.0,
};

fn run(limits: Limits, broker: &Simulated, seed: u64) -> (Answer, Search) {
    let mut search = Search::new(limits).unwrap();
    let mut draws = Draws(seed);
    loop {
        match search.next() {
            Step::Done(answer) => return (answer, search),
            Step::Try { load, .. } => search.record(Trial {
                load,
                grade: broker.grade(load, &mut draws),
                reasons: Vec::new(),
                figures: Figures::default(),
            }),
        }
        assert!(search.trials().len() <= 60, "the search does not end");
    }
}

#[test]
fn the_trials_left_are_between_the_fewest_and_the_most() {
    for capacity in [13.0, 999.0, 47_000.0, 9_000_000.0] {
        let broker = Simulated { capacity, ..STEADY };
        let total = run(Limits::default(), &broker, 1).1.trials().len();
        let mut search = Search::new(Limits::default()).unwrap();
        let mut draws = Draws(1);
        while let Step::Try { load, .. } = search.next() {
            let left = u32::try_from(total - search.trials().len()).unwrap();
            let [fewest, most] = search.trials_left();
            assert!(
                (fewest..=most).contains(&left),
                "{capacity}: {left} of {fewest}..{most}"
            );
            search.record(Trial {
                load,
                grade: broker.grade(load, &mut draws),
                reasons: Vec::new(),
                figures: Figures::default(),
            });
        }
        assert_eq!(search.trials_left(), [0, 0]);
    }
}

#[test]
fn a_steady_capacity_is_found_to_the_resolution() {
    for capacity in [13.0, 999.0, 1_000.0, 47_000.0, 9_000_000.0] {
        let broker = Simulated { capacity, ..STEADY };
        let (answer, search) = run(Limits::default(), &broker, 1);
        let Answer::Between { low, high } = answer else {
            panic!("{capacity}: {answer:?}");
        };
        assert!(low <= capacity && capacity < high, "{capacity}: {answer:?}");
        assert!((high / low - 1.05).abs() < 1e-9);
        assert!(search.trials().len() <= 30, "{}", search.trials().len());
    }
}

#[test]
fn the_interval_holds_the_truth_in_nine_of_ten_noisy_simulations() {
    for noise in [0.01, 0.03, 0.06, 0.1] {
        let mut hits = 0;
        for seed in 0..200 {
            let mut draws = Draws(seed);
            let capacity = 1_500.0 * (1.0 + 40.0 * draws.uniform());
            let broker = Simulated {
                capacity,
                noise,
                spoilt: 0.03,
                ..STEADY
            };
            let (answer, _) = run(Limits::default(), &broker, seed + 1_000);
            hits += match answer {
                Answer::Between { low, high } => u32::from(low <= capacity && capacity <= high),
                _ => 0,
            };
        }
        assert!(hits >= 180, "noise {noise}: {hits} of 200");
    }
}

/// Three agreeing repeats prove a share of 36.8 %: normally distributed, this is where the share of
/// trials that hold is that.
const DEVIATIONS_OF_SHARE: f64 = 0.336_8;

#[test]
fn the_share_of_trials_that_a_round_states_is_true_in_95_of_100() {
    for noise in [0.02, 0.06, 0.15] {
        let (mut answers, mut low_is_true, mut high_is_true) = (0, 0, 0);
        for seed in 0..500 {
            let mut draws = Draws(seed);
            let capacity = 1_500.0 * (1.0 + 40.0 * draws.uniform());
            let broker = Simulated {
                capacity,
                noise,
                ..STEADY
            };
            let (answer, _) = run(Limits::default(), &broker, seed + 1_000);
            if let Answer::Between { low, high } = answer {
                answers += 1;
                let margin = DEVIATIONS_OF_SHARE * noise;
                low_is_true += u32::from(low <= capacity * (1.0 + margin));
                high_is_true += u32::from(high >= capacity * (1.0 - margin));
            }
        }
        assert!(answers >= 450, "{noise}: {answers}");
        for is_true in [low_is_true, high_is_true] {
            assert!(
                is_true * 100 >= answers * 95,
                "{noise}: {is_true} of {answers}"
            );
        }
    }
}

/// Runs this many rounds against a broker whose capacity is another one in each.
fn rounds(count: u32, broker: &Simulated, drift: f64, draws: &mut Draws) -> Rounds {
    let mut search = Rounds::new(Limits::default(), count).unwrap();
    let capacities: Vec<f64> = (0..count)
        .map(|_| broker.capacity * (1.0 + drift * draws.normal()))
        .collect();
    while let Some(Step::Try { load, .. }) = search.next() {
        let now = Simulated {
            capacity: capacities[search.ended().len()],
            ..*broker
        };
        let grade = now.grade(load, draws);
        let [fewest, most] = search.trials_left();
        assert!(1 <= fewest && fewest <= most, "{fewest} {most}");
        search.record(trial(load, grade));
    }
    search
}

#[test]
fn the_interval_of_rounds_contains_the_capacity_as_often_as_it_says() {
    for (count, stated) in [(2, 0.5), (5, 0.9375), (6, 0.968_75), (9, 0.960_9)] {
        for (noise, drift) in [
            (0.0, 0.0),
            (0.02, 0.05),
            (0.06, 0.0),
            (0.05, 0.15),
            (0.1, 0.1),
            (0.1, 0.15),
        ] {
            let (mut hits, mut answers) = (0, 0);
            for seed in 0..500 {
                let mut draws = Draws(seed);
                let capacity = 1_500.0 * (1.0 + 40.0 * draws.uniform());
                let broker = Simulated {
                    capacity,
                    noise,
                    spoilt: 0.02,
                    ..STEADY
                };
                let search = rounds(count, &broker, drift, &mut draws);
                let estimate = search.estimate().unwrap();
                assert_eq!(estimate.rounds, count);
                assert!((estimate.confidence - stated).abs() < 1e-4);
                // An interval without an end says less and is no hit.
                let ends = estimate.low.zip(estimate.high);
                let contains = |(from, to)| from <= capacity && capacity <= to;
                answers += u32::from(ends.is_some());
                hits += u32::from(ends.is_some_and(contains));
            }
            let share = f64::from(hits) / f64::from(answers);
            assert!(
                share >= stated && answers >= 450,
                "{count} rounds, {noise}, {drift}: {share} < {stated}, of {answers}"
            );
        }
    }
}

#[test]
fn a_later_round_takes_fewer_trials_and_leaves_the_answer_before_it() {
    let limits = Limits::default();
    let first = run(limits, &STEADY, 1).1;
    assert!(first.trials().len() > 12, "{}", first.trials().len());
    for (capacity, most) in [
        (47_000.0, 8),
        (50_000.0, 10),
        (4_700.0, 18),
        (470_000.0, 18),
    ] {
        let broker = Simulated { capacity, ..STEADY };
        let mut search = first.near(45_000.0);
        let mut draws = Draws(1);
        let answer = loop {
            match search.next() {
                Step::Done(answer) => break answer,
                Step::Try { load, .. } => {
                    search.record(trial(load, broker.grade(load, &mut draws)));
                }
            }
        };
        let Answer::Between { low, high } = answer else {
            panic!("{capacity}: {answer:?}");
        };
        assert!(low <= capacity && capacity < high, "{capacity}: {answer:?}");
        let made = search.trials().len();
        assert!(made <= most, "{capacity}: {made} trials");
    }
}

#[test]
fn a_generator_that_ends_first_is_not_mistaken_for_the_broker() {
    let broker = Simulated {
        generator: 20_000.0,
        ..STEADY
    };
    let (answer, _) = run(Limits::default(), &broker, 1);
    let Answer::AtLeast {
        low,
        ceiling: Ceiling::Generator,
        limited: Some(limited),
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert!(low <= 20_000.0 && 20_000.0 < limited, "{low} {limited}");
    assert!((limited / low - 1.05).abs() < 1e-9);
}

#[test]
fn trials_that_others_on_the_machine_spoilt_do_not_bound_the_search() {
    let mut search = Search::new(Limits::default()).unwrap();
    let mut draws = Draws(1);
    // The first three of 1,000 messages/s are disturbed, so the search goes down; no other trial
    // is.
    let mut spoilt = 3;
    let answer = loop {
        let load = match search.next() {
            Step::Done(answer) => break answer,
            Step::Try { load, .. } => load,
        };
        let is_first = (load - 1_000.0).abs() < 1e-6;
        let grade = if is_first && spoilt > 0 {
            spoilt -= 1;
            Grade::Limited
        } else {
            STEADY.grade(load, &mut draws)
        };
        search.record(trial(load, grade));
    };
    let Answer::Between { low, high } = answer else {
        panic!("{answer:?}");
    };
    assert!(
        low <= STEADY.capacity && STEADY.capacity < high,
        "{answer:?}"
    );
}

#[test]
fn a_load_reported_as_held_was_held_in_every_trial() {
    for seed in 0..500 {
        let mut draws = Draws(seed);
        let broker = Simulated {
            capacity: 100_000.0 * draws.uniform(),
            noise: 0.1 * draws.uniform(),
            generator: 100_000.0 * draws.uniform(),
            spoilt: 0.5 * draws.uniform(),
        };
        let (answer, search) = run(Limits::default(), &broker, seed);
        let low = match answer {
            Answer::Between { low, .. } | Answer::AtLeast { low, .. } => low,
            Answer::Unsure { low: Some(low), .. } => low,
            Answer::Unsure { low: None, .. } | Answer::Below { .. } | Answer::NoTrial => continue,
        };
        let there = search.trials().iter();
        let grades: Vec<Grade> = there
            .filter(|trial| (trial.load / low - 1.0).abs() < 1e-9)
            .map(|trial| trial.grade)
            .collect();
        assert!(grades.contains(&Grade::Held), "{seed}: {answer:?}");
        assert!(!grades.contains(&Grade::Failed), "{seed}: {answer:?}");
    }
}

#[test]
fn a_search_goes_no_lower_than_trials_can_be_judged() {
    let mut search = Search::new(Limits::default()).unwrap();
    let mut loads = Vec::new();
    while let Step::Try { load, .. } = search.next() {
        loads.push(load);
        search.record(trial(load, Grade::Limited));
        search.raise_lowest(300.0);
    }
    assert_eq!(search.next(), Step::Done(Answer::NoTrial));
    assert!(loads.iter().all(|load| *load >= 300.0), "{loads:?}");
    assert!(loads.contains(&1_000.0) && loads.len() <= 6, "{loads:?}");
    // Where nothing that was tried can be judged, there is no lower load to try.
    let mut search = Search::new(Limits::default()).unwrap();
    for _ in 0..3 {
        search.record(trial(1_000.0, Grade::Limited));
        search.raise_lowest(5_000.0);
    }
    assert_eq!(search.next(), Step::Done(Answer::NoTrial));
}

#[test]
fn one_spoilt_trial_is_tried_again() {
    let mut search = Search::new(Limits::default()).unwrap();
    let first = search.next();
    search.record(trial(1_000.0, Grade::Limited));
    assert_eq!(search.next(), first);
}

#[test]
fn one_spoilt_trial_is_tried_again_where_a_later_round_begins() {
    let first = Search::new(Limits::default()).unwrap();
    let mut search = first.near(1_000.0);
    // Up by one step, then by two: the stride doubles, but not over a trial that says nothing.
    for grade in [Grade::Held, Grade::Held] {
        let load = load_of(&search.next());
        search.record(trial(load, grade));
    }
    let spoilt = search.next();
    assert!((load_of(&spoilt) / 1_000.0 - 1.05_f64.powi(3)).abs() < 1e-9);
    search.record(trial(load_of(&spoilt), Grade::Limited));
    assert_eq!(search.next(), spoilt);
}

/// Both ends of an answer that is not sure.
fn unsure(answer: &Answer) -> (f64, f64) {
    match answer {
        Answer::Unsure {
            low: Some(low),
            high: Some(high),
        } => (*low, *high),
        other => panic!("{other:?}"),
    }
}

fn load_of(step: &Step) -> f64 {
    match step {
        Step::Try { load, .. } => *load,
        Step::Done(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn an_upper_end_that_failed_once_and_is_then_spoilt_is_not_the_generators_limit() {
    let mut search = Search::new(Limits::default()).unwrap();
    let answer = loop {
        let (load, why) = match search.next() {
            Step::Done(answer) => break answer,
            Step::Try { load, why } => (load, why),
        };
        let grade = match why {
            "repeat, upper end" => Grade::Limited,
            _ => STEADY.grade(load, &mut Draws(1)),
        };
        search.record(trial(load, grade));
    };
    let (low, high) = unsure(&answer);
    assert!((high / low - 1.05).abs() < 1e-9, "{low} {high}");
}

#[test]
fn the_highest_load_asked_for_is_an_answer() {
    let limits = Limits {
        from: 100.0,
        to: 1_000.0,
        ..Limits::default()
    };
    let (answer, _) = run(limits, &STEADY, 1);
    let Answer::AtLeast { low, ceiling, .. } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(ceiling, Ceiling::Asked);
    // Itself, and not the step below it, which is 980.
    assert!((low - 1_000.0).abs() < 1e-9, "{low}");
    // A later round begins there, although the step below is nearer to it than to the next.
    let wide = Limits {
        from: 900.0,
        resolution: 0.5,
        ..limits
    };
    let near = Search::new(wide).unwrap().near(1_000.0);
    assert!((load_of(&near.next()) - 1_000.0).abs() < 1e-9);
    let only = Limits {
        from: 1_000.0,
        ..limits
    };
    let (answer, search) = run(only, &STEADY, 1);
    assert!(matches!(answer, Answer::AtLeast { .. }), "{answer:?}");
    let is_it = |trial: &Trial| (trial.load - 1_000.0).abs() < 1e-9;
    assert!(search.trials().iter().all(is_it));
}

#[test]
fn the_answer_names_a_broker_or_generator_that_holds_nothing() {
    let broker = Simulated {
        capacity: 0.0,
        ..STEADY
    };
    let (answer, _) = run(Limits::default(), &broker, 1);
    assert!(matches!(answer, Answer::Below { .. }), "{answer:?}");
    let broker = Simulated {
        generator: 0.0,
        ..STEADY
    };
    let (answer, _) = run(Limits::default(), &broker, 1);
    assert_eq!(answer, Answer::NoTrial);
}

#[test]
fn the_number_of_trials_is_bounded() {
    let limits = Limits {
        trials_max: 8,
        ..Limits::default()
    };
    let (answer, search) = run(limits, &STEADY, 1);
    assert_eq!(search.trials().len(), 8);
    let (low, high) = unsure(&answer);
    assert!(low <= STEADY.capacity && STEADY.capacity < high);
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let refused = |limits| Search::new(limits).err();
    let limits = Limits::default();
    let range = Limits { to: 1.0, ..limits };
    assert_eq!(refused(range), Some(LimitsError::Range));
    let resolution = Limits {
        resolution: 0.0,
        ..limits
    };
    assert_eq!(refused(resolution), Some(LimitsError::Resolution));
    let repeats = Limits {
        repeats: 0,
        ..limits
    };
    assert_eq!(refused(repeats), Some(LimitsError::Repeats));
}

fn trial(load: f64, grade: Grade) -> Trial {
    Trial {
        load,
        grade,
        reasons: Vec::new(),
        figures: Figures::default(),
    }
}
