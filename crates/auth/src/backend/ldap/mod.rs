//! Users in a directory.
//!
//! The protocol implementation is thrum's own: it needs only two requests of LDAP v3, and a client
//! library that trusts the server would take the whole process down with it.

mod ber;
mod filter;
mod line;
mod password;
mod search;
mod tls;
mod user;

use std::sync::Arc;

use thrum_access::{Identity, Login, Rules, Secret, Source};

use super::pool::Pool;
use super::record::Decoy;
use super::settings::{SetupError, pool_limits, refresh_secs};
use super::{Asked, Backend, BackendError, Verdict};
use crate::config::{LdapConfig, LdapMethod};
use crate::hash::{Hasher, Requester};
use crate::template::{Place, Template, Values};
use filter::Filter;
use line::{Bind, Connector, NO_SUCH_OBJECT, SUCCESS};
use password::Stored;
use search::{Entry, Scope, Search};
use user::Attributes;

/// Most groups of one user.
const GROUPS_MAX: u32 = 1000;
/// Result codes of a bind that reject this password, or this account: inappropriate authentication,
/// invalid credentials, insufficient rights, unwilling to perform, constraint violation, stronger
/// authentication.
const REFUSALS: [u32; 6] = [48, 49, 50, 53, 19, 8];

/// A directory with users.
#[derive(Debug)]
pub(crate) struct Ldap {
    name: Box<str>,
    /// Source of its rules, for messages.
    source: Source,
    /// Connections of the account that looks users up.
    lookups: Pool<Connector>,
    /// Connections on which passwords are verified.
    binds: Pool<Connector>,
    finder: Finder,
    method: LdapMethod,
    attributes: Attributes,
    groups: Option<Groups>,
    refresh_secs: Option<u32>,
    hasher: Hasher,
    decoy: Decoy,
}

/// How the entry of a user is found.
#[derive(Debug)]
enum Finder {
    /// By a search.
    Filter { base: String, filter: Filter },
    /// By its name.
    Name(Template),
}

/// Where groups are looked up.
#[derive(Debug)]
struct Groups {
    base: String,
    member: String,
    name: [String; 1],
}

impl Ldap {
    /// Reads the settings; connects to nothing yet.
    ///
    /// # Errors
    /// A setting is wrong, or a file cannot be read.
    pub(crate) fn new(name: &str, config: &LdapConfig, hasher: Hasher) -> Result<Self, SetupError> {
        let limits = pool_limits(config.pool, config.in_flight, config.timeout);
        let lookups = Pool::new(Connector::new(config, true)?, limits);
        let binds = Pool::new(Connector::new(config, false)?, limits);
        let finder = Finder::new(config)?;
        let attributes = Attributes::new(config)?;
        let groups = (!config.group_base.is_empty()).then(|| Groups {
            base: config.group_base.clone(),
            member: config.group_member.clone(),
            name: [config.group_name.clone()],
        });
        Ok(Self {
            name: name.into(),
            source: Source::from(Arc::from(name)),
            lookups,
            binds,
            refresh_secs: attributes
                .has_rules()
                .then(|| refresh_secs(config.refresh))
                .flatten(),
            finder,
            method: config.method,
            attributes,
            groups,
            hasher,
            decoy: Decoy::default(),
        })
    }

    async fn verdict(&self, login: &Login) -> Result<Verdict, BackendError> {
        match &login.password {
            None if !login.is_username_verified => return Ok(Verdict::Ignore),
            // A bind with a name and no password succeeds, and verifies nothing (RFC 4513, 5.1.2).
            Some(password) if password.expose().is_empty() => {
                return Ok(Verdict::Deny("empty password".into()));
            }
            _ => {}
        }
        let Some(entry) = self.entry(&Values::of_login(login)).await? else {
            return Ok(Verdict::Ignore);
        };
        if let Some(password) = &login.password {
            let verdict = match self.method {
                LdapMethod::Bind => self.bind(&entry, password).await?,
                LdapMethod::Compare => {
                    self.compare(&entry, password, Requester::login(login))
                        .await?
                }
            };
            if let Some(verdict) = verdict {
                return Ok(verdict);
            }
        }
        let names = self.group_names(&entry).await?;
        let found = self.attributes.found(&entry, names, &self.source)?;
        Ok(Verdict::Allow(Box::new(super::Found {
            refresh_secs: self.refresh_secs,
            ..found
        })))
    }

    /// The entry of the client, if there is one.
    async fn entry(&self, values: &Values<'_>) -> Result<Option<Entry>, BackendError> {
        let name;
        let mut filter = Vec::new();
        let (base, scope) = match &self.finder {
            Finder::Filter {
                base,
                filter: template,
            } => {
                let Ok(true) = template.push(values, &mut filter) else {
                    return Ok(None);
                };
                (base.as_str(), Scope::Subtree)
            }
            Finder::Name(template) => {
                let Ok(Some(filled)) = template.fill(values, push_escaped) else {
                    return Ok(None);
                };
                name = filled;
                ber::push(&mut filter, 0x87, b"objectClass");
                (name.as_str(), Scope::Base)
            }
        };
        let search = Search {
            base,
            scope,
            filter,
            attributes: self.attributes.names(),
            entries_max: 2,
        };
        let mut entries = self.lookups.ask(&search).await?;
        if entries.len() > 1 {
            let what = "the filter fits more than one entry";
            return Err(BackendError::BadAnswer(what.to_owned()));
        }
        Ok(entries.pop())
    }

    /// None if the server accepts the password.
    async fn bind(
        &self,
        entry: &Entry,
        password: &Secret,
    ) -> Result<Option<Verdict>, BackendError> {
        if entry.dn.is_empty() {
            // A bind without a name succeeds as well.
            return Ok(Some(Verdict::Deny("the entry has no name".into())));
        }
        let bind = Bind {
            dn: &entry.dn,
            password: password.expose(),
        };
        match self.binds.ask(&bind).await? {
            SUCCESS => Ok(None),
            NO_SUCH_OBJECT => Ok(Some(Verdict::Ignore)),
            code if REFUSALS.contains(&code) => {
                let what = format!("the server refused the password with the result {code}");
                Ok(Some(Verdict::Deny(what.into())))
            }
            code => Err(BackendError::BadAnswer(format!(
                "bind failed with the result {code}"
            ))),
        }
    }

    /// None if one of the stored passwords matches.
    async fn compare(
        &self,
        entry: &Entry,
        password: &Secret,
        requester: Requester<'_>,
    ) -> Result<Option<Verdict>, BackendError> {
        let mut is_known = false;
        for stored in self.attributes.passwords(entry) {
            let is_right = match password::compare(stored, password.expose()) {
                Stored::Compared(is_right) => is_right,
                Stored::Slow(hash) => {
                    self.decoy.keep(hash);
                    self.hasher.verify(hash, password, requester).await?
                }
                Stored::Unknown => continue,
            };
            if is_right {
                return Ok(None);
            }
            is_known = true;
        }
        if is_known {
            Ok(Some(Verdict::Deny("wrong password".into())))
        } else {
            let what = "the entry shows no password that can be compared: see password_attribute";
            Err(BackendError::BadAnswer(what.to_owned()))
        }
    }

    async fn group_names(&self, entry: &Entry) -> Result<Vec<Box<str>>, BackendError> {
        let Some(groups) = &self.groups else {
            return Ok(Vec::new());
        };
        let mut filter = Vec::new();
        let is_member = Filter::equals(&groups.member, entry.dn.as_bytes());
        if is_member.push(&Values::of_identity(&Identity::default()), &mut filter) != Ok(true) {
            return Ok(Vec::new());
        }
        let search = Search {
            base: &groups.base,
            scope: Scope::Subtree,
            filter,
            attributes: &groups.name,
            entries_max: GROUPS_MAX,
        };
        let entries = self.lookups.ask(&search).await?;
        let names = entries
            .iter()
            .flat_map(|entry| entry.texts(&groups.name[0]));
        Ok(names.map(Box::from).collect())
    }
}

impl Finder {
    fn new(config: &LdapConfig) -> Result<Self, SetupError> {
        if config.dn.is_empty() && config.base.is_empty() {
            return Err(SetupError::setting("base", "set base, or dn"));
        }
        if !config.dn.is_empty() {
            let template =
                Template::parse(&config.dn, Place::Lookup).map_err(SetupError::template("dn"))?;
            return Ok(Self::Name(template));
        }
        let filter = Filter::parse(&config.filter)
            .map_err(|error| SetupError::setting("filter", error.to_string()))?;
        Ok(Self::Filter {
            base: config.base.clone(),
            filter,
        })
    }
}

impl Backend for Ldap {
    fn name(&self) -> &str {
        &self.name
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.verdict(login))
    }

    fn takes_verified(&self) -> bool {
        true
    }

    fn refuse<'a>(&'a self, login: &'a Login) -> Asked<'a, ()> {
        Box::pin(self.decoy.waste(login, &self.hasher))
    }

    fn refresh<'a>(&'a self, identity: &'a Identity) -> Asked<'a, Option<Rules>> {
        Box::pin(async move {
            match self.entry(&Values::of_identity(identity)).await? {
                Some(entry) => self.attributes.rules(&entry, &self.source).map(Some),
                None => Ok(Some(Rules::default())),
            }
        })
    }
}

/// Writes a value of a name (RFC 4514): everything except letters, digits and characters beyond
/// ASCII as hexadecimal.
fn push_escaped(value: &str, to: &mut String) {
    for letter in value.chars() {
        if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
            let byte = u32::from(letter);
            to.push('\\');
            to.extend(
                [byte >> 4, byte & 0xf].map(|digit| char::from_digit(digit, 16).unwrap_or('0')),
            );
        } else {
            to.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For every user name: the name of its entry has the same parts.
        #[test]
        fn no_name_changes_the_name_of_an_entry(username in prop_oneof![".{0,40}", "[,+=#;\\\\\"<> ]{0,20}"]) {
            let template = Template::parse("uid=%u,ou=people,dc=x", Place::Lookup).expect("a template");
            let identity = Identity {
                username: Some(username.as_str().into()),
                ..Identity::default()
            };
            let name = template
                .fill(&Values::of_identity(&identity), push_escaped)
                .expect("text")
                .expect("a name");
            let value = name
                .strip_prefix("uid=")
                .and_then(|rest| rest.strip_suffix(",ou=people,dc=x"))
                .expect("the parts around");
            let specials = [',', '+', '=', '#', ';', '"', '<', '>', ' ', '\0'];
            prop_assert!(!value.contains(specials), "{}", value);
            let plain: Vec<u8> = {
                let mut pieces = value.split('\\');
                let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
                for piece in pieces {
                    bytes.push(u8::from_str_radix(&piece[..2], 16).expect("two digits"));
                    bytes.extend_from_slice(&piece.as_bytes()[2..]);
                }
                bytes
            };
            prop_assert_eq!(plain, username.into_bytes());
        }
    }
}
