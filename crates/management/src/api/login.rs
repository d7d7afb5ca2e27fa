//! `/login`: the caller itself, its session, password and one-time codes.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_access::Secret;
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Audited, Conflict, NotFound, Stored};
use super::request::{Body, Named, SecretText};
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::login::{AdministratorChange, Credentials, FirstAdministrator, LoggedIn, Refusal};
use crate::login::{Caller, CurrentSession, NewPassword};
use crate::timestamp::timestamp;

/// Who the caller is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// Name of the administrator, `key:ID`, `local` or `anonymous`.
    pub name: String,
    /// `session`, `key`, `local` or `anonymous`.
    pub means: String,
    /// What it may do; `admin` includes everything.
    pub scopes: Vec<String>,
    /// Identifier of its session; null without one.
    pub session: Option<String>,
    /// Value of the header `x-thrum-token`, which changes by cookie need; null without a session.
    pub token: Option<String>,
    /// An administrator exists; if not, the setup link makes one.
    pub set_up: bool,
    /// `GET /login/oidc` logs in at an OpenID Connect provider.
    pub oidc: bool,
}

/// Name, password and code of a login.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoginBody {
    /// Name of the administrator.
    name: String,
    /// Password.
    #[schema(value_type = String, format = Password)]
    password: SecretText,
    /// A one-time code, or a recovery code.
    #[serde(default)]
    code: Option<String>,
}

/// The first administrator.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupBody {
    /// `t` of the link.
    #[schema(value_type = String, format = Password)]
    token: SecretText,
    /// Name.
    name: String,
    /// 12 to 1,024 characters.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 1024)]
    password: SecretText,
}

/// The password before and after.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PasswordBody {
    /// The one before.
    #[schema(value_type = String, format = Password)]
    password: SecretText,
    /// 12 to 1,024 characters.
    #[schema(value_type = String, format = Password, min_length = 12, max_length = 1024)]
    new_password: SecretText,
}

/// The password, again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgainBody {
    /// Password of the caller.
    #[schema(value_type = String, format = Password)]
    password: SecretText,
}

/// A one-time code.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeBody {
    /// A one-time code.
    code: String,
}

/// The secret of one-time codes, shown once; not in force before its first code.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TotpSecret {
    /// In base32, to be typed into an app.
    pub secret: String,
    /// `otpauth://…`, to be shown as a QR code.
    pub address: String,
}

/// Codes for the loss of the app, shown once.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecoveryCodes {
    /// Each is valid once.
    pub recovery_codes: Vec<String>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its identifier, by which it can be ended.
    pub id: String,
    /// Its administrator.
    pub administrator: String,
    /// Address of the login; null over the control socket.
    pub address: Option<String>,
    /// Time of the login.
    #[schema(format = DateTime)]
    pub began_at: String,
    /// Time of its last request.
    #[schema(format = DateTime)]
    pub used_at: String,
    /// It is the session of this request.
    pub current: bool,
}

/// Sessions, by administrator and age.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// At most 2,000, because there are no more.
    pub sessions: Vec<Session>,
}

/// A secret is in no cache.
pub(super) const NO_STORE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// Shows who the caller is, and what it may do.
#[utoipa::path(
    get,
    path = "/login",
    operation_id = "show_caller",
    tag = "login",
    responses((status = 200, body = Whoami)),
)]
#[expect(clippy::needless_pass_by_value, reason = "the signature of a handler")]
pub(super) fn show(State(api): State<ApiState>, sender: Sender) -> Ready<Response> {
    let whoami = whoami(&api, &sender.caller, sender.session.as_ref());
    ready((NO_STORE, Json(whoami)).into_response())
}

/// Logs in with name and password; the answer sets the cookie of the session.
#[utoipa::path(
    post,
    path = "/login",
    operation_id = "log_in",
    tag = "login",
    request_body = LoginBody,
    responses((status = 200, body = Whoami), Stored),
)]
pub(super) async fn log_in(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<LoginBody>,
) -> Result<Response, Problem> {
    let change = Change::new("login", &body.name);
    let credentials = Credentials {
        name: body.name.clone(),
        password: body.password.0,
        code: body.code,
    };
    let from = sender.caller.from;
    let login = &api.security.login;
    let done = login.log_in(credentials, from, sender.session.as_ref());
    let logged_in = match done.await {
        Ok(logged_in) => logged_in,
        // The password was right: half of a login.
        Err(Refusal::CodeNeeded) => return Err(Refusal::CodeNeeded.into()),
        Err(refusal) => {
            api.refused(&sender.caller, change, &refusal).await;
            return Err(refusal.into());
        }
    };
    let caller = Caller::session(&body.name, logged_in.role, from);
    api.logged_in(&caller, change).await;
    Ok(welcome(&api, &caller, &logged_in, sender.is_tls))
}

/// Makes the first administrator with the token of the setup link, and logs it in.
#[utoipa::path(
    post,
    path = "/login/setup",
    operation_id = "set_up",
    tag = "login",
    request_body = SetupBody,
    responses((status = 200, body = Whoami), Conflict, Stored),
)]
pub(super) async fn set_up(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<SetupBody>,
) -> Result<Response, Problem> {
    let name = body.name.clone();
    let first = FirstAdministrator {
        token: body.token.0,
        name: body.name,
        password: body.password.0,
    };
    let login = &api.security.login;
    let change = Change::new("administrator.add", &name);
    if !login.is_setup_link(&first.token) {
        let refusal = Refusal::WrongSetupLink;
        api.refused(&sender.caller, change, &refusal).await;
        return Err(refusal.into());
    }
    let from = sender.caller.from;
    let change = change.after(json!({ "role": "administrator", "setup": "link" }));
    let login = Arc::clone(login);
    let make = async move { Ok(login.set_up(first, from).await?) };
    let logged_in = api.audited(&sender, change, make).await?;
    api.security.counts.logged_in();
    let caller = Caller::session(&name, logged_in.role, from);
    Ok(welcome(&api, &caller, &logged_in, sender.is_tls))
}

/// Logs out.
#[utoipa::path(
    delete,
    path = "/login",
    operation_id = "log_out",
    tag = "login",
    responses((status = 204)),
)]
pub(super) async fn log_out(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<Response, Problem> {
    let (name, session) = sender.administrator()?;
    let removed = api.security.login.log_out(session, sender.is_tls);
    let change = Change::new("logout", name);
    api.happened(&sender.caller, change).await;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, removed)]).into_response())
}

/// Changes the password of the caller; its other sessions end.
#[utoipa::path(
    post,
    path = "/login/password",
    operation_id = "change_password",
    tag = "login",
    request_body = PasswordBody,
    responses((status = 204), NotFound, Stored),
)]
pub(super) async fn change_password(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<PasswordBody>,
) -> Result<StatusCode, Problem> {
    let (name, session) = sender.administrator()?;
    let change = Change::new("password.change", name);
    verify_again(&api, &sender, change.clone(), body.password.0).await?;
    let new = body.new_password.0;
    let with = NewPassword {
        session: Some(session.clone()),
        removes_totp: false,
    };
    let (login, name) = (Arc::clone(&api.security.login), name.to_owned());
    let make = async move { Ok(login.set_password(name, new, with).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a secret for one-time codes, which are in force when the first code is confirmed.
#[utoipa::path(
    post,
    path = "/login/totp",
    operation_id = "begin_totp",
    tag = "login",
    request_body = AgainBody,
    responses((status = 200, body = TotpSecret), NotFound, Conflict, Stored),
)]
pub(super) async fn begin_totp(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<AgainBody>,
) -> Result<impl IntoResponse, Problem> {
    let (name, _) = sender.administrator()?;
    let change = Change::new("totp.begin", name);
    verify_again(&api, &sender, change, body.password.0).await?;
    let made = api.security.login.begin_totp(name)?;
    let secret = TotpSecret {
        secret: made.secret.to_string(),
        address: made.address,
    };
    Ok((NO_STORE, Json(secret)))
}

/// Confirms the first one-time code; from then on each login needs one.
#[utoipa::path(
    post,
    path = "/login/totp/confirm",
    operation_id = "confirm_totp",
    tag = "login",
    request_body = CodeBody,
    responses((status = 200, body = RecoveryCodes), NotFound, Conflict, Stored),
)]
pub(super) async fn confirm_totp(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<CodeBody>,
) -> Result<impl IntoResponse, Problem> {
    let (name, _) = sender.administrator()?;
    let change = Change::new("totp.add", name);
    let (login, name) = (Arc::clone(&api.security.login), name.to_owned());
    let make = async move { Ok(login.confirm_totp(name, &body.code).await?) };
    let recovery_codes = api.audited(&sender, change, make).await?;
    Ok((NO_STORE, Json(RecoveryCodes { recovery_codes })))
}

/// Removes the one-time codes of the caller.
#[utoipa::path(
    post,
    path = "/login/totp/remove",
    operation_id = "remove_totp",
    tag = "login",
    request_body = AgainBody,
    responses((status = 204), NotFound, Conflict, Stored),
)]
pub(super) async fn remove_totp(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<AgainBody>,
) -> Result<StatusCode, Problem> {
    let (name, _) = sender.administrator()?;
    let change = Change::new("totp.remove", name);
    verify_again(&api, &sender, change.clone(), body.password.0).await?;
    let removed = AdministratorChange {
        removes_totp: true,
        ..AdministratorChange::default()
    };
    let (login, name) = (Arc::clone(&api.security.login), name.to_owned());
    let make = async move { Ok(login.change_administrator(name, removed).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the sessions of the caller.
#[utoipa::path(
    get,
    path = "/login/sessions",
    operation_id = "list_own_sessions",
    tag = "login",
    responses((status = 200, body = SessionList)),
)]
#[expect(clippy::needless_pass_by_value, reason = "the signature of a handler")]
pub(super) fn list_sessions(
    State(api): State<ApiState>,
    sender: Sender,
) -> Ready<Result<Json<SessionList>, Problem>> {
    let own = sender.administrator();
    ready(own.map(|(name, _)| Json(sessions(&api, &sender, Some(name)))))
}

/// Lists the sessions of all administrators.
#[utoipa::path(
    get,
    path = "/sessions",
    operation_id = "list_sessions",
    tag = "administrators",
    responses((status = 200, body = SessionList)),
)]
#[expect(clippy::needless_pass_by_value, reason = "the signature of a handler")]
pub(super) fn list_all_sessions(
    State(api): State<ApiState>,
    sender: Sender,
) -> Ready<Json<SessionList>> {
    ready(Json(sessions(&api, &sender, None)))
}

/// Ends a session of the caller.
#[utoipa::path(
    delete,
    path = "/login/sessions/{id}",
    operation_id = "end_own_session",
    tag = "login",
    params(("id" = String, Path, description = "Identifier of the session")),
    responses((status = 204), NotFound, Audited),
)]
pub(super) async fn end_session(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let (name, _) = sender.administrator()?;
    end(&api, &sender, &id, Some(name)).await
}

/// Ends a session of any administrator.
#[utoipa::path(
    delete,
    path = "/sessions/{id}",
    operation_id = "end_session",
    tag = "administrators",
    params(("id" = String, Path, description = "Identifier of the session")),
    responses((status = 204), NotFound, Audited),
)]
pub(super) async fn end_any_session(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    end(&api, &sender, &id, None).await
}

async fn end(
    api: &ApiState,
    sender: &Sender,
    id: &str,
    of: Option<&str>,
) -> Result<StatusCode, Problem> {
    let login = Arc::clone(&api.security.login);
    let change = Change::new("session.end", id);
    let (id, of) = (id.to_owned(), of.map(str::to_owned));
    let make = async move { Ok(login.end_session(&id, of.as_deref())?) };
    api.audited(sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks for the password again, so that an open browser or a stolen cookie is not enough to take an
/// administrator's place for good.
async fn verify_again(
    api: &ApiState,
    sender: &Sender,
    change: Change,
    password: Secret,
) -> Result<(), Problem> {
    let login = &api.security.login;
    let verified = login.verify_again(&sender.caller.name, password, sender.caller.from);
    if let Err(refusal) = verified.await {
        api.refused(&sender.caller, change, &refusal).await;
        return Err(refusal.into());
    }
    Ok(())
}

fn sessions(api: &ApiState, sender: &Sender, of: Option<&str>) -> SessionList {
    let current = sender.session.as_ref().map(CurrentSession::id);
    let rows = api.security.login.list_sessions(of).into_iter();
    let sessions = rows.map(|row| Session {
        current: current.as_ref() == Some(&row.id),
        id: row.id,
        administrator: row.administrator,
        address: row.from.map(|from| from.to_string()),
        began_at: timestamp(row.began_at),
        used_at: timestamp(row.used_at),
    });
    SessionList {
        sessions: sessions.collect(),
    }
}

fn whoami(api: &ApiState, caller: &Caller, session: Option<&CurrentSession>) -> Whoami {
    let login = &api.security.login;
    Whoami {
        name: caller.name.to_string(),
        means: caller.means.name().to_owned(),
        scopes: caller
            .scopes
            .iter()
            .map(|scope| scope.to_string())
            .collect(),
        session: session.map(CurrentSession::id),
        token: session.map(CurrentSession::token),
        set_up: login.is_set_up(),
        oidc: login.has_oidc(),
    }
}

/// The answer to a login.
fn welcome(api: &ApiState, caller: &Caller, logged_in: &LoggedIn, is_tls: bool) -> Response {
    let session = &logged_in.session;
    let cookie = [(SET_COOKIE, session.cookie(is_tls))];
    (NO_STORE, cookie, Json(whoami(api, caller, Some(session)))).into_response()
}
