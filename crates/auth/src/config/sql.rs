//! Settings of a database with users.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::{IN_FLIGHT_DEFAULT, POOL_DEFAULT, REFRESH_DEFAULT, ServerUrl, TIMEOUT_DEFAULT};
use super::{DurationSchema, duration};
use crate::hash::Scheme;

/// Users and rules in PostgreSQL, MySQL, MariaDB or SQLite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SqlConfig {
    /// The database: `"postgresql://user@host:5432/database"`, `"mysql://user@host:3306/database"`
    /// or `"sqlite:///path/to/file"`. PostgreSQL takes `?sslmode=verify-full`, MySQL
    /// `?ssl-mode=VERIFY_IDENTITY`; a path that begins with `/` in `?host=` (`?socket=` for MySQL)
    /// is a Unix socket. No default: it must be set.
    pub url: ServerUrl,
    /// File that contains only the password of the database's user. Default `""`: the URL contains
    /// it, or the database requires none.
    #[schemars(with = "String")]
    pub password_file: PathBuf,
    /// File with the certificates (PEM) that the server's certificate is checked against. Default
    /// `""`: the certificates of public authorities.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Query that finds the user. Columns: `password_hash`; optional `salt`, `is_superuser`,
    /// `roles` and `username` (the name as the database writes it, which the client then has). No
    /// row: the next backend is asked. Placeholders such as `${username}` become parameters of the
    /// query, never its text. Default `"SELECT password_hash, salt, is_superuser FROM mqtt_user
    /// WHERE username = ${username} LIMIT 1"`, as EMQX.
    pub query: String,
    /// Query that finds the rules of a user. Columns: `permission` (`allow`, `deny`), `action`
    /// (`publish`, `subscribe`, `all`), `topic`; optional `qos` and `retain`. The rows count in
    /// their order, the first match decides; at most 10,000. Default `""`: no rules.
    pub rules_query: String,
    /// How long rules are used before they are requested again, in whole seconds; 0 is for as long
    /// as the client is connected. Default `"5m"`: a revoked right ends within minutes, and 100,000
    /// clients are 333 queries a second.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema")]
    pub refresh: Duration,
    /// Scheme of the hashes. Default: each hash names its scheme.
    pub hash: Scheme,
    /// Most connections to the database. Default `8`, as EMQX: a query takes about a millisecond.
    #[schemars(range(min = 1, max = 1000))]
    pub pool: u32,
    /// Most requests at a time, those that wait for a connection included; one more is an error,
    /// and its client is refused (0x89). Default `1_000`: a mass reconnect can cause that many in a
    /// second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: u32,
    /// Time limit of one request, waiting and connecting included. Default `"5s"`: half of a
    /// client's time to connect.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 60))]
    pub timeout: Duration,
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self {
            url: ServerUrl::default(),
            password_file: PathBuf::new(),
            ca: PathBuf::new(),
            query: "SELECT password_hash, salt, is_superuser FROM mqtt_user WHERE username = ${username} LIMIT 1"
                .to_owned(),
            rules_query: String::new(),
            refresh: REFRESH_DEFAULT,
            hash: Scheme::default(),
            pool: POOL_DEFAULT,
            in_flight: IN_FLIGHT_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
        }
    }
}
