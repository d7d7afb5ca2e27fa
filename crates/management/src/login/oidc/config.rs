//! Settings of a provider.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_settings::TextsSchema;

/// An OpenID Connect provider at which administrators log in, beside those of the broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OidcConfig {
    /// Address of the provider, as its tokens name it (`iss`): `https://`, or `http://` on this
    /// machine. Default `""`: there is no provider.
    pub issuer: String,
    /// Name of the broker at the provider. Default `""`.
    pub client_id: String,
    /// File with its secret there; a line feed at the end is not part of it. Default `""`: the
    /// broker has none, and PKCE alone protects the code.
    #[schemars(with = "String")]
    pub client_secret_file: PathBuf,
    /// Address of the broker that the provider sends browsers back to, which has to end with
    /// `/api/v1/login/oidc/callback`. Default `""`.
    pub redirect_uri: String,
    /// Scopes that are asked for beside `openid`. Default `["profile"]`.
    #[schemars(with = "TextsSchema")]
    pub scopes: Vec<String>,
    /// Claim with the name that the audit log shows. Default `"preferred_username"`.
    pub name_claim: String,
    /// Claim with the groups, a list of texts or one text. Default `"groups"`.
    pub groups_claim: String,
    /// Groups whose members have the role `viewer`; of several roles the highest counts, and a
    /// person without any cannot log in. Default `[]`.
    #[schemars(with = "TextsSchema")]
    pub viewers: Vec<String>,
    /// Groups whose members have the role `operator`. Default `[]`.
    #[schemars(with = "TextsSchema")]
    pub operators: Vec<String>,
    /// Groups whose members have the role `administrator`. Default `[]`.
    #[schemars(with = "TextsSchema")]
    pub administrators: Vec<String>,
    /// PEM file with the authority of the provider; empty uses those of the system. Default `""`.
    #[schemars(with = "String")]
    pub ca: PathBuf,
}

impl Default for OidcConfig {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            client_id: String::new(),
            client_secret_file: PathBuf::new(),
            redirect_uri: String::new(),
            scopes: vec!["profile".to_owned()],
            name_claim: "preferred_username".to_owned(),
            groups_claim: "groups".to_owned(),
            viewers: Vec::new(),
            operators: Vec::new(),
            administrators: Vec::new(),
            ca: PathBuf::new(),
        }
    }
}

impl OidcConfig {
    /// Whether any of it is set.
    pub(super) fn is_set(&self) -> bool {
        *self != Self::default()
    }
}
