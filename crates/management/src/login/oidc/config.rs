//! Settings of a provider.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// An OpenID Connect provider at which administrators log in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OidcConfig {
    /// Address of the provider, as its tokens name it (`iss`): `https://`, or `http://` on this
    /// machine.
    pub issuer: String,
    /// Name of the broker at the provider.
    pub client_id: String,
    /// File with its secret there; a line feed at the end is not part of it. Default `""`: the
    /// broker has none, and PKCE alone protects the code.
    pub client_secret_file: PathBuf,
    /// Address of the broker that the provider sends browsers back to, which has to end with
    /// `/api/v1/login/oidc/callback`.
    pub redirect_uri: String,
    /// Scopes that are asked for beside `openid`. Default `["profile"]`.
    pub scopes: Vec<String>,
    /// Claim with the name that the audit log shows. Default `"preferred_username"`.
    pub name_claim: String,
    /// Claim with the groups, a list of texts or one text. Default `"groups"`.
    pub groups_claim: String,
    /// Role (`viewer`, `operator`, `administrator`) of each group; the highest one counts, and
    /// others cannot log in.
    pub roles: BTreeMap<String, String>,
    /// PEM file with the authority of the provider; empty uses those of the system. Default `""`.
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
            roles: BTreeMap::new(),
            ca: PathBuf::new(),
        }
    }
}
