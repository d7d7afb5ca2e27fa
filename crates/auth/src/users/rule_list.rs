//! Rules of a user, a group or a role: as they were written, and ready for use.

use thrum_access::rules::Problem;
use thrum_access::{Rule, RuleError, Rules};

/// Most rules of one user, group or role.
const RULES_MAX: usize = 10_000;
/// What may stand at the begin of a rule's second word if it names nobody.
const ACTIONS: [&str; 3] = ["pub", "sub", "pubsub"];

/// Rules and their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleList {
    texts: Vec<String>,
    rules: Rules,
}

impl RuleList {
    /// Reads rules; `"allow pubsub a/#"` is about whoever has it, and means
    /// `"allow all pubsub a/#"`.
    ///
    /// # Errors
    /// Which rule is wrong, and why.
    pub fn parse(texts: Vec<String>, source: &str) -> Result<Self, String> {
        if texts.len() > RULES_MAX {
            return Err(format!("{source}: more than {RULES_MAX} rules"));
        }
        let rules = texts.iter().map(|text| parse_rule(text, source));
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            texts,
        })
    }

    /// As they were written.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Ready for use.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Each of them, ready for use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// These, and then those.
    ///
    /// # Errors
    /// There are too many.
    pub fn followed_by(&self, others: &Self, source: &str) -> Result<Self, String> {
        let texts = self.texts.iter().chain(&others.texts);
        Self::parse(texts.cloned().collect(), source)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// Reads one rule that may name nobody.
fn parse_rule(text: &str, source: &str) -> Result<Rule, String> {
    let mut words = text.trim().splitn(2, char::is_whitespace);
    let verb = words.next().unwrap_or_default();
    let rest = words.next().unwrap_or_default().trim_start();
    let second = rest.split(|letter: char| letter.is_whitespace() || letter == '(');
    let names_nobody = second
        .into_iter()
        .next()
        .is_some_and(|word| ACTIONS.contains(&word));
    let whole = if names_nobody {
        format!("{verb} all {rest}")
    } else {
        text.to_owned()
    };
    Rule::parse(&whole, source).map_err(|error| {
        let error = misspelt_action(&error, verb, rest, source).unwrap_or(error);
        format!("rule \"{text}\": {error}")
    })
}

/// A rule that names nobody and misspells its action looks like one that names somebody who is not
/// known.
fn misspelt_action(error: &RuleError, verb: &str, rest: &str, source: &str) -> Option<RuleError> {
    let Problem::Who { hint, .. } = &error.problem else {
        return None;
    };
    let as_action = Rule::parse(&format!("{verb} all {rest}"), source).err()?;
    let is_known =
        matches!(&as_action.problem, Problem::Action { hint, .. } if hint.word().is_some());
    (hint.word().is_none() && is_known).then_some(as_action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, said: &str) {
        let refused = RuleList::parse(vec![text.to_owned()], "user bob").unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }

    #[test]
    fn a_misspelt_action_of_a_rule_that_names_nobody_is_recognised() {
        check("allow pubbsub a/#", "did you mean 'pubsub'?");
        check("allow publish a/#", "did you mean 'pub'?");
        check("deny any pub a/#", "did you mean 'all'?");
        check("allow device:7 pub a/#", "matches no client");
    }
}
