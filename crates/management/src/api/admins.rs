//! `/admins`: administrators of the broker, and the link of the first start.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::entrance::Sender;
use super::login::NO_STORE;
use super::openapi::{Conflict, NotFound, Stored};
use super::request::{Body, Named, SecretText, parsed};
use super::{ApiState, Problem, openapi};
use crate::audit::Change;
use crate::login::{AdministratorChange, AdministratorState, NewPassword, Role};
use crate::timestamp::timestamp;

/// An administrator.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Administrator {
    /// Name.
    pub name: String,
    /// `viewer`, `operator` or `administrator`.
    pub role: String,
    /// May not log in.
    pub disabled: bool,
    /// Logs in with a one-time code.
    pub totp: bool,
    /// Recovery codes that are left.
    pub recovery_codes_left: usize,
    /// Its sessions.
    pub sessions: usize,
    /// Time of its creation.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Administrators by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdministratorList {
    /// At most 1,000, because there are no more.
    pub administrators: Vec<Administrator>,
}

/// An administrator to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAdministrator {
    /// Name.
    #[schema(pattern = "^[A-Za-z0-9._@-]{1,64}$")]
    name: String,
    /// `viewer`, `operator` or `administrator`.
    #[schema(schema_with = openapi::role)]
    role: String,
    /// 12 to 1,024 characters.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 1024)]
    password: SecretText,
}

/// Another password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Password {
    /// 12 to 1,024 characters.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 1024)]
    password: SecretText,
    /// It logs in without a one-time code from now on.
    #[serde(default)]
    remove_totp: bool,
}

/// What changes of an administrator; null keeps it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ChangeBody {
    /// `viewer`, `operator` or `administrator`.
    role: Option<String>,
    /// May not log in.
    disabled: Option<bool>,
    /// It logs in without a one-time code from now on.
    remove_totp: bool,
}

/// The link of the first start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SetupLink {
    /// `setup?t=…`, relative to the address of the broker's HTTP port.
    pub path: String,
}

/// Lists administrators.
#[utoipa::path(
    get,
    path = "/admins",
    operation_id = "list_administrators",
    tag = "administrators",
    responses((status = 200, body = AdministratorList)),
)]
pub(super) fn list(State(api): State<ApiState>) -> Ready<Json<AdministratorList>> {
    let login = &api.security.login;
    let accounts = login.current();
    let all = accounts.administrators.iter();
    let administrators = all.map(|(name, one)| Administrator {
        name: name.to_string(),
        role: one.role.to_string(),
        disabled: one.is_disabled,
        totp: one.has_totp(),
        recovery_codes_left: one.recovery_codes_left(),
        sessions: login.list_sessions(Some(name)).len(),
        created_at: timestamp(one.created_at),
    });
    ready(Json(AdministratorList {
        administrators: administrators.collect(),
    }))
}

/// Adds an administrator.
#[utoipa::path(
    post,
    path = "/admins",
    operation_id = "add_administrator",
    tag = "administrators",
    request_body = NewAdministrator,
    responses((status = 201), Conflict, Stored),
)]
pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<NewAdministrator>,
) -> Result<StatusCode, Problem> {
    let role: Role = parsed("role", &body.role)?;
    let change = Change::new("administrator.add", &body.name);
    let change = change.after(json!({ "role": role.name() }));
    let login = Arc::clone(&api.security.login);
    let make = async move {
        let added = login.add_administrator(body.name, role, body.password.0);
        Ok(added.await?)
    };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::CREATED)
}

/// Changes the role of an administrator, disables it, or removes its one-time codes.
#[utoipa::path(
    patch,
    path = "/admins/{name}",
    operation_id = "change_administrator",
    tag = "administrators",
    params(("name" = String, Path, description = "Name of the administrator")),
    request_body = ChangeBody,
    responses((status = 204), NotFound, Conflict, Stored),
)]
pub(super) async fn change(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    Body(body): Body<ChangeBody>,
) -> Result<StatusCode, Problem> {
    let role = body.role.as_deref();
    let asked = AdministratorChange {
        role: role.map(|role| parsed("role", role)).transpose()?,
        is_disabled: body.disabled,
        removes_totp: body.remove_totp,
    };
    let login = Arc::clone(&api.security.login);
    let before = login.current().administrator(&name)?.state();
    let change = Change::new("administrator.change", &name);
    let change = change
        .before(shown(before))
        .after(shown(before.changed(asked)));
    let make = async move { Ok(login.change_administrator(name, asked).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an administrator; its sessions end.
#[utoipa::path(
    delete,
    path = "/admins/{name}",
    operation_id = "remove_administrator",
    tag = "administrators",
    params(("name" = String, Path, description = "Name of the administrator")),
    responses((status = 204), NotFound, Conflict, Stored),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
) -> Result<StatusCode, Problem> {
    let login = Arc::clone(&api.security.login);
    let before = login.current().administrator(&name)?.state();
    let change = Change::new("administrator.remove", &name).before(shown(before));
    let make = async move { Ok(login.remove_administrator(name).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets another password of an administrator; its sessions end.
#[utoipa::path(
    post,
    path = "/admins/{name}/password",
    operation_id = "reset_password",
    tag = "administrators",
    params(("name" = String, Path, description = "Name of the administrator")),
    request_body = Password,
    responses((status = 204), NotFound, Conflict, Stored),
)]
pub(super) async fn reset_password(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    Body(body): Body<Password>,
) -> Result<StatusCode, Problem> {
    let login = Arc::clone(&api.security.login);
    let before = login.current().administrator(&name)?.state();
    let asked = AdministratorChange {
        removes_totp: body.remove_totp,
        ..AdministratorChange::default()
    };
    let change = Change::new("password.reset", &name);
    let change = change
        .before(shown(before))
        .after(shown(before.changed(asked)));
    // Its sessions end, also the one of an administrator that resets its own password.
    let new = NewPassword {
        session: None,
        removes_totp: body.remove_totp,
    };
    let make = async move { Ok(login.set_password(name, body.password.0, new).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a link that makes the first administrator, once.
#[utoipa::path(
    post,
    path = "/setup-link",
    operation_id = "renew_setup_link",
    tag = "administrators",
    responses((status = 200, body = SetupLink), Conflict, Stored),
)]
pub(super) async fn renew_setup(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<impl IntoResponse, Problem> {
    let change = Change::new("setup-link.add", "");
    let login = Arc::clone(&api.security.login);
    let make = async move { Ok(login.renew_setup()?) };
    let token = api.audited(&sender, change, make).await?;
    let path = format!("setup?t={}", *token);
    Ok((NO_STORE, Json(SetupLink { path })))
}

fn shown(state: AdministratorState) -> Value {
    json!({ "role": state.role.name(), "disabled": state.is_disabled, "totp": state.has_totp })
}
