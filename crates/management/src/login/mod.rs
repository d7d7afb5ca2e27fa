//! Who may ask: administrators, sessions, API keys, and the scopes of each.
//!
//! ```text
//!   request -> identify: key or cookie -> Caller { name, scopes, from, means } -> handler
//!   password (+ code) -> attempts (slowed?) -> hashing (Argon2, few at once) -> session
//! ```
//!
//! Invariant: of passwords, cookies, keys and links only hashes are kept; every comparison of a
//! secret takes a time that does not depend on it; a name that does not exist is answered like one
//! that does.

mod accounts;
mod administrator;
mod attempts;
mod base32;
mod caller;
mod codes;
mod cookie;
mod digest;
mod hashing;
mod key;
mod key_use;
mod logging_in;
mod managing;
mod oidc;
mod oidc_login;
mod origin;
mod refusal;
mod scope;
mod service;
mod sessions;
mod setup;
mod totp;
mod tried_logins;

/// The header with the token of the session, which a page of ours sends with each change.
pub const TOKEN_HEADER: &str = "x-thrum-token";

pub use accounts::AccountsError;
pub use caller::{Caller, Means};
pub use oidc::{OidcConfig, OidcError};
pub use scope::{Role, Scope, ScopeSet, UnknownName};

pub(crate) use administrator::AdministratorState;
pub(crate) use cookie::NAME as COOKIE_NAME;
#[cfg(test)]
pub(crate) use totp::code_at;

pub(crate) use hashing::HASHES_MAX;
pub(crate) use key::Key;
pub(crate) use logging_in::{Credentials, FirstAdministrator, LoggedIn};
pub(crate) use managing::{AdministratorChange, NewKey, NewPassword};
pub(crate) use oidc::{Callback, Oidc, oidc_of};
pub(crate) use oidc_login::LoginElsewhere;
pub(crate) use refusal::Refusal;
pub(crate) use service::{CurrentSession, Identified, Login, Shows, Unidentified};
pub(crate) use sessions::SessionTimes;
