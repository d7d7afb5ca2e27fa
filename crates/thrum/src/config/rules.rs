//! Rules in a configuration, each checked where it is written.

use thrum_access::{Rule, RuleError, Source};
use thrum_settings::problem::{Place, Problem};

use super::layer::Setting;

/// The key of the list.
pub(super) const KEY: &str = "acl.rules";

/// The errors in the rules of the list that `setting` set.
pub(super) fn problems(rules: &[String], setting: Option<&Setting>) -> Vec<Problem> {
    let source = Source::from(KEY);
    let read = rules.iter().zip(0..);
    let wrong = read.filter_map(|(rule, index)| {
        let error = Rule::parse(rule, source.item(index)).err()?;
        Some(Problem {
            place: setting.and_then(|setting| place(&error, index, setting)),
            origin: setting.map_or_else(|| KEY.to_owned(), |setting| setting.origin.to_string()),
            message: error.to_string(),
        })
    });
    wrong.collect()
}

/// The wrong word, or the whole rule.
fn place(error: &RuleError, index: usize, setting: &Setting) -> Option<Place> {
    let span = setting.value.as_array()?.get(index)?.span()?;
    let rule = setting.place.as_ref()?.with_span(span);
    Some(match error.problem.found() {
        Some(found) => rule.narrowed_to(found),
        None => rule,
    })
}
