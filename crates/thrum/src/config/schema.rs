//! The known keys: names, types, ranges and texts, all taken from the settings' own definition.

use std::time::Duration;

use super::Config;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use thrum_auth::config::ServerUrl;
use thrum_broker::config::units;
use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};

/// Format of texts with headers, whose values are secret.
const SECRET_TEXTS: &str = "secret-texts";
/// Format of URLs with a password.
const SECRET_URL: &str = "secret-url";
/// Stands for a secret.
const MASK: &str = "***";

/// A place in the tree of keys.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its purpose.
    pub(crate) description: String,
    /// Its type.
    pub(crate) kind: Kind,
}

/// The type of a key.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Keys with fixed names, in the order of their definition.
    Table(Vec<(String, Key)>),
    /// Tables with names of the user's choice, all of the same keys.
    Named(Box<Key>),
    /// A value.
    Value(Leaf),
}

/// A value's range, and its possible words.
#[derive(Debug)]
pub(crate) struct Leaf {
    format: String,
    expected: String,
    minimum: u64,
    maximum: u64,
}

/// The tree of all keys.
pub(crate) fn keys() -> Key {
    let order = document(&Config::default());
    key(&json_schema(), Some(order.as_table()))
}

/// The schema of a configuration, as JSON Schema describes one.
pub(crate) fn json_schema() -> Json {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    schema.to_value()
}

/// A configuration as a document, its keys in the order of their definition.
pub(crate) fn document(config: &Config) -> DocumentMut {
    toml_edit::ser::to_document(config).expect("settings are texts, numbers and tables of them")
}

impl Key {
    /// The key below this one.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Table(children) => children
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, child)| child),
            Kind::Named(child) => is_listener_name(name).then_some(child),
            Kind::Value(_) => None,
        }
    }

    /// The key at a path.
    pub(crate) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |key, name| key.child(name))
    }

    /// The type of the key at a dotted path, in a form without secrets.
    pub(crate) fn shown(&self, path: &str, value: &Value) -> Value {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        match self.at(&path).map(|key| &key.kind) {
            Some(Kind::Value(leaf)) => leaf.shown(value),
            _ => value.clone(),
        }
    }

    /// Names below this one that are fixed.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let children = match &self.kind {
            Kind::Table(children) => children.as_slice(),
            Kind::Named(_) | Kind::Value(_) => &[],
        };
        children.iter().map(|(name, _)| name.as_str())
    }

    /// Dotted paths of all values with that last name.
    pub(crate) fn find(&self, name: &str, prefix: &str, found: &mut Vec<String>) {
        let Kind::Table(children) = &self.kind else {
            return;
        };
        for (known, child) in children {
            let path = if prefix.is_empty() {
                known.clone()
            } else {
                format!("{prefix}.{known}")
            };
            if known == name && matches!(child.kind, Kind::Value(_)) {
                found.push(path.clone());
            }
            child.find(name, &path, found);
        }
    }
}

impl Leaf {
    fn new(schema: &Json) -> Self {
        let format = schema["format"].as_str().unwrap_or_default().to_owned();
        let minimum = schema["minimum"].as_u64().unwrap_or(0);
        let widest = match format.as_str() {
            "uint8" => u64::from(u8::MAX),
            "uint16" => u64::from(u16::MAX),
            "uint32" => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        let maximum = schema["maximum"].as_u64().unwrap_or(widest);
        let expected = || match (choices(schema), schema["type"].as_str()) {
            (Some(choices), _) => format!("one of {choices}"),
            (None, Some("integer")) => format!("a whole number from {minimum} to {maximum}"),
            (None, Some("boolean")) => "true or false".to_owned(),
            (None, Some("array")) => {
                format!(
                    "an array, each value {}",
                    Self::new(&schema["items"]).expected
                )
            }
            (None, _) => "a text in quotes".to_owned(),
        };
        let written = schema["x-expected"].as_str().map(str::to_owned);
        Self {
            format,
            expected: written.unwrap_or_else(expected),
            minimum,
            maximum,
        }
    }

    /// Checks a value for the key at `path`.
    ///
    /// # Errors
    /// The expected and the actual value.
    pub(crate) fn check(&self, path: &[String], value: &Value) -> Result<(), String> {
        let shown = self.shown(value);
        let expected =
            |expected: &str| Err(format!("expected {expected}, found {}", found(&shown)));
        // Told first: a number that its type cannot hold is also too large.
        match self.number(value) {
            Some(number) if number < self.minimum => {
                return expected(&self.bound("at least", self.minimum));
            }
            Some(number) if number > self.maximum => {
                return expected(&self.bound("at most", self.maximum));
            }
            _ => {}
        }
        let mut document = DocumentMut::new();
        insert(document.as_table_mut(), path, value.clone());
        if toml_edit::de::from_document::<Config>(document).is_err() {
            return expected(&self.expected);
        }
        Ok(())
    }

    /// A value in a form without secrets.
    pub(crate) fn shown(&self, value: &Value) -> Value {
        match value {
            Value::String(url) if self.format == SECRET_URL => {
                ServerUrl::from(url.value().as_str()).redacted().into()
            }
            Value::Array(texts) if self.format == SECRET_TEXTS => {
                texts.iter().map(|text| Value::from(masked(text))).collect()
            }
            _ if self.format == SECRET_URL => MASK.into(),
            _ if self.is_secret() => masked(value).into(),
            value => value.clone(),
        }
    }

    /// What its values are, in words.
    pub(crate) fn expected(&self) -> &str {
        &self.expected
    }

    /// Its values may hold secrets.
    pub(crate) fn is_secret(&self) -> bool {
        self.format == SECRET_TEXTS || self.format == SECRET_URL
    }

    fn number(&self, value: &Value) -> Option<u64> {
        match value {
            Value::Integer(number) => u64::try_from(*number.value()).ok(),
            Value::String(text) if self.format == "size" => units::parse_size(text.value()),
            Value::String(text) if self.format == "duration" => {
                units::parse_duration(text.value()).map(|duration| duration.as_secs())
            }
            _ => None,
        }
    }

    /// The words for a value out of range.
    fn bound(&self, side: &str, number: u64) -> String {
        let written = match self.format.as_str() {
            "size" => units::format_size(number),
            "duration" => units::format_duration(Duration::from_secs(number)),
            // Plain numbers are described with their whole range.
            _ => return self.expected.clone(),
        };
        format!("{side} {}", written.unwrap_or_else(|| number.to_string()))
    }
}

/// Names of listeners can stand in a variable's name and in a log without quotes.
fn is_listener_name(name: &str) -> bool {
    let allowed = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_' || letter == '-'
    };
    !name.is_empty() && name.chars().all(allowed)
}

/// Puts a value at a path, with the tables that lead there.
pub(crate) fn insert(table: &mut dyn TableLike, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => drop(table.insert(name, Item::Value(value))),
        [name, rest @ ..] => {
            let child = table
                .entry(name)
                .or_insert_with(|| Item::Value(InlineTable::new().into()));
            if let Some(child) = child.as_table_like_mut() {
                insert(child, rest, value);
            }
        }
    }
}

fn key(schema: &Json, order: Option<&dyn TableLike>) -> Key {
    let description = schema["description"]
        .as_str()
        .unwrap_or_default()
        .replace('\n', " ");
    let below = |name: &str| {
        order
            .and_then(|order| order.get(name))
            .and_then(Item::as_table_like)
    };
    let kind = if let Some(properties) = schema["properties"].as_object() {
        let mut children: Vec<(String, Key)> = properties
            .iter()
            .map(|(name, child)| (name.clone(), key(child, below(name))))
            .collect();
        children.sort_by_key(|(name, _)| {
            order.and_then(|order| order.iter().position(|(known, _)| known == name))
        });
        Kind::Table(children)
    } else if schema["additionalProperties"].is_object() {
        let first = order.and_then(|order| order.iter().next());
        let below = first.and_then(|(_, item)| item.as_table_like());
        Kind::Named(Box::new(key(&schema["additionalProperties"], below)))
    } else {
        Kind::Value(Leaf::new(schema))
    };
    Key { description, kind }
}

/// The words of a choice: an `enum`, or a list of `const` with a text each.
fn choices(schema: &Json) -> Option<String> {
    let words: Vec<String> = match (schema["enum"].as_array(), schema["oneOf"].as_array()) {
        (Some(words), _) => words.iter().map(Json::to_string).collect(),
        (None, Some(words)) => words.iter().map(|word| word["const"].to_string()).collect(),
        (None, None) => return None,
    };
    Some(words.join(", "))
}

/// The name of a header without its value.
fn masked(text: &Value) -> String {
    let name = text.as_str().and_then(|text| text.split_once(':'));
    name.map_or_else(|| MASK.to_owned(), |(name, _)| format!("{name}: {MASK}"))
}

fn found(value: &Value) -> String {
    match value {
        Value::InlineTable(_) => "a table".to_owned(),
        value => {
            let text = value.clone().decorated("", "").to_string();
            match text.char_indices().nth(60) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}
