//! Settings of a Redis with users.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::{IN_FLIGHT_DEFAULT, REFRESH_DEFAULT, ServerUrl, TIMEOUT_DEFAULT};
use super::{DurationSchema, duration};
use crate::hash::Scheme;

/// Users and rules in Redis or a server that speaks its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// The server: `"redis://user@host:6379/0"`, `"rediss://…"` for TLS, `"redis+unix:///path"`.
    /// The last number is the database. One server; not a cluster. No default: it must be set.
    pub url: ServerUrl,
    /// File that contains only the password. Default `""`: the URL contains it, or the server
    /// requires none.
    #[schemars(with = "String")]
    pub password_file: PathBuf,
    /// File with the certificates (PEM) that the server's certificate is checked against. Default
    /// `""`: the certificates that the system trusts.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Command that finds the user: `HMGET`, `HGETALL`, `HGET` or `GET` (of the hash alone).
    /// Fields: `password_hash` (or `password`); optional `salt`, `is_superuser` and `roles`. No
    /// such key: the next backend is asked. Arguments are split at spaces before placeholders are
    /// substituted; texts in double quotes may contain spaces. Default `"HMGET
    /// mqtt_user:${username} password_hash salt is_superuser"`, as EMQX.
    pub command: String,
    /// Command that finds the rules of a user: `HGETALL` of a hash whose fields are topic filters
    /// and whose values are `publish`, `subscribe` or `all`, or JSON such as `{"action": "publish",
    /// "qos": [1], "retain": false}`. They can only allow, because fields have no order; at most
    /// 10,000. Default `""`: no rules.
    pub rules: String,
    /// How long rules are used before they are requested again, in whole seconds; 0 is for as long
    /// as the client is connected. Default `"5m"`: a revoked right ends within minutes, and 100,000
    /// clients are 333 commands a second.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema")]
    pub refresh: Duration,
    /// Scheme of the hashes. Default: each hash names its scheme.
    pub hash: Scheme,
    /// Most requests at a time, all over one connection; one more is an error, and its client is
    /// refused (0x89). Default `1_000`: a mass reconnect can cause that many in a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: u32,
    /// Time limit of one request, connecting included. Default `"5s"`: half of a client's time to
    /// connect.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 60))]
    pub timeout: Duration,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: ServerUrl::default(),
            password_file: PathBuf::new(),
            ca: PathBuf::new(),
            command: "HMGET mqtt_user:${username} password_hash salt is_superuser".to_owned(),
            rules: String::new(),
            refresh: REFRESH_DEFAULT,
            hash: Scheme::default(),
            in_flight: IN_FLIGHT_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
        }
    }
}
