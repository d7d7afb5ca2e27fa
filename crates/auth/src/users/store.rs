//! The store in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use thrum_scram::Credential;

use super::record::{PasswordHash, group_line, role_line, user_line};
use super::rule_list::RuleList;

/// A user.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// None if it cannot log in with a password.
    pub password: Option<PasswordHash>,
    /// Its roles, without those of its groups.
    pub roles: Vec<Box<str>>,
    /// Its groups.
    pub groups: Vec<Box<str>>,
    /// Its own rules, before those of its groups and roles.
    pub rules: RuleList,
    /// Every action is allowed.
    pub is_superuser: bool,
    /// May not log in.
    pub is_disabled: bool,
    /// None if it cannot log in with SCRAM-SHA-256.
    pub scram: Option<Credential>,
}

/// A group: what its members have in common.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Roles of the members.
    pub roles: Vec<Box<str>>,
    /// Rules of the members.
    pub rules: RuleList,
}

/// A role: rules with a name.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Rules of its owners.
    pub rules: RuleList,
}

/// Users, groups and roles by name.
#[derive(Clone, Debug, Default)]
pub struct UserStore {
    users: BTreeMap<Box<str>, User>,
    groups: BTreeMap<Box<str>, Group>,
    roles: BTreeMap<Box<str>, Role>,
}

impl UserStore {
    /// A user.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// A user, to be changed.
    #[cfg(test)]
    pub(crate) fn user_mut(&mut self, name: &str) -> Option<&mut User> {
        self.users.get_mut(name)
    }

    /// All users in the order of their names.
    pub fn users(&self) -> impl ExactSizeIterator<Item = (&str, &User)> {
        self.users.iter().map(|(name, user)| (&**name, user))
    }

    /// The users behind a name in the order of their names, or all of them.
    pub fn users_behind(&self, name: Option<&str>) -> impl Iterator<Item = (&str, &User)> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let users = self.users.range::<str, _>((from, Bound::Unbounded));
        users.map(|(name, user)| (&**name, user))
    }

    /// Adds a user, and returns the replaced one.
    pub fn set_user(&mut self, name: &str, user: User) -> Option<User> {
        self.users.insert(name.into(), user)
    }

    /// Removes a user.
    pub fn remove_user(&mut self, name: &str) -> Option<User> {
        self.users.remove(name)
    }

    /// A group.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// All groups in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Adds a group, and returns the replaced one.
    pub fn set_group(&mut self, name: &str, group: Group) -> Option<Group> {
        self.groups.insert(name.into(), group)
    }

    /// Removes a group; its members keep its name.
    pub fn remove_group(&mut self, name: &str) -> Option<Group> {
        self.groups.remove(name)
    }

    /// A role.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }

    /// All roles in the order of their names.
    pub fn roles(&self) -> impl ExactSizeIterator<Item = (&str, &Role)> {
        self.roles.iter().map(|(name, role)| (&**name, role))
    }

    /// Adds a role, and returns the replaced one.
    pub fn set_role(&mut self, name: &str, role: Role) -> Option<Role> {
        self.roles.insert(name.into(), role)
    }

    /// Removes a role; its owners keep its name.
    pub fn remove_role(&mut self, name: &str) -> Option<Role> {
        self.roles.remove(name)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.roles.is_empty()
    }

    /// The roles given, and those of the groups, each once.
    pub fn all_roles(&self, roles: &[Box<str>], groups: &[Box<str>]) -> Vec<Box<str>> {
        let of_groups = groups.iter().filter_map(|name| self.group(name));
        let mut all: Vec<Box<str>> = Vec::new();
        for role in roles.iter().chain(of_groups.flat_map(|group| &group.roles)) {
            if !all.contains(role) {
                all.push(role.clone());
            }
        }
        all
    }

    /// Rules of the groups, then of the roles.
    pub fn rules_of<'a>(
        &'a self,
        roles: &'a [Box<str>],
        groups: &'a [Box<str>],
    ) -> impl Iterator<Item = &'a RuleList> {
        let of_groups = groups.iter().filter_map(|name| self.group(name));
        let of_roles = roles.iter().filter_map(|name| self.role(name));
        of_groups
            .map(|group| &group.rules)
            .chain(of_roles.map(|role| &role.rules))
    }

    /// Every line of the file.
    pub(super) fn lines(&self) -> impl Iterator<Item = serde_json::Result<String>> {
        let users = self.users().map(|(name, user)| user_line(name, user));
        let groups = self.groups().map(|(name, group)| group_line(name, group));
        let roles = self.roles().map(|(name, role)| role_line(name, role));
        roles.chain(groups).chain(users)
    }
}
