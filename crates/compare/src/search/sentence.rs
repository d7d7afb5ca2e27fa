//! What a search found, in words.

use thrum_figures::figure;

use super::confidence::{CONFIDENCE, ROUNDS_FOR_CONFIDENCE, part_of_all};
use super::{Answer, Ceiling, Ends, Estimate, Limits, Rounds};

/// The reason of a search that did not reach the limit of the broker.
const GENERATOR_LIMITED: &str =
    "so the generator is the limit and not the broker: more cores or agents are needed to continue";

/// Whether the generator could not offer even the first load.
pub(super) fn is_below_first(answer: &Answer, limits: &Limits) -> bool {
    let Answer::AtLeast { limited, .. } = answer else {
        return false;
    };
    limited.is_some_and(|limited| limited <= limits.from * 1.000_001)
}

/// The same of several rounds: half of them or more did not reach the broker's limit, and what they
/// held is below the first load.
pub(super) fn is_starved(estimate: &Estimate, limits: &Limits) -> bool {
    let is_below = estimate.holds.is_none_or(|holds| holds < limits.from);
    let ends = &estimate.ends;
    is_below && estimate.fails.is_none() && (ends.generator + ends.no_trial) * 2 >= estimate.rounds
}

/// What a search found, or what is known of it so far.
pub(super) fn of_search(search: &Rounds, unit: &str) -> String {
    let (limits, ended) = (search.limits(), search.ended());
    match (search.estimate(), ended) {
        (None, _) => {
            let made = search.present().len();
            let known = search.so_far().and_then(|answer| match answer {
                Answer::Unsure { low, high } if low.or(high).is_some() => {
                    Some(bounds(low, high, unit))
                }
                _ => None,
            });
            let known = known.map_or_else(String::new, |known| format!(": {known}"));
            let trials = if made == 1 { "trial" } else { "trials" };
            format!("interrupted after {made} {trials}, before there was an answer{known}")
        }
        (Some(estimate), ended) => {
            let text = match ended {
                [only] => sentence(&only.answer, unit, limits),
                _ => of_rounds(&estimate, unit, limits),
            };
            let (made, wanted) = (estimate.rounds, search.wanted());
            if made == wanted {
                return text;
            }
            format!("{text}; interrupted in round {} of {wanted}", made + 1)
        }
    }
}

/// `held 1 000 messages/s, failed at 1 050 messages/s`
fn bounds(low: Option<f64>, high: Option<f64>, unit: &str) -> String {
    let load = |load: f64| format!("{} {unit}", figure(load));
    let held = low.map_or_else(
        || "no load was held in every trial of it".to_owned(),
        |low| format!("held {}", load(low)),
    );
    let failed = high.map_or_else(
        || "none was too much for the broker".to_owned(),
        |high| format!("failed at {}", load(high)),
    );
    format!("{held}, {failed}")
}

/// `holds 47 800 messages/s (95 %: 46 900 to 48 900, 6 rounds)`
fn of_rounds(estimate: &Estimate, unit: &str, limits: &Limits) -> String {
    let rounds = format!(
        "{} round{}",
        estimate.rounds,
        if estimate.rounds == 1 { "" } else { "s" }
    );
    let mut remarks = vec![rounds];
    remarks.extend(ends(&estimate.ends));
    if estimate.rounds < ROUNDS_FOR_CONFIDENCE {
        remarks.push(format!("95 % takes {ROUNDS_FOR_CONFIDENCE} rounds"));
    }
    let remarks = remarks.join("; ");
    let interval = interval(estimate);
    let Some(holds) = estimate.holds else {
        return match estimate.fails {
            Some(fails) if estimate.ends.below * 2 >= estimate.rounds => {
                format!("does not hold even {} {unit} ({remarks})", figure(fails))
            }
            _ => format!("no answer: half of the rounds found no load that holds ({remarks})"),
        };
    };
    if is_starved(estimate, limits) {
        return format!(
            "no answer: the first load was INVALID in every trial of most rounds, {GENERATOR_LIMITED}; the broker \
             held {} {unit} ({remarks})",
            figure(holds)
        );
    }
    let at_least = if estimate.fails.is_some() {
        ""
    } else {
        "at least "
    };
    format!(
        "holds {at_least}{} {unit} ({interval}, {remarks})",
        figure(holds)
    )
}

/// `95 %: 46 900 to 48 900`, of fewer rounds with the confidence that they give, rounded down.
fn interval(estimate: &Estimate) -> String {
    let sure = (estimate.confidence.min(CONFIDENCE) * 100.0).floor();
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{sure} %: {} to {}", figure(low), figure(high)),
        (Some(low), None) => format!("{sure} %: at least {}", figure(low)),
        (None, Some(high)) => format!("{sure} %: less than {}", figure(high)),
        (None, None) => format!("no {sure} % interval"),
    }
}

/// What rounds found other than two ends.
fn ends(ends: &Ends) -> Vec<String> {
    let of = |count: u32, what: &str| (count > 0).then(|| format!("{count} {what}"));
    [
        of(ends.generator, "limited by the generator"),
        of(ends.asked, "held the highest load asked for (--to)"),
        of(ends.below, "held not even the lowest load"),
        of(ends.unsure, "not sure"),
        of(ends.no_trial, "with INVALID trials only"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The answer of a round in one or two sentences.
pub(super) fn sentence(answer: &Answer, unit: &str, limits: &Limits) -> String {
    let load = |load: f64| format!("{} {unit}", figure(load));
    let agreed = limits.repeats + 1;
    match answer {
        Answer::Between { low, high } => {
            // Towards the middle: no more than what is sure.
            let least = (part_of_all(limits.repeats) * 100.0).floor();
            format!(
                "holds {}: in {agreed} of {agreed} trials there, and in none of {agreed} at {} (95 % sure: at least \
                 {least} % of trials hold at the one, at most {} % at the other)",
                load(*low),
                load(*high),
                100.0 - least
            )
        }
        Answer::AtLeast { low, limited, .. } if is_below_first(answer, limits) => format!(
            "no answer: at {}, not above the first load, every trial was INVALID, {GENERATOR_LIMITED}; the broker held \
             {}",
            load(limited.unwrap_or(*low)),
            load(*low)
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
            format!("no sure answer: {}", bounds(*low, *high, unit))
        }
    }
}
