//! Who sent a request, and what that caller may ask.

use std::net::IpAddr;
use std::sync::Arc;

use super::scope::{Role, Scope, ScopeSet};

/// How a caller proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The control socket, which only its owner may open.
    Local,
    /// The cookie of a session: a person with a browser.
    Session,
    /// An API key: a program.
    Key,
    /// By nothing.
    Anonymous,
}

impl Means {
    /// Its name in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Session => "session",
            Self::Key => "key",
            Self::Anonymous => "anonymous",
        }
    }
}

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The administrator's name, `key:ID`, `local`, or `anonymous`.
    pub name: Arc<str>,
    /// What it may ask.
    pub scopes: ScopeSet,
    /// Its address; none over the control socket.
    pub from: Option<IpAddr>,
    /// How it proved who it is.
    pub means: Means,
}

impl Caller {
    /// Whoever may open the control socket: the file's mode is the permission.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            scopes: ScopeSet::ALL,
            from: None,
            means: Means::Local,
        }
    }

    /// A request without proof.
    pub fn anonymous(from: Option<IpAddr>) -> Self {
        Self {
            name: "anonymous".into(),
            scopes: ScopeSet::NONE,
            from,
            means: Means::Anonymous,
        }
    }

    /// An administrator with a session.
    pub fn session(name: &str, role: Role, from: Option<IpAddr>) -> Self {
        Self {
            name: name.into(),
            scopes: role.scopes(),
            from,
            means: Means::Session,
        }
    }

    /// The owner of an API key.
    pub fn key(id: &str, scopes: ScopeSet, from: Option<IpAddr>) -> Self {
        Self {
            name: format!("key:{id}").into(),
            scopes,
            from,
            means: Means::Key,
        }
    }

    /// Whether it may ask what needs that scope.
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.allows(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_the_socket_may_do_everything_and_a_stranger_nothing() {
        for scope in Scope::ALL {
            assert!(Caller::local().may(scope));
            assert!(!Caller::anonymous(None).may(scope));
        }
    }

    #[test]
    fn a_session_has_the_scopes_of_its_role_and_a_key_its_own() {
        let viewer = Caller::session("alice", Role::Viewer, None);
        assert!(viewer.may(Scope::ClientsRead) && !viewer.may(Scope::ClientsWrite));
        let key = Caller::key("k1", ScopeSet::of(&[Scope::MessagesWrite]), None);
        assert_eq!(&*key.name, "key:k1");
        assert!(key.may(Scope::MessagesWrite) && !key.may(Scope::MessagesRead));
    }
}
