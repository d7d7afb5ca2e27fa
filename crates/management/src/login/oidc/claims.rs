//! What a token says of a person: OpenID Connect Core 1.0, §3.1.3.7.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::digest::is_same;
use super::super::refusal::Refusal;
use super::super::scope::Role;
use super::config::OidcConfig;

/// Tolerated error of clocks, in seconds.
const LEEWAY_SECS: u64 = 60;
/// Age of a token in seconds: it comes directly from the provider.
const AGE_SECS_MAX: u64 = 600;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 128;
/// What is in front of a name, so that it is never that of an administrator of the broker.
const PREFIX: &str = "oidc:";

/// A person that has logged in at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::login) struct Person {
    /// `oidc:` and its name there.
    pub(in crate::login) name: String,
    /// The highest role of its groups.
    pub(in crate::login) role: Role,
}

/// What a token has to say.
#[derive(Debug)]
pub(super) struct Claims {
    issuer: String,
    client_id: String,
    name: String,
    groups: String,
    roles: BTreeMap<String, Role>,
}

impl Claims {
    /// Reads the settings.
    pub(super) fn new(config: &OidcConfig) -> Result<Self, String> {
        if config.client_id.is_empty() || config.name_claim.is_empty() {
            return Err("client_id and name_claim are needed".to_owned());
        }
        let of = |groups: &[String], role: Role| {
            let groups = groups.iter().map(move |group| (group.clone(), role));
            groups.collect::<Vec<_>>()
        };
        // A group with several roles has the highest, which comes last.
        let mut roles = of(&config.viewers, Role::Viewer);
        roles.extend(of(&config.operators, Role::Operator));
        roles.extend(of(&config.administrators, Role::Administrator));
        if roles.is_empty() {
            return Err(
                "no group has a role, so nobody could log in; name groups in viewers, operators or \
                 administrators"
                    .to_owned(),
            );
        }
        Ok(Self {
            issuer: config.issuer.clone(),
            client_id: config.client_id.clone(),
            name: config.name_claim.clone(),
            groups: config.groups_claim.clone(),
            roles: roles.into_iter().collect(),
        })
    }

    /// Who it is, by the claims of a token whose signature is valid. `now` is in seconds of the
    /// Unix epoch.
    pub(super) fn person(
        &self,
        claims: &Map<String, Value>,
        nonce: &str,
        now: u64,
    ) -> Result<Person, Refusal> {
        self.check(claims, nonce, now)
            .map_err(|why| Refusal::Provider(format!("its token is not accepted: {why}")))?;
        let name = claims.get(&self.name).and_then(Value::as_str);
        let name = name.filter(|name| is_name(name)).ok_or_else(|| {
            let claim = &self.name;
            Refusal::Provider(format!("its token has no name in the claim {claim:?}"))
        })?;
        let groups = texts(claims.get(&self.groups));
        let role = groups
            .iter()
            .filter_map(|group| self.roles.get(*group))
            .max();
        Ok(Person {
            name: format!("{PREFIX}{name}"),
            role: *role.ok_or_else(|| Refusal::NoRole(name.to_owned()))?,
        })
    }

    fn check(
        &self,
        claims: &Map<String, Value>,
        nonce: &str,
        now: u64,
    ) -> Result<(), &'static str> {
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        if text("iss") != Some(&self.issuer) {
            return Err("it is of another issuer");
        }
        let audience = texts(claims.get("aud"));
        if !audience.contains(&&*self.client_id) {
            return Err("it is for another client");
        }
        let party = text("azp");
        let is_party = party.is_some_and(|party| party == self.client_id);
        if (audience.len() > 1 || party.is_some()) && !is_party {
            return Err("it was issued to another client");
        }
        let number = |claim: &str| claims.get(claim).and_then(Value::as_u64);
        let ends = number("exp").ok_or("it does not expire")?;
        if ends.saturating_add(LEEWAY_SECS) <= now {
            return Err("it has expired");
        }
        let began = number("iat").ok_or("it does not say when it was issued")?;
        if began > now + LEEWAY_SECS || began + AGE_SECS_MAX < now {
            return Err("it was not issued now");
        }
        if !text("nonce").is_some_and(|found| is_same(found, nonce)) {
            return Err("it is of another login");
        }
        Ok(())
    }
}

/// Names are shown in the audit log and in lists.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control)
}

/// A list of texts, or one.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 2_000_000_000;

    fn claims() -> Claims {
        Claims::new(&OidcConfig {
            issuer: "https://idp.example".to_owned(),
            client_id: "broker".to_owned(),
            viewers: vec!["all".to_owned(), "ops".to_owned()],
            operators: vec!["ops".to_owned()],
            ..OidcConfig::default()
        })
        .unwrap()
    }

    fn token() -> Map<String, Value> {
        let token = json!({
            "iss": "https://idp.example",
            "aud": "broker",
            "exp": NOW + 300,
            "iat": NOW - 1,
            "nonce": "n",
            "preferred_username": "alice",
            "groups": ["all", "ops", "other"],
        });
        token.as_object().unwrap().clone()
    }

    #[test]
    fn a_person_has_the_highest_role_of_its_groups() {
        let person = claims().person(&token(), "n", NOW).unwrap();
        assert_eq!((&*person.name, person.role), ("oidc:alice", Role::Operator));
        let mut one = token();
        one.insert("groups".to_owned(), json!("all"));
        assert_eq!(claims().person(&one, "n", NOW).unwrap().role, Role::Viewer);
        for groups in [json!(["other"]), json!([]), json!(7), json!(null)] {
            one.insert("groups".to_owned(), groups);
            let refused = claims().person(&one, "n", NOW);
            assert_eq!(refused, Err(Refusal::NoRole("alice".to_owned())));
        }
    }

    #[test]
    fn a_token_that_is_not_for_this_login_is_refused() {
        for (claim, value, why) in [
            ("iss", json!("https://idp.example/"), "another issuer"),
            ("aud", json!("other"), "another client"),
            (
                "aud",
                json!(["broker", "other"]),
                "issued to another client",
            ),
            ("azp", json!("other"), "issued to another client"),
            ("exp", json!(NOW - 60), "expired"),
            ("exp", json!(null), "does not expire"),
            ("iat", json!(NOW + 61), "not issued now"),
            ("iat", json!(NOW - 601), "not issued now"),
            ("iat", json!(null), "does not say"),
            ("nonce", json!("m"), "another login"),
            ("nonce", json!(null), "another login"),
            ("preferred_username", json!(""), "no name"),
            ("preferred_username", json!("a\nb"), "no name"),
            ("preferred_username", json!("x".repeat(129)), "no name"),
        ] {
            let mut wrong = token();
            wrong.insert(claim.to_owned(), value.clone());
            let refused = claims().person(&wrong, "n", NOW).unwrap_err().to_string();
            assert!(refused.contains(why), "{claim} {value}: {refused}");
        }
        let mut several = token();
        several.insert("aud".to_owned(), json!(["other", "broker"]));
        several.insert("azp".to_owned(), json!("broker"));
        assert!(claims().person(&several, "n", NOW + 359).is_ok());
    }

    #[test]
    fn settings_without_roles_are_refused() {
        let config = |operators: &[&str]| OidcConfig {
            client_id: "broker".to_owned(),
            operators: operators.iter().map(|one| (*one).to_owned()).collect(),
            ..OidcConfig::default()
        };
        let refused = Claims::new(&config(&[])).unwrap_err();
        assert!(refused.contains("no group has a role"), "{refused}");
        assert!(Claims::new(&config(&["g"])).is_ok());
    }
}
