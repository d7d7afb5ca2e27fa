//! Rules in a token, in the two forms that EMQX knows.

use serde_json::{Map, Value};
use thrum_access::{Actions, QosSet, Rule, Rules, Who};
use thrum_codec::QoS;

/// Most rules of a token.
const RULES_MAX: usize = 1000;

/// Reads `{"pub":["a/#"],"sub":[…],"all":[…]}` or
/// `[{"permission":"allow","action":"publish","topic":"a/#"}]`.
///
/// # Errors
/// The error: a token whose rules are invalid gives no rights.
pub(super) fn rules(acl: &Value, source: &str) -> Result<Rules, String> {
    let rules: Vec<Rule> = match acl {
        Value::Object(lists) => of_lists(lists, source)?,
        Value::Array(entries) => {
            let entries = entries.iter().take(RULES_MAX + 1);
            let rules = entries.map(|entry| of_entry(entry, source));
            rules.collect::<Result<_, _>>()?
        }
        _ => return Err("expected an object or a list".to_owned()),
    };
    if rules.len() > RULES_MAX {
        return Err(format!("more than {RULES_MAX} rules"));
    }
    Ok(rules.into_iter().collect())
}

fn of_lists(lists: &Map<String, Value>, source: &str) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for (action, filters) in lists {
        let actions = actions(action)?;
        let Value::Array(filters) = filters else {
            return Err(format!("{action:?} is not a list"));
        };
        for filter in filters.iter().take(RULES_MAX + 1) {
            let filter = filter.as_str().ok_or("a topic filter is not text")?;
            rules.push(rule(true, actions, filter, source)?);
        }
    }
    Ok(rules)
}

fn of_entry(entry: &Value, source: &str) -> Result<Rule, String> {
    let text = |key: &str| {
        let value = entry.get(key).and_then(Value::as_str);
        value.ok_or_else(|| format!("a rule has no text {key:?}"))
    };
    let is_allowed = match text("permission")? {
        "allow" => true,
        "deny" => false,
        other => return Err(format!("permission {other:?}: expected allow or deny")),
    };
    let mut actions = actions(text("action")?)?;
    if let Some(qos) = entry.get("qos") {
        actions.qos = qualities(qos)?;
    }
    actions.retain = match entry.get("retain") {
        None => None,
        Some(Value::Bool(retain)) => Some(*retain),
        Some(Value::String(word)) if word == "all" => None,
        Some(Value::String(word)) if word == "true" => Some(true),
        Some(Value::String(word)) if word == "false" => Some(false),
        Some(_) => return Err("retain: expected true, false or \"all\"".to_owned()),
    };
    rule(is_allowed, actions, text("topic")?, source)
}

fn actions(word: &str) -> Result<Actions, String> {
    match word {
        "pub" | "publish" => Ok(Actions::PUBLISH),
        "sub" | "subscribe" => Ok(Actions::SUBSCRIBE),
        "all" => Ok(Actions::BOTH),
        other => Err(format!("action {other:?}: expected pub, sub or all")),
    }
}

fn qualities(value: &Value) -> Result<QosSet, String> {
    let one = |value: &Value| match value.as_u64() {
        Some(0) => Ok(QoS::AtMostOnce),
        Some(1) => Ok(QoS::AtLeastOnce),
        Some(2) => Ok(QoS::ExactlyOnce),
        _ => Err("qos: expected 0, 1, 2 or a list of them".to_owned()),
    };
    match value {
        Value::Array(all) => all.iter().map(one).collect(),
        value => Ok([one(value)?].into_iter().collect()),
    }
}

fn rule(is_allowed: bool, actions: Actions, filter: &str, source: &str) -> Result<Rule, String> {
    Rule::new(is_allowed, Who::All, actions, filter, source).map_err(|error| error.to_string())
}
