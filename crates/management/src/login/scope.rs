//! What a caller may ask: scopes, sets of them, and the roles that stand for a set.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A right to a group of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Clients, sessions, subscriptions and their timelines.
    ClientsRead,
    /// Disconnect, ban and clear clients, change their subscriptions.
    ClientsWrite,
    /// Payloads: of retained messages, of queues, of traces.
    MessagesRead,
    /// Publish; delete and import retained messages.
    MessagesWrite,
    /// Settings, listeners and certificates.
    ConfigRead,
    /// Change, apply and roll back settings; start and stop listeners.
    ConfigWrite,
    /// Users, groups, roles and rules of MQTT clients, never their passwords.
    UsersRead,
    /// Change users, groups, roles and rules.
    UsersWrite,
    /// The log of the broker.
    LogsRead,
    /// The audit log.
    AuditRead,
    /// Figures: status, metrics, alarms.
    MetricsRead,
    /// Benchmarks: runs, samples, results and comparisons.
    BenchmarksRead,
    /// Start, stop and remove benchmarks.
    BenchmarksWrite,
    /// Administrators, their sessions and API keys; includes every other scope.
    Admin,
}

/// A text that names no scope or role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no {kind}: it is one of {known}")]
pub struct UnknownName {
    kind: &'static str,
    text: String,
    known: String,
}

impl UnknownName {
    /// Longest part of a wrong text that the error repeats.
    const SHOWN_MAX: usize = 64;

    fn new(kind: &'static str, text: &str, known: &[&str]) -> Self {
        Self {
            kind,
            text: text.chars().take(Self::SHOWN_MAX).collect(),
            known: known.join(", "),
        }
    }
}

impl Scope {
    /// All scopes, in the order in which they are shown.
    pub const ALL: [Self; 14] = [
        Self::ClientsRead,
        Self::ClientsWrite,
        Self::MessagesRead,
        Self::MessagesWrite,
        Self::ConfigRead,
        Self::ConfigWrite,
        Self::UsersRead,
        Self::UsersWrite,
        Self::LogsRead,
        Self::AuditRead,
        Self::MetricsRead,
        Self::BenchmarksRead,
        Self::BenchmarksWrite,
        Self::Admin,
    ];

    /// Its name, such as `clients:read`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientsRead => "clients:read",
            Self::ClientsWrite => "clients:write",
            Self::MessagesRead => "messages:read",
            Self::MessagesWrite => "messages:write",
            Self::ConfigRead => "config:read",
            Self::ConfigWrite => "config:write",
            Self::UsersRead => "users:read",
            Self::UsersWrite => "users:write",
            Self::LogsRead => "logs:read",
            Self::AuditRead => "audit:read",
            Self::MetricsRead => "metrics:read",
            Self::BenchmarksRead => "benchmarks:read",
            Self::BenchmarksWrite => "benchmarks:write",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| UnknownName::new("scope", text, &Self::ALL.map(Self::name)))
    }
}

/// Scopes, each a bit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeSet(u16);

impl ScopeSet {
    /// No scope.
    pub const NONE: Self = Self(0);
    /// `admin`, which includes every other.
    pub const ALL: Self = Self::of(&[Scope::Admin]);

    /// Exactly these.
    pub const fn of(scopes: &[Scope]) -> Self {
        let (mut bits, mut place) = (0, 0);
        // `for` is not const.
        while place < scopes.len() {
            bits |= scopes[place].bit();
            place += 1;
        }
        Self(bits)
    }

    /// Whether it permits what needs that scope: it has it, or `admin`.
    pub const fn allows(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Whether it permits all that another set permits.
    #[cfg(test)]
    fn includes(self, other: Self) -> bool {
        other.iter().all(|scope| self.allows(scope))
    }

    /// Whether it permits nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its scopes in the order of [`Scope::ALL`], without those that `admin` includes.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let all = Scope::ALL.into_iter();
        all.filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let scopes = scopes.into_iter();
        Self(scopes.fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.iter().enumerate() {
            let separator = if place == 0 { "" } else { "," };
            write!(formatter, "{separator}{scope}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// The role of an administrator: a set of scopes with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees the state of the broker, and neither payloads nor the audit log.
    Viewer,
    /// Runs the broker day by day: clients and messages, but no settings and no users.
    Operator,
    /// May do everything.
    Administrator,
}

impl Role {
    /// All roles, from the least rights to the most.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Administrator];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// What it permits.
    pub const fn scopes(self) -> ScopeSet {
        const VIEWER: ScopeSet = ScopeSet::of(&[
            Scope::ClientsRead,
            Scope::ConfigRead,
            Scope::UsersRead,
            Scope::LogsRead,
            Scope::MetricsRead,
            Scope::BenchmarksRead,
        ]);
        const OPERATOR: ScopeSet = ScopeSet::of(&[
            Scope::ClientsWrite,
            Scope::MessagesRead,
            Scope::MessagesWrite,
            Scope::AuditRead,
            Scope::BenchmarksWrite,
        ]);
        match self {
            Self::Viewer => VIEWER,
            Self::Operator => ScopeSet(VIEWER.0 | OPERATOR.0),
            Self::Administrator => ScopeSet::ALL,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| UnknownName::new("role", text, &Self::ALL.map(Self::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_and_role_is_read_as_it_is_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert_eq!(ScopeSet::of(&[scope]).iter().collect::<Vec<_>>(), [scope]);
        }
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        let error = "clients:all".parse::<Scope>().unwrap_err().to_string();
        assert!(
            error.contains("\"clients:all\"") && error.contains("clients:write, "),
            "{error}"
        );
        let long = "x".repeat(10_000).parse::<Role>().unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn admin_includes_every_scope_and_no_other_scope_includes_another() {
        for scope in Scope::ALL {
            assert!(ScopeSet::ALL.allows(scope));
            assert!(!ScopeSet::NONE.allows(scope));
            for other in Scope::ALL {
                let only = ScopeSet::of(&[scope]);
                let is_included = scope == other || scope == Scope::Admin;
                assert_eq!(only.allows(other), is_included, "{scope} {other}");
            }
        }
    }

    #[test]
    fn each_role_includes_the_one_below_it() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[1].scopes().includes(pair[0].scopes()), "{pair:?}");
            assert!(!pair[0].scopes().includes(pair[1].scopes()), "{pair:?}");
        }
    }

    #[test]
    fn a_viewer_sees_no_payload_and_changes_nothing() {
        let viewer = Role::Viewer.scopes();
        for scope in Scope::ALL {
            if scope.name().ends_with(":write") || scope == Scope::Admin {
                assert!(!viewer.allows(scope), "{scope}");
            }
        }
        assert!(!viewer.allows(Scope::MessagesRead) && !viewer.allows(Scope::AuditRead));
        let operator = Role::Operator.scopes();
        for scope in [Scope::ConfigWrite, Scope::UsersWrite, Scope::Admin] {
            assert!(!operator.allows(scope), "{scope}");
        }
    }

    #[test]
    fn a_set_is_written_with_commas() {
        let set: ScopeSet = [Scope::MetricsRead, Scope::ClientsRead]
            .into_iter()
            .collect();
        assert_eq!(set.to_string(), "clients:read,metrics:read");
        assert_eq!(ScopeSet::NONE.to_string(), "");
        assert!(ScopeSet::NONE.is_empty());
    }
}
