//! The text and JSON forms of a search.

use std::fmt::Write as _;

use serde::Serialize;
use thrum_figures::{figure, latency, percent};

use super::confidence::part_of_all;
use super::sentence::{self, sentence};
use super::{Answer, Estimate, Goal, Grade, Limits, Round, Rounds, Trial};

/// Name and version of the schema of `search.json`.
const SCHEMA: &str = "thrum-bench-search/1";

/// A whole search, as `search.json` has it.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    schema: &'static str,
    /// Name of the scenario.
    pub scenario: String,
    /// URL of the broker.
    pub target: String,
    /// The unit of a load: `messages/s` or `clients`.
    pub unit: &'static str,
    /// The goal.
    pub goal: Goal,
    /// The limits of each round.
    pub limits: Limits,
    /// The result: of several rounds, the interval. None if ^C came before the first one.
    pub answer: Option<Answer>,
    /// The same as a sentence.
    pub text: String,
    /// Rounds that were asked for.
    pub rounds_wanted: u32,
    /// What several rounds say together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The rounds that ended.
    pub rounds: Vec<RoundReport>,
    /// Every trial, in order.
    pub trials: Vec<Numbered>,
}

/// A round that ended.
#[derive(Clone, Debug, Serialize)]
pub struct RoundReport {
    /// Its result.
    pub answer: Answer,
    /// The same as a sentence.
    pub text: String,
    /// Its number of trials.
    pub trials: usize,
    /// With 95 % confidence, at least this part of the trials holds at the lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_part_min: Option<f64>,
    /// With 95 % confidence, at most this part of the trials holds at the upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_part_max: Option<f64>,
}

/// A trial and its round.
#[derive(Clone, Debug, Serialize)]
pub struct Numbered {
    /// From 1.
    pub round: usize,
    /// The trial.
    #[serde(flatten)]
    pub trial: Trial,
}

/// The scenario.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// URL of the broker.
    pub target: &'a str,
    /// The unit of a load: `messages/s` or `clients`.
    pub unit: &'static str,
}

impl SearchReport {
    /// A report of a search that is done or interrupted.
    pub fn new(subject: Subject<'_>, goal: Goal, search: &Rounds) -> Self {
        let (limits, ended) = (*search.limits(), search.ended());
        let estimate = search.estimate().filter(|_| search.wanted() > 1);
        let answer = match &estimate {
            Some(estimate) => Some(estimate.answer()),
            None => ended.first().map(|round| round.answer),
        };
        let present = std::iter::repeat(ended.len() + 1).zip(search.present());
        let before = (1..).zip(ended).flat_map(|(number, round)| {
            let trials = round.trials.iter();
            trials.map(move |trial| (number, trial))
        });
        let trials = before.chain(present);
        Self {
            schema: SCHEMA,
            scenario: subject.scenario.to_owned(),
            target: subject.target.to_owned(),
            unit: subject.unit,
            goal,
            limits,
            answer,
            text: sentence::of_search(search, subject.unit),
            rounds_wanted: search.wanted(),
            estimate,
            rounds: ended
                .iter()
                .map(|round| RoundReport::new(round, subject.unit, &limits))
                .collect(),
            trials: trials
                .map(|(round, trial)| Numbered {
                    round,
                    trial: trial.clone(),
                })
                .collect(),
        }
    }

    /// 0 with an answer about the broker; 7 if the generator was the limit from the first load on;
    /// 1 if the broker holds nothing or it is not sure.
    pub fn exit_code(&self) -> u8 {
        const INVALID: u8 = 7;
        let is_answered = match (&self.estimate, self.answer) {
            (Some(estimate), _) if sentence::is_starved(estimate, &self.limits) => return INVALID,
            (Some(estimate), Some(Answer::Unsure { .. })) => estimate.holds.is_some(),
            (None, Some(answer)) if sentence::is_below_first(&answer, &self.limits) => {
                return INVALID;
            }
            (_, Some(Answer::NoTrial)) => return INVALID,
            (_, Some(Answer::Between { .. } | Answer::AtLeast { .. })) => true,
            (_, Some(Answer::Below { .. } | Answer::Unsure { .. }) | None) => false,
        };
        u8::from(!is_answered)
    }
}

impl RoundReport {
    fn new(round: &Round, unit: &str, limits: &Limits) -> Self {
        let part = part_of_all(limits.repeats);
        let (low, high) = match round.answer {
            Answer::Between { .. } => (Some(part), Some(1.0 - part)),
            Answer::AtLeast { .. } => (Some(part), None),
            Answer::Below { .. } | Answer::NoTrial | Answer::Unsure { .. } => (None, None),
        };
        Self {
            answer: round.answer,
            text: sentence(&round.answer, unit, limits),
            trials: round.trials.len(),
            held_part_min: low,
            held_part_max: high,
        }
    }
}

/// The trials as a table for the terminal, of several rounds one below the other.
pub fn table(report: &SearchReport) -> String {
    let mut text = format!(
        "  {:>3}  {:>11}  {:<7}  {:>8}  {:>9}  {:>6}  {:>5}  why\n",
        "", report.unit, "result", "p99", "received", "lost", "CPU"
    );
    let mut round = 0;
    for (number, numbered) in (1..).zip(&report.trials) {
        if report.rounds_wanted > 1 && numbered.round != round {
            round = numbered.round;
            let found = report.rounds.get(round - 1);
            let found = found.map_or("interrupted", |found| &found.text);
            writeln!(text, "  round {round} of {}: {found}", report.rounds_wanted).ok();
        }
        let row = Row::of(number, &numbered.trial);
        let line = format!(
            "  {:>3}  {:>11}  {:<7}  {:>8}  {:>9}  {:>6}  {:>5}  {}",
            row.number, row.load, row.grade, row.p99, row.received, row.lost, row.cpu, row.why
        );
        writeln!(text, "{}", line.trim_end()).ok();
    }
    text
}

/// The whole search in Markdown.
pub fn markdown(report: &SearchReport) -> String {
    let SearchReport {
        scenario, target, ..
    } = report;
    let mut text = format!(
        "# Highest load: {scenario}\n\n{target} {}.\n\n",
        report.text
    );
    let cpu = report.goal.cpu_part.map_or_else(String::new, |part| {
        format!(", broker CPU at most {}", percent(part))
    });
    write!(
        text,
        "Goal: p99 at most {}, lost at most {}{cpu}, no other fault, VALID. Open loop; loads {} apart.\n\n",
        latency(report.goal.p99_ns),
        percent(report.goal.lost_part),
        percent(report.limits.resolution)
    )
    .ok();
    if report.rounds_wanted > 1 {
        text += &rounds_markdown(report);
    }
    let unit = report.unit;
    write!(
        text,
        "| # | round | {unit} | result | p99 | received/s | lost | CPU | why |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    .ok();
    for (number, Numbered { round, trial }) in (1..).zip(&report.trials) {
        let row = Row::of(number, trial);
        writeln!(
            text,
            "| {} | {round} | {} | {} | {} | {} | {} | {} | {} |",
            row.number, row.load, row.grade, row.p99, row.received, row.lost, row.cpu, row.why
        )
        .ok();
    }
    text
}

/// What each round found, and how the interval follows from it.
fn rounds_markdown(report: &SearchReport) -> String {
    let mut text = String::from("| round | trials | answer |\n|---|---|---|\n");
    for (number, round) in (1..).zip(&report.rounds) {
        writeln!(text, "| {number} | {} | {} |", round.trials, round.text).ok();
    }
    text += "\nThe answer is the median of the loads that the rounds held. The interval goes from one of these loads in \
             order to one of the loads at which the rounds failed, and assumes nothing about their distribution.\n\n";
    text
}

struct Row {
    number: u32,
    load: String,
    grade: &'static str,
    p99: String,
    received: String,
    lost: u64,
    cpu: String,
    why: String,
}

impl Row {
    fn of(number: u32, trial: &Trial) -> Self {
        let dash = || "-".to_owned();
        Self {
            number,
            load: figure(trial.load),
            grade: match trial.grade {
                Grade::Held => "held",
                Grade::Failed => "failed",
                Grade::Limited => "INVALID",
            },
            p99: trial.figures.p99_ns.map_or_else(dash, latency),
            received: figure(trial.figures.received),
            lost: trial.figures.lost,
            cpu: trial.figures.cpu_part.map_or_else(dash, percent),
            why: trial.reasons.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Figures, Step};

    const GOAL: Goal = Goal {
        p99_ns: 5_000_000,
        lost_part: 0.0,
        cpu_part: None,
    };

    const SUBJECT: Subject<'_> = Subject {
        scenario: "p2p-1K",
        target: "mqtt://host:1883",
        unit: "messages/s",
    };

    fn limits(from: f64) -> Limits {
        Limits {
            from,
            repeats: 1,
            ..Limits::default()
        }
    }

    /// The report of a broker of which each round has a capacity, after this many trials at most;
    /// the generator ends at a load.
    fn report(from: f64, capacities: &[f64], generator: f64, trials: usize) -> SearchReport {
        let rounds = u32::try_from(capacities.len()).unwrap();
        let mut search = Rounds::new(limits(from), rounds).unwrap();
        for _ in 0..trials {
            let Some(Step::Try { load, .. }) = search.next() else {
                break;
            };
            let grade = if load > generator {
                Grade::Limited
            } else if load > capacities[search.ended().len()] {
                Grade::Failed
            } else {
                Grade::Held
            };
            let is_failed = grade == Grade::Failed;
            search.record(Trial {
                load,
                grade,
                reasons: is_failed
                    .then(|| "p99 6ms > 5ms".to_owned())
                    .into_iter()
                    .collect(),
                figures: Figures {
                    received: load,
                    p99_ns: Some(if is_failed { 6_000_000 } else { 4_000_000 }),
                    cpu_part: Some(0.4),
                    ..Figures::default()
                },
            });
        }
        SearchReport::new(SUBJECT, GOAL, &search)
    }

    const ENDLESS: f64 = f64::INFINITY;

    #[test]
    fn the_answer_of_a_round_states_what_its_trials_prove() {
        let report = report(1_000.0, &[1_020.0], ENDLESS, 100);
        assert_eq!(
            report.text,
            "holds 1 000 messages/s: in 2 of 2 trials there, and in none of 2 at 1 050 messages/s (95 % sure: at \
             least 5 % of trials hold at the one, at most 95 % at the other)"
        );
        assert_eq!(report.exit_code(), 0);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["schema"], "thrum-bench-search/1");
        assert_eq!(json["answer"]["kind"], "between");
        let part = json["rounds"][0]["held_part_min"].as_f64().unwrap();
        assert!((part - 0.05).abs() < 1e-9, "{part}");
        assert_eq!(json["trials"][0]["grade"], "held");
        assert_eq!(json["trials"][0]["round"], 1);
        assert_eq!(json["estimate"], serde_json::Value::Null);
    }

    #[test]
    fn several_rounds_have_a_median_and_an_interval_with_its_confidence() {
        let capacities = [1_020.0, 1_080.0, 990.0, 1_020.0, 1_020.0, 1_080.0];
        let six = report(1_000.0, &capacities, ENDLESS, 1_000);
        let text = "holds 1 000 messages/s (95 %: 952 to 1 103, 6 rounds)";
        assert_eq!((six.text.as_str(), six.exit_code()), (text, 0));
        let json = serde_json::to_value(&six).unwrap();
        assert_eq!(json["estimate"]["confidence"], 0.96875);
        assert_eq!(json["estimate"]["ends"]["between"], 6);
        assert_eq!(json["rounds"].as_array().map(Vec::len), Some(6));
        let five = report(1_000.0, &capacities[..5], ENDLESS, 1_000);
        let text = "holds 1 000 messages/s (93 %: 952 to 1 103, 5 rounds; 95 % takes 6 rounds)";
        assert_eq!(five.text, text);
    }

    #[test]
    fn rounds_that_the_generator_limited_leave_no_upper_end() {
        let some = [1_020.0, 5_000.0, 1_020.0, 1_020.0, 1_020.0, 1_020.0];
        let found = report(1_000.0, &some, 2_000.0, 1_000);
        let text =
            "holds 1 000 messages/s (95 %: at least 1 000, 6 rounds; 1 limited by the generator)";
        assert_eq!((found.text.as_str(), found.exit_code()), (text, 0));
        let found = report(1_000.0, &[5_000.0; 2], 1_060.0, 1_000);
        let text = "holds at least 1 050 messages/s (50 %: at least 1 050, 2 rounds; 2 limited by the generator; \
                    95 % takes 6 rounds)";
        assert_eq!((found.text.as_str(), found.exit_code()), (text, 0));
    }

    #[test]
    fn a_generator_that_cannot_offer_the_first_load_is_no_answer_about_the_broker() {
        for rounds in [1, 3] {
            let found = report(1_000.0, &[5_000.0; 3][..rounds], 100.0, 1_000);
            assert!(found.text.starts_with("no answer: "), "{}", found.text);
            assert_eq!(found.exit_code(), 7, "{}", found.text);
        }
        let found = report(1_000.0, &[5_000.0], 0.0, 1_000);
        assert!(found.text.starts_with("no answer: every trial was INVALID"));
        assert_eq!(found.exit_code(), 7);
    }

    #[test]
    fn a_broker_that_holds_nothing_fails_the_command() {
        let found = report(1_000.0, &[0.0], ENDLESS, 1_000);
        assert!(
            found.text.starts_with("does not hold even "),
            "{}",
            found.text
        );
        assert_eq!(found.exit_code(), 1);
        let found = report(1_000.0, &[0.0, 0.0, 1_000.0], ENDLESS, 1_000);
        assert!(
            found.text.starts_with("does not hold even "),
            "{}",
            found.text
        );
        assert_eq!(found.exit_code(), 1);
    }

    #[test]
    fn repeats_that_the_generator_limits_leave_what_was_measured_before() {
        let mut search = Rounds::new(limits(1_000.0), 1).unwrap();
        let mut grades = [Grade::Failed, Grade::Held].into_iter();
        while let Some(Step::Try { load, .. }) = search.next() {
            let mut trial = Trial::refused(load, String::new());
            trial.grade = grades.next().unwrap_or(Grade::Limited);
            search.record(trial);
            search.raise_lowest(400.0);
        }
        let found = SearchReport::new(SUBJECT, GOAL, &search);
        let text = "no sure answer: held 505 messages/s, failed at 1 000 messages/s";
        assert_eq!((found.text.as_str(), found.exit_code()), (text, 1));
        assert!(found.trials.len() < 30, "{}", found.trials.len());
    }

    #[test]
    fn an_interrupted_search_reports_what_there_is() {
        let found = report(1_000.0, &[3_000.0], ENDLESS, 3);
        assert_eq!(
            found.text,
            "interrupted after 3 trials, before there was an answer: held 1 980 messages/s, failed at 3 920 messages/s"
        );
        assert_eq!((found.answer, found.trials.len()), (None, 3));
        let none = report(1_000.0, &[3_000.0], ENDLESS, 0);
        let text = "interrupted after 0 trials, before there was an answer";
        assert_eq!(none.text, text);
        let limited = report(1_000.0, &[3_000.0], 0.0, 1);
        let text = "interrupted after 1 trial, before there was an answer";
        assert_eq!(limited.text, text);
        let two = [1_020.0, 1_020.0, 1_020.0];
        let whole = report(1_000.0, &two[..1], ENDLESS, 1_000).trials.len();
        let found = report(1_000.0, &two, ENDLESS, whole + 1);
        assert!(found.text.starts_with("holds 1 000 messages/s: in 2 of 2"));
        assert!(
            found.text.ends_with("; interrupted in round 2 of 3"),
            "{}",
            found.text
        );
        assert_eq!(found.trials.last().map(|trial| trial.round), Some(2));
    }

    #[test]
    fn the_table_and_the_markdown_have_every_trial_of_every_round() {
        let found = report(1_000.0, &[1_020.0, 1_080.0], ENDLESS, 1_000);
        let markdown = markdown(&found);
        assert!(markdown.contains("Goal: p99 at most 5ms, lost at most 0 %, no other fault"));
        assert!(markdown.contains("| 1 | 1 | 1 000 | held | 4ms | 1 000 | 0 | 40 % |  |"));
        assert!(
            markdown
                .contains("| 2 | 1 | 1 980 | failed | 6ms | 1 980 | 0 | 40 % | p99 6ms > 5ms |")
        );
        assert!(
            markdown.contains("holds 1 050 messages/s: in 2 of 2"),
            "{markdown}"
        );
        let table = table(&found);
        assert!(
            table.contains("\n  round 2 of 2: holds 1 050 messages/s"),
            "{table}"
        );
        let trials = found.trials.len();
        let rows = markdown.lines().filter(|line| line.contains("| 40 % |"));
        assert_eq!(rows.count(), trials);
        assert_eq!(table.lines().count(), 1 + 2 + trials);
        let one = super::table(&report(1_000.0, &[1_020.0], ENDLESS, 1_000));
        assert!(!one.contains("round"), "{one}");
    }
}
