//! Settings of authorization.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DurationSchema, TextsSchema, duration};

/// Settings of authorization: rules for publishing and subscribing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AclConfig {
    /// Rules for all clients; the first match decides: `"allow all pubsub devices/%c/#"`, `"allow
    /// role:ops sub #"`, `"deny all pubsub $SYS/#"`. Default `[]`.
    #[schemars(with = "TextsSchema")]
    pub rules: Vec<String>,
    /// File with more rules, one a line, after those of `acl.rules`; read again when it changes.
    /// Default `""`: none.
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// A Mosquitto `acl_file`, after both; read again when it changes. Default `""`: none.
    #[schemars(with = "String")]
    pub mosquitto_file: PathBuf,
    /// Order of evaluation: `"rules"` (for all clients), `"client"` (the client's own, from user
    /// store, token or database) and `"remote"` (services). Default `["rules", "client",
    /// "remote"]`: what you deny to all clients stays denied.
    pub order: Vec<RuleOrder>,
    /// The decision if no rule or service decides: `"allow"`, `"deny"`, or `"auto"`: allowed while
    /// there are neither users nor backends nor rules, denied from then on. Default `"auto"`: works
    /// out of the box, and is safe once set up.
    pub default: DefaultAccess,
    /// The reaction to a publish that is denied: `"reject"` (0x87 for `QoS` above 0; a client of
    /// MQTT 3 is not told) or `"disconnect"`. Default `"reject"`: one wrong topic does not end the
    /// others.
    pub denied_publish: DeniedPublish,
    /// The handling of a partly allowed subscription: `"filter"` (granted; each message is checked)
    /// or `"deny"`. Default `"filter"`: a client may subscribe to `#` and gets its own topics.
    pub partial: PartialSubscription,
    /// Withholds retained messages from new subscribers if their publishers may no longer publish
    /// them after a change of rules or users. Default `false`: a message that was published by
    /// right stays.
    pub check_retained_source: bool,
    /// Decisions of services that are cached for each client, 0 to 10,000. Default `32`: topics of
    /// a usual client.
    #[schemars(range(max = 10_000))]
    pub cache: u32,
    /// How long a decision of a service is cached. Default `"1m"`: the time that a withdrawn right
    /// stays in effect.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema")]
    pub cache_ttl: Duration,
}

impl Default for AclConfig {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            file: PathBuf::new(),
            mosquitto_file: PathBuf::new(),
            order: vec![RuleOrder::Rules, RuleOrder::Client, RuleOrder::Remote],
            default: DefaultAccess::Auto,
            denied_publish: DeniedPublish::Reject,
            partial: PartialSubscription::Filter,
            check_retained_source: false,
            cache: 32,
            cache_ttl: Duration::from_mins(1),
        }
    }
}

/// Sources of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RuleOrder {
    /// Rules for all clients.
    Rules,
    /// The client's own.
    Client,
    /// Services.
    Remote,
}

impl RuleOrder {
    /// Its word in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Client => "client",
            Self::Remote => "remote",
        }
    }
}

/// The decision if no rule or service decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DefaultAccess {
    /// Allowed until there are users, backends or rules.
    #[default]
    Auto,
    /// Allowed.
    Allow,
    /// Denied.
    Deny,
}

/// The reaction to a publish that is denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DeniedPublish {
    /// The message is refused.
    #[default]
    Reject,
    /// The connection ends.
    Disconnect,
}

/// The handling of a partly allowed subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PartialSubscription {
    /// Granted, and each message is checked.
    #[default]
    Filter,
    /// Refused.
    Deny,
}
