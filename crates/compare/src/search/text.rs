//! The text and JSON forms of a search.

use std::fmt::Write as _;

use serde::Serialize;
use thrum_figures::{figure, latency, percent};

use super::{Answer, Ceiling, Goal, Grade, Limits, Trial};

/// Name and version of the schema of `search.json`.
const SCHEMA: &str = "thrum-bench-search/1";

/// The reason of a search that did not reach the limit of the broker.
const GENERATOR_LIMITED: &str =
    "so the generator is the limit and not the broker: more cores or agents are needed to continue";

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
    /// The limits of the search.
    pub limits: Limits,
    /// The result.
    pub answer: Answer,
    /// The same as a sentence.
    pub text: String,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
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
    /// A report of a search that is done.
    pub fn new(
        subject: Subject<'_>,
        goal: Goal,
        limits: Limits,
        answer: Answer,
        trials: &[Trial],
    ) -> Self {
        let Subject {
            scenario,
            target,
            unit,
        } = subject;
        Self {
            schema: SCHEMA,
            scenario: scenario.to_owned(),
            target: target.to_owned(),
            unit,
            goal,
            limits,
            answer,
            text: sentence(&answer, unit, limits.repeats),
            trials: trials.to_vec(),
        }
    }
}

/// The answer in one or two sentences.
pub fn sentence(answer: &Answer, unit: &str, repeats: u32) -> String {
    let load = |load: f64| format!("{} {unit}", figure(load));
    let agreed = repeats + 1;
    match answer {
        Answer::Between { low, high } => format!(
            "holds {}: in {agreed} of {agreed} trials there, and in none of {agreed} at {}",
            load(*low),
            load(*high)
        ),
        Answer::AtLeast {
            low,
            ceiling,
            limited,
        } => {
            let why = match (ceiling, limited) {
                (Ceiling::Asked, _) => {
                    "the highest load that was asked for; --to goes further".to_owned()
                }
                (Ceiling::Generator, None) => GENERATOR_LIMITED.to_owned(),
                (Ceiling::Generator, Some(limited)) => {
                    let limited = load(*limited);
                    format!("at {limited} every trial was INVALID, {GENERATOR_LIMITED}")
                }
            };
            format!("holds at least {} ({why})", load(*low))
        }
        Answer::Below { high } => format!("does not hold even {}", load(*high)),
        Answer::NoTrial => {
            "no answer: every trial was INVALID, even with the lowest load; the generator or what else runs on its \
             machine was the limit, not the broker"
                .to_owned()
        }
        Answer::Unsure { low, high } => {
            let held = low.map_or_else(
                || "no load was held in every trial of it".to_owned(),
                |low| format!("held {}", load(low)),
            );
            let failed = high.map_or_else(
                || "none was too much for the broker".to_owned(),
                |high| format!("failed at {}", load(high)),
            );
            format!("no sure answer within --trials: {held}, {failed}")
        }
    }
}

/// The trials as a table for the terminal.
pub fn table(trials: &[Trial], unit: &str) -> String {
    let mut text = format!(
        "  {:>3}  {:>11}  {:<7}  {:>8}  {:>9}  {:>6}  {:>5}  why\n",
        "", unit, "result", "p99", "received", "lost", "CPU"
    );
    for (number, trial) in (1..).zip(trials) {
        let row = Row::of(number, trial);
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
    let unit = report.unit;
    write!(
        text,
        "| # | {unit} | result | p99 | received/s | lost | CPU | why |\n|---|---|---|---|---|---|---|---|\n"
    )
    .ok();
    for (number, trial) in (1..).zip(&report.trials) {
        let row = Row::of(number, trial);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.number, row.load, row.grade, row.p99, row.received, row.lost, row.cpu, row.why
        )
        .ok();
    }
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
    use crate::search::Figures;

    fn report(answer: Answer) -> SearchReport {
        let trial = Trial {
            load: 1_050.0,
            grade: Grade::Failed,
            reasons: vec!["p99 6ms > 5ms".to_owned()],
            figures: Figures {
                received: 1_049.5,
                p99_ns: Some(6_000_000),
                cpu_part: Some(0.4),
                ..Figures::default()
            },
        };
        let goal = Goal {
            p99_ns: 5_000_000,
            lost_part: 0.0,
            cpu_part: None,
        };
        SearchReport::new(
            Subject {
                scenario: "p2p-1K",
                target: "mqtt://host:1883",
                unit: "messages/s",
            },
            goal,
            Limits::default(),
            answer,
            &[trial],
        )
    }

    #[test]
    fn the_answer_shows_its_certainty() {
        let between = Answer::Between {
            low: 1_000.0,
            high: 1_050.0,
        };
        assert_eq!(
            report(between).text,
            "holds 1 000 messages/s: in 4 of 4 trials there, and in none of 4 at 1 050 messages/s"
        );
        let limited = Answer::AtLeast {
            low: 1_000.0,
            ceiling: Ceiling::Generator,
            limited: Some(1_050.0),
        };
        let text = report(limited).text;
        let start =
            "holds at least 1 000 messages/s (at 1 050 messages/s every trial was INVALID, so";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn an_end_that_was_not_found_has_words() {
        let (load, unsure) = (1_000.0, |low, high| {
            report(Answer::Unsure { low, high }).text
        });
        let start = "no sure answer within --trials: ";
        for (low, high, expected) in [
            (
                Some(load),
                None,
                "held 1 000 messages/s, none was too much for the broker",
            ),
            (
                None,
                Some(load),
                "no load was held in every trial of it, failed at 1 000 messages/s",
            ),
        ] {
            assert_eq!(unsure(low, high), format!("{start}{expected}"));
        }
    }

    #[test]
    fn the_markdown_has_every_trial_and_the_goal() {
        let text = markdown(&report(Answer::NoTrial));
        assert!(text.contains("Goal: p99 at most 5ms, lost at most 0 %, no other fault"));
        assert!(text.contains("| 1 | 1 050 | failed | 6ms | 1 050 | 0 | 40 % | p99 6ms > 5ms |"));
    }

    #[test]
    fn the_json_names_its_schema_and_the_kind_of_answer() {
        let json = serde_json::to_value(report(Answer::Below { high: 3.0 })).unwrap();
        assert_eq!(json["schema"], "thrum-bench-search/1");
        assert_eq!(json["answer"]["kind"], "below");
        assert_eq!(json["trials"][0]["grade"], "failed");
    }
}
