//! `/keys`: API keys of programs.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::entrance::Sender;
use super::login::NO_STORE;
use super::openapi::{Conflict, NotFound, Stored};
use super::request::{Body, Named, parsed};
use super::{ApiState, Problem, openapi};
use crate::audit::Change;
use crate::login::{Key, NewKey, Scope, ScopeSet};
use crate::timestamp::timestamp;

/// An API key, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// Its identifier, the second part of the key.
    pub id: String,
    /// A text for people.
    pub label: String,
    /// What it may do; `admin` includes everything.
    pub scopes: Vec<String>,
    /// Who made it.
    pub created_by: String,
    /// Time of its creation.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time from which on it is refused; null if it does not expire.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// It has expired.
    pub expired: bool,
    /// Its last use: exact since the start of the broker, before that to an hour; null if it has
    /// not been used.
    #[schema(format = DateTime)]
    pub used_at: Option<String>,
}

/// API keys by identifier.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// At most 1,000, because there are no more.
    pub keys: Vec<ApiKey>,
}

/// An API key to add.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// A text for people, such as the name of the program.
    #[schema(min_length = 1, max_length = 100)]
    pub label: String,
    /// What it may do.
    #[schema(schema_with = openapi::scopes)]
    pub scopes: Vec<String>,
    /// Seconds until it expires; null if it does not, 90 days if absent.
    #[serde(default = "expires_secs")]
    #[schema(default = 7_776_000, minimum = 1, maximum = 3_155_760_000_u64)]
    pub expires_secs: Option<u64>,
}

/// A key that is forgotten ends by itself: 90 days.
#[expect(
    clippy::unnecessary_wraps,
    reason = "none is a key that does not expire"
)]
const fn expires_secs() -> Option<u64> {
    Some(90 * 24 * 60 * 60)
}

/// An API key that was added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// Its row in the list.
    #[serde(flatten)]
    pub row: ApiKey,
    /// `thrum_ID_SECRET`, shown once.
    pub key: String,
}

/// Lists API keys, without their secrets.
#[utoipa::path(
    get,
    path = "/keys",
    operation_id = "list_keys",
    tag = "administrators",
    responses((status = 200, body = KeyList)),
)]
pub(super) fn list(State(api): State<ApiState>) -> Ready<Json<KeyList>> {
    let accounts = api.security.login.current();
    let all = accounts.keys.iter();
    ready(Json(KeyList {
        keys: all.map(|(id, key)| row(&api, id, key)).collect(),
    }))
}

/// Adds an API key, and shows it once.
#[utoipa::path(
    post,
    path = "/keys",
    operation_id = "add_key",
    tag = "administrators",
    request_body = NewApiKey,
    responses((status = 201, body = CreatedKey), Conflict, Stored),
)]
pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<NewApiKey>,
) -> Result<impl IntoResponse, Problem> {
    let scopes = body.scopes.iter().map(|name| parsed("scopes", name));
    let scopes = scopes.collect::<Result<Vec<Scope>, Problem>>()?;
    let scopes: ScopeSet = scopes.into_iter().collect();
    let login = &api.security.login;
    let now = login.now().wall_millis;
    let expires_at = body.expires_secs.map(|secs| {
        let millis = secs.saturating_mul(1000);
        now.saturating_add(millis)
    });
    let change = Change::new("key.add", &body.label);
    let change = change.after(json!({
        "scopes": scopes.to_string(),
        "expires_at": expires_at.map(timestamp),
    }));
    let new = NewKey {
        label: body.label,
        scopes,
        expires_at,
        created_by: sender.caller.name.to_string(),
    };
    let asked = Arc::clone(login);
    let make = async move { Ok(asked.add_key(new).await?) };
    let added = api.audited(&sender, change, make).await?;
    let accounts = login.current();
    let key = accounts.key(&added.id)?;
    let created = CreatedKey {
        row: row(&api, &added.id, key),
        key: added.text.to_string(),
    };
    Ok((StatusCode::CREATED, NO_STORE, Json(created)))
}

/// Removes an API key, which is refused from then on.
#[utoipa::path(
    delete,
    path = "/keys/{id}",
    operation_id = "remove_key",
    tag = "administrators",
    params(("id" = String, Path, description = "Identifier of the key")),
    responses((status = 204), NotFound, Stored),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let login = &api.security.login;
    let accounts = login.current();
    let key = accounts.key(&id)?;
    let change = Change::new("key.remove", &id);
    let change = change.before(json!({
        "label": key.label,
        "scopes": key.scopes.to_string(),
        "created_by": key.created_by,
    }));
    let login = Arc::clone(login);
    let make = async move { Ok(login.remove_key(id).await?) };
    api.audited(&sender, change, make).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn row(api: &ApiState, id: &str, key: &Key) -> ApiKey {
    let login = &api.security.login;
    ApiKey {
        id: id.to_owned(),
        label: key.label.clone(),
        scopes: key.scopes.iter().map(|scope| scope.to_string()).collect(),
        created_by: key.created_by.clone(),
        created_at: timestamp(key.created_at),
        expires_at: key.expires_at.map(timestamp),
        expired: key.is_expired(login.now().wall_millis),
        used_at: login.last_use(id, key.used_at).map(timestamp),
    }
}
