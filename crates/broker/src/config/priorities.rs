//! Priorities of topics, written as `"alarm/#=200"`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serializer};
use thrum_codec::TopicFilter;
use thrum_protocol::limits::TopicPriority;

/// Most priorities: each queued message is compared with each.
const PRIORITIES_MAX: usize = 256;

/// The expected form, for errors.
const EXPECTED: &str =
    "a list of up to 256 texts \"filter=priority\", with a topic filter and a number from 0 to 255";

/// Schema of the priorities.
#[derive(Debug)]
pub struct PrioritiesSchema;

impl JsonSchema for PrioritiesSchema {
    fn schema_name() -> Cow<'static, str> {
        "PrioritiesSchema".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "format": "priorities", "x-expected": EXPECTED })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Parses `filter=priority`; the priority follows the last `=`, as a filter may contain one.
fn parse(text: &str) -> Option<TopicPriority> {
    let (filter, priority) = text.rsplit_once('=')?;
    let filter = TopicFilter::parse(filter.trim()).ok()?;
    if filter.shared().is_some() {
        return None;
    }
    Some(TopicPriority {
        filter: filter.as_str().into(),
        priority: priority.trim().parse().ok()?,
    })
}

pub(super) fn deserialize<'de, D>(from: D) -> Result<Vec<TopicPriority>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = match OneOrMany::deserialize(from) {
        Ok(OneOrMany::One(text)) => Some(vec![text]),
        Ok(OneOrMany::Many(texts)) => Some(texts),
        Err(_) => None,
    };
    texts
        .filter(|texts| texts.len() <= PRIORITIES_MAX)
        .and_then(|texts| texts.iter().map(|text| parse(text)).collect())
        .ok_or_else(|| D::Error::custom(format!("expected {EXPECTED}")))
}

pub(super) fn serialize<S>(priorities: &[TopicPriority], to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    let mut list = to.serialize_seq(Some(priorities.len()))?;
    for TopicPriority { filter, priority } in priorities {
        list.serialize_element(&format!("{filter}={priority}"))?;
    }
    list.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_filter_and_a_number() {
        for (text, expected) in [
            ("alarm/#=200", Some(("alarm/#", 200))),
            ("+/a = 0", Some(("+/a", 0))),
            ("a=b=255", Some(("a=b", 255))),
            ("a=256", None),
            ("a=-1", None),
            ("a", None),
            ("=1", None),
            ("a/#/b=1", None),
            ("$share/group/a=1", None),
        ] {
            let parsed = parse(text);
            let parsed = parsed
                .as_ref()
                .map(|found| (&*found.filter, found.priority));
            assert_eq!(parsed, expected, "{text:?}");
        }
    }
}
