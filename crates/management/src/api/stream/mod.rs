//! `/stream`: what a page shows, as it changes, as server-sent events.
//!
//! ```text
//!   request -> declared parts (declared) -> Hub: one task for each part that somebody wants (part)
//!        task: asks the broker at its pace -> the newest state (state), no queue
//!        viewer: at each tick, what has changed of its parts, within its share (viewer)
//! ```
//!
//! States that several viewers want are made once. A viewer that reads slowly misses states, never
//! the newest one. Without viewers there is no task and no timer.

mod declared;
mod hub;
mod looks;
mod part;
mod state;
#[cfg(test)]
pub(super) mod tests;
mod viewer;
mod watcher;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;

pub(super) use self::hub::Hub;
pub(super) use self::looks::{Looker, Source, events_of};
pub(super) use self::watcher::{Watcher, wants_events};

use self::declared::{Declared, StreamParameters, check_scopes};
use self::viewer::Viewer;
use self::watcher::answer;
use super::entrance::Sender;
use super::openapi::Asked;
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::login::{Caller, Refusal};

/// What a browser sends when it connects again.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Sends what the query declares, as it changes, as server-sent events.
///
/// Each part needs its scope: `figures` needs `metrics:read`, the others `clients:read`; payloads
/// are sent to callers with `messages:read`, and are a line of the audit log. The events are
/// described in docs/guide/live.md.
#[utoipa::path(
    get,
    path = "/stream",
    operation_id = "show_stream",
    tag = "live",
    params(StreamParameters),
    responses(
        (
            status = 200,
            description = "Events, until one side ends.",
            body = String,
            content_type = "text/event-stream",
        ),
        Asked,
    ),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    sender: Sender,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let declared = Declared::read(query.as_deref().unwrap_or_default(), &sender)?;
    let scopes = declared.scopes();
    if let Err(refusal) = check_scopes(&sender, &scopes) {
        return Err(refused(&api, &sender, refusal).await);
    }
    let caller = sender.caller.clone();
    let watcher = Watcher::begin(&api, sender, scopes)?;
    let declared = noted(&api, &caller, declared).await;
    let last_id = headers.get(LAST_EVENT_ID);
    let last_id = last_id.and_then(|id| id.to_str().ok()?.parse().ok());
    let viewer = Viewer::begin(&api, watcher, declared, last_id).await?;
    Ok(answer(viewer))
}

/// Writes down whose payloads a stream shows, before it does. One that cannot be written down has
/// no payloads: a page with nothing at all would not help to find the cause.
async fn noted(api: &ApiState, caller: &Caller, mut declared: Declared) -> Declared {
    if let Some(look) = declared.look()
        && let Err(problem) = api.looks(caller, look).await
    {
        tracing::debug!(
            caller = %caller.name,
            error = problem.detail,
            "a live stream has no payloads: it is not in the audit log"
        );
        declared.leave_payloads_out();
    }
    declared
}

/// Writes down that a stream was refused.
async fn refused(api: &ApiState, sender: &Sender, refusal: Refusal) -> Problem {
    let change = Change::new("request", "GET /api/v1/stream");
    api.refused(&sender.caller, change, &refusal).await;
    refusal.into()
}
