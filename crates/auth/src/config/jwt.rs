//! Settings of tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DurationSchema, TextsSchema, duration};

/// An issuer of tokens, and the required claims. One of `secret_file`, `public_key_file` and `jwks`
/// has to be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// File with the secret that signs and verifies (HS256, HS384, HS512); a line feed at the end
    /// is not part of it. At least 32 bytes. Default `""`.
    #[schemars(with = "String")]
    pub secret_file: PathBuf,
    /// PEM file with the public key, `BEGIN PUBLIC KEY` (RSA, ECDSA or Ed25519). Default `""`.
    #[schemars(with = "String")]
    pub public_key_file: PathBuf,
    /// Key set (JWKS): an `https://` or `http://` address, or a file. Default `""`.
    pub jwks: String,
    /// PEM file with the authority of an `https://` key set; empty uses those of the system.
    /// Default `""`.
    #[schemars(with = "String")]
    pub ca: PathBuf,
    /// Time between two fetches from the address of a key set, at least 10 s; an unknown key causes
    /// a fetch at once, but not more often than every 10 s. Default `"5m"`.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(min = 10))]
    pub refresh: Duration,
    /// Time for the address of a key set to answer. Default `"5s"`.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(max = 60))]
    pub timeout: Duration,
    /// Accepted algorithms, of `HS256 HS384 HS512 RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384
    /// EdDSA`. A token that names another is not accepted, whatever its key. Default `[]`: `HS256`
    /// with a secret; else `RS256`, `ES256` and `EdDSA`, whichever the key is for.
    #[schemars(with = "TextsSchema")]
    pub algorithms: Vec<String>,
    /// Where the client puts the token: `"password"` or `"username"`. Default `"password"`.
    pub from: TokenField,
    /// Claim with the user name; a token without it is not accepted. `""` keeps the user name that
    /// the client sends, and then one of `verify` has to compare it (`%u`). Default `"sub"`: the
    /// token determines the name, not the client.
    pub username_claim: String,
    /// Claim with rules: lists of topic filters by action (`pub`, `sub`, `all`), or a list of
    /// objects (`permission`, `action`, `topic`, `qos`, `retain`); `""` for none. Default `"acl"`,
    /// as EMQX.
    pub acl_claim: String,
    /// Claim with the roles of the client, a list of texts or one text with spaces; `""` for none.
    /// Default `"roles"`.
    pub roles_claim: String,
    /// Claim with the groups of the client, in the same forms; `""` for none. Default `"groups"`.
    pub groups_claim: String,
    /// Required value of `iss`; tokens of other issuers are left to the next backend. Default `""`:
    /// not checked.
    pub issuer: String,
    /// Accepted audiences: `aud` must name at least one of these. Default `[]`: not checked.
    #[schemars(with = "TextsSchema")]
    pub audience: Vec<String>,
    /// Claims with required values; `%c` is the client identifier, `%u` the user name that the
    /// client sends, `%%` a percent sign. Default `{}`: none.
    pub verify: BTreeMap<String, String>,
    /// A token without `exp` is not accepted. Default `true`: a token that never ends cannot be
    /// revoked.
    pub require_expiry: bool,
    /// Tolerated error of clocks, for `exp` and `nbf`. Default `"10s"`.
    #[serde(with = "duration")]
    #[schemars(with = "DurationSchema", range(max = 600))]
    pub leeway: Duration,
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            secret_file: PathBuf::new(),
            public_key_file: PathBuf::new(),
            jwks: String::new(),
            ca: PathBuf::new(),
            refresh: Duration::from_mins(5),
            timeout: Duration::from_secs(5),
            algorithms: Vec::new(),
            from: TokenField::Password,
            username_claim: "sub".to_owned(),
            acl_claim: "acl".to_owned(),
            roles_claim: "roles".to_owned(),
            groups_claim: "groups".to_owned(),
            issuer: String::new(),
            audience: Vec::new(),
            verify: BTreeMap::new(),
            require_expiry: true,
            leeway: Duration::from_secs(10),
        }
    }
}

/// Where the client puts the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum TokenField {
    /// In the password.
    #[default]
    Password,
    /// In the user name.
    Username,
}
