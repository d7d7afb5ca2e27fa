//! Several searches for the same limit, and what they say together.
//!
//! Each round has a bracket of its own, which begins where the round before ended. The answer is
//! the median of the rounds with an interval by the order of their ends, so it assumes nothing
//! about how a broker or its machine varies from round to round.

use serde::Serialize;

use super::confidence::{MedianInterval, median_interval};
use super::{Answer, Ceiling, Limits, LimitsError, Search, Step, Trial};

/// A round that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Its answer.
    pub answer: Answer,
    /// Its trials, in order.
    pub trials: Vec<Trial>,
}

/// Rounds under way.
#[derive(Clone, Debug)]
pub struct Rounds {
    wanted: u32,
    ended: Vec<Round>,
    /// The round that is under way, or the last one.
    present: Search,
}

impl Rounds {
    /// So many rounds, at least one, within these limits; `trials_max` is that of each round.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn new(limits: Limits, rounds: u32) -> Result<Self, LimitsError> {
        Ok(Self {
            wanted: rounds.max(1),
            ended: Vec::new(),
            present: Search::new(limits)?,
        })
    }

    /// The next trial; none after the last round.
    pub fn next(&self) -> Option<Step> {
        let step = (!self.is_over()).then(|| self.present.next())?;
        matches!(step, Step::Try { .. }).then_some(step)
    }

    /// Records the outcome of the load that [`Rounds::next`] named.
    pub fn record(&mut self, trial: Trial) {
        if self.is_over() {
            return;
        }
        self.present.record(trial);
        let Step::Done(answer) = self.present.next() else {
            return;
        };
        self.ended.push(Round {
            answer,
            trials: self.present.trials().to_vec(),
        });
        if !self.is_over() {
            self.present = self.present.near(self.nearest(&answer));
        }
    }

    /// Loads below this one are not tried, in this round and those after it, because no trial of
    /// them can be judged.
    pub fn raise_lowest(&mut self, load: f64) {
        self.present.raise_lowest(load);
    }

    /// Rounds that were asked for.
    pub const fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The limits of each round.
    pub fn limits(&self) -> &Limits {
        self.present.limits()
    }

    /// The rounds that have ended.
    pub fn ended(&self) -> &[Round] {
        &self.ended
    }

    /// The trials of the round under way; none if it has just begun.
    pub fn present(&self) -> &[Trial] {
        if self.is_over() {
            return &[];
        }
        self.present.trials()
    }

    /// What is known of the round under way.
    pub fn so_far(&self) -> Option<Answer> {
        (!self.present().is_empty()).then(|| self.present.unsure())
    }

    /// The fewest trials that are left of this and the following rounds if all agree, and the
    /// most.
    pub fn trials_left(&self) -> [u32; 2] {
        if self.is_over() {
            return [0, 0];
        }
        let ended = u32::try_from(self.ended.len()).unwrap_or(u32::MAX);
        let later = self.wanted.saturating_sub(ended.saturating_add(1));
        let [fewest, most] = self.present.trials_left();
        let limits = self.limits();
        // Where the last round ended, every repeat is made at least once more.
        let each = (1 + limits.repeats).min(limits.trials_max);
        [fewest + later * each, most + later * limits.trials_max]
    }

    /// What the ended rounds say together; none before the first one has.
    pub fn estimate(&self) -> Option<Estimate> {
        (!self.ended.is_empty()).then(|| Estimate::of(self.ended.iter().map(|round| round.answer)))
    }

    fn is_over(&self) -> bool {
        self.ended.len() >= self.wanted as usize
    }

    /// The load at which the next round begins.
    fn nearest(&self, answer: &Answer) -> f64 {
        match answer {
            Answer::Between { low, .. } | Answer::AtLeast { low, .. } => *low,
            Answer::Below { high } => *high,
            Answer::Unsure { low, high } => low.or(*high).unwrap_or_else(|| self.limits().from),
            Answer::NoTrial => self.limits().from,
        }
    }
}

/// How many rounds ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Between a load that held and one that failed.
    pub between: u32,
    /// The generator was the limit.
    pub generator: u32,
    /// The highest load that was asked for held.
    pub asked: u32,
    /// Not even the lowest load held.
    pub below: u32,
    /// The most trials were made before both ends were sure, or repeats were INVALID.
    pub unsure: u32,
    /// The generator could not offer even the lowest load.
    pub no_trial: u32,
}

/// What several rounds say about the highest load that a broker holds.
///
/// A round that found no lower end counts as one that held nothing, and one that found no upper end
/// as one that would have held anything: the interval can only become wider by it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Rounds that ended.
    pub rounds: u32,
    /// The median of the loads that the rounds held, the lower one of two; none if half of the
    /// rounds held nothing.
    pub holds: Option<f64>,
    /// The median of the loads at which they failed, the upper one of two; none if half of the
    /// rounds did not reach the limit of the broker.
    pub fails: Option<f64>,
    /// The lower end of the interval; none if there is none.
    pub low: Option<f64>,
    /// The upper end of the interval; none if there is none.
    pub high: Option<f64>,
    /// The share of such intervals that contain the median capacity, at least: 0.95 from six
    /// rounds on.
    pub confidence: f64,
    /// How the rounds ended.
    pub ends: Ends,
}

impl Estimate {
    fn of(answers: impl Iterator<Item = Answer>) -> Self {
        let (mut lows, mut highs, mut ends) = (Vec::new(), Vec::new(), Ends::default());
        for answer in answers {
            let (low, high, count) = match answer {
                Answer::Between { low, high } => (Some(low), Some(high), &mut ends.between),
                Answer::AtLeast { low, ceiling, .. } => match ceiling {
                    Ceiling::Generator => (Some(low), None, &mut ends.generator),
                    Ceiling::Asked => (Some(low), None, &mut ends.asked),
                },
                Answer::Below { high } => (None, Some(high), &mut ends.below),
                Answer::Unsure { .. } => (None, None, &mut ends.unsure),
                Answer::NoTrial => (None, None, &mut ends.no_trial),
            };
            *count += 1;
            lows.push(low.unwrap_or(0.0));
            highs.push(high.unwrap_or(f64::INFINITY));
        }
        lows.sort_by(f64::total_cmp);
        highs.sort_by(f64::total_cmp);
        let count = lows.len();
        let rounds = u32::try_from(count).unwrap_or(u32::MAX);
        let MedianInterval {
            outside,
            confidence,
        } = median_interval(rounds);
        let known =
            |load: Option<&f64>| load.copied().filter(|load| *load > 0.0 && load.is_finite());
        Self {
            rounds,
            holds: known(lows.get(count.saturating_sub(1) / 2)),
            fails: known(highs.get(count / 2)),
            low: known(lows.get(outside)),
            high: known(highs.get(count.saturating_sub(1 + outside))),
            confidence,
            ends,
        }
    }

    /// The interval as the answer of a search.
    pub fn answer(&self) -> Answer {
        let ends = &self.ends;
        match (self.low, self.high) {
            (Some(low), Some(high)) => Answer::Between { low, high },
            (Some(low), None) if self.holds.is_some() => Answer::AtLeast {
                low,
                ceiling: if ends.generator > 0 || ends.asked == 0 {
                    Ceiling::Generator
                } else {
                    Ceiling::Asked
                },
                limited: None,
            },
            (None, Some(high)) if self.holds.is_none() && self.fails.is_some() => {
                Answer::Below { high }
            }
            (None, None) if ends.no_trial == self.rounds => Answer::NoTrial,
            (low, high) => Answer::Unsure { low, high },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: f64) -> Answer {
        Answer::Between {
            low,
            high: low * 1.05,
        }
    }

    const LIMITED: Answer = Answer::AtLeast {
        low: 100.0,
        ceiling: Ceiling::Generator,
        limited: Some(105.0),
    };

    const UNSURE: Answer = Answer::Unsure {
        low: Some(100.0),
        high: Some(110.0),
    };

    fn estimate(answers: &[Answer]) -> Estimate {
        Estimate::of(answers.iter().copied())
    }

    #[test]
    fn six_rounds_give_their_median_and_the_interval_of_all_of_them() {
        let found = estimate(&[100.0, 130.0, 90.0, 120.0, 80.0, 110.0].map(between));
        assert_eq!((found.holds, found.low), (Some(100.0), Some(80.0)));
        assert_eq!(found.high, Some(130.0 * 1.05));
        assert!((found.confidence - 0.96875).abs() < 1e-12);
        let interval = Answer::Between {
            low: 80.0,
            high: 130.0 * 1.05,
        };
        assert_eq!(found.answer(), interval);
    }

    #[test]
    fn from_nine_rounds_on_one_round_at_each_side_may_stray() {
        let mut answers = [between(100.0); 9];
        answers[3] = between(10.0);
        answers[7] = LIMITED;
        let found = estimate(&answers);
        assert_eq!((found.low, found.high), (Some(100.0), Some(105.0)));
        assert!(found.confidence >= 0.95);
    }

    #[test]
    fn a_round_without_an_end_leaves_the_interval_without_that_end() {
        let mut answers = [between(100.0); 6];
        answers[2] = LIMITED;
        let found = estimate(&answers);
        assert_eq!((found.holds, found.low), (Some(100.0), Some(100.0)));
        assert_eq!((found.high, found.ends.generator), (None, 1));
        assert!(matches!(found.answer(), Answer::AtLeast { .. }));
        answers[4] = UNSURE;
        let found = estimate(&answers);
        assert_eq!((found.low, found.high), (None, None));
        assert!(matches!(found.answer(), Answer::Unsure { .. }));
        // The median is still one of the loads that held.
        assert_eq!(found.holds, Some(100.0));
    }

    #[test]
    fn half_of_the_rounds_without_a_load_that_held_have_no_median() {
        let below = Answer::Below { high: 1.0 };
        let found = estimate(&[below, between(2.0), below, below]);
        assert_eq!((found.holds, found.fails), (None, Some(1.0)));
        assert!(matches!(found.answer(), Answer::Below { .. }));
        assert_eq!(estimate(&[Answer::NoTrial; 3]).answer(), Answer::NoTrial);
        let found = estimate(&[UNSURE, between(2.0)]);
        assert_eq!((found.holds, found.low), (None, None));
    }
}
