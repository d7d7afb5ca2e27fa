//! The file of mosquitto's dynamic security plugin, made into lines of the user store.
//!
//! The plugin evaluates the roles of a user by their priority, then those of its groups, and the
//! entries of a role by theirs; here the order of roles, groups and rules has the same meaning.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

/// Priority of a role or group that has none.
const PRIORITY_DEFAULT: i64 = -1;

/// Lines of the user store, and what is not in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// A JSON object each: a role, a group or a user.
    pub lines: Vec<String>,
    /// Differences in the converted store.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default, rename = "defaultACLAccess")]
    default_access: DefaultAccess,
    #[serde(default)]
    clients: Vec<Client>,
    #[serde(default)]
    groups: Vec<Group>,
    #[serde(default)]
    roles: Vec<Role>,
    anonymous_group: Option<String>,
}

/// The default decision if no role decides.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DefaultAccess {
    publish_client_send: bool,
    publish_client_receive: bool,
    subscribe: bool,
}

#[derive(Deserialize)]
struct Client {
    username: String,
    clientid: Option<String>,
    encoded_password: Option<String>,
    password: Option<String>,
    salt: Option<String>,
    iterations: Option<u64>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    roles: Vec<RoleName>,
    #[serde(default)]
    groups: Vec<GroupName>,
}

#[derive(Deserialize)]
struct Group {
    groupname: String,
    #[serde(default)]
    roles: Vec<RoleName>,
    #[serde(default)]
    clients: Vec<Member>,
}

#[derive(Deserialize)]
struct Role {
    rolename: String,
    #[serde(default)]
    acls: Vec<rules::Acl>,
    #[serde(default = "yes", rename = "allowwildcardsubs")]
    allow_wildcards: bool,
}

#[derive(Deserialize)]
struct RoleName {
    rolename: String,
    #[serde(default = "priority")]
    priority: i64,
}

#[derive(Deserialize)]
struct GroupName {
    groupname: String,
    #[serde(default = "priority")]
    priority: i64,
}

#[derive(Deserialize)]
struct Member {
    username: String,
    #[serde(default = "priority")]
    priority: i64,
}

fn yes() -> bool {
    true
}

fn priority() -> i64 {
    PRIORITY_DEFAULT
}

/// Makes lines of the user store of a `dynamic-security.json`.
///
/// # Errors
/// The text is not such a file.
pub fn users(text: &str) -> Result<Users, serde_json::Error> {
    let document: Document = serde_json::from_str(text)?;
    let mut notes = Vec::new();
    let mut lines: Vec<Json> = Vec::new();
    for role in &document.roles {
        lines.push(json!({ "role": role.rolename, "rules": rules::of(role, &mut notes) }));
    }
    for group in &document.groups {
        lines.push(json!({ "group": group.groupname, "roles": role_names(&group.roles) }));
    }
    let groups = groups_of_users(&document);
    for client in &document.clients {
        lines.push(user(
            client,
            groups.get(client.username.as_str()),
            &mut notes,
        ));
    }
    defaults(&document, &mut notes);
    Ok(Users {
        lines: lines.iter().map(Json::to_string).collect(),
        notes,
    })
}

fn user(client: &Client, groups: Option<&Vec<&str>>, notes: &mut Vec<String>) -> Json {
    let name = &client.username;
    let mut line = json!({ "user": name });
    match password(client) {
        Some(password) => line["password"] = password.into(),
        None => notes.push(format!(
            "user {name:?} has no password: set one with thrum users passwd"
        )),
    }
    if !client.roles.is_empty() {
        line["roles"] = role_names(&client.roles).into();
    }
    if let Some(groups) = groups {
        line["groups"] = groups.as_slice().into();
    }
    if client.disabled {
        line["disabled"] = true.into();
    }
    if let Some(client_id) = &client.clientid {
        notes.push(format!(
            "user {name:?} may connect with every client identifier, not only with {client_id:?}"
        ));
    }
    line
}

/// The hash in the form of `mosquitto_passwd`.
fn password(client: &Client) -> Option<String> {
    if let Some(encoded) = &client.encoded_password {
        return Some(encoded.clone());
    }
    let (hash, salt) = (client.password.as_ref()?, client.salt.as_ref()?);
    let iterations = client.iterations.filter(|count| *count > 0)?;
    Some(format!("$7${iterations}${salt}${hash}"))
}

/// Names of roles, the highest priority first.
fn role_names(roles: &[RoleName]) -> Vec<&str> {
    let mut sorted: Vec<&RoleName> = roles.iter().collect();
    sorted.sort_by_key(|role| std::cmp::Reverse(role.priority));
    sorted.iter().map(|role| role.rolename.as_str()).collect()
}

/// The groups of each user, the highest priority first; they may be named with the user or with the
/// group.
fn groups_of_users(document: &Document) -> BTreeMap<&str, Vec<&str>> {
    let with_groups = document.groups.iter().flat_map(|group| {
        let members = group.clients.iter();
        members.map(|member| {
            (
                member.username.as_str(),
                member.priority,
                group.groupname.as_str(),
            )
        })
    });
    let with_users = document.clients.iter().flat_map(|client| {
        let groups = client.groups.iter();
        groups.map(|group| {
            (
                client.username.as_str(),
                group.priority,
                group.groupname.as_str(),
            )
        })
    });
    let mut all: Vec<_> = with_groups.chain(with_users).collect();
    all.sort_by_key(|(_, priority, _)| std::cmp::Reverse(*priority));
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (user, _, group) in all {
        let groups = found.entry(user).or_default();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    found
}

/// Rules for all clients are in the configuration, not in the user store.
fn defaults(document: &Document, notes: &mut Vec<String>) {
    let access = &document.default_access;
    let opened = [
        (access.publish_client_send, "publish"),
        (access.subscribe, "subscribe"),
    ];
    for (_, what) in opened.iter().filter(|(is_open, _)| *is_open) {
        notes.push(format!(
            "defaultACLAccess lets every client {what} what no role denies: that is acl.default = \"allow\", for both at once"
        ));
    }
    if !access.publish_client_receive {
        notes.push(
            "defaultACLAccess denies receiving what no role allows: here every client that may subscribe may receive".to_owned(),
        );
    }
    if let Some(group) = &document.anonymous_group {
        notes.push(format!(
            "anonymousGroup {group:?}: give clients without user name their rights in acl.rules, as in \"allow anonymous sub a/#\""
        ));
    }
}
