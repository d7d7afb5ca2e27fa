//! Which run is next: brokers take turns, round after round, and rounds that the generator limited
//! are made up for at the end.

use crate::versus::rounds;

/// A scenario of the page with the brokers that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Tells it from the other scenarios of the page.
    pub key: String,
    /// Names of the brokers.
    pub brokers: Vec<String>,
    /// Runs of each broker.
    pub rounds: u32,
    /// Further runs at most, for those that the generator limited.
    pub extra_rounds: u32,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Place of the case.
    pub case: usize,
    /// Place of the broker among those of the case.
    pub broker: usize,
    /// From 1.
    pub round: u32,
}

/// All turns of the planned rounds, then those of the extra ones.
pub fn turns(cases: &[Case]) -> Vec<Turn> {
    let orders: Vec<_> = cases
        .iter()
        .map(|case| rounds(case.brokers.len(), case.rounds + case.extra_rounds))
        .collect();
    let planned = of_rounds(cases, &orders, |case, round| round <= case.rounds);
    let extra = of_rounds(cases, &orders, |case, round| round > case.rounds);
    planned.into_iter().chain(extra).collect()
}

fn of_rounds(
    cases: &[Case],
    orders: &[Vec<Vec<usize>>],
    is_meant: impl Fn(&Case, u32) -> bool,
) -> Vec<Turn> {
    let last = cases.iter().map(|case| case.rounds + case.extra_rounds);
    let mut turns = Vec::new();
    for (index, round) in (1..=last.max().unwrap_or(0)).enumerate() {
        for (case, (known, orders)) in cases.iter().zip(orders).enumerate() {
            let order = orders.get(index).filter(|_| is_meant(known, round));
            turns.extend(order.into_iter().flatten().map(|&broker| Turn {
                case,
                broker,
                round,
            }));
        }
    }
    turns
}

/// The first turn from place `from` that is due: it was not made, and is of a planned round or of a
/// broker that lacks VALID runs. `made` tells whether a turn was made, `valid` the number of VALID
/// runs of its pair.
pub fn next_turn(
    cases: &[Case],
    turns: &[Turn],
    from: usize,
    made: impl Fn(&Turn) -> bool,
    valid: impl Fn(&Turn) -> u32,
) -> Option<usize> {
    let is_due = |turn: &Turn| {
        let planned = cases.get(turn.case).map_or(0, |case| case.rounds);
        !made(turn) && (turn.round <= planned || valid(turn) < planned)
    };
    let rest = turns.get(from..)?;
    rest.iter().position(is_due).map(|place| from + place)
}

/// Turns that are left, a range because nobody knows which runs the generator will limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Those that are made in any case.
    pub least: Vec<Turn>,
    /// Those that are made if every run is INVALID.
    pub most: Vec<Turn>,
}

/// The turns that are left from place `from` on; `made` and `valid` as of [`next_turn`].
pub fn left(
    cases: &[Case],
    turns: &[Turn],
    from: usize,
    made: impl Fn(&Turn) -> bool,
    valid: impl Fn(&Turn) -> u32,
) -> Left {
    let rest = turns.get(from..).unwrap_or_default();
    let rest: Vec<&Turn> = rest.iter().filter(|turn| !made(turn)).collect();
    let mut left = Left::default();
    for (place, turn) in rest.iter().enumerate() {
        let planned = cases.get(turn.case).map_or(0, |case| case.rounds);
        let lacking = planned.saturating_sub(valid(turn));
        if turn.round > planned && lacking == 0 {
            continue;
        }
        left.most.push(**turn);
        // Even if all of those before it are VALID, this one is needed.
        let before = rest.iter().take(place);
        let of_pair = before.filter(|other| (other.case, other.broker) == (turn.case, turn.broker));
        let before = u32::try_from(of_pair.count()).unwrap_or(u32::MAX);
        if turn.round <= planned || before < lacking {
            left.least.push(**turn);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(brokers: &[&str], rounds: u32, extra_rounds: u32) -> Case {
        Case {
            key: "k".to_owned(),
            brokers: brokers.iter().map(|name| (*name).to_owned()).collect(),
            rounds,
            extra_rounds,
        }
    }

    fn text(turns: &[Turn]) -> Vec<String> {
        let text = |turn: &Turn| format!("{}{}{}", turn.round, turn.case, turn.broker);
        turns.iter().map(text).collect()
    }

    #[test]
    fn every_scenario_runs_in_each_round_and_the_brokers_take_turns() {
        let cases = [case(&["a", "b"], 2, 0), case(&["a"], 1, 0)];
        let turns = turns(&cases);
        assert_eq!(text(&turns), ["100", "101", "110", "201", "200"]);
    }

    #[test]
    fn extra_rounds_come_last_and_only_for_brokers_that_lack_valid_runs() {
        let cases = [case(&["a", "b"], 1, 1), case(&["a"], 2, 0)];
        let turns = turns(&cases);
        assert_eq!(text(&turns[..4]), ["100", "101", "110", "210"]);
        assert_eq!(turns.len(), 6);
        let next = |from, valid: fn(&Turn) -> u32| {
            let found = next_turn(&cases, &turns, from, |turn| turn.round == 1, valid);
            found.map(|place| text(&turns[place..=place])[0].clone())
        };
        let all_valid: fn(&Turn) -> u32 = |turn| 1 + u32::from(turn.case == 1);
        assert_eq!(next(0, all_valid), Some("210".to_owned()));
        assert_eq!(next(4, all_valid), None);
        let b_lacks: fn(&Turn) -> u32 = |turn| u32::from(turn.broker == 0);
        assert_eq!(next(4, b_lacks), Some("201".to_owned()));
    }

    #[test]
    fn extra_rounds_are_left_only_as_far_as_they_may_be_needed() {
        let cases = [case(&["a", "b"], 2, 2)];
        let turns = turns(&cases);
        let counts = |from: usize, valid: fn(&Turn) -> u32| {
            let made = |turn: &Turn| turns[..from].contains(turn);
            let left = left(&cases, &turns, from, made, valid);
            (left.least.len(), left.most.len())
        };
        assert_eq!(counts(0, |_| 0), (4, 8));
        // Both have their rounds.
        assert_eq!(counts(4, |_| 2), (0, 0));
        // One run of `a` was INVALID: one more is certain, two may be needed.
        assert_eq!(counts(4, |turn| 1 + u32::from(turn.broker == 1)), (1, 2));
        // None of `b` was VALID.
        assert_eq!(counts(4, |turn| 2 * u32::from(turn.broker == 0)), (2, 2));
    }
}
