//! Values without their secrets, and of a bounded size.

use serde_json::{Value, json};

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 11] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "hash",
    "digest",
    "private",
    "credential",
    "recovery",
    "authorization",
    "cookie",
];
/// What stands for a secret.
const MASK: &str = "***";
/// Most bytes of a value as JSON: the settings of a listener, or some hundred names.
const VALUE_BYTES_MAX: usize = 4096;
/// Most bytes of a text.
const TEXT_BYTES_MAX: usize = 256;

/// A value whose secrets are replaced; a large one by its size.
pub(super) fn masked(mut value: Value) -> Value {
    mask(&mut value);
    let len = value.to_string().len();
    if len > VALUE_BYTES_MAX {
        return json!({ "left_out_bytes": len });
    }
    value
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_secret(name) && !value.is_null() && !value.is_boolean() {
                    *value = Value::from(MASK);
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// A text that is not too long.
pub(super) fn short(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_at_every_depth() {
        let value = json!({
            "name": "a",
            "Password": "hunter2",
            "list": [{ "private_key": "hunter2", "private_key_file": "/a" }, "b"],
            "token": null,
            "password_set": true,
        });
        let masked = masked(value);
        assert!(!masked.to_string().contains("hunter2"), "{masked}");
        assert_eq!(masked["name"], "a");
        assert_eq!(masked["list"][1], "b");
        assert_eq!(
            (&masked["token"], &masked["password_set"]),
            (&Value::Null, &json!(true))
        );
    }

    #[test]
    fn large_values_and_texts_are_shortened() {
        let value = masked(json!({ "names": vec!["x"; 2000] }));
        assert_eq!(value, json!({ "left_out_bytes": 8011 }));
        let text = short(&"\u{fc}".repeat(200));
        assert_eq!(text.chars().count(), 129);
        assert!(text.ends_with('…'));
        assert_eq!(short("a"), "a");
    }
}
