//! Changes of the file of the management interface. It is written as a whole, so that it always has
//! the form of [`written`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use thrum_settings::problem::{Problem, Problems, Source};
use toml_edit::{Array, InlineTable, Value};

use super::layer::Reader;
use super::managed::{BYTES_MAX, FILE, misplaced};
use super::schema::{self, Kind};

/// Most keys of one change: more than there are.
const KEYS_MAX: usize = 1000;
/// Longest name of a key.
const KEY_LEN_MAX: usize = 256;
/// Deepest nesting of a value.
const DEPTH_MAX: usize = 4;
/// How a change is called in its errors.
const CHANGE: &str = "change";

/// Keys and their new values; without one, the key is no longer set here.
pub(crate) type Changes = BTreeMap<String, Json>;

/// The text of the file after a change to the text before it. `head` are the lines that say who
/// made it, without `#`.
///
/// # Errors
/// Every key that does not exist, and every value that is wrong, each with its place.
pub(crate) fn changed(
    before: &str,
    changes: &Changes,
    head: &[String],
) -> Result<String, Problems> {
    let mut all = values(before, FILE)?;
    let mut lines = String::new();
    if changes.len() > KEYS_MAX {
        let what = format!(
            "a change has at most {KEYS_MAX} keys, not {}",
            changes.len()
        );
        return Err(Problem::general(CHANGE, what).into());
    }
    for (key, value) in changes {
        check_name(key)?;
        let value = value_of(key, value)?;
        // Also of a key that is taken back, which may be misspelt.
        let Some(value) = value else {
            if !all.contains_key(key) && !is_known(key) {
                lines.push_str(&line(key, &Value::from(0)));
            }
            continue;
        };
        lines.push_str(&line(key, &value));
    }
    let set = values(&lines, CHANGE)?;
    for (key, value) in changes {
        if value.is_null() {
            all.remove(key);
        }
    }
    all.extend(set);
    let text = written(&all, head);
    if text.len() as u64 > BYTES_MAX {
        let what = format!("{FILE} would be larger than {BYTES_MAX} bytes");
        return Err(Problem::general(CHANGE, what).into());
    }
    Ok(text)
}

/// The keys that a text sets.
///
/// # Errors
/// All that is wrong with it.
pub(crate) fn values(text: &str, name: &str) -> Result<BTreeMap<String, Value>, Problems> {
    let keys = schema::keys();
    let mut reader = Reader::new(&keys);
    let source = Arc::new(Source::new(PathBuf::from(name), text.to_owned()));
    reader.managed_file(&source);
    let misplaced = misplaced(&reader.settings);
    reader.problems.extend(misplaced);
    if !reader.problems.is_empty() {
        return Err(Problems(reader.problems));
    }
    let settings = reader.settings.into_iter();
    Ok(settings
        .map(|setting| (setting.path.join("."), setting.value))
        .collect())
}

/// Every key in the table it belongs to, so that no key depends on its place.
fn written(all: &BTreeMap<String, Value>, head: &[String]) -> String {
    let mut text = String::new();
    for line in head {
        push(&mut text, &format!("# {line}"));
    }
    let mut placed: Vec<(&str, &str, &Value)> = all
        .iter()
        .map(|(key, value)| {
            let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
            (table, name, value)
        })
        .collect();
    placed.sort_by_key(|(table, name, _)| (*table, *name));
    let mut section = None;
    for (table, name, value) in placed {
        if section != Some(table) {
            push(&mut text, "");
            push(&mut text, &format!("[{table}]"));
            section = Some(table);
        }
        let value = value.clone().decorated("", "");
        push(&mut text, &format!("{name} = {value}"));
    }
    text
}

fn push(text: &mut String, line: &str) {
    // A string takes everything.
    writeln!(text, "{line}").unwrap_or_default();
}

fn line(key: &str, value: &Value) -> String {
    format!("{key} = {}\n", value.clone().decorated("", ""))
}

fn is_known(key: &str) -> bool {
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    let keys = schema::keys();
    matches!(keys.at(&path).map(|key| &key.kind), Some(Kind::Value(_)))
}

/// A name that can be written without quotes.
fn check_name(key: &str) -> Result<(), Problem> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_allowed);
    if key.len() <= KEY_LEN_MAX && key.split('.').all(is_name) {
        return Ok(());
    }
    let shown: String = key.chars().take(60).collect();
    let what = format!("{shown:?} is no key; a key is its names with dots, limits.client.queue");
    Err(Problem::general(CHANGE, what))
}

/// A value as it is written in the file; none to take the key back. A text that the key does not
/// take as it is may be the value as a file has it, so that a command does not need to know types.
fn value_of(key: &str, json: &Json) -> Result<Option<Value>, Problem> {
    let value = toml_of(json, DEPTH_MAX).map_err(|what| Problem::general(key, what))?;
    let Some(Json::String(text)) = value.is_some().then_some(json) else {
        return Ok(value);
    };
    let keys = schema::keys();
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    let Some(Kind::Value(leaf)) = keys.at(&path).map(|key| &key.kind) else {
        return Ok(value);
    };
    let takes = |value: &Value| leaf.check(&path, value).is_ok();
    if value.as_ref().is_some_and(takes) {
        return Ok(value);
    }
    let parsed = text.parse::<Value>().ok();
    Ok(parsed.filter(takes).or(value))
}

/// A value of JSON as one of TOML; none for null.
fn toml_of(json: &Json, depth: usize) -> Result<Option<Value>, String> {
    if depth == 0 {
        return Err(format!("a value is nested at most {DEPTH_MAX} deep"));
    }
    let inner = |json: &Json| {
        toml_of(json, depth - 1)?.ok_or_else(|| "null cannot be within a value".to_owned())
    };
    Ok(Some(match json {
        Json::Null => return Ok(None),
        Json::Bool(truth) => Value::from(*truth),
        Json::String(text) => Value::from(text.as_str()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(real)) => Value::from(real),
            (None, None) => return Err(format!("{number} is too large")),
        },
        Json::Array(items) => {
            let items = items.iter().map(inner).collect::<Result<Vec<_>, _>>()?;
            Value::Array(items.into_iter().collect::<Array>())
        }
        Json::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, field) in fields {
                table.insert(name, inner(field)?);
            }
            Value::InlineTable(table)
        }
    }))
}

/// A value of TOML as one of JSON.
pub(crate) fn json_of(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::from(text.value().as_str()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => Json::from(*number.value()),
        Value::Boolean(truth) => Json::from(*truth.value()),
        Value::Datetime(time) => Json::from(time.value().to_string()),
        Value::Array(items) => items.iter().map(json_of).collect(),
        Value::InlineTable(table) => {
            let fields = table.iter();
            fields
                .map(|(name, value)| (name.to_owned(), json_of(value)))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(list: &[(&str, Json)]) -> Changes {
        let changes = list.iter();
        changes
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    fn after(before: &str, list: &[(&str, Json)]) -> Result<String, String> {
        let head = ["by a test".to_owned()];
        changed(before, &change(list), &head).map_err(|problems| problems.to_string())
    }

    #[test]
    fn changed_keys_are_written_in_their_tables_and_others_stay() {
        let before = "[limits]\nmax_packet = \"2MB\"\n[limits.client]\nqueue = 5\n";
        let text = after(
            before,
            &[
                ("limits.client.inflight", json!(10)),
                ("limits.client.queue", Json::Null),
                ("listeners.local.bind", json!(["127.0.0.1:1884", 1885])),
                ("limits.session_expiry", json!("2h")),
            ],
        );
        let expected = "# by a test\n\n[limits]\nmax_packet = \"2MB\"\nsession_expiry = \"2h\"\n\n\
            [limits.client]\ninflight = 10\n\n[listeners.local]\nbind = [\"127.0.0.1:1884\", 1885]\n";
        assert_eq!(text.as_deref(), Ok(expected));
        assert_eq!(
            after(expected, &[]).as_deref(),
            Ok(expected),
            "it is stable"
        );
    }

    #[test]
    fn a_text_is_the_value_of_a_file_where_the_key_takes_no_text() {
        let text = after("", &[("limits.client.queue", json!("500"))]).unwrap();
        assert!(text.ends_with("queue = 500\n"), "{text}");
        let text = after("", &[("node.name", json!("500"))]).unwrap();
        assert!(text.ends_with("name = \"500\"\n"), "{text}");
    }

    #[test]
    fn every_wrong_key_and_value_is_reported_with_its_place() {
        let wrong = [
            ("limits.max_paket", json!("1MB")),
            ("limits.client.queue", json!("many")),
        ];
        let said = after("", &wrong).unwrap_err();
        for part in [
            "did you mean \"max_packet\"?",
            "limits.max_paket = \"1MB\"\n    | ",
            "^^^^^^",
            "limits.client.queue: expected ",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = after("", &[("limits.max_paket", Json::Null)]).unwrap_err();
        assert!(said.contains("did you mean \"max_packet\"?"), "{said}");
    }

    #[test]
    fn a_name_cannot_bring_lines_of_its_own() {
        for name in ["a = 1\nb", "", "a..b", "limits.\"x\"", "[limits]"] {
            let said = after("", &[(name, json!(1))]).unwrap_err();
            assert!(said.contains("is no key"), "{name}: {said}");
        }
        let text = after("", &[("node.name", json!("a\"\n[limits]\nx = 1"))]).unwrap();
        assert_eq!(values(&text, FILE).unwrap().len(), 1, "{text}");
    }

    #[test]
    fn the_data_directory_cannot_be_set_in_itself() {
        let said = after("", &[("node.data_dir", json!("/x"))]).unwrap_err();
        assert!(said.contains("the directory of this file"), "{said}");
    }

    #[test]
    fn values_are_the_same_as_json_and_as_toml() {
        let json = json!({ "a": [1, "b", true, { "c": 2 }] });
        let toml = toml_of(&json, DEPTH_MAX + 1).unwrap().unwrap();
        assert_eq!(json_of(&toml), json);
        assert!(toml_of(&json!([[[[1]]]]), DEPTH_MAX).is_err());
        assert!(toml_of(&json!([null]), DEPTH_MAX).is_err());
    }
}
