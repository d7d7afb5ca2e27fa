//! The login of a client, and its outcome.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use thrum_codec::{ReasonCode, Version};

use crate::{Identity, Secret};

/// The credentials of a CONNECT.
#[derive(Clone, Debug)]
pub struct Login {
    /// Known before any verification: client identifier, address, listener, certificate. `username`
    /// is the client's claim, or the name that the listener takes from its certificate; roles,
    /// groups and claims are empty.
    pub identity: Identity,
    /// The user name is the certificate's: no password is needed.
    pub is_username_verified: bool,
    /// The user has logged in from that address before, with a correct password, token or key. Such
    /// a login takes precedence over unknown ones under overload, and has no other privilege.
    pub is_known_there: bool,
    /// Password or token.
    pub password: Option<Secret>,
    /// Protocol version.
    pub version: Version,
    /// Enhanced authentication (MQTT 5.0), if the client asks for it.
    pub method: Option<Method>,
}

/// First step of enhanced authentication.
#[derive(Clone, Debug)]
pub struct Method {
    /// Authentication method: `SCRAM-SHA-256`.
    pub name: Box<str>,
    /// Authentication data.
    pub data: Secret,
}

/// The gatekeeper's answer.
#[derive(Debug)]
pub enum Answer {
    /// Admitted.
    Admit(Box<Admission>),
    /// Refused.
    Deny(Denial),
    /// Another step of enhanced authentication: AUTH 0x18 with this data; the client's answer goes
    /// to [`Gatekeeper::step`](crate::Gatekeeper::step) with the exchange.
    Challenge {
        /// Authentication data for the client.
        data: Vec<u8>,
        /// State between the steps.
        exchange: Exchange,
    },
    /// Nothing has changed; only to [`Gatekeeper::refresh`](crate::Gatekeeper::refresh).
    Unchanged,
}

/// State of an enhanced authentication between two steps, known to the gatekeeper alone.
pub struct Exchange(pub Box<dyn Any + Send>);

impl fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Exchange")
    }
}

/// An admitted client.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Its identity: with the verified user name, roles, groups and claims.
    pub identity: Identity,
    /// Rules of its own (built-in store, token, database), in their order.
    pub rules: Option<Arc<crate::Rules>>,
    /// When it must be disconnected, in seconds of the Unix epoch: the end of its token.
    pub expires_at: Option<u64>,
    /// When its own rules should be asked for again, in seconds from now; none if they do not
    /// change.
    pub refresh_secs: Option<u32>,
    /// Authentication data for CONNACK, or for the AUTH that ends a re-authentication.
    pub data: Option<Vec<u8>>,
}

/// A refused client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Reason code of CONNACK 5.0: bad user name or password, not authorized, server unavailable,
    /// banned, bad authentication method.
    pub reason: ReasonCode,
    /// For the client: does not reveal which users exist.
    pub what: &'static str,
    /// For the log: the backend and the reason. Never contains a secret.
    pub detail: Cow<'static, str>,
}
