//! What requests name: kinds of things, as they are called and where they are listed.

use std::fmt;

/// A kind of thing that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// An administrator.
    Administrator,
    /// An API key.
    ApiKey,
    /// A session of an administrator.
    Session,
    /// A user.
    User,
    /// A role of users.
    Role,
    /// A group of users.
    Group,
    /// A listener.
    Listener,
    /// A version of the keys that were set.
    Version,
    /// A backup.
    Backup,
    /// A backup that can be fetched.
    CompleteBackup,
    /// The provider of logins.
    Provider,
}

impl Thing {
    /// Several of them.
    pub(crate) const fn many(self) -> &'static str {
        match self {
            Self::Administrator => "administrators",
            Self::ApiKey => "API keys",
            Self::Session => "sessions",
            Self::User => "users",
            Self::Role => "roles",
            Self::Group => "groups",
            Self::Listener => "listeners",
            Self::Version => "versions",
            Self::Backup => "backups",
            Self::CompleteBackup => "complete backups",
            Self::Provider => "providers",
        }
    }

    /// What to do when nothing of the kind has the name: the list of what there is.
    pub(crate) const fn listing(self) -> &'static str {
        match self {
            Self::Administrator => "list the administrators with GET /api/v1/admins",
            Self::ApiKey => "list the keys with GET /api/v1/keys",
            Self::Session => {
                "list the sessions with GET /api/v1/sessions, your own with GET /api/v1/login/sessions"
            }
            Self::User => "list the users with GET /api/v1/users",
            Self::Role => "list the roles with GET /api/v1/roles",
            Self::Group => "list the groups with GET /api/v1/user-groups",
            Self::Listener => "list the listeners with GET /api/v1/listeners",
            Self::Version => "list the versions with GET /api/v1/config/versions",
            Self::Backup | Self::CompleteBackup => "list the backups with GET /api/v1/backups",
            Self::Provider => "log in with name and password, or configure management.oidc",
        }
    }

    /// What to do when there may be no more of the kind.
    pub(crate) const fn removal(self) -> &'static str {
        match self {
            Self::ApiKey => "remove one with DELETE /api/v1/keys/ID",
            Self::Administrator => "remove one with DELETE /api/v1/admins/NAME",
            _ => "remove one of them",
        }
    }

    /// What to do when one of the kind has the name already.
    pub(crate) const fn another(self) -> &'static str {
        match self {
            Self::Administrator => {
                "choose another name, or change it with PATCH /api/v1/admins/NAME"
            }
            _ => "ask again: another one is chosen",
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Administrator => "administrator",
            Self::ApiKey => "API key",
            Self::Session => "session",
            Self::User => "user",
            Self::Role => "role",
            Self::Group => "group",
            Self::Listener => "listener",
            Self::Version => "version",
            Self::Backup => "backup",
            Self::CompleteBackup => "complete backup",
            Self::Provider => "provider",
        })
    }
}
