//! Which broker is better: the rounds that count, compared in pairs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Column, VersusReport, VersusScenario};
use crate::compare::{self, Comparison, Names, Verdict};
use crate::metric::Better;
use crate::result::RunResult;

/// Most brokers that are compared: each is compared with each.
const BROKERS_MAX: usize = 12;

/// The brokers of a scenario, compared.
pub(crate) struct Judged<'scenario> {
    scenario: &'scenario VersusScenario,
    /// The VALID rounds of each broker.
    rounds: Vec<Cow<'scenario, [RunResult]>>,
    /// Baseline and candidate by their places.
    pairs: BTreeMap<(usize, usize), Comparison>,
}

/// Who is better in a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Winner {
    /// Its place among the brokers; none if no difference to each of the others is shown.
    pub(crate) place: Option<usize>,
    /// Its name, or that there is none; empty if the figure is not compared.
    pub(crate) text: String,
    /// The noise of its difference to the next one.
    pub(crate) noise: String,
}

/// The comparison in sentences: in each scenario the first broker against each of the others. The
/// name of the scenario stands first if there are several.
pub fn conclusions(report: &VersusReport) -> Vec<String> {
    let mut judged: Vec<Judged<'_>> = report.scenarios.iter().map(Judged::new).collect();
    sentences(&mut judged)
}

pub(crate) fn sentences(judged: &mut [Judged<'_>]) -> Vec<String> {
    let is_alone = judged.len() == 1;
    let told = judged.iter_mut().flat_map(|judged| {
        let name = if is_alone {
            String::new()
        } else {
            format!("{}: ", judged.scenario().name)
        };
        let sentences = judged.sentences().into_iter();
        sentences.map(move |sentence| format!("{name}{sentence}"))
    });
    told.collect()
}

impl<'scenario> Judged<'scenario> {
    pub(crate) fn new(scenario: &'scenario VersusScenario) -> Self {
        let rounds = scenario.brokers.iter().take(BROKERS_MAX).map(|broker| {
            if broker.runs.iter().all(|run| run.validity.valid) {
                return Cow::Borrowed(broker.runs.as_slice());
            }
            let valid = broker.runs.iter().filter(|run| run.validity.valid);
            Cow::Owned(valid.cloned().collect())
        });
        Self {
            scenario,
            rounds: rounds.collect(),
            pairs: BTreeMap::new(),
        }
    }

    pub(crate) const fn scenario(&self) -> &'scenario VersusScenario {
        self.scenario
    }

    /// The first broker against each of the others, a sentence for each.
    pub(crate) fn sentences(&mut self) -> Vec<String> {
        (1..self.rounds.len())
            .map(|other| self.sentence(other))
            .collect()
    }

    /// What the words and figures of the comparisons mean.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        if self.rounds.len() < 2 {
            return Vec::new();
        }
        compare::notes(std::slice::from_ref(self.pair(1, 0)))
    }

    fn sentence(&mut self, other: usize) -> String {
        let brokers = &self.scenario.brokers;
        let names = Names {
            name: &brokers[0].name,
            other: &brokers[other].name,
        };
        let without = [0, other]
            .into_iter()
            .find(|&place| self.rounds[place].is_empty());
        if let Some(place) = without {
            return format!(
                "{} and {} are not compared: {} has no VALID round.",
                names.name, names.other, brokers[place].name
            );
        }
        let comparison = self.pair(other, 0);
        if let Some(difference) = comparison.differences.first() {
            // The other one is the baseline, whose value stands first.
            return format!(
                "{} and {} are not compared: {difference}.",
                names.other, names.name
            );
        }
        let told = compare::conclusion_between(comparison, names);
        if told.contains(names.other) {
            return told;
        }
        format!("{} and {}: {told}", names.name, names.other)
    }

    /// Who is better in a figure than each of the others.
    pub(crate) fn winner(&mut self, column: &Column) -> Winner {
        let mut ranked: Vec<(usize, f64)> = Vec::new();
        for (place, broker) in self.scenario.brokers.iter().enumerate().take(BROKERS_MAX) {
            let spread = column.spread(broker).filter(|_| !broker.is_void());
            ranked.extend(spread.map(|spread| (place, spread.median)));
        }
        ranked.sort_by(|left, right| match column.better {
            Better::Higher => right.1.total_cmp(&left.1),
            Better::Lower | Better::Neither => left.1.total_cmp(&right.1),
        });
        // Nobody has won against a broker whose figure is not known.
        if ranked.len() < self.scenario.brokers.len().min(BROKERS_MAX) {
            return Winner::default();
        }
        let [(first, _), others @ ..] = ranked.as_slice() else {
            return Winner::default();
        };
        let first = *first;
        let mut verdicts = Vec::new();
        let mut noise = String::new();
        for (other, _) in others {
            let comparison = self.pair(*other, first);
            let is_alike = comparison.differences.is_empty();
            let Some(row) = comparison.row(column.metric).filter(|_| is_alike) else {
                return Winner::default();
            };
            if verdicts.is_empty() {
                noise = row.noise.map_or_else(String::new, |_| compare::noise(row));
            }
            verdicts.push(row.verdict);
        }
        if verdicts.is_empty() {
            return Winner::default();
        }
        let wins = verdicts.iter().all(|verdict| *verdict == Verdict::Better);
        let unknown = verdicts.contains(&Verdict::NotComparable);
        Winner {
            place: wins.then_some(first),
            text: match (wins, unknown) {
                (true, _) => self.scenario.brokers[first].name.clone(),
                (false, true) => Verdict::NotComparable.text().to_owned(),
                (false, false) => "none shown".to_owned(),
            },
            noise,
        }
    }

    fn pair(&mut self, baseline: usize, candidate: usize) -> &Comparison {
        let rounds = &self.rounds;
        self.pairs
            .entry((baseline, candidate))
            .or_insert_with(|| Comparison::new(&rounds[baseline], &rounds[candidate]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::versus::{VersusBroker, columns};

    /// A broker whose rounds cost this much CPU a message, in turns with the others.
    fn broker(name: &str, costs: [f64; 5]) -> VersusBroker {
        let round = |(round, cost): (usize, f64)| {
            let mut run = sample::run();
            run.started = format!("2026-11-21T09:{round:02}:00Z");
            run.brokers[0].usage.cpu_us_per_message = Some(cost);
            run.fill_metrics();
            run
        };
        VersusBroker {
            name: name.to_owned(),
            runs: costs.into_iter().enumerate().map(round).collect(),
            ..VersusBroker::default()
        }
    }

    fn scenario() -> VersusScenario {
        VersusScenario {
            brokers: vec![
                broker("thrum", [40.0, 41.0, 40.5, 40.2, 40.8]),
                broker("other", [50.0, 51.0, 50.5, 50.2, 50.8]),
            ],
            ..VersusScenario::default()
        }
    }

    fn winner_of(scenario: &VersusScenario, metric: &str) -> Winner {
        let columns = columns(scenario);
        let column = columns.iter().find(|column| column.metric == metric);
        Judged::new(scenario).winner(column.unwrap())
    }

    #[test]
    fn a_sentence_names_the_brokers_and_what_is_shown() {
        let scenario = scenario();
        let sentences = Judged::new(&scenario).sentences();
        assert_eq!(sentences.len(), 1);
        let sentence = &sentences[0];
        assert!(sentence.starts_with("thrum needs 0.80 ± 0.0"), "{sentence}");
        assert!(
            sentence.contains("times the CPU of other per message"),
            "{sentence}"
        );
        let cpu = winner_of(&scenario, "broker.cpu_per_message");
        assert_eq!((cpu.place, cpu.text.as_str()), (Some(0), "thrum"));
        assert!(cpu.noise.starts_with('±'), "{cpu:?}");
        let rate = winner_of(&scenario, "rate.received");
        assert_eq!((rate.place, rate.text.as_str()), (None, "none shown"));
    }

    #[test]
    fn brokers_without_a_difference_are_named_all_the_same() {
        let mut scenario = scenario();
        scenario.brokers[1] = broker("other", [40.1, 41.1, 40.4, 40.3, 40.7]);
        let sentences = Judged::new(&scenario).sentences();
        assert_eq!(
            sentences,
            ["thrum and other: CPU per message: no difference shown."]
        );
    }

    #[test]
    fn rounds_that_the_generator_limited_decide_nothing() {
        let mut scenario = scenario();
        for run in &mut scenario.brokers[0].runs[..4] {
            run.validity.valid = false;
        }
        let one = winner_of(&scenario, "broker.cpu_per_message");
        assert_eq!(one.place, None, "one round against five");
        scenario.brokers[0].runs[4].validity.valid = false;
        assert_eq!(
            Judged::new(&scenario).sentences(),
            ["thrum and other are not compared: thrum has no VALID round."]
        );
        assert_eq!(
            winner_of(&scenario, "broker.cpu_per_message"),
            Winner::default()
        );
    }

    #[test]
    fn unlike_runs_are_refused_with_the_line_that_differs() {
        let mut scenario = scenario();
        for run in &mut scenario.brokers[1].runs {
            run.scenario.stages.hold = 60.0;
        }
        assert_eq!(
            Judged::new(&scenario).sentences(),
            ["other and thrum are not compared: hold differs: 60 s | 10 s."]
        );
        assert_eq!(
            winner_of(&scenario, "broker.cpu_per_message"),
            Winner::default()
        );
    }
}
