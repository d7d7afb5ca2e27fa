//! A row as the broker sent it.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The text of a JSON object: a parsed one takes several times the memory.
#[derive(Clone, Debug)]
pub(in crate::command) struct Row(Box<RawValue>);

impl Row {
    /// A part of a page.
    pub(super) const fn new(raw: Box<RawValue>) -> Self {
        Self(raw)
    }

    /// A row of this program.
    pub(in crate::command) fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON as it came.
    pub(super) fn text(&self) -> &str {
        self.0.get()
    }

    /// The row as data; null if it is none.
    pub(in crate::command) fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or(Value::Null)
    }

    /// The row without a key.
    pub(super) fn without(&self, key: &str) -> Self {
        let mut value = self.value();
        if let Some(fields) = value.as_object_mut() {
            fields.remove(key);
        }
        // What was read as JSON can be written as JSON.
        Self::of(&value).unwrap_or_else(|_| self.clone())
    }

    /// The value of a key; `a.b` is `b` in the object `a`. None if there is no such key.
    pub(super) fn get(&self, key: &str) -> Option<Value> {
        at(&self.value(), key).cloned()
    }

    /// Keys of the object.
    pub(super) fn keys(&self) -> Vec<String> {
        match self.value() {
            Value::Object(members) => members.into_iter().map(|(key, _)| key).collect(),
            _ => Vec::new(),
        }
    }
}

/// The value of a key in an object.
pub(super) fn at<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    if let Some(found) = value.get(key) {
        return Some(found);
    }
    let (outer, inner) = key.split_once('.')?;
    at(value.get(outer)?, inner)
}

/// A value as text, without quotes; nothing for null.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.iter().all(|one| !one.is_object() && !one.is_array()) => {
            let texts: Vec<String> = values.iter().map(plain).collect();
            texts.join(",")
        }
        other => other.to_string(),
    }
}
