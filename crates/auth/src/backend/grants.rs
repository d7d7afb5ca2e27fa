//! Rules in the notation of other systems: columns of a row, fields of a hash, objects in JSON.

use serde::Deserialize;
use serde_json::Value;
use thrum_access::{Actions, QosSet, Rule, Rules, Source, Who};
use thrum_codec::QoS;

use super::BackendError;

/// Most rules that one client may have. A client with more has a wrong query.
pub(crate) const RULES_MAX: usize = 10_000;

/// One rule, as texts and numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grant<'a> {
    /// `allow` or `deny`.
    pub(crate) permission: &'a str,
    /// `publish`, `subscribe` or `all`.
    pub(crate) action: &'a str,
    /// Topic filter, with placeholders; `eq FILTER` matches exactly this filter.
    pub(crate) topic: &'a str,
    /// Empty for every quality of service, or some of 0, 1 and 2, with commas between.
    pub(crate) qos: &'a str,
    /// Empty or `all` for both, or a truth value.
    pub(crate) retain: &'a str,
}

impl Grant<'_> {
    /// The rule. An unreadable part is an error: an omitted denial would allow.
    pub(crate) fn rule(&self, source: &Source) -> Result<Rule, BackendError> {
        let bad = |what: &str, value: &str| {
            let shown: String = value.chars().take(SHOWN_CHARS).collect();
            BackendError::BadAnswer(format!("{source}: {what}, not {shown:?}"))
        };
        let allow = match self.permission {
            "allow" => true,
            "deny" => false,
            other => return Err(bad("permission must be \"allow\" or \"deny\"", other)),
        };
        let (publish, subscribe) = match self.action {
            "publish" | "pub" => (true, false),
            "subscribe" | "sub" => (false, true),
            "all" | "pubsub" => (true, true),
            other => {
                let expected = "action must be \"publish\", \"subscribe\" or \"all\"";
                return Err(bad(expected, other));
            }
        };
        let actions = Actions {
            publish,
            subscribe,
            qos: qos_set(self.qos)
                .ok_or_else(|| bad("qos must be some of 0, 1 and 2", self.qos))?,
            retain: match self.retain {
                "" | "all" => None,
                other => {
                    Some(truth(other).ok_or_else(|| bad("retain must be true or false", other))?)
                }
            },
        };
        Rule::new(allow, Who::All, actions, self.topic, source.clone())
            .map_err(|error| BackendError::BadAnswer(error.to_string()))
    }
}

/// Characters of a bad value that an error shows.
const SHOWN_CHARS: usize = 40;

/// Truth values in the notations of databases.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn qos_set(text: &str) -> Option<QosSet> {
    let text = text.trim_matches(['[', ']']);
    if text.trim().is_empty() || text == "all" {
        return Some(QosSet::ALL);
    }
    text.split(',')
        .map(|one| match one.trim() {
            "0" => Some(QoS::AtMostOnce),
            "1" => Some(QoS::AtLeastOnce),
            "2" => Some(QoS::ExactlyOnce),
            _ => None,
        })
        .collect()
}

/// A rule in EMQX's JSON form.
#[derive(Debug, Deserialize)]
struct JsonGrant {
    permission: Option<String>,
    action: String,
    topic: Option<String>,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    qos: Value,
    #[serde(default)]
    retain: Value,
}

/// Reads a list of rules in JSON:
/// `[{"permission": "allow", "action": "publish", "topic": "t/#", "qos": [1]}]`.
pub(crate) fn from_json(list: &Value, source: &Source) -> Result<Rules, BackendError> {
    let bad = |what: &dyn std::fmt::Display| BackendError::BadAnswer(format!("{source}: {what}"));
    let list = list
        .as_array()
        .ok_or_else(|| bad(&"a list of rules was expected"))?;
    let mut rules = Rules::new();
    for (index, entry) in list.iter().enumerate() {
        let source = source.item(index);
        let grant = JsonGrant::deserialize(entry).map_err(|error| bad(&error))?;
        let permission = grant
            .permission
            .as_deref()
            .ok_or_else(|| bad(&"permission is missing"))?;
        for topic in grant.topic.iter().chain(&grant.topics) {
            rules.push(grant.rule(permission, topic, &source)?);
        }
        if rules.len() > RULES_MAX {
            return Err(too_many(&source));
        }
    }
    Ok(rules)
}

/// Reads the value of a field whose name is a topic filter: an action, or an object in JSON. As in
/// EMQX such rules allow.
pub(crate) fn from_field(topic: &str, value: &str, source: &Source) -> Result<Rule, BackendError> {
    if !value.trim_start().starts_with('{') {
        let grant = Grant {
            permission: "allow",
            action: value,
            topic,
            ..Grant::default()
        };
        return grant.rule(source);
    }
    let grant: JsonGrant = serde_json::from_str(value)
        .map_err(|error| BackendError::BadAnswer(format!("{source}: {error}")))?;
    if grant
        .permission
        .as_deref()
        .is_some_and(|permission| permission != "allow")
    {
        // Fields have no order, so the effect of a denial among them would be random.
        let what = "rules of a hash can only allow";
        return Err(BackendError::BadAnswer(format!("{source}: {what}")));
    }
    grant.rule("allow", topic, source)
}

/// The error for a client with more than [`RULES_MAX`] rules.
pub(crate) fn too_many(source: &Source) -> BackendError {
    BackendError::BadAnswer(format!("{source}: more than {RULES_MAX} rules"))
}

impl JsonGrant {
    fn rule(&self, permission: &str, topic: &str, source: &Source) -> Result<Rule, BackendError> {
        let grant = Grant {
            permission,
            action: &self.action,
            topic,
            qos: &plain(&self.qos),
            retain: &plain(&self.retain),
        };
        grant.rule(source)
    }
}

/// A value without quotes; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
