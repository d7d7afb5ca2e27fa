//! Common settings of all networked backends: defaults, and URLs that may contain a password.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Default of `pool`.
pub(super) const POOL_DEFAULT: u32 = 8;
/// Default of `in_flight`.
pub(super) const IN_FLIGHT_DEFAULT: u32 = 1_000;
/// Default of `timeout`.
pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// Default of `refresh`.
pub(super) const REFRESH_DEFAULT: Duration = Duration::from_mins(5);

/// A URL whose password is never printed. It is written as it is, so that another password is
/// another configuration; whoever shows what is written masks the values of its format,
/// `secret-url`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ServerUrl(String);

impl ServerUrl {
    /// The URL with its password.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The URL without its password and its parameters.
    pub fn redacted(&self) -> String {
        let text = self.0.split(['?', '#']).next().unwrap_or_default();
        let Some((scheme, rest)) = text.split_once("://") else {
            // It is none, and may have a password all the same.
            let host = text.rsplit_once('@').map(|(_, host)| host);
            return host.map_or_else(|| text.to_owned(), |host| format!("***@{host}"));
        };
        match rest.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}:***@{host}")
            }
            None => text.to_owned(),
        }
    }
}

impl From<&str> for ServerUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.redacted())
    }
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl JsonSchema for ServerUrl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ServerUrl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "secret-url" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        for (url, shown) in [
            (
                "postgresql://u:hunter2@h:5/d?sslmode=x",
                "postgresql://u:***@h:5/d",
            ),
            ("redis://:hunter2@h/0", "redis://:***@h/0"),
            ("mysql://u:p@hunter2@h/d", "mysql://u:***@h/d"),
            ("https://h/path?password=hunter2", "https://h/path"),
            ("https://h/${client_id}", "https://h/${client_id}"),
            ("u:hunter2@h", "***@h"),
            ("", ""),
        ] {
            let redacted = ServerUrl::from(url);
            assert_eq!(format!("{redacted:?}"), shown);
            assert_eq!(serde_json::to_value(&redacted).ok(), Some(url.into()));
        }
    }
}
