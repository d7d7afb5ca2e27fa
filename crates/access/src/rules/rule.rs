//! One rule, as data.

use alloc::boxed::Box;
use core::net::IpAddr;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Allows what fits it, or denies it.
    pub allow: bool,
    /// Whom it is about.
    pub who: Who,
    /// What it is about.
    pub actions: Actions,
    /// Topic filter, with placeholders.
    pub filter: Box<str>,
    /// Where it is written: `acl.rules[3]`, `acl.txt:12`, `user alice`.
    pub source: Box<str>,
}

/// Whom a rule is about.
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
    /// The client with this client identifier; a last `*` fits any rest.
    Client(Box<str>),
    /// Clients whose user has this role.
    Role(Box<str>),
    /// Clients whose user is in this group.
    Group(Box<str>),
    /// Clients of this network.
    Network {
        /// Its address.
        address: IpAddr,
        /// Bits of it that count.
        prefix: u8,
    },
    /// Clients that came through this listener.
    Listener(Box<str>),
    /// Clients with this common name in their certificate.
    CommonName(Box<str>),
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    /// Publishing.
    pub publish: bool,
    /// Subscribing, and receiving.
    pub subscribe: bool,
    /// Only with one of these qualities of service.
    pub qos: QosSet,
    /// Only messages to be retained, or only others; none for both. Means nothing for subscriptions.
    pub retain: Option<bool>,
}

/// A set of qualities of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosSet(pub(crate) u8);
