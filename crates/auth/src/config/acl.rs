//! Settings of authorization.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DurationSchema, TextsSchema, duration};

/// Settings of authorization: who may publish and subscribe to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AclConfig {
    /// Rules for everybody; the first that fits decides: `"allow all pubsub devices/%c/#"`,
    /// `"allow role:ops sub #"`, `"deny all pubsub $SYS/#"`. Default `[]`.
    #[schemars(with = "TextsSchema")]
    pub rules: Vec<String>,
    /// File with more rules, one a line, after those of `acl.rules`; read again when it changes.
    /// Default `""`: none.
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// A Mosquitto `acl_file`, after both; read again when it changes. Default `""`: none.
    #[schemars(with = "String")]
    pub mosquitto_file: PathBuf,
    /// Who is asked first: `"rules"` (for everybody), `"client"` (the client's own, from user
    /// store, token or database) and `"remote"` (services). Default
    /// `["rules", "client", "remote"]`: what you deny to everybody stays denied.
    pub order: Vec<RuleOrder>,
    /// What happens if nothing decides: `"allow"`, `"deny"`, or `"auto"`: allowed while there are
    /// neither users nor backends nor rules, denied from then on. Default `"auto"`: works out of
    /// the box, and is safe once set up.
    pub default: DefaultAccess,
    /// What a client that publishes what it may not is told: `"reject"` (0x87 for `QoS` above 0; a
    /// client of MQTT 3 is not told) or `"disconnect"`. Default `"reject"`: one wrong topic does
    /// not end the others.
    pub denied_publish: DeniedPublish,
    /// What happens to a subscription of which only a part is allowed: `"filter"` (granted; each
    /// message is checked) or `"deny"`. Default `"filter"`: a client may ask for `#` and gets what
    /// is its own.
    pub partial: PartialSubscription,
    /// Retained messages of clients that may not publish them any more, since rules or users have
    /// changed, are not given to new subscribers. Default `false`: what was published by right
    /// stays.
    pub check_retained_source: bool,
    /// Decisions of services that are remembered for each client, 0 to 10,000. Default `32`: topics
    /// of a usual client.
    #[schemars(range(max = 10_000))]
    pub cache: u32,
    /// How long a decision of a service is remembered. Default `"1m"`: the time that a withdrawn
    /// right lives on.
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

/// Where rules come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RuleOrder {
    /// Rules for everybody.
    Rules,
    /// The client's own.
    Client,
    /// Services.
    Remote,
}

/// What happens if nothing decides.
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

/// What a client that publishes what it may not is told.
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

/// What happens to a subscription of which only a part is allowed.
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
