//! The exact permutation test of several figures at once.
//!
//! If both sides are the same, every division of the runs into two sides is as likely as the one
//! that was made. The statistic of a division is the largest of its figures', so the probability
//! that any figure is called worse is at most the level, however many figures there are and however
//! they depend on each other (Westfall and Young 1993; Holm's correction is the worst case of it,
//! which four runs a side could never satisfy for more than three figures).

use super::noise;
use crate::metric::Better;

/// Divisions up to which all of them are looked at; of more, as many drawn ones and the real one.
const DIVISIONS_MAX: u64 = 20_000;
const DIVISIONS_DRAWN: u64 = 9_999;

/// Smaller differences of two statistics are rounding.
const ROUNDING: f64 = 1e-9;

/// A figure of every run of both sides, and the differences of it that count.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Those of the baseline first.
    values: Vec<f64>,
    /// Error bounds of the generator, in the same order and unit.
    bounds: Vec<f64>,
    /// Logarithms of the values, if all have one; higher is worse.
    scores: Vec<f64>,
    /// Standard deviation of the scores.
    spread: f64,
    /// Numbers of the runs in the order of their values.
    order: Vec<usize>,
    /// Least practical difference as a part of the lower figure.
    least: f64,
    is_higher_worse: bool,
}

impl Figure {
    /// `values` and `bounds` are those of the baseline's runs, then those of the candidate's.
    pub(super) fn new(values: Vec<f64>, bounds: Vec<f64>, better: Better, least: f64) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
        let mut figure = Self {
            scores: values.clone(),
            values,
            bounds,
            spread: 0.0,
            order,
            least,
            is_higher_worse: better != Better::Higher,
        };
        if figure.values.iter().all(|value| *value > 0.0) {
            figure.scores = figure.values.iter().map(|value| value.ln()).collect();
        }
        figure.spread = noise::standard_deviation(&figure.scores);
        figure
    }

    /// The same figure, with the other direction as the worse one.
    fn mirrored(&self) -> Self {
        Self {
            is_higher_worse: !self.is_higher_worse,
            ..self.clone()
        }
    }

    /// How much worse the candidate is in a division: the difference of the means of the scores, in
    /// standard deviations; 0 if the medians do not differ by what counts.
    fn harm(&self, is_candidate: &[bool], sizes: [usize; 2]) -> f64 {
        let sides = self.sides(is_candidate, sizes);
        let [before, after] = sides.map(|side| side.median);
        let (low, high) = if self.is_higher_worse {
            (before, after)
        } else {
            (after, before)
        };
        let bound = sides[0].bound + sides[1].bound;
        if high <= low * (1.0 + self.least) || high - low <= bound || self.spread <= 0.0 {
            return 0.0;
        }
        let difference = sides[1].mean - sides[0].mean;
        let harm = if self.is_higher_worse {
            difference
        } else {
            -difference
        };
        (harm / self.spread).max(0.0)
    }

    /// Both sides of a division, in one pass: a test of many runs looks at thousands of divisions.
    fn sides(&self, is_candidate: &[bool], sizes: [usize; 2]) -> [Half; 2] {
        let mut seen = [0; 2];
        let mut sides = [Half::default(); 2];
        for &run in &self.order {
            let side = usize::from(is_candidate[run]);
            let (half, size) = (&mut sides[side], sizes[side]);
            // The value in the middle counts twice, or the two in the middle once each.
            if seen[side] == (size - 1) / 2 {
                half.median += self.values[run] / 2.0;
            }
            if seen[side] == size / 2 {
                half.median += self.values[run] / 2.0;
            }
            half.mean += self.scores[run];
            half.bound = half.bound.max(self.bounds[run]);
            seen[side] += 1;
        }
        for (half, seen) in sides.iter_mut().zip(seen) {
            half.mean /= thrum_figures::fraction(seen as u64);
        }
        sides
    }
}

/// The figures of one side of a division.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    median: f64,
    mean: f64,
    bound: f64,
}

/// Divisions of the runs into sides of these sizes.
pub(super) fn divisions(baseline: usize, candidate: usize) -> u64 {
    let smaller = baseline.min(candidate);
    let all = baseline + candidate;
    (0..smaller).fold(1, |product: u64, taken| {
        let [rest, next] = [all - taken, taken + 1].map(|number| number as u64);
        product.saturating_mul(rest) / next
    })
}

/// The least p that sides of these sizes can show.
pub(super) fn least_p(baseline: usize, candidate: usize) -> f64 {
    let divisions = divisions(baseline, candidate);
    let looked_at = if divisions > DIVISIONS_MAX {
        DIVISIONS_DRAWN + 1
    } else {
        divisions
    };
    1.0 / thrum_figures::fraction(looked_at)
}

/// For each figure, the probability that equal sides show any of the figures as much worse as this
/// one: [worse, better].
pub(super) fn joint(figures: &[Figure], baseline: usize, candidate: usize) -> Vec<[f64; 2]> {
    let mirrored: Vec<Figure> = figures.iter().map(Figure::mirrored).collect();
    let worse = one_sided(figures, baseline, candidate);
    let better = one_sided(&mirrored, baseline, candidate);
    worse
        .into_iter()
        .zip(better)
        .map(|(worse, better)| [worse, better])
        .collect()
}

fn one_sided(figures: &[Figure], baseline: usize, candidate: usize) -> Vec<f64> {
    let real: Vec<bool> = (0..baseline + candidate)
        .map(|run| run >= baseline)
        .collect();
    let sizes = [baseline, candidate];
    let observed: Vec<f64> = figures
        .iter()
        .map(|figure| figure.harm(&real, sizes))
        .collect();
    let mut as_extreme = vec![0_u64; figures.len()];
    let mut looked_at = 0;
    if observed.iter().all(|harm| *harm <= 0.0) {
        return vec![1.0; figures.len()];
    }
    each_division(baseline, candidate, |division| {
        looked_at += 1;
        let harms = figures.iter().map(|figure| figure.harm(division, sizes));
        let largest = harms.fold(0.0, f64::max);
        for (count, harm) in as_extreme.iter_mut().zip(&observed) {
            *count += u64::from(largest >= harm - ROUNDING);
        }
    });
    as_extreme
        .into_iter()
        .map(|count| thrum_figures::ratio(count, looked_at))
        .collect()
}

/// Every division once; of too many, the real one and drawn ones.
fn each_division(baseline: usize, candidate: usize, mut look: impl FnMut(&[bool])) {
    let mut division: Vec<bool> = (0..baseline + candidate)
        .map(|run| run >= baseline)
        .collect();
    if divisions(baseline, candidate) <= DIVISIONS_MAX {
        loop {
            look(&division);
            if !next_division(&mut division) {
                return;
            }
        }
    }
    look(&division);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..DIVISIONS_DRAWN {
        shuffle(&mut division, &mut state);
        look(&division);
    }
}

/// The next division in lexicographic order; false if this is the last one.
fn next_division(division: &mut [bool]) -> bool {
    let Some(at) = division.windows(2).rposition(|pair| !pair[0] && pair[1]) else {
        return false;
    };
    division.swap(at, at + 1);
    division[at + 2..].sort_unstable();
    true
}

/// Fisher and Yates, with the generator of Marsaglia (xorshift).
fn shuffle(division: &mut [bool], state: &mut u64) {
    for end in (1..division.len()).rev() {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let drawn = *state % (end as u64 + 1);
        division.swap(end, usize::try_from(drawn).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], least: f64) -> Figure {
        Figure::new(
            values.to_vec(),
            vec![0.0; values.len()],
            Better::Lower,
            least,
        )
    }

    #[test]
    fn every_division_is_looked_at_once() {
        let mut seen = Vec::new();
        each_division(3, 3, |division| seen.push(division.to_vec()));
        assert_eq!(seen.len(), 20);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 20);
        assert!(
            seen.iter()
                .all(|of| of.iter().filter(|is| **is).count() == 3)
        );
        assert_eq!(
            [divisions(4, 4), divisions(1, 5), divisions(2, 5)],
            [70, 6, 21]
        );
    }

    #[test]
    fn sides_apart_have_the_least_p() {
        let apart = figure(&[1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 2.3], 0.1);
        let [worse, better] = joint(std::slice::from_ref(&apart), 4, 4)[0];
        assert!((worse - 1.0 / 70.0).abs() < 1e-12, "{worse}");
        assert!((better - 1.0).abs() < 1e-12, "{better}");
        let higher = Figure::new(apart.values.clone(), apart.bounds, Better::Higher, 0.1);
        let [worse, better] = joint(&[higher], 4, 4)[0];
        assert!(better < 0.02 && worse > 0.99);
    }

    #[test]
    fn unequal_sides_that_are_apart_have_the_least_p_too() {
        for [baseline, candidate] in [[3, 4], [3, 5], [5, 3], [4, 9], [2, 5]] {
            let low = (0..baseline).map(|run| 1.0 + 0.01 * f64::from(run));
            let high = (0..candidate).map(|run| 2.0 + 0.01 * f64::from(run));
            let apart = figure(&low.chain(high).collect::<Vec<f64>>(), 0.1);
            let sizes = [baseline, candidate].map(|runs| usize::try_from(runs).unwrap());
            let [worse, _] = joint(&[apart], sizes[0], sizes[1])[0];
            let least = least_p(sizes[0], sizes[1]);
            assert!((worse - least).abs() < 1e-12, "{sizes:?}: {worse} {least}");
        }
        assert!((least_p(3, 5) - 1.0 / 56.0).abs() < 1e-12);
    }

    #[test]
    fn differences_below_the_least_are_none() {
        let close = figure(&[1.0, 1.001, 1.002, 1.05, 1.051, 1.052], 0.1);
        assert!(joint(&[close], 3, 3)[0][0] > 0.99);
    }

    #[test]
    fn differences_within_the_error_of_the_generator_are_none() {
        let values = vec![10.0, 11.0, 12.0, 20.0, 21.0, 22.0];
        let p = |bound: f64| {
            let figure = Figure::new(values.clone(), vec![bound; 6], Better::Lower, 0.1);
            joint(&[figure], 3, 3)[0][0]
        };
        assert!(p(4.9) < 0.06);
        assert!(p(5.0) > 0.99, "10 apart, and known to 5 on each side");
    }

    #[test]
    fn another_noisy_figure_makes_a_difference_less_sure() {
        let apart = figure(&[1.0, 1.1, 1.2, 2.0, 2.1, 2.2], 0.1);
        let noisy = figure(&[1.0, 9.0, 1.0, 9.0, 1.0, 9.0], 0.1);
        let alone = joint(std::slice::from_ref(&apart), 3, 3)[0][0];
        let together = joint(&[apart, noisy], 3, 3)[0][0];
        assert!(together > alone, "{together} {alone}");
    }

    #[test]
    fn five_equal_figures_together_look_worse_at_most_five_times_of_a_hundred() {
        let mut state = 7_u64;
        let mut noise = |runs: usize| {
            let values = (0..2 * runs).map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                1.0 + thrum_figures::fraction(state >> 12) / thrum_figures::fraction(1 << 52)
            });
            figure(&values.collect::<Vec<f64>>(), 0.0)
        };
        // The level is 1 of 20 and 3 of 70 divisions; 20 are three deviations of chance.
        for (runs, expected) in [(3, 50_usize), (4, 43)] {
            let is_alarm = |_: &usize| {
                let figures: [Figure; 5] = std::array::from_fn(|_| noise(runs));
                let p = joint(&figures, runs, runs);
                p.iter().any(|[worse, _]| *worse <= 0.05)
            };
            let alarms = (0..1_000).filter(is_alarm).count();
            assert!(alarms.abs_diff(expected) <= 20, "{runs}: {alarms}");
        }
    }

    #[test]
    fn many_runs_are_divided_at_random() {
        let values: Vec<f64> = (0..26).map(|run| 1.0 + f64::from(run)).collect();
        let p = joint(&[figure(&values, 0.1)], 13, 13)[0][0];
        assert!((p - 1e-4).abs() < 1e-9, "{p}");
        assert!((least_p(13, 13) - 1e-4).abs() < 1e-12);
        assert!((least_p(3, 3) - 0.05).abs() < 1e-12);
    }
}
