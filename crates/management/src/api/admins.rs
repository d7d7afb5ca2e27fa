//! `/admins`: administrators of the broker, and the link of the first start.

use std::future::{Ready, ready};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::entrance::Sender;
use super::login::NO_STORE;
use super::request::{Body, Named, SecretText, parsed};
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::login::{AdministratorChange, AdministratorState, Role};
use crate::timestamp::timestamp;

/// An administrator.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    pub created_at: String,
}

/// Administrators by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdministratorList {
    /// At most 1,000, because there are no more.
    pub administrators: Vec<Administrator>,
}

/// An administrator to add.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAdministrator {
    name: String,
    role: String,
    password: SecretText,
}

/// Another password.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Password {
    password: SecretText,
    /// It logs in without a one-time code from now on.
    #[serde(default)]
    remove_totp: bool,
}

/// What changes of an administrator; null keeps it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ChangeBody {
    role: Option<String>,
    disabled: Option<bool>,
    remove_totp: bool,
}

/// The link of the first start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetupLink {
    /// `setup?t=…`, relative to the address of the broker's HTTP port.
    pub path: String,
}

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

pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<NewAdministrator>,
) -> Result<StatusCode, Problem> {
    let role: Role = parsed("role", &body.role)?;
    let change = Change::new("administrator.add", &body.name);
    let change = change.after(json!({ "role": role.name() }));
    let login = &api.security.login;
    let make = async {
        let added = login.add_administrator(body.name, role, body.password.0);
        Ok(added.await?)
    };
    api.audited(&sender.caller, change, make).await?;
    Ok(StatusCode::CREATED)
}

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
    let login = &api.security.login;
    let before = login.current().administrator(&name)?.state();
    let change = Change::new("administrator.change", &name);
    let change = change
        .before(shown(before))
        .after(shown(before.changed(asked)));
    let make = async { Ok(login.change_administrator(name, asked).await?) };
    api.audited(&sender.caller, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
) -> Result<StatusCode, Problem> {
    let login = &api.security.login;
    let before = login.current().administrator(&name)?.state();
    let change = Change::new("administrator.remove", &name).before(shown(before));
    let make = async { Ok(login.remove_administrator(name).await?) };
    api.audited(&sender.caller, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn reset_password(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    Body(body): Body<Password>,
) -> Result<StatusCode, Problem> {
    let login = &api.security.login;
    let before = login.current().administrator(&name)?.state();
    let asked = AdministratorChange {
        removes_totp: body.remove_totp,
        ..AdministratorChange::default()
    };
    let change = Change::new("password.reset", &name);
    let change = change
        .before(shown(before))
        .after(shown(before.changed(asked)));
    let make = async {
        // Its sessions end, also the one of an administrator that resets its own password.
        let reset = login.set_password(name.clone(), body.password.0, None);
        reset.await?;
        if body.remove_totp {
            login.change_administrator(name, asked).await?;
        }
        Ok(())
    };
    api.audited(&sender.caller, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn renew_setup(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<impl IntoResponse, Problem> {
    let change = Change::new("setup-link.add", "");
    let login = &api.security.login;
    let make = async { Ok(login.renew_setup()?) };
    let token = api.audited(&sender.caller, change, make).await?;
    let path = format!("setup?t={}", *token);
    Ok((NO_STORE, Json(SetupLink { path })))
}

fn shown(state: AdministratorState) -> Value {
    json!({ "role": state.role.name(), "disabled": state.is_disabled, "totp": state.has_totp })
}
