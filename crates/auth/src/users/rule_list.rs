//! Rules of a user, a group or a role: their texts, and their parsed form.

use thrum_access::rules::Problem;
use thrum_access::{Rule, RuleError, Rules};

/// Most rules of one user, group or role.
const RULES_MAX: usize = 10_000;
/// The possible beginnings of a rule's second word if the rule names no clients.
const ACTIONS: [&str; 3] = ["pub", "sub", "pubsub"];

/// Rules and their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleList {
    texts: Vec<String>,
    rules: Rules,
}

impl RuleList {
    /// Reads rules; `"allow pubsub a/#"` applies to the owners of the rule, and means `"allow all
    /// pubsub a/#"`.
    ///
    /// # Errors
    /// The wrong rule, and its error.
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

    /// Their texts.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Parsed.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Each of them, parsed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// With more rules: those that deny before these, as the first one that matches decides, and
    /// the others behind these. None is there twice.
    ///
    /// # Errors
    /// There are too many.
    pub fn with(&self, more: &Self, source: &str) -> Result<Self, String> {
        let denies = |text: &&String| text.split_whitespace().next() == Some("deny");
        let (denials, others): (Vec<_>, Vec<_>) = more.texts.iter().partition(denies);
        let kept = self.texts.iter().filter(|text| !denials.contains(text));
        let new = others.into_iter().filter(|text| !self.texts.contains(text));
        let mut texts: Vec<String> = Vec::new();
        for text in denials.iter().copied().chain(kept).chain(new) {
            if !texts.contains(text) {
                texts.push(text.clone());
            }
        }
        Self::parse(texts, source)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// Reads one rule that may name no clients.
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

/// A rule that names no clients and misspells its action looks like one that names unknown clients.
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
    fn added_rules_that_deny_come_first_and_others_last() {
        let list = |texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            RuleList::parse(texts.collect(), "user bob").unwrap()
        };
        let own = list(&["allow pub a/#", "deny pub c", "allow pub d"]);
        let more = list(&[
            "allow pub e",
            "deny pub a/b",
            "deny pub c",
            "allow pub d",
            "allow pub e",
        ]);
        let all = own.with(&more, "user bob").unwrap();
        let expected = [
            "deny pub a/b",
            "deny pub c",
            "allow pub a/#",
            "allow pub d",
            "allow pub e",
        ];
        assert_eq!(all.texts(), expected);
    }

    #[test]
    fn a_misspelt_action_of_a_rule_without_clients_is_recognised() {
        check("allow pubbsub a/#", "did you mean 'pubsub'?");
        check("allow publish a/#", "did you mean 'pub'?");
        check("deny any pub a/#", "did you mean 'all'?");
        check("allow device:7 pub a/#", "matches no client");
    }
}
