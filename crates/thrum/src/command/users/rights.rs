//! Roles, groups and rules as options, and as text.

use clap::Args;
use thrum_auth::users::{RuleList, User, UserStore, name_problem};

use crate::command::Failure;

/// Rules as options.
#[derive(Debug, Default, Args)]
pub(super) struct RuleArgs {
    /// Rule that allows: 'pubsub devices/%c/#', 'pub(qos=0,1) a/b', 'sub #'; may be given more than
    /// once.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Rule that denies; evaluated before those that allow.
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
}

impl RuleArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// The rules, ready for use.
    pub(super) fn parse(&self, source: &str) -> anyhow::Result<RuleList> {
        let denied = self.deny.iter().map(|rule| format!("deny {rule}"));
        let allowed = self.allow.iter().map(|rule| format!("allow {rule}"));
        RuleList::parse(denied.chain(allowed).collect(), source).map_err(Failure::usage)
    }
}

/// Names that were given as options.
pub(super) fn names(given: &[String]) -> anyhow::Result<Vec<Box<str>>> {
    for name in given {
        check_name(name)?;
    }
    Ok(given.iter().map(|name| name.as_str().into()).collect())
}

/// Refuses a name that cannot be one.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    match name_problem(name) {
        Some(problem) => Err(Failure::usage(format!("{problem}: {name:?}"))),
        None => Ok(()),
    }
}

/// What a user may do.
pub(super) struct Rights {
    pub(super) is_disabled: bool,
    pub(super) is_superuser: bool,
    /// It has roles or groups.
    pub(super) has_members: bool,
    /// Its rules, and those of its groups and roles.
    pub(super) rules: Vec<String>,
}

/// A warning of roles that do not exist, which is usually a misspelt name.
pub(super) fn warn_of_missing_roles(
    roles: &[Box<str>],
    exists: impl Fn(&str) -> bool,
) -> std::io::Result<()> {
    use std::io::Write as _;
    for role in roles.iter().filter(|role| !exists(role)) {
        writeln!(
            std::io::stderr(),
            "warning: there is no role {role:?}: it gives no rights unless acl.rules name it; \
             thrum roles set {role} --allow RULE makes it"
        )?;
    }
    Ok(())
}

/// The rights of a user, in one sentence.
pub(super) fn describe(name: &str, user: &User, store: &UserStore) -> String {
    let roles = store.all_roles(&user.roles, &user.groups);
    let of_others = store.rules_of(&roles, &user.groups);
    let of_others = of_others.flat_map(RuleList::texts);
    let rights = Rights {
        is_disabled: user.is_disabled,
        is_superuser: user.is_superuser,
        has_members: !roles.is_empty() || !user.groups.is_empty(),
        rules: user
            .rules
            .texts()
            .iter()
            .chain(of_others)
            .cloned()
            .collect(),
    };
    sentence(name, &rights)
}

/// The same of rights that are known.
pub(super) fn sentence(name: &str, rights: &Rights) -> String {
    if rights.is_disabled {
        return format!("{name} is disabled and cannot log in");
    }
    if rights.is_superuser {
        return format!("{name} is a superuser and may do everything");
    }
    let rules = &rights.rules;
    if rules.is_empty() && !rights.has_members {
        return format!(
            "{name} may do nothing yet but what acl.rules allow; next: \
             thrum users change {name} --allow 'pubsub devices/%c/#'"
        );
    }
    if rules.is_empty() {
        return format!(
            "{name} may do what acl.rules say of its roles and groups; they have no rules here"
        );
    }
    format!("{name}: {}", rules.join("; "))
}
