//! `/backups`: copies of all that the broker has stored, made while it runs and kept in its data
//! directory until they are removed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use crate::api::download::Download;
use crate::api::entrance::Sender;
use crate::api::openapi::{Audited, Conflict, NotFound, Programmed};
use crate::api::pace::Paced;
use crate::api::request::{Named, PageParameters, Parameters, rows};
use crate::api::{ApiState, Problem};
use crate::audit::Change;
use crate::login::Scope;
use crate::program::{OpenBackup, ProgramError};
use crate::thing::Thing;

/// Media type of a backup.
const TAR: &str = "application/x-tar";
/// Bytes that are read at once: nothing is read before the client has taken the last ones.
const PORTION_BYTES: u64 = 256 * 1024;
/// Backups that are handed out at a time at an entrance, of which one caller has half at most: each
/// is an open file, whose space is free only when it is closed.
pub(in crate::api) const FILES_MAX: u32 = 8;
/// Longest wait for one of these.
const WAIT_TIME: Duration = Duration::from_secs(5);
/// Seconds after which to ask again.
const RETRY_SECS: u64 = 5;
/// Letters of the name of a backup: a time without separators.
const NAME_LEN: usize = 16;

/// A copy of all that the broker has stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backup {
    /// Its name, which is the time of its beginning.
    pub name: String,
    /// `running`, `ending` (it was removed before it was done), `done` or `failed`.
    pub state: String,
    /// Everything that was acknowledged before is in it.
    #[schema(format = DateTime)]
    pub began_at: String,
    /// Bytes that are written.
    pub bytes: u64,
    /// While it is made, or if that failed: bytes that it has at most.
    pub expected_bytes: Option<u64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// Some of the backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupPage {
    /// The complete ones, the newest first.
    pub backups: Vec<Backup>,
    /// The one that is made now.
    pub running: Option<Backup>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// Lists the complete backups.
#[utoipa::path(
    get,
    path = "/backups",
    operation_id = "list_backups",
    tag = "backups",
    params(PageParameters),
    responses((status = 200, body = BackupPage), Programmed),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(PageParameters { limit, cursor }): Parameters<PageParameters>,
) -> Result<Json<BackupPage>, Problem> {
    let rows = rows(limit)?;
    if let Some(cursor) = cursor.as_deref().filter(|cursor| !is_name(cursor)) {
        let what = format!("cursor: {cursor:?} is not one of this list");
        return Err(Problem::bad_request(what));
    }
    let asked = api.program(|program| Ok((program.backups()?, program.unfinished_backup())));
    let (mut backups, unfinished) = asked.await?;
    if let Some(last) = cursor {
        backups.retain(|backup| backup.name < last);
    }
    let next = (backups.len() > rows).then(|| backups[rows - 1].name.clone());
    backups.truncate(rows);
    Ok(Json(BackupPage {
        backups,
        running: unfinished.filter(|backup| backup.state != "failed"),
        next,
    }))
}

fn is_name(text: &str) -> bool {
    text.len() == NAME_LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Begins a backup of all that the broker has stored.
///
/// It is made beside the work of the broker. `GET /backups/NAME` says how far it is; there is one
/// at a time. The audit log has the request when it has begun, and its outcome at its end.
#[utoipa::path(
    post,
    path = "/backups",
    operation_id = "make_backup",
    tag = "backups",
    responses(
        (status = 202, description = "It has begun.", body = Backup),
        Conflict,
        Programmed,
        Audited,
    ),
)]
pub(super) async fn make(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<(StatusCode, Json<Backup>), Problem> {
    let (begun, begins) = oneshot::channel();
    let change = Change::new("backup.make", "");
    let make = make_one(api.clone(), begun);
    let mut made = pin!(api.audited(&sender, change, make));
    // Once it has begun it goes on, whether somebody waits for its end or not.
    let refused = tokio::select! {
        Ok(backup) = begins => return Ok((StatusCode::ACCEPTED, Json(backup))),
        refused = made.as_mut() => refused,
    };
    Err(refused.err().unwrap_or_else(stopped))
}

/// Tells that it has begun, and waits for its end.
async fn make_one(api: ApiState, begun: oneshot::Sender<Backup>) -> Result<(), Problem> {
    let (ended, ends) = oneshot::channel();
    let ended = Box::new(move |end| {
        // Nobody waits if the broker stops.
        drop(ended.send(end));
    });
    let backup = api.program(|program| program.begin_backup(ended)).await?;
    // The client may have left.
    drop(begun.send(backup));
    let end = ends.await.unwrap_or_else(|_| Err(stopped().detail));
    end.map_err(|why| ProgramError::Io(why).into())
}

fn stopped() -> Problem {
    ProgramError::Stopped.into()
}

/// Shows a backup, also while it is made, and the last one that failed.
#[utoipa::path(
    get,
    path = "/backups/{name}",
    operation_id = "show_backup",
    tag = "backups",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, body = Backup), NotFound, Programmed),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Named(name): Named,
) -> Result<Json<Backup>, Problem> {
    let asked = api.program(move |program| {
        // In this order: one that is done meanwhile is among the complete ones.
        let unfinished = program.unfinished_backup();
        let mut all = unfinished.into_iter().chain(program.backups()?);
        let found = all.find(|backup| backup.name == name);
        found.ok_or(ProgramError::Missing {
            what: Thing::Backup,
            name,
        })
    });
    Ok(Json(asked.await?))
}

/// Reads a complete backup: a tar archive.
///
/// It has payloads in clear text, hashes of passwords and all rights: keep it as such. The next
/// bytes are read when the client has taken the last ones.
#[utoipa::path(
    get,
    path = "/backups/{name}/file",
    operation_id = "fetch_backup",
    tag = "backups",
    params(("name" = String, Path, description = "Its name.")),
    responses(
        (
            status = 200,
            description = "The archive, as `thrum backup restore` takes it.",
            body = String,
            content_type = "application/x-tar",
        ),
        NotFound,
        Programmed,
        Audited,
    ),
)]
pub(super) async fn fetch(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
) -> Result<Response, Problem> {
    let share = api.backup_files.take(&sender.caller, WAIT_TIME).await;
    let held = Paced::new(share.ok_or_else(too_many)?);
    let change = Change::new("backup.fetch", &name);
    let (asked, wanted) = (api.clone(), name.clone());
    let open = async move {
        asked
            .program(move |program| program.open_backup(&wanted))
            .await
    };
    let OpenBackup { file, bytes } = api.audited(&sender, change, open).await?;
    let headers = [
        (CONTENT_TYPE, TAR.to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"thrum-{name}.tar\""),
        ),
    ];
    held.keep(file);
    let download = Download {
        bytes,
        portion_bytes: PORTION_BYTES,
        scope: Scope::Admin,
        threads: Arc::clone(&api.program_permits),
        held,
    };
    Ok((headers, download.body(api, sender)).into_response())
}

fn too_many() -> Problem {
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many requests",
        format!(
            "{} backups are being read by this caller, or {FILES_MAX} by all, and this request has \
             waited {} s",
            FILES_MAX / 2,
            WAIT_TIME.as_secs()
        ),
        "ask again when one of them is read",
    );
    problem.retry_after_secs = Some(RETRY_SECS);
    problem
}

/// Removes a backup; one that is made is ended, and one that failed is forgotten.
#[utoipa::path(
    delete,
    path = "/backups/{name}",
    operation_id = "remove_backup",
    tag = "backups",
    params(("name" = String, Path, description = "Its name.")),
    responses((status = 204), NotFound, Programmed, Audited),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
) -> Result<StatusCode, Problem> {
    let change = Change::new("backup.remove", &name);
    let asked = api.clone();
    let remove = async move {
        asked
            .program(move |program| program.remove_backup(&name))
            .await
    };
    api.audited(&sender, change, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}
