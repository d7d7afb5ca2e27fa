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
    /// A run of a benchmark.
    BenchmarkRun,
    /// A file that a run of a benchmark left.
    FileOfRun,
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
            Self::BenchmarkRun => "benchmark runs",
            Self::FileOfRun => "files of the run",
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
            Self::BenchmarkRun => "list the runs with GET /api/v1/benchmarks/runs",
            Self::FileOfRun => "GET /api/v1/benchmarks/runs/ID lists the files that are there",
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
            Self::BenchmarkRun => "benchmark run",
            Self::FileOfRun => "file of the run",
            Self::Provider => "provider",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Thing; 13] = [
        Thing::Administrator,
        Thing::ApiKey,
        Thing::Session,
        Thing::User,
        Thing::Role,
        Thing::Group,
        Thing::Listener,
        Thing::Version,
        Thing::Backup,
        Thing::CompleteBackup,
        Thing::BenchmarkRun,
        Thing::FileOfRun,
        Thing::Provider,
    ];

    #[test]
    fn each_kind_has_its_own_remedy_when_there_are_too_many_or_the_name_is_taken() {
        let another = "ask again: another one is chosen";
        for thing in ALL {
            let (removal, taken) = match thing {
                Thing::Administrator => (
                    "remove one with DELETE /api/v1/admins/NAME",
                    "choose another name, or change it with PATCH /api/v1/admins/NAME",
                ),
                Thing::ApiKey => ("remove one with DELETE /api/v1/keys/ID", another),
                _ => ("remove one of them", another),
            };
            assert_eq!(
                (thing.removal(), thing.another()),
                (removal, taken),
                "{thing}"
            );
        }
    }

    #[test]
    fn each_kind_has_a_name_of_its_own_and_says_where_it_is_listed() {
        for (index, thing) in ALL.into_iter().enumerate() {
            let others = ALL.iter().enumerate().filter(|(other, _)| *other != index);
            for (_, other) in others {
                assert_ne!(thing.to_string(), other.to_string());
                assert_ne!(thing.many(), other.many(), "{thing}");
            }
            let listing = thing.listing();
            assert!(
                listing.contains("GET /api/v1/") || thing == Thing::Provider,
                "{thing}"
            );
        }
    }
}
