//! Sets one value of a document by its key: `groups.pub.publish.rate`, `thresholds."e2e.p99"`,
//! `faults.0.at`.

use toml_edit::{InlineTable, Item, Key, TableLike, Value};

/// A value as a person types it: TOML, or a text without quotes.
pub(super) fn typed(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::from(text))
}

/// Puts a value at a key; the tables above it are made if they are not there.
///
/// # Errors
/// It is not a key, or a parent of it is not a table.
pub(super) fn set(document: &mut dyn TableLike, key: &str, mut value: Value) -> Result<(), String> {
    // The space and the comments around it belong to where it was written.
    value.decor_mut().clear();
    let keys = Key::parse(key)
        .map_err(|_| format!("'{key}' is not a key: write one such as groups.pub.publish.rate"))?;
    let path: Vec<&str> = keys.iter().map(Key::get).collect();
    set_at(document, &path, value).map_err(|name| format!("{key}: '{name}' has no keys below it"))
}

/// As [`set`]; the error is the name of the value that is not a table.
fn set_at(table: &mut dyn TableLike, path: &[&str], value: Value) -> Result<(), String> {
    match path {
        [] => Ok(()),
        [name] => {
            put(table, name, value);
            Ok(())
        }
        [name, rest @ ..] => match table.get_mut(name) {
            None => {
                table.insert(name, Item::Value(nested(rest, value)));
                Ok(())
            }
            Some(item) => set_below(item, name, rest, value),
        },
    }
}

fn set_below(item: &mut Item, name: &str, rest: &[&str], value: Value) -> Result<(), String> {
    if let Some(inline) = item.as_inline_table_mut() {
        let keys = inline.len();
        set_at(inline, rest, value)?;
        if inline.len() > keys {
            inline.fmt();
        }
        return Ok(());
    }
    if let Some(table) = item.as_table_like_mut() {
        return set_at(table, rest, value);
    }
    let [index, rest @ ..] = rest else {
        return Err(name.to_owned());
    };
    let index: usize = index.parse().map_err(|_| name.to_owned())?;
    let element: Option<&mut dyn TableLike> = match item {
        Item::ArrayOfTables(tables) => tables.get_mut(index).map(|table| table as _),
        Item::Value(Value::Array(list)) => list
            .get_mut(index)
            .and_then(Value::as_inline_table_mut)
            .map(|table| table as _),
        _ => None,
    };
    set_at(element.ok_or_else(|| name.to_owned())?, rest, value)
}

/// Puts a value under a key of a table, with the space and the comment of the value that was there.
fn put(table: &mut dyn TableLike, name: &str, mut value: Value) {
    if let Some(Item::Value(old)) = table.get_mut(name) {
        *value.decor_mut() = old.decor().clone();
        *old = value;
    } else {
        table.insert(name, Item::Value(value));
    }
}

/// The value in a table for each name of the path.
fn nested(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, name| {
        let mut table = InlineTable::new();
        table.insert(*name, value);
        table.into()
    })
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    const FILE: &str = "# Head.\nversion = 4 # why\n\n[groups.a]\nclients = 1 # one\npublish = { topic = \"t\", rate = \"1/s\" }\n\n[[faults]]\nat = \"1s\"\n";

    /// The file after a value was set, or what is wrong.
    fn check(key: &str, text: &str) -> Result<String, String> {
        let mut document: DocumentMut = FILE.parse().unwrap();
        set(document.as_table_mut(), key, typed(text))?;
        Ok(document.to_string())
    }

    #[test]
    fn a_value_is_replaced_and_its_comment_stays() {
        let replaced = FILE.replace("clients = 1 #", "clients = 50 #");
        assert_eq!(check("groups.a.clients", "50").unwrap(), replaced);
        let replaced = FILE.replace("\"1/s\"", "\"20/s\"");
        assert_eq!(check("groups.a.publish.rate", "20/s").unwrap(), replaced);
        let replaced = FILE.replace("at = \"1s\"", "at = \"5s\"");
        assert_eq!(check("faults.0.at", "5s").unwrap(), replaced);
    }

    #[test]
    fn a_key_that_is_not_there_is_added() {
        let added = FILE.replace("\"1/s\" }", "\"1/s\", qos = 1 }");
        assert_eq!(check("groups.a.publish.qos", "1").unwrap(), added);
        let text = check("thresholds.\"e2e.p99\"", "< 50ms").unwrap();
        let document: DocumentMut = text.parse().unwrap();
        assert_eq!(document["thresholds"]["e2e.p99"].as_str(), Some("< 50ms"));
        assert_eq!(document["groups"]["a"]["clients"].as_integer(), Some(1));
    }

    #[test]
    fn unknown_keys_and_tables_are_named() {
        assert_eq!(
            check("version.x", "1").unwrap_err(),
            "version.x: 'version' has no keys below it"
        );
        assert_eq!(
            check("faults.7.at", "1").unwrap_err(),
            "faults.7.at: 'faults' has no keys below it"
        );
        assert_eq!(
            check("a b", "1").unwrap_err(),
            "'a b' is not a key: write one such as groups.pub.publish.rate"
        );
    }
}
