//! Settings of authentication and authorization: plain data with defaults and the reason for each,
//! no I/O.
//!
//! Every doc comment of a field is the reference text of its key; it ends with its default and the
//! reason. No key contains a secret: secrets are in files that keys name.

mod acl;
mod header;
mod http;
mod jwt;
mod ldap;
mod redis;
mod server;
mod sql;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use acl::{AclConfig, DefaultAccess, DeniedPublish, PartialSubscription, RuleOrder};
pub use header::HeaderLine;
pub use http::{ContentType, HttpConfig, HttpMethod};
pub use jwt::{JwtConfig, TokenField};
pub use ldap::{LdapConfig, LdapMethod};
pub use redis::RedisConfig;
pub use server::ServerUrl;
pub use sql::SqlConfig;
pub(crate) use thrum_settings::duration;
pub use thrum_settings::{
    Anonymous, AnonymousSchema, ClientIdPattern, ClientIdPatternSchema, DurationSchema,
    SecretTextsSchema, Takeover, TextsSchema,
};

/// The name of the built-in user store in a chain.
pub const USERS: &str = "users";
/// The name of the built-in user store in the data directory.
pub const USERS_FILE: &str = "users.jsonl";

/// Settings of authentication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Clients that may connect without credentials: `"loopback"` (clients of this machine), `true`
    /// (all) or `false` (none). `acl` restricts the actions of such a client. Default `"loopback"`:
    /// works out of the box and is closed to other machines.
    #[serde(with = "thrum_settings::anonymous")]
    #[schemars(with = "AnonymousSchema")]
    pub anonymous: Anonymous,
    /// Users that may take over a client identifier that has a session, connected or not:
    /// `"same_user"` (the user that the session belongs to; another one is refused with 0x85, in
    /// 3.x with return code 2) or `"any_user"` (the session of the previous user ends, and its
    /// queued messages are discarded). The session of a client without user name has no owner.
    /// Default `"same_user"`: a user cannot end another user's session by using its identifier.
    pub takeover: Takeover,
    /// Form of client identifiers, such as `"%u-*"`: `%u` is the user name, `*` any characters; a
    /// pattern with `%u` does not restrict clients without user name. Other identifiers are refused
    /// with 0x85 (3.x: return code 2), except those that the broker assigns. Default `""`: any, and
    /// the first user of an identifier owns it.
    #[schemars(with = "ClientIdPatternSchema")]
    pub client_id: ClientIdPattern,
    /// Backends that are asked, in this order, until one knows the client: `"users"` and the names
    /// of the tables below. Default `[]`: `"users"`, then all tables in the order of their names.
    #[schemars(with = "TextsSchema")]
    pub chain: Vec<String>,
    /// File of the built-in user store, kept by `thrum users`; read again when it changes. Default
    /// `""`: `users.jsonl` in `node.data_dir`, which is created with the first user; no store
    /// without data directory. A file that is named here must exist, unless other backends are
    /// asked as well.
    #[schemars(with = "String")]
    pub users: PathBuf,
    /// Correct passwords that are cached, 0 to 10,000,000, at about 100 bytes each: a mass
    /// reconnect then costs a lookup instead of 20 ms each. They are cached together with the
    /// matching hash, by a keyed hash of both, so a changed password is never found. Default
    /// `100000`: more than most nodes have clients.
    #[schemars(range(max = 10_000_000))]
    pub cache: u32,
    /// How long a password is cached; 0 turns the cache off. Default `"1d"`: a change of the stored
    /// hash ends it anyway.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema")]
    pub cache_ttl: Duration,
    /// Time for all backends together to answer a login, 100 ms to 1 min; then the client is denied
    /// with `server unavailable`. Default `"10s"`: longer than a backend needs, shorter than
    /// clients wait.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(max = 60))]
    pub timeout: Duration,
    /// Logins that may wait for backends at once, 1 to 1,000,000; more are denied with `server
    /// busy`. Default `10000`: bounds the memory that a flood of logins takes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub pending: u32,
    /// Password files of Mosquitto: a table for each, with a name of your choice.
    pub password_file: BTreeMap<String, PasswordFileConfig>,
    /// Issuers of tokens (JWT): a table for each, with a name of your choice.
    pub jwt: BTreeMap<String, JwtConfig>,
    /// HTTP services with users: a table for each, with a name of your choice.
    pub http: BTreeMap<String, HttpConfig>,
    /// Directories (LDAP) with users: a table for each, with a name of your choice.
    pub ldap: BTreeMap<String, LdapConfig>,
    /// Redis servers with users: a table for each, with a name of your choice.
    pub redis: BTreeMap<String, RedisConfig>,
    /// Databases with users, PostgreSQL, MySQL, MariaDB or SQLite: a table for each, with a name of
    /// your choice.
    pub sql: BTreeMap<String, SqlConfig>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            anonymous: Anonymous::Loopback,
            takeover: Takeover::default(),
            client_id: ClientIdPattern::default(),
            chain: Vec::new(),
            users: PathBuf::new(),
            cache: 100_000,
            cache_ttl: Duration::from_hours(24),
            timeout: Duration::from_secs(10),
            pending: 10_000,
            password_file: BTreeMap::new(),
            jwt: BTreeMap::new(),
            http: BTreeMap::new(),
            ldap: BTreeMap::new(),
            redis: BTreeMap::new(),
            sql: BTreeMap::new(),
        }
    }
}

impl AuthConfig {
    /// Names of all configured backends, without the user store.
    pub fn backend_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .password_file
            .keys()
            .chain(self.jwt.keys())
            .chain(self.http.keys())
            .chain(self.ldap.keys())
            .chain(self.redis.keys())
            .chain(self.sql.keys())
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names
    }
}

/// A password file of Mosquitto.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PasswordFileConfig {
    /// The file, lines of `user:hash` as `mosquitto_passwd` writes them; read again when it
    /// changes. Has no default.
    #[schemars(with = "String")]
    pub path: PathBuf,
}
