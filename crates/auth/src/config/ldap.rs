//! Settings of a directory with users.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::{IN_FLIGHT_DEFAULT, POOL_DEFAULT, REFRESH_DEFAULT, ServerUrl};
use super::{DurationSchema, TextsSchema, duration};

/// Users in a directory: OpenLDAP, Active Directory or another LDAP v3 server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LdapConfig {
    /// The server: `"ldap://host:389"`, or `"ldaps://host:636"` for TLS. No default: it must be
    /// set.
    pub url: ServerUrl,
    /// Turns a connection to `ldap://` into TLS before anything is sent; a server without support
    /// for it is not used. Default `false`: `ldaps://` needs one answer less.
    pub starttls: bool,
    /// File with the certificates (PEM) that the server's certificate is checked against. Default
    /// `""`: the certificates that the system trusts.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Account that looks users up. Default `""`: anonymous, if the server shows entries without a
    /// login.
    pub bind_dn: String,
    /// File that contains only the password of `bind_dn`. Default `""`.
    #[schemars(with = "String")]
    pub password_file: PathBuf,
    /// Base of the search for users, including everything below. Default `""`: must be set, or
    /// `dn`.
    pub base: String,
    /// Filter that finds a user. Placeholders are values, never a part of the filter. Default
    /// `"(&(objectClass=person)(uid=${username}))"`.
    pub filter: String,
    /// Name of a user's entry: `"uid=${username},ou=people,dc=example,dc=org"`, in place of `base`
    /// and `filter`. Default `""`: users are looked up.
    pub dn: String,
    /// `"bind"`: the server verifies the password. `"compare"`: the broker compares it with
    /// `password_attribute`, which `bind_dn` must be allowed to read. Default `"bind"`: no hash
    /// leaves the server.
    pub method: LdapMethod,
    /// Attribute with the password for `"compare"`: `{SSHA}`, `{SHA}`, `{SSHA256}`, `{SHA256}`,
    /// `{SSHA512}`, `{SHA512}`, `{ARGON2}`, `{CRYPT}` with bcrypt, or the password itself. Default
    /// `"userPassword"`.
    pub password_attribute: String,
    /// Attribute that is `TRUE` for users who may do everything. Default `"isSuperuser"`, as EMQX.
    pub superuser_attribute: String,
    /// Attribute with the names of the entries of a user's groups; the first part of each is the
    /// name of the group. Default `""`: not requested; `"memberOf"` is usual.
    pub member_of: String,
    /// Base of the search for groups, including everything below. Default `""`: groups are not
    /// searched.
    pub group_base: String,
    /// Attribute of a group with the names of its members' entries. Default `"member"`.
    pub group_member: String,
    /// Attribute with the name of a group. Default `"cn"`.
    pub group_name: String,
    /// Roles of the members of groups, as `"group=role"`; a group may have several. Default `[]`:
    /// groups count as groups in rules, and give no roles.
    #[schemars(with = "TextsSchema")]
    pub group_roles: Vec<String>,
    /// Attribute with topic filters that a user may publish to. Default `"mqttPublishTopic"`, as
    /// EMQX.
    pub publish_attribute: String,
    /// Attribute with topic filters that a user may subscribe to. Default
    /// `"mqttSubscriptionTopic"`, as EMQX.
    pub subscribe_attribute: String,
    /// Attribute with topic filters that a user may publish and subscribe to. Default
    /// `"mqttPubSubTopic"`, as EMQX.
    pub pubsub_attribute: String,
    /// How long rules are used before they are requested again, in whole seconds; 0 is for as long
    /// as the client is connected. Default `"5m"`: a revoked right ends within minutes, and 100,000
    /// clients are 333 searches a second.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema")]
    pub refresh: Duration,
    /// Most connections for searches, and most that verify passwords. Default `8`: each serves
    /// hundreds of users a second.
    #[schemars(range(min = 1, max = 1000))]
    pub pool: u32,
    /// Most requests at a time, those that wait for a connection included; one more is an error,
    /// and its client is refused (0x89). Default `1_000`: a mass reconnect can cause that many in a
    /// second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: u32,
    /// Time limit of one request, waiting and connecting included; a login takes up to three.
    /// Default `"3s"`: a login is over before its client gives up.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 1, max = 60))]
    pub timeout: Duration,
}

/// The verifier of passwords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LdapMethod {
    /// The server.
    #[default]
    Bind,
    /// The broker.
    Compare,
}

impl Default for LdapConfig {
    fn default() -> Self {
        Self {
            url: ServerUrl::default(),
            starttls: false,
            ca: PathBuf::new(),
            bind_dn: String::new(),
            password_file: PathBuf::new(),
            base: String::new(),
            filter: "(&(objectClass=person)(uid=${username}))".to_owned(),
            dn: String::new(),
            method: LdapMethod::Bind,
            password_attribute: "userPassword".to_owned(),
            superuser_attribute: "isSuperuser".to_owned(),
            member_of: String::new(),
            group_base: String::new(),
            group_member: "member".to_owned(),
            group_name: "cn".to_owned(),
            group_roles: Vec::new(),
            publish_attribute: "mqttPublishTopic".to_owned(),
            subscribe_attribute: "mqttSubscriptionTopic".to_owned(),
            pubsub_attribute: "mqttPubSubTopic".to_owned(),
            refresh: REFRESH_DEFAULT,
            pool: POOL_DEFAULT,
            in_flight: IN_FLIGHT_DEFAULT,
            timeout: Duration::from_secs(3),
        }
    }
}
