//! The contents of a user's entry: rights, groups, rules.

use thrum_access::{Rules, Source};

use super::search::Entry;
use crate::backend::grants::{Grant, RULES_MAX, too_many, truth};
use crate::backend::settings::SetupError;
use crate::backend::{BackendError, Found};
use crate::config::{LdapConfig, LdapMethod};

/// The attributes in use.
#[derive(Debug)]
pub(super) struct Attributes {
    /// The requested attributes.
    names: Vec<String>,
    password: String,
    superuser: String,
    member_of: String,
    /// Action and attribute with its topic filters.
    rules: [(&'static str, String); 3],
    /// Names of groups, and a role of their members.
    roles: Vec<(String, Box<str>)>,
}

impl Attributes {
    pub(super) fn new(config: &LdapConfig) -> Result<Self, SetupError> {
        let password = match config.method {
            LdapMethod::Bind => String::new(),
            LdapMethod::Compare => config.password_attribute.clone(),
        };
        let rules = [
            ("publish", config.publish_attribute.clone()),
            ("subscribe", config.subscribe_attribute.clone()),
            ("all", config.pubsub_attribute.clone()),
        ];
        let mut names: Vec<String> = [&password, &config.superuser_attribute, &config.member_of]
            .into_iter()
            .chain(rules.iter().map(|(_, attribute)| attribute))
            .filter(|name| !name.is_empty())
            .cloned()
            .collect();
        if names.is_empty() {
            // An empty list would mean all attributes; this one means none (RFC 4511, 4.5.1.8).
            names.push("1.1".to_owned());
        }
        let roles = config.group_roles.iter().map(|text| {
            let (group, role) = text.split_once('=').ok_or_else(|| {
                SetupError::setting("group_roles", format!("{text:?} is not \"group=role\""))
            })?;
            Ok((group.trim().to_owned(), role.trim().into()))
        });
        Ok(Self {
            names,
            password,
            superuser: config.superuser_attribute.clone(),
            member_of: config.member_of.clone(),
            rules,
            roles: roles.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn has_rules(&self) -> bool {
        self.rules
            .iter()
            .any(|(_, attribute)| !attribute.is_empty())
    }

    pub(super) fn passwords<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a [u8]> {
        entry.values(&self.password)
    }

    /// The user, with the groups that were looked up.
    pub(super) fn found(
        &self,
        entry: &Entry,
        mut groups: Vec<Box<str>>,
        source: &Source,
    ) -> Result<Found, BackendError> {
        let named = entry.texts(&self.member_of).filter_map(first_value);
        groups.extend(named.map(String::into_boxed_str));
        groups.sort_unstable();
        groups.dedup();
        let of_groups =
            |(group, _): &&(String, Box<str>)| groups.iter().any(|name| **name == **group);
        let roles = self.roles.iter().filter(of_groups);
        let mut roles: Vec<Box<str>> = roles.map(|(_, role)| role.clone()).collect();
        roles.sort_unstable();
        roles.dedup();
        let is_superuser = entry
            .texts(&self.superuser)
            .any(|value| truth(value).unwrap_or_default());
        Ok(Found {
            roles,
            groups,
            rules: Some(self.rules(entry, source)?),
            is_superuser,
            ..Found::default()
        })
    }

    /// The rules of the user. They can only allow, as in EMQX.
    pub(super) fn rules(&self, entry: &Entry, source: &Source) -> Result<Rules, BackendError> {
        let mut rules = Rules::new();
        for (action, attribute) in &self.rules {
            for topic in entry.texts(attribute) {
                let grant = Grant {
                    permission: "allow",
                    action,
                    topic,
                    ..Grant::default()
                };
                rules.push(grant.rule(source)?);
            }
        }
        if rules.len() > RULES_MAX {
            return Err(too_many(source));
        }
        Ok(rules)
    }
}

/// The value of the first part of a name: `operators` of `cn=operators,ou=groups`.
fn first_value(name: &str) -> Option<String> {
    let (_, rest) = name.split_once('=')?;
    let mut value = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ',' | '+' => break,
            '\\' => value.push(letters.next()?),
            _ => value.push(letter),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_of_a_name_is_the_group() {
        for (name, expected) in [
            ("cn=operators,ou=groups,dc=x", Some("operators")),
            ("CN=a\\,b,dc=x", Some("a,b")),
            ("cn=x+ou=y", Some("x")),
            ("nothing", None),
        ] {
            assert_eq!(first_value(name).as_deref(), expected, "{name}");
        }
    }
}
