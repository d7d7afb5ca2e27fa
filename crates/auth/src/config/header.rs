//! A header of the configuration, whose value may be a secret.

use serde::{Deserialize, Serialize, Serializer};
use thrum_access::Secret;

use crate::hash::is_same;

/// `name: value`. It is serialized with its value, because configurations are compared and built in
/// that form: code that displays it must mask the value.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub struct HeaderLine(Secret);

impl HeaderLine {
    /// Name and value.
    pub fn expose(&self) -> &str {
        self.0.expose_str().unwrap_or_default()
    }
}

impl From<String> for HeaderLine {
    fn from(text: String) -> Self {
        Self(Secret::from(text.as_str()))
    }
}

impl Serialize for HeaderLine {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.expose().serialize(to)
    }
}

impl PartialEq for HeaderLine {
    fn eq(&self, other: &Self) -> bool {
        is_same(self.0.expose(), other.0.expose())
    }
}

impl Eq for HeaderLine {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_not_printed_with_the_settings() {
        let header: HeaderLine = serde_json::from_str("\"x-key: geheim\"").unwrap();
        assert!(!format!("{header:?}").contains("geheim"));
        assert_eq!(header.expose(), "x-key: geheim");
    }
}
