//! One rule, as data.

use alloc::boxed::Box;
use core::fmt;
use core::net::IpAddr;

use thrum_codec::{FIELD_BYTES_MAX, QoS};

use super::error::Problem;
use super::filter::Filter;
use super::{RuleError, Source};
use crate::{Identity, Network};

/// One rule: allows or denies clients an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(super) allow: bool,
    pub(super) who: Who,
    pub(super) actions: Actions,
    pub(super) filter: Filter,
    pub(super) source: Source,
}

/// The clients that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Every client.
    All,
    /// Clients without user name.
    Anonymous,
    /// Clients with any user name.
    Authenticated,
    /// The client with this user name.
    User(Box<str>),
    /// The client with this client identifier.
    Client(Box<str>),
    /// Clients whose identifier begins with this.
    ClientPrefix(Box<str>),
    /// Clients whose user has this role.
    Role(Box<str>),
    /// Clients whose user is in this group.
    Group(Box<str>),
    /// Clients of this network; never a client over a Unix socket.
    Network(Network),
    /// Clients that connected through this listener.
    Listener(Box<str>),
    /// Clients with this common name in their verified certificate.
    CommonName(Box<str>),
}

/// The actions of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    /// Publishing.
    pub publish: bool,
    /// Subscribing, and receiving.
    pub subscribe: bool,
    /// Only with one of these qualities of service.
    pub qos: QosSet,
    /// Only messages with the retain flag, or only others; none for both. Has no effect on
    /// subscriptions.
    pub retain: Option<bool>,
}

/// A set of qualities of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosSet(pub(super) u8);

impl Rule {
    /// Makes a rule. The filter may have placeholders and may begin with `eq `, as in the text
    /// form, but is not quoted.
    ///
    /// # Errors
    /// A name that is empty or longer than 65,535 bytes, no actions, an invalid filter, one that
    /// names a shared subscription or has an unknown placeholder.
    pub fn new(
        allow: bool,
        who: Who,
        actions: Actions,
        filter: &str,
        source: impl Into<Source>,
    ) -> Result<Self, RuleError> {
        Self::build(source.into(), || {
            let filter = match filter.strip_prefix("eq ") {
                Some(exact) => Filter::exact(exact)?,
                None => Filter::new(filter)?,
            };
            Ok((allow, who, actions, filter))
        })
    }

    /// Checks the parts, and adds the source of the rule to an error.
    pub(super) fn build(
        source: Source,
        parts: impl FnOnce() -> Result<(bool, Who, Actions, Filter), Problem>,
    ) -> Result<Self, RuleError> {
        let checked = parts().and_then(|(allow, who, actions, filter)| {
            who.check()?;
            Ok((allow, who, actions.checked()?, filter))
        });
        match checked {
            Ok((allow, who, actions, filter)) => Ok(Self {
                allow,
                who,
                actions,
                filter,
                source,
            }),
            Err(problem) => Err(problem.at(source)),
        }
    }

    /// Allows the actions that match it; otherwise denies them.
    pub const fn is_allow(&self) -> bool {
        self.allow
    }

    /// The clients that it matches.
    pub const fn who(&self) -> &Who {
        &self.who
    }

    /// Its actions.
    pub const fn actions(&self) -> Actions {
        self.actions
    }

    /// Its topic filter, with placeholders, without `eq `.
    pub fn filter(&self) -> &str {
        &self.filter.text
    }

    /// Whether it matches exactly this filter (`eq`).
    pub const fn is_exact(&self) -> bool {
        self.filter.is_exact
    }

    /// Its source.
    pub const fn source(&self) -> &Source {
        &self.source
    }
}

impl Who {
    /// Whether it matches the client.
    pub fn fits(&self, identity: &Identity) -> bool {
        let username = identity.username.as_deref();
        match self {
            Self::All => true,
            Self::Anonymous => username.is_none(),
            Self::Authenticated => username.is_some(),
            Self::User(name) => username == Some(name),
            Self::Client(id) => identity.client_id == *id,
            Self::ClientPrefix(prefix) => identity.client_id.starts_with(&**prefix),
            Self::Role(name) => identity.roles.contains(name),
            Self::Group(name) => identity.groups.contains(name),
            Self::Network(network) => identity
                .address
                .is_some_and(|address: IpAddr| network.contains(address)),
            Self::Listener(name) => *identity.listener == **name,
            Self::CommonName(name) => identity.common_name() == Some(name),
        }
    }

    /// A name is required, except for the beginning of a client identifier, which may be empty.
    fn check(&self) -> Result<(), Problem> {
        let (kind, name) = match self {
            Self::All | Self::Anonymous | Self::Authenticated | Self::Network(_) => return Ok(()),
            Self::User(name) => ("user", name),
            Self::Client(name) => ("client", name),
            Self::ClientPrefix(name) if name.is_empty() => return Ok(()),
            Self::ClientPrefix(name) => ("client", name),
            Self::Role(name) => ("role", name),
            Self::Group(name) => ("group", name),
            Self::Listener(name) => ("listener", name),
            Self::CommonName(name) => ("cn", name),
        };
        if name.is_empty() {
            return Err(Problem::NoName { kind });
        }
        if name.len() > FIELD_BYTES_MAX {
            return Err(Problem::LongName);
        }
        Ok(())
    }
}

impl Actions {
    /// Publishing, in every way.
    pub const PUBLISH: Self = Self {
        publish: true,
        subscribe: false,
        qos: QosSet::ALL,
        retain: None,
    };
    /// Subscribing, in every way.
    pub const SUBSCRIBE: Self = Self {
        publish: false,
        subscribe: true,
        qos: QosSet::ALL,
        retain: None,
    };
    /// Both.
    pub const BOTH: Self = Self {
        publish: true,
        subscribe: true,
        qos: QosSet::ALL,
        retain: None,
    };

    /// Without the parts that have no meaning.
    fn checked(mut self) -> Result<Self, Problem> {
        if (!self.publish && !self.subscribe) || self.qos == QosSet::NONE {
            return Err(Problem::AboutNothing);
        }
        if !self.publish {
            self.retain = None;
        }
        Ok(self)
    }
}

impl QosSet {
    /// No quality of service.
    pub const NONE: Self = Self(0);
    /// All three.
    pub const ALL: Self = Self(0b111);

    /// Whether it is one of them.
    pub const fn contains(self, qos: QoS) -> bool {
        self.0 & (1 << qos as u8) != 0
    }
}

impl FromIterator<QoS> for QosSet {
    fn from_iter<I: IntoIterator<Item = QoS>>(all: I) -> Self {
        all.into_iter()
            .fold(Self::NONE, |set, qos| Self(set.0 | 1 << qos as u8))
    }
}

impl fmt::Display for Rule {
    /// The text form, which [`Rule::parse`] reads again.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = if self.allow { "allow" } else { "deny" };
        write!(
            formatter,
            "{effect} {} {} {}",
            self.who, self.actions, self.filter
        )
    }
}
