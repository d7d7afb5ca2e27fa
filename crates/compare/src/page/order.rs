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
}
