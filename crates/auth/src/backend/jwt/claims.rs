//! Required claims of a token, and the values taken from it. The time is an argument.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thrum_access::Login;

use super::acl;
use crate::backend::{Found, Verdict};
use crate::config::{JwtConfig, TokenField};
use crate::users::name_problem;

/// Most claims that are kept for placeholders.
const CLAIMS_MAX: usize = 64;
/// Most bytes of a claim that is kept for placeholders.
const CLAIM_BYTES_MAX: usize = 1024;
/// Most roles, and most groups.
const NAMES_MAX: usize = 256;

/// The required claims of a token.
#[derive(Debug)]
pub(super) struct Claims {
    /// Source of the rules, for messages.
    source: String,
    username: String,
    acl: String,
    roles: String,
    groups: String,
    issuer: String,
    audience: Vec<String>,
    expected: BTreeMap<String, String>,
    require_expiry: bool,
    leeway_secs: u64,
}

type Refusal = Cow<'static, str>;

impl Claims {
    /// # Errors
    /// The user name would not be verified.
    pub(super) fn new(name: &str, config: &JwtConfig) -> Result<Self, String> {
        let is_compared = config.verify.values().any(|text| text.contains("%u"));
        if config.username_claim.is_empty() && (!is_compared || config.from == TokenField::Username)
        {
            return Err(
                "without username_claim any client could take any user name; set it, or compare the \
                 name that the client sends: verify = { name = \"%u\" }"
                    .to_owned(),
            );
        }
        Ok(Self {
            source: format!("token of {name}"),
            username: config.username_claim.clone(),
            acl: config.acl_claim.clone(),
            roles: config.roles_claim.clone(),
            groups: config.groups_claim.clone(),
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            expected: config.verify.clone(),
            require_expiry: config.require_expiry,
            leeway_secs: config.leeway.as_secs(),
        })
    }

    /// Verifies the claims of a token with a valid signature. `now` is in seconds of the Unix
    /// epoch.
    pub(super) fn verify(&self, claims: &Map<String, Value>, login: &Login, now: u64) -> Verdict {
        let issuer = claims.get("iss").and_then(Value::as_str);
        if !self.issuer.is_empty() && issuer != Some(&self.issuer) {
            return Verdict::Ignore;
        }
        match self.found(claims, login, now) {
            Ok(found) => Verdict::Allow(Box::new(found)),
            Err(why) => Verdict::Deny(why),
        }
    }

    fn found(
        &self,
        claims: &Map<String, Value>,
        login: &Login,
        now: u64,
    ) -> Result<Found, Refusal> {
        let expires_at = self.expires_at(claims, now)?;
        self.check_audience(claims)?;
        for (claim, template) in &self.expected {
            let expected = fill(template, login)
                .ok_or_else(|| format!("nothing to compare the claim {claim:?} with"))?;
            if !claims
                .get(claim)
                .is_some_and(|found| holds(found, &expected))
            {
                return Err(format!("the claim {claim:?} has another value").into());
            }
        }
        let rules = match claims.get(&self.acl) {
            Some(acl) if !self.acl.is_empty() => {
                let rules = acl::rules(acl, &self.source);
                Some(rules.map_err(|why| format!("the claim {:?}: {why}", self.acl))?)
            }
            Some(_) | None => None,
        };
        Ok(Found {
            username: self.username(claims)?,
            roles: names(claims, &self.roles)?,
            groups: names(claims, &self.groups)?,
            rules,
            is_superuser: false,
            expires_at,
            claims: texts(claims),
            refresh_secs: None,
        })
    }

    /// When the client must be disconnected: the end of the token, as far as clocks are trusted.
    fn expires_at(&self, claims: &Map<String, Value>, now: u64) -> Result<Option<u64>, Refusal> {
        if let Some(from) = seconds(claims, "nbf")?
            && from > now.saturating_add(self.leeway_secs)
        {
            return Err("the token is not valid yet".into());
        }
        let Some(end) = seconds(claims, "exp")? else {
            if self.require_expiry {
                return Err("the token never ends (require_expiry)".into());
            }
            return Ok(None);
        };
        let end = end.saturating_add(self.leeway_secs);
        if end <= now {
            return Err("the token has expired".into());
        }
        Ok(Some(end))
    }

    fn check_audience(&self, claims: &Map<String, Value>) -> Result<(), Refusal> {
        let named = claims.get("aud");
        let is_named = |wanted: &String| named.is_some_and(|found| holds(found, wanted));
        if self.audience.is_empty() || self.audience.iter().any(is_named) {
            return Ok(());
        }
        Err("the token is for another audience (aud)".into())
    }

    /// The user name; none keeps the compared one.
    fn username(&self, claims: &Map<String, Value>) -> Result<Option<Box<str>>, Refusal> {
        if self.username.is_empty() {
            return Ok(None);
        }
        let name = claims.get(&self.username).and_then(text);
        let name = name.filter(|name| name_problem(name).is_none());
        let missing = || format!("no user name in the claim {:?}", self.username);
        Ok(Some(name.ok_or_else(missing)?.into()))
    }
}

/// A number of seconds; a fraction is cut off.
fn seconds(claims: &Map<String, Value>, claim: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| *number >= 0.0)?;
        // Up to the first full stop it is a whole number.
        format!("{number:.0}").parse().ok()
    });
    match whole {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(format!("the claim {claim:?} is not a number of seconds").into()),
    }
}

/// Whether a claim is this text, or a list with it.
fn holds(found: &Value, expected: &str) -> bool {
    match found {
        Value::Array(all) => all.iter().any(|one| text(one).as_deref() == Some(expected)),
        one => text(one).as_deref() == Some(expected),
    }
}

/// Text, number or truth value as text.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(value) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Substitutes `%c` and `%u`; none if there is no user name, or the placeholder is unknown.
fn fill(template: &str, login: &Login) -> Option<String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        let mut letters = after.chars();
        match letters.next()? {
            'c' => filled.push_str(&login.identity.client_id),
            'u' => filled.push_str(login.identity.username.as_deref()?),
            '%' => filled.push('%'),
            _ => return None,
        }
        rest = letters.as_str();
    }
    filled.push_str(rest);
    Some(filled)
}

/// A list of names, or one text with spaces between them.
fn names(claims: &Map<String, Value>, claim: &str) -> Result<Vec<Box<str>>, Refusal> {
    let found = claims.get(claim).filter(|_| !claim.is_empty());
    let names: Option<Vec<Box<str>>> = match found {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(all)) => Some(all.split_whitespace().map(Into::into).collect()),
        Some(Value::Array(all)) => all.iter().map(|one| one.as_str().map(Into::into)).collect(),
        Some(_) => None,
    };
    match names {
        Some(names) if names.len() <= NAMES_MAX => Ok(names),
        Some(_) => Err(format!("the claim {claim:?} has more than {NAMES_MAX} names").into()),
        None => Err(format!("the claim {claim:?} is not a list of texts").into()),
    }
}

/// Claims for placeholders.
fn texts(claims: &Map<String, Value>) -> Vec<(Box<str>, Box<str>)> {
    let texts = claims.iter().filter_map(|(name, value)| {
        let text = text(value)?;
        let is_short = name.len() + text.len() <= CLAIM_BYTES_MAX;
        is_short.then(|| (name.as_str().into(), text.into()))
    });
    texts.take(CLAIMS_MAX).collect()
}
