//! `/roles` and `/user-groups`: rules that users have in common.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thrum_auth::users::{Group as StoredGroup, Role as StoredRole};
use utoipa::ToSchema;

use super::super::audited::Made;
use super::super::entrance::Sender;
use super::super::openapi::{Asked, Audited, Conflict, Known, NotFound, Preconditioned};
use super::super::precondition::{KnownParameters, Precondition, PreconditionParameters, etag_of};
use super::super::request::{Body, Named, NoParameters, PageParameters, Parameters, rows};
use super::super::{ApiState, Problem};
use super::{behind, check_name, missing, names, paged, rules, texts};
use crate::audit::Change;
use crate::thing::Thing;

/// A role: rules with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Role {
    /// Name.
    pub name: String,
    /// Its rules.
    pub rules: Vec<String>,
    /// Names what it is now, for `If-Match`.
    #[serde(default)]
    pub etag: String,
}

/// A page of roles in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RoleList {
    /// The roles.
    pub roles: Vec<Role>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// A group: what its members have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserGroup {
    /// Name.
    pub name: String,
    /// Roles of its members.
    pub roles: Vec<String>,
    /// Rules of its members.
    pub rules: Vec<String>,
    /// Names what it is now, for `If-Match`.
    #[serde(default)]
    pub etag: String,
}

/// A page of groups in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserGroupList {
    /// The groups.
    pub groups: Vec<UserGroup>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// The rules of a role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleBody {
    /// Its rules.
    rules: Vec<String>,
}

/// The roles and rules of a group.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GroupBody {
    /// Roles of its members.
    roles: Vec<String>,
    /// Rules of its members.
    rules: Vec<String>,
}

impl Role {
    /// What the audit log shows of it.
    fn audited(&self) -> Value {
        json!({ "rules": self.rules })
    }

    fn of(name: &str, stored: &StoredRole) -> Self {
        let rules = stored.rules.texts().to_vec();
        Self {
            etag: etag_of(&(name, &rules)),
            name: name.to_owned(),
            rules,
        }
    }
}

impl UserGroup {
    /// What the audit log shows of it.
    fn audited(&self) -> Value {
        json!({ "roles": self.roles, "rules": self.rules })
    }

    fn of(name: &str, stored: &StoredGroup) -> Self {
        let (roles, rules) = (texts(&stored.roles), stored.rules.texts().to_vec());
        Self {
            etag: etag_of(&(name, &roles, &rules)),
            name: name.to_owned(),
            roles,
            rules,
        }
    }
}

/// Lists roles of users in the order of their names.
#[utoipa::path(
    get,
    path = "/roles",
    operation_id = "list_roles",
    tag = "access",
    params(PageParameters),
    responses((status = 200, body = RoleList), Conflict, Asked),
)]
pub(super) async fn list_roles(
    State(api): State<ApiState>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Json<RoleList>, Problem> {
    let limit = rows(limit)?;
    let behind = behind(cursor.as_deref())?;
    let list = api.in_store(move |store| {
        let (roles, next) = paged(store.roles(), limit, behind.as_deref(), Role::of);
        Ok(RoleList { roles, next })
    });
    Ok(Json(list.await?))
}

/// Lists groups of users in the order of their names.
#[utoipa::path(
    get,
    path = "/user-groups",
    operation_id = "list_user_groups",
    tag = "access",
    params(PageParameters),
    responses((status = 200, body = UserGroupList), Conflict, Asked),
)]
pub(super) async fn list_groups(
    State(api): State<ApiState>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Json<UserGroupList>, Problem> {
    let limit = rows(limit)?;
    let behind = behind(cursor.as_deref())?;
    let list = api.in_store(move |store| {
        let (groups, next) = paged(store.groups(), limit, behind.as_deref(), UserGroup::of);
        Ok(UserGroupList { groups, next })
    });
    Ok(Json(list.await?))
}

/// Shows a role.
#[utoipa::path(
    get,
    path = "/roles/{name}",
    operation_id = "show_role",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the role."),
        KnownParameters,
    ),
    responses((status = 200, body = Role), NotFound, Conflict, Known, Asked),
)]
pub(super) async fn show_role(
    State(api): State<ApiState>,
    Named(name): Named,
    known: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Response, Problem> {
    let role = api.in_store(move |store| {
        let found = store.role(&name).map(|found| Role::of(&name, found));
        found.ok_or_else(|| missing(Thing::Role, &name))
    });
    let role = role.await?;
    known.show(Thing::Role, &role.name, &role.etag, &role)
}

/// Shows a group of users.
#[utoipa::path(
    get,
    path = "/user-groups/{name}",
    operation_id = "show_user_group",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the group."),
        KnownParameters,
    ),
    responses((status = 200, body = UserGroup), NotFound, Conflict, Known, Asked),
)]
pub(super) async fn show_group(
    State(api): State<ApiState>,
    Named(name): Named,
    known: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Response, Problem> {
    let group = api.in_store(move |store| {
        let found = store.group(&name).map(|found| UserGroup::of(&name, found));
        found.ok_or_else(|| missing(Thing::Group, &name))
    });
    let group = group.await?;
    known.show(Thing::Group, &group.name, &group.etag, &group)
}

/// Sets a role, in place of one of the same name.
#[utoipa::path(
    put,
    path = "/roles/{name}",
    operation_id = "set_role",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the role."),
        PreconditionParameters,
    ),
    request_body = RoleBody,
    responses((status = 200, body = Role), Conflict, Preconditioned, Asked, Audited),
)]
pub(super) async fn set_role(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Body(body): Body<RoleBody>,
) -> Result<Json<Role>, Problem> {
    check_name("role", &name)?;
    let change = Change::new("role.set", &name).after(json!({ "rules": body.rules }));
    let stored = StoredRole {
        rules: rules(body.rules, &format!("role {name}"))?,
    };
    let set = api.change_store(move |store| {
        let before = store.role(&name).map(|role| Role::of(&name, role));
        let etag = before.as_ref().map(|role| role.etag.as_str());
        precondition.check(Thing::Role, &name, etag)?;
        let role = Role::of(&name, &stored);
        store.set_role(&name, stored);
        Ok(Made {
            before: before.map_or(Value::Null, |role| role.audited()),
            after: role.audited(),
            answer: role,
        })
    });
    let set = api.audited_as_made(&sender, change, set);
    Ok(Json(set.await?))
}

/// Sets a group, in place of one of the same name.
#[utoipa::path(
    put,
    path = "/user-groups/{name}",
    operation_id = "set_user_group",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the group."),
        PreconditionParameters,
    ),
    request_body = GroupBody,
    responses((status = 200, body = UserGroup), Conflict, Preconditioned, Asked, Audited),
)]
pub(super) async fn set_group(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Body(body): Body<GroupBody>,
) -> Result<Json<UserGroup>, Problem> {
    check_name("group", &name)?;
    let change = Change::new("user-group.set", &name);
    let change = change.after(json!({ "roles": body.roles, "rules": body.rules }));
    let stored = StoredGroup {
        roles: names("role", &body.roles)?,
        rules: rules(body.rules, &format!("group {name}"))?,
    };
    let set = api.change_store(move |store| {
        let before = store.group(&name);
        let before = before.map(|group| UserGroup::of(&name, group));
        let etag = before.as_ref().map(|group| group.etag.as_str());
        precondition.check(Thing::Group, &name, etag)?;
        let group = UserGroup::of(&name, &stored);
        store.set_group(&name, stored);
        Ok(Made {
            before: before.map_or(Value::Null, |group| group.audited()),
            after: group.audited(),
            answer: group,
        })
    });
    let set = api.audited_as_made(&sender, change, set);
    Ok(Json(set.await?))
}

/// Removes a role; users keep its name, without its rules.
#[utoipa::path(
    delete,
    path = "/roles/{name}",
    operation_id = "remove_role",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the role."),
        PreconditionParameters,
    ),
    responses((status = 204), NotFound, Conflict, Preconditioned, Asked, Audited),
)]
pub(super) async fn remove_role(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<StatusCode, Problem> {
    let change = Change::new("role.remove", &name);
    let remove = api.change_store(move |store| {
        let before = store.role(&name).map(|found| Role::of(&name, found));
        let before = before.ok_or_else(|| missing(Thing::Role, &name))?;
        precondition.check(Thing::Role, &name, Some(&before.etag))?;
        store.remove_role(&name);
        Ok(Made {
            answer: (),
            before: before.audited(),
            after: Value::Null,
        })
    });
    api.audited_as_made(&sender, change, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a group; users keep its name, without its rules.
#[utoipa::path(
    delete,
    path = "/user-groups/{name}",
    operation_id = "remove_user_group",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the group."),
        PreconditionParameters,
    ),
    responses((status = 204), NotFound, Conflict, Preconditioned, Asked, Audited),
)]
pub(super) async fn remove_group(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<StatusCode, Problem> {
    let change = Change::new("user-group.remove", &name);
    let remove = api.change_store(move |store| {
        let before = store.group(&name).map(|found| UserGroup::of(&name, found));
        let before = before.ok_or_else(|| missing(Thing::Group, &name))?;
        precondition.check(Thing::Group, &name, Some(&before.etag))?;
        store.remove_group(&name);
        Ok(Made {
            answer: (),
            before: before.audited(),
            after: Value::Null,
        })
    });
    api.audited_as_made(&sender, change, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}
